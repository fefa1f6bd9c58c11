package history

import (
	"maps"
	"slices"
	"sync"
)

// Partition is what clients know of one partition.
type Partition struct {
	Topic  string
	Number int32
	Acks   Acks
	h      *History

	mu      sync.Mutex
	lanes   map[int]*Lane
	known   []Key   // by offset; 0 where nobody read yet
	epochs  []int32 // the epoch that wrote the record at each offset
	changes []change
	end     int64 // of the log, as the last reader found it
	reads   int
}

// change is a leader epoch that was first seen at a moment.
type change struct {
	at    Stamp
	epoch int32
}

// Lane is what the writer, a small number, sends to the partition.
func (p *Partition) Lane(writer int) *Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[writer]
	if l == nil {
		l = &Lane{writer: writer, acks: p.Acks, h: p.h}
		p.lanes[writer] = l
	}
	return l
}

// Led notes the leader epoch that some broker tells of.
func (p *Partition) Led(epoch int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.changes); n == 0 || p.changes[n-1].epoch < epoch {
		p.changes = append(p.changes, change{p.h.Now(), epoch})
	}
}

// Changes is how many leader epochs were seen after the first.
func (p *Partition) Changes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, len(p.changes)-1)
}

// saw notes that somebody read a record.
func (p *Partition) saw(who string, offset int64, epoch int32, value []byte) {
	k, ok := Parse(value)
	if !ok {
		p.h.Verdict.Violate(Authentic, "%s-%d: %s read at offset %d what nobody wrote: %.60q", p.Topic, p.Number, who, offset, value)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	for int64(len(p.known)) <= offset {
		p.known, p.epochs = append(p.known, 0), append(p.epochs, 0)
	}
	if was := p.known[offset]; was != 0 && (was != k || p.epochs[offset] != epoch) {
		p.h.Verdict.Violate(Repeatable, "%s-%d: %s read at offset %d record %v of epoch %d, another reader %v of epoch %d",
			p.Topic, p.Number, who, offset, k, epoch, was, p.epochs[offset])
		return
	}
	p.known[offset], p.epochs[offset] = k, epoch
}

// sortedLanes returns the lanes by writer.
func (p *Partition) sortedLanes() []*Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.lanes), func(a, b *Lane) int { return a.writer - b.writer })
}

// End notes where the log ends, after it was read whole.
func (p *Partition) End(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = offset
}

// Reader is one consumer of one partition. It has one goroutine.
type Reader struct {
	Name string
	p    *Partition
	next int64 // -1: wherever the first record is
}

// Reader adds a consumer that starts at the offset, or anywhere if it is -1.
func (p *Partition) Reader(name string, from int64) *Reader { return &Reader{name, p, from} }

// Saw notes the next record that the consumer got.
func (r *Reader) Saw(offset int64, epoch int32, value []byte) {
	if r.next >= 0 && offset != r.next {
		r.p.h.Verdict.Violate(Contiguous, "%s-%d: %s got offset %d where %d was due", r.p.Topic, r.p.Number, r.Name, offset, r.next)
	}
	r.next = offset + 1
	r.p.saw(r.Name, offset, epoch, value)
}

// Next is the offset after the last record that the consumer got, or -1.
func (r *Reader) Next() int64 { return r.next }
