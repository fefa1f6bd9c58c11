package least

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// again is the pause before a reader that waits is looked at once more.
const again = time.Millisecond

// stretch is what one partition gives to a reader: a part of its file.
type stretch struct {
	partition int32
	code      int16
	log       *partition
	high      int64 // the high watermark, an offset
	at        int64
	n         int
	behind    int // bytes of the answer ahead of the file's
}

// fetch answers a Fetch request of version 11 without a session.
func (c *conn) fetch(r request, req *kmsg.FetchRequest) error {
	end := time.Now().Add(time.Duration(req.MaxWaitMillis) * time.Millisecond)
	for ; ; time.Sleep(again) {
		all, bytes, err := c.collect(req)
		if err != nil {
			return err
		}
		if bytes >= int(req.MinBytes) || time.Now().After(end) {
			return c.reply(r, req, all, bytes)
		}
	}
}

// collect finds what there is, by topic.
func (c *conn) collect(req *kmsg.FetchRequest) (all [][]stretch, bytes int, err error) {
	for i := range req.Topics {
		var found []stretch
		for _, p := range req.Topics[i].Partitions {
			l, err := c.c.at(req.Topics[i].Topic, p.Partition)
			if err != nil {
				return nil, 0, err
			}
			s := l.find(p.FetchOffset, int64(min(p.PartitionMaxBytes, req.MaxBytes-int32(bytes))), bytes == 0)
			s.partition = p.Partition
			bytes += s.n
			found = append(found, s)
		}
		all = append(all, found)
	}
	return all, bytes, nil
}

// find returns whole batches from an offset on, of so many bytes at most; the first
// one if asked for, however large.
func (l *partition) find(offset, most int64, first bool) stretch {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := stretch{log: l, high: l.next}
	if offset < 0 || offset > l.next {
		s.code = kerr.OffsetOutOfRange.Code
	}
	if s.code != 0 || offset == l.next {
		return s
	}
	i, found := slices.BinarySearchFunc(l.batches, offset, func(b batch, o int64) int { return int(b.offset - o) })
	if !found {
		i--
	}
	ends := func(i int) int64 {
		if i+1 < len(l.batches) {
			return l.batches[i+1].at
		}
		return l.size
	}
	s.at = l.batches[i].at
	for ; i < len(l.batches) && (ends(i)-s.at <= most || first); i++ {
		s.n, first = int(ends(i)-s.at), false
	}
	return s
}

// reply sends the answer; what lies in files goes by sendfile.
func (c *conn) reply(r request, req *kmsg.FetchRequest, all [][]stretch, bytes int) error {
	be := binary.BigEndian
	c.begin(r)
	c.out = be.AppendUint32(c.out, 0) // throttle
	c.out = be.AppendUint16(c.out, 0)
	c.out = be.AppendUint32(c.out, 0) // session
	c.out = be.AppendUint32(c.out, uint32(len(all)))
	for i := range all {
		name := req.Topics[i].Topic
		c.out = append(be.AppendUint16(c.out, uint16(len(name))), name...)
		c.out = be.AppendUint32(c.out, uint32(len(all[i])))
		for j := range all[i] {
			s := &all[i][j]
			c.out = be.AppendUint32(c.out, uint32(s.partition))
			c.out = be.AppendUint16(c.out, uint16(s.code))
			c.out = be.AppendUint64(c.out, uint64(s.high))
			c.out = be.AppendUint64(c.out, uint64(s.high)) // last stable
			c.out = be.AppendUint64(c.out, 0)              // log start
			c.out = be.AppendUint32(c.out, 0)              // aborted
			c.out = be.AppendUint32(c.out, 1<<32-1)        // preferred replica
			c.out = be.AppendUint32(c.out, uint32(s.n))
			s.behind = len(c.out)
		}
	}
	be.PutUint32(c.out, uint32(len(c.out)-4+bytes))
	return c.pour(all)
}

// pour sends bytes of the answer and of files in turns.
func (c *conn) pour(all [][]stretch) error {
	sent := 0
	for i := range all {
		for _, s := range all[i] {
			if s.n == 0 {
				continue
			}
			if err := ahead(c.f, c.out[sent:s.behind]); err != nil {
				return err
			}
			sent = s.behind
			if err := pass(c.f, s.log.file, s.at, s.n); err != nil {
				return err
			}
		}
	}
	if sent == len(c.out) {
		return nil
	}
	return c.send(c.out[sent:])
}
