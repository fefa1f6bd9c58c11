package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashOptions say what survives of the operations that were not synced. With
// a nil Rand nothing does. Else every file keeps a random prefix of its writes,
// the last one perhaps torn, and every folder a random prefix of its changes.
type CrashOptions struct{ Rand *rand.Rand }

// CrashClone is the disk after a power cut, unlocked. The original goes on
// unchanged, so one run can be cut at every step.
func (m *Mem) CrashClone(opts CrashOptions) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{rand: opts.Rand, done: map[*node]*node{}}
	return &Mem{root: c.node(m.root), locked: map[*node]bool{}, now: m.now}
}

// Clone is the disk as a killed process leaves it to the next: everything
// written is there, synced or not, and still as little of it is durable.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := map[*node]*node{}
	return &Mem{root: cloneNode(m.root, done), locked: map[*node]bool{}, now: m.now}
}

// crash copies nodes; a node that has two names stays one.
type crash struct {
	rand *rand.Rand
	done map[*node]*node
}

func (c *crash) node(n *node) *node {
	if made := c.done[n]; made != nil {
		return made
	}
	if n.dir {
		return c.folder(n)
	}
	made := &node{mod: n.mod}
	c.done[n] = made
	kept := n.durable.clone()
	whole := c.prefix(len(n.writes))
	for _, w := range n.writes[:whole] {
		kept.apply(w)
	}
	if c.rand != nil && whole < len(n.writes) {
		torn := n.writes[whole]
		if part := c.prefix(len(torn.bytes)); part > 0 {
			torn.bytes = torn.bytes[:part]
			kept.apply(torn)
		}
	}
	made.live, made.durable = kept, kept.clone()
	return made
}

func (c *crash) folder(n *node) *node {
	made := newDir()
	made.mod = n.mod
	c.done[n] = made
	kept := maps.Clone(n.durableNames)
	for i := range c.prefix(len(n.changes)) {
		apply(kept, n.changes[i])
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		child := c.node(kept[name])
		made.names[name], made.durableNames[name] = child, child
	}
	return made
}

// prefix draws how many of n operations survive.
func (c *crash) prefix(n int) int {
	if c.rand == nil || n == 0 {
		return 0
	}
	return c.rand.IntN(n + 1)
}

func cloneNode(n *node, done map[*node]*node) *node {
	if made := done[n]; made != nil {
		return made
	}
	made := &node{dir: n.dir, mod: n.mod, live: n.live.clone(), durable: n.durable.clone(), writes: slices.Clone(n.writes)}
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
