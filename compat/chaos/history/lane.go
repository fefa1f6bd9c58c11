package history

import (
	"bytes"
	"strconv"
	"sync"
)

// Acks is how many replicas a producer waits for.
type Acks int8

// The ways to produce.
const (
	AcksNone   Acks = 0
	AcksLeader Acks = 1
	AcksAll    Acks = -1
)

// String is how the setting of a producer is written.
func (a Acks) String() string {
	switch a {
	case AcksNone:
		return "acks=0"
	case AcksLeader:
		return "acks=1"
	}
	return "acks=all"
}

// Key names a record: its writer and its place among those that the writer sent
// to the partition.
type Key uint64

func keyOf(writer, n int) Key { return Key(writer+1)<<32 | Key(n) }

func (k Key) writer() int { return int(k>>32) - 1 }
func (k Key) n() int      { return int(uint32(k)) }

// String is the writer and the place, with a colon between.
func (k Key) String() string { return strconv.Itoa(k.writer()) + ":" + strconv.Itoa(k.n()) }

const filler = "the quick brown fox jumps over the lazy dog and the log is ordered "

// Value is the record's value, which only Value makes.
func (k Key) Value() []byte { return k.append(make([]byte, 0, 96)) }

func (k Key) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(k.writer()), 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(k.n()), 10)
	b = append(b, ' ')
	at := k.n() % len(filler)
	b = append(b, filler[at:]...)
	return append(b, filler[:at]...)
}

// Parse returns the record's key; false if the value is not one that Value made.
func Parse(value []byte) (Key, bool) {
	head, _, ok := bytes.Cut(value, []byte(" "))
	if !ok {
		return 0, false
	}
	w, n, ok := bytes.Cut(head, []byte(":"))
	if !ok {
		return 0, false
	}
	writer, err := strconv.ParseUint(string(w), 10, 16)
	if err != nil {
		return 0, false
	}
	count, err := strconv.ParseUint(string(n), 10, 32)
	if err != nil {
		return 0, false
	}
	k := keyOf(int(writer), int(count))
	var buf [128]byte
	return k, bytes.Equal(value, k.append(buf[:0]))
}

// What a write's offset is when it has none.
const (
	pending  = -3
	refused  = -2
	nowhere  = -1 // acknowledged, but the offset was not told
	unplaced = -1
)

// write is one record that was handed to a producer.
type write struct {
	begin, end Stamp
	offset     int64
}

func (w write) acked() bool { return w.offset >= nowhere }

// Lane is what one writer sent to one partition, in its order.
type Lane struct {
	writer int
	acks   Acks
	h      *History
	mu     sync.Mutex
	writes []write
	last   Stamp // of the newest acknowledgement
	gap    Stamp // the longest time between two
	from   Stamp // when the longest gap began
}

// Begin notes that the next record is handed over now.
func (l *Lane) Begin() Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, write{begin: l.h.Now(), offset: pending})
	return keyOf(l.writer, len(l.writes)-1)
}

// Acked notes an acknowledgement; offset is -1 if it was not told.
func (l *Lane) Acked(k Key, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.h.Now()
	w := &l.writes[k.n()]
	w.end, w.offset = now, max(offset, nowhere)
	if since := now - l.last; l.last != 0 && since > l.gap {
		l.gap, l.from = since, l.last
	}
	l.last = now
	if l.acks == AcksAll {
		l.h.silence.end(now)
	}
}

// silence is the longest time without an acknowledgement to anybody.
type silence struct {
	mu              sync.Mutex
	last, gap, from Stamp
}

func (s *silence) end(now Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != 0 && now > s.last && now-s.last > s.gap {
		s.gap, s.from = now-s.last, s.last
	}
	s.last = max(s.last, now)
}

// Failed notes that the producer gave the record up. It may be in the log.
func (l *Lane) Failed(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[k.n()].offset = refused
}
