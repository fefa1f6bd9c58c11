package history

import (
	"sort"
	"sync"
)

// Group is what the members of one consumer group did.
type Group struct {
	Name  string
	h     *History
	mu    sync.Mutex
	parts map[*Partition]*progress
	Stale int // reads of a committed offset that went back while faults were on
}

// progress is a group's work on one partition.
type progress struct {
	acked     []commit // with rising offsets
	highest   int64    // of all commits that were tried
	delivered []bool   // by offset
	logged    int64    // the newest offset in the group's log
}

// commit is a committed offset that was acknowledged at a moment.
type commit struct {
	end    Stamp
	offset int64
}

// Group adds a consumer group.
func (h *History) Group(name string) *Group {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &Group{Name: name, h: h, parts: map[*Partition]*progress{}}
	h.groups = append(h.groups, g)
	return g
}

func (g *Group) of(p *Partition) *progress {
	if g.parts[p] == nil {
		g.parts[p] = &progress{}
	}
	return g.parts[p]
}

// Delivered notes that a member got the record at the offset.
func (g *Group) Delivered(p *Partition, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	for int64(len(w.delivered)) <= offset {
		w.delivered = append(w.delivered, false)
	}
	w.delivered[offset] = true
}

// Commits notes that a member is about to commit the offset.
func (g *Group) Commits(p *Partition, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	w.highest = max(w.highest, offset)
}

// Committed notes that a commit was acknowledged.
func (g *Group) Committed(p *Partition, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	if n := len(w.acked); n == 0 || w.acked[n-1].offset < offset {
		w.acked = append(w.acked, commit{g.h.Now(), offset})
	}
}

// before is the highest offset whose commit was acknowledged before the moment.
func (w *progress) before(at Stamp) int64 {
	i := sort.Search(len(w.acked), func(i int) bool { return w.acked[i].end >= at })
	if i == 0 {
		return 0
	}
	return w.acked[i-1].offset
}

// Resumed notes where a member that joined at the moment or later began to read.
func (g *Group) Resumed(p *Partition, joined Stamp, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	if low := w.before(joined); offset < low {
		g.violate(p, "a member that joined after %v began at offset %d, though %d was committed", joined.Duration(), offset, low)
	}
	if offset > w.highest {
		g.violate(p, "a member began at offset %d, though nobody committed more than %d", offset, w.highest)
	}
}

// Fetched notes a committed offset that was asked for at the moment. While
// faults are on, a deposed coordinator may answer: that is counted only.
func (g *Group) Fetched(p *Partition, asked Stamp, offset int64, faults bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	low := w.before(asked)
	switch {
	case offset > w.highest:
		g.violate(p, "the committed offset is %d, though nobody committed more than %d", offset, w.highest)
	case offset < low && faults:
		g.Stale++
	case offset < low:
		g.violate(p, "the committed offset, asked for after %v, is %d, though %d was committed", asked.Duration(), offset, low)
	}
}

// Logged notes a committed offset in the log of the group's coordinator, where
// they must be read in order.
func (g *Group) Logged(p *Partition, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of(p)
	if offset < w.logged {
		g.violate(p, "in the coordinator's log, committed offset %d follows %d", offset, w.logged)
	}
	w.logged = offset
}

func (g *Group) violate(p *Partition, format string, args ...any) {
	g.h.Verdict.Violate(GroupOffsets, "group %s, %s-%d: "+format, append([]any{g.Name, p.Topic, p.Number}, args...)...)
}

// Count is the number of acknowledged commits that moved an offset.
func (g *Group) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, w := range g.parts {
		n += len(w.acked)
	}
	return n
}

// check compares what members got with what they committed.
func (g *Group) check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.h.Partitions() {
		w := g.parts[p]
		if w == nil {
			continue
		}
		low := w.before(^Stamp(0))
		if w.logged < low {
			g.violate(p, "the coordinator's log ends with committed offset %d, though %d was committed", w.logged, low)
		}
		for o := range low {
			if o >= int64(len(w.delivered)) || !w.delivered[o] {
				g.h.Verdict.Violate(GroupDelivers, "group %s, %s-%d: no member got offset %d, though %d was committed", g.Name, p.Topic, p.Number, o, low)
				break
			}
		}
	}
}
