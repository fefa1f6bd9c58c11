package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// node is one batch that some log held at some time. The batches of a partition
// form a tree: whoever appends one appends it after its parent. A base offset and
// an epoch name a node, so two replicas that hold the same node hold the same log
// up to it; and to compare two logs is to compare pointers.
type node struct {
	base, last model.Offset
	epoch      model.Epoch
	crc        uint32
	size       int
	producer   model.ProducerID
	pepoch     int16
	seq, count int32
	control    bool
	txn        bool
	time       model.Millis
	bad        bool // its bytes do not fit its checksum: the disk rotted
	parent     *node
	values     []string // of its records, if a history is kept
}

func (n *node) same(o *node) bool {
	return n.base == o.base && n.last == o.last && n.epoch == o.epoch && n.crc == o.crc && n.size == o.size
}

func (n *node) String() string {
	return fmt.Sprintf("[%d,%d]@%d", n.base, n.last, n.epoch)
}

// nodeKey names a node.
type nodeKey struct {
	base  model.Offset
	epoch model.Epoch
}

// facts are what a look at a replica found.
type facts struct {
	steps              uint64
	role               partition.Role
	leader             model.BrokerID
	epoch              model.Epoch
	pepoch             model.PartitionEpoch
	leadership, cuts   uint64
	marks              partition.Marks
	inFlight, serving  bool
	isr, maximal, all  []model.BrokerID
	minISR             int
	pending            bool
	proposed           []model.BrokerID    // the ISR that is pending
	lives              []model.BrokerEpoch // that it names, parallel to proposed
	epochStart         model.Offset
	remotes            []partition.RemoteView
	asks               []asks       // of the remotes
	recovery, logStart model.Offset // of the log
	at                 model.Time   // of the last input
	hwPos              model.Position
	next               model.Offset // where the next append goes
	flushes            int64        // after how many records the log is synced
}

// mirror is what is known of one replica. It outlives the process.
type mirror struct {
	seat *seat
	part *part
	p    *partition.Partition // nil while nobody hosts it
	log  *storage.Log
	now  facts
	was  facts // of the look before; zero after a start
	// first says that there was no look before in this life.
	first bool
	round uint64 // of the last visit

	batches   []*node
	start     model.Offset // below it nothing can be read
	end       model.Offset
	cutsRead  uint64 // truncations that batches account for
	producers map[model.ProducerID]*node
	highest   model.Offset // where the log was ever found to start; a crash may take that back
	epochsOK  int          // batches whose epoch the cache was asked for
	named     named

	// followers is what an observer knows of each, while the replica leads in one
	// epoch; grew says when the log came to be so long in that time.
	followers []follower
	grew      []growth

	// agree is how many of the partition's commits were found in batches, at
	// where to look for the next.
	agree, at int

	lossy   bool // lost records, and has not joined the ISR since
	hit     bool // lost them while it might have been elected
	exposed bool // it might have been elected when, or after, it stopped
	// restarted says how the life before this one ended; done once it was
	// compared with what is left.
	stopped   How
	compare   bool
	removed   bool // the metadata took the replica away since the life ended
	ends      map[model.Epoch]span
	deletions []*deletion // asked of this leader and not answered yet
	scant     []scant     // offsets given away below the minimum, not seen in the log yet
	rounds    int         // truncations in one leader epoch
	reads     []*node
	unread    bool // the last look at the log failed: the disk is broken
}

func (m *mirror) id() model.BrokerID { return m.seat.id }

// live says that a running broker hosts the replica, and can read its log.
func (m *mirror) live() bool {
	return m.p != nil && m.seat.running && !m.unread && m.now.role != partition.Stopped
}

func (m *mirror) leads() bool { return m.live() && m.now.role == partition.Leader }

// stale says that the replica has not heard of the newest leader epoch.
func (m *mirror) stale() bool {
	t := m.part.truth
	return t == nil || m.now.epoch != t.LeaderEpoch || m.now.leader != t.Leader
}

