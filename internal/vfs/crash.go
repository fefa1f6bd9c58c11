package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashOptions say what survives of the operations that were not synced. The
// zero value keeps nothing of them. Else every file keeps a prefix of its writes
// and perhaps a part of what comes after it: the next write torn, the size
// without the bytes, or single pages. Every folder keeps some of its changes;
// those of one name or one file stay in order, others do not wait for each other.
type CrashOptions struct {
	Rand *rand.Rand // draws what is kept
	// Choose, in the place of Rand, picks one of n ways, 0 being the least that
	// may survive: who goes through all its answers sees every way to crash. Of
	// the bytes where a write may be torn it is asked for some only.
	Choose func(n int) int
}

// page is what a disk writes at once.
const page = 4096

// CrashClone is the disk after a power cut, unlocked. The original goes on
// unchanged, so one run can be cut at every step.
func (m *Mem) CrashClone(opts CrashOptions) *Mem {
	c := m.Clone()
	c.PowerCut(opts)
	return c
}

// PowerCut makes the disk what a power cut leaves of it, unlocked. Its open files
// are of no use any more: see Revocable.
func (m *Mem) PowerCut(opts CrashOptions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{choose: opts.Choose, done: map[*node]bool{}}
	c.tear = func(n int) int { return n / 2 }
	switch {
	case opts.Choose != nil:
	case opts.Rand != nil:
		c.choose, c.tear = opts.Rand.IntN, opts.Rand.IntN
	default:
		c.choose = func(int) int { return 0 }
	}
	c.node(m.root)
	m.locked = map[*node]*memLock{}
}

// Clone is the disk as a killed process leaves it to the next: everything
// written is there, synced or not, and still as little of it is durable.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := map[*node]*node{}
	return &Mem{root: cloneNode(m.root, done), locked: map[*node]*memLock{}, now: m.now}
}

// crash settles what is left of each node, once for a node that has two names.
type crash struct {
	choose func(n int) int
	tear   func(n int) int // where n bytes tear
	done   map[*node]bool
}

func (c *crash) node(n *node) {
	if c.done[n] {
		return
	}
	c.done[n] = true
	if n.dir {
		c.folder(n)
		return
	}
	if len(n.writes) == 0 {
		n.live = n.durable.clone()
		return
	}
	whole := c.choose(len(n.writes) + 1)
	for _, w := range n.writes[:whole] {
		n.durable.apply(w)
	}
	if whole < len(n.writes) {
		c.partial(n, n.writes[whole:])
	}
	n.live, n.writes = n.durable.clone(), nil
}

// partial keeps a part of writes of which the first did not survive as a whole.
func (c *crash) partial(n *node, writes []write) {
	if writes[0].bytes == nil {
		return // a truncation happens or not
	}
	if i := slices.IndexFunc(writes, func(w write) bool { return w.bytes == nil }); i > 0 {
		writes = writes[:i]
	}
	switch c.choose(4) {
	case 1:
		torn := writes[0]
		if part := c.tear(len(torn.bytes)); part > 0 {
			torn.bytes = torn.bytes[:part]
			n.durable.apply(torn)
		}
	case 2: // the file has grown, its bytes were on their way
		for _, w := range writes {
			n.durable.size = max(n.durable.size, w.off+int64(len(w.bytes)))
		}
	case 3:
		c.pages(n, writes)
	}
}

// pages keeps single pages; each has all writes up to some point or none.
func (c *crash) pages(n *node, writes []write) {
	lost := map[int64]bool{}
	for _, w := range writes {
		for off, end := w.off, w.off+int64(len(w.bytes)); off < end; {
			next := min(end, (off/page+1)*page)
			if lost[off/page] || c.choose(2) == 0 {
				lost[off/page] = true
			} else {
				n.durable.write(w.bytes[off-w.off:next-w.off], off)
			}
			off = next
		}
	}
}

func (c *crash) folder(n *node) {
	lostNames, lostNodes := map[string]bool{}, map[*node]bool{}
	for _, ch := range n.changes {
		blocked := lostNames[ch.drop] || lostNames[ch.add] || lostNodes[ch.node]
		if !blocked && c.choose(2) == 1 {
			apply(n.durableNames, ch)
			continue
		}
		for _, name := range []string{ch.drop, ch.add} {
			if name != "" {
				lostNames[name] = true
			}
		}
		if ch.node != nil {
			lostNodes[ch.node] = true
		}
	}
	n.changes, n.names = nil, maps.Clone(n.durableNames)
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		c.node(n.names[name])
	}
}

func cloneNode(n *node, done map[*node]*node) *node {
	if made := done[n]; made != nil {
		return made
	}
	made := &node{dir: n.dir, mod: n.mod, live: n.live.clone(), durable: n.durable.clone(), writes: slices.Clip(n.writes)}
	done[n] = made
	if !n.dir {
		return made
	}
	made.names, made.durableNames = map[string]*node{}, map[string]*node{}
	for name, c := range n.names {
		made.names[name] = cloneNode(c, done)
	}
	for name, c := range n.durableNames {
		made.durableNames[name] = cloneNode(c, done)
	}
	for _, ch := range n.changes {
		if ch.node != nil {
			ch.node = cloneNode(ch.node, done)
		}
		made.changes = append(made.changes, ch)
	}
	return made
}