// readable is where the log starts as the replica serves it.
func (m *mirror) readable() model.Offset {
	if m.live() {
		return max(m.start, m.now.marks.LogStart)
	}
	return m.start
}

// find returns the index of the first batch whose last offset is at least o.
func find(list []*node, o model.Offset) int {
	i, _ := slices.BinarySearchFunc(list, o, func(n *node, o model.Offset) int { return cmp.Compare(n.last, o) })
	return i
}

// holding returns the batch that holds the offset, or nil.
func holding(list []*node, o model.Offset) *node {
	if i := find(list, o); i < len(list) && list[i].base <= o {
		return list[i]
	}
	return nil
}

// lacks returns the first committed offset below limit that the log does not
// hold although it starts early enough.
func (m *mirror) lacks(limit model.Offset) (model.Offset, bool) {
	start := m.readable()
	for ; m.agree < len(m.part.commits); m.agree++ {
		c := m.part.commits[m.agree]
		if c.last < start {
			continue
		}
		if c.last >= limit {
			return 0, false
		}
		for m.at < len(m.batches) && m.batches[m.at].base < c.base {
			m.at++
		}
		if m.at == len(m.batches) || m.batches[m.at] != c {
			return c.base, true
		}
		m.at++
	}
	return 0, false
}

// shorten drops the batches from index i on.
func (m *mirror) shorten(i int) {
	if i >= len(m.batches) {
		return
	}
	m.batches = m.batches[:i:i]
	m.epochsOK, m.named = min(m.epochsOK, i), named{}
	m.rewind()
	m.producers = nil
}

// rewind has the commits compared anew from the end of the batches, at least.
func (m *mirror) rewind() {
	if m.at <= len(m.batches) && m.at > 0 && m.agree > 0 && m.batches[m.at-1] == m.part.commits[m.agree-1] {
		return
	}
	m.agree, m.at = 0, 0
}

// lastOf is the newest batch of a producer in the log.
func (m *mirror) lastOf(id model.ProducerID) *node {
	if m.producers == nil {
		m.producers = map[model.ProducerID]*node{}
		for _, n := range m.batches {
			if n.producer >= 0 && !n.control {
				m.producers[n.producer] = n
			}
		}
	}
	return m.producers[id]
}

// follow brings the mirror up to its log and reports the batches that left it.
// fresh is told of each that came, and may refuse it.
func (s *Set) follow(m *mirror, fresh func(arrival) error) (gone []*node, err error) {
	leo, start := m.log.LEO(), m.log.Start()
	whole := m.compare || m.unread || m.cutsRead != m.p.Generation() && !m.p.InFlight() || start < m.start
	if !whole && leo >= m.end {
		m.start = start
		if leo == m.end {
			return nil, nil
		}
		list, ok := s.read(m, max(m.end, start), leo)
		if m.unread = !ok; m.unread {
			return nil, nil
		}
		return nil, s.take(m, list, leo, true, fresh)
	}
	if !whole { // cut, and nothing was written after it
		keep := find(m.batches, leo)
		gone = slices.Clone(m.batches[keep:])
		m.shorten(keep)
		m.start, m.end = min(start, leo), leo
		return gone, nil
	}
	return s.again(m, start, leo, fresh)
}

// again reads the whole log anew and compares it with what was known.
func (s *Set) again(m *mirror, start, leo model.Offset, fresh func(arrival) error) (gone []*node, err error) {
	// What lay below the start was deleted: a crash may bring any part of it back.
	was := m.batches[find(m.batches, m.start):]
	now, ok := s.read(m, start, leo)
	if m.unread = !ok; m.unread {
		return nil, nil
	}
	if !m.p.InFlight() {
		m.cutsRead = m.p.Generation()
	}
	// The log may start earlier than it did: a crash can take a log start back.
	from, keep := find(was, start), 0
	first := 0
	if from < len(was) {
		first = find(now, was[from].base)
	}
	for first+keep < len(now) && from+keep < len(was) && now[first+keep].same(was[from+keep]) && !now[first+keep].bad {
		keep++
	}
	gone = slices.Clone(was[min(from+keep, len(was)):])
	m.batches = nil
	if first == 0 {
		m.batches = append(m.batches, was[from:from+keep]...)
	} else {
		keep = 0
	}
	m.agree, m.at, m.epochsOK, m.producers, m.named = 0, 0, 0, nil, named{}
	m.start, m.end = start, leo
	return gone, s.take(m, now[keep:], leo, false, fresh)
}

// read returns what the log holds in [from, to), false if it cannot be read.
// Nodes are not of the tree yet.
func (s *Set) read(m *mirror, from, to model.Offset) (list []*node, ok bool) {
	m.reads = m.reads[:0]
	ok = true
	s.quietly(func() {
		for from < to {
			slice, err := m.log.Read(from, 1<<20, to, true)
			if ok = err == nil; !ok || slice.Len == 0 {
				return
			}
			if cap(s.buf) < slice.Len {
				s.buf = make([]byte, slice.Len+slice.Len/2)
			}
			b := s.buf[:slice.Len]
			n, err := slice.File.ReadAt(b, slice.Pos)
			slice.Release()
			if ok = err == nil || n == len(b); !ok {
				return
			}
			for h, bytes := range record.Split(b) {
				m.reads = append(m.reads, s.nodeOf(h, bytes))
			}
			if slice.Next <= from {
				return
			}
			from = slice.Next
		}
	})
	return m.reads, ok
}

// nodeOf reads a batch.
func (s *Set) nodeOf(h record.Header, bytes []byte) *node {
	n := &node{base: h.Base, last: h.LastOffset(), epoch: h.LeaderEpoch, crc: h.CRC, size: h.Size(),
		producer: h.ProducerID, pepoch: h.ProducerEpoch, seq: h.BaseSequence, count: h.LastOffsetDelta + 1,
		control: h.Control(), txn: h.Transactional(), time: h.MaxTimestamp, bad: !record.Valid(bytes)}
	if s.o.History != nil && !n.bad {
		n.values = valuesOf(bytes, h)
	}
	return n
}

// valuesOf are the values of a batch's records, with nothing where compaction
// left a gap.
func valuesOf(bytes []byte, h record.Header) []string {
	if h.Control() || h.LastOffsetDelta < 0 {
		return nil
	}
	out := make([]string, h.LastOffsetDelta+1)
	err := record.Records(bytes, func(r *record.Record) bool {
		if i := r.Offset - h.Base; i >= 0 && int(i) < len(out) {
			out[i] = string(r.Value)
		}
		return true
	})
	if err != nil {
		return nil
	}
	return out
}

// arrival is a batch that came to a log.
type arrival struct {
	m    *mirror
	seen *node // as it was read
	node *node // of that name in the tree
	prev *node // before it in the log; nil when it is the first
	// fresh: no log held it before. appended: it was written since the last
	// look, not found at a start or after a truncation.
	fresh, appended bool
}

// take adds batches to the end of the mirror.
func (s *Set) take(m *mirror, list []*node, end model.Offset, appended bool, fresh func(arrival) error) error {
	p := m.part
	for _, seen := range list {
		a := arrival{m: m, seen: seen, node: seen, appended: appended}
		if n := len(m.batches); n > 0 {
			a.prev = m.batches[n-1]
		}
		if !seen.bad {
			key := nodeKey{seen.base, seen.epoch}
			if known := p.nodes[key]; known != nil {
				a.node = known
			} else {
				a.fresh = true
				seen.parent = a.prev
				p.nodes[key] = seen
			}
		}
		if err := fresh(a); err != nil {
			return err
		}
		if a.node.parent == nil && a.prev != nil && !a.prev.bad && !seen.bad {
			a.node.parent = a.prev
		}
		if !a.node.same(seen) {
			a.node = seen // only when nobody minds
		}
		m.batches = append(m.batches, a.node)
		if m.producers != nil && seen.producer >= 0 && !seen.control {
			m.producers[seen.producer] = a.node
		}
	}
	m.end = end
	return nil
}
