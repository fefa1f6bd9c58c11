package image

// differ walks two trees side by side. What both share, by pointer, is skipped
// without a look inside, so that the cost follows what changed.
type differ[K, V any] struct {
	compare func(a, b K) int
	same    func(a, b V) bool
	found   func(k K, a, b V, inA, inB bool)
}

// diff calls found for every key whose value is in only one of the trees or not
// the same in both, in the order of the keys.
func diff[K, V any](a, b tree[K, V], same func(a, b V) bool, found func(k K, a, b V, inA, inB bool)) {
	compare := a.compare
	if compare == nil {
		compare = b.compare
	}
	d := differ[K, V]{compare: compare, same: same, found: found}
	d.run(newCursor(a.root), newCursor(b.root))
}

// cursor stands before a node or before an entry of a leaf.
type cursor[K, V any] struct {
	stack []place[K, V]
}

// place is a node with the number of its kids or entries that are done; -1 while
// the node as a whole lies ahead.
type place[K, V any] struct {
	node *node[K, V]
	done int
}

func newCursor[K, V any](root *node[K, V]) *cursor[K, V] {
	c := &cursor[K, V]{}
	if root != nil {
		c.stack = append(c.stack, place[K, V]{root, -1})
	}
	return c
}

// top returns what lies ahead; nil at the end.
func (c *cursor[K, V]) top() *place[K, V] {
	if len(c.stack) == 0 {
		return nil
	}
	return &c.stack[len(c.stack)-1]
}

// height is the number of levels below the node ahead: 1 for a leaf, 0 before an
// entry.
func (c *cursor[K, V]) height() int {
	p := c.top()
	if p.done >= 0 {
		return 0
	}
	h := 1
	for n := p.node; !n.leaf(); n = n.kids[0] {
		h++
	}
	return h
}

// enter steps into the node ahead.
func (c *cursor[K, V]) enter() {
	p := c.top()
	p.done = 0
	if !p.node.leaf() {
		c.stack = append(c.stack, place[K, V]{p.node.kids[0], -1})
	}
}

// skip passes the node or entry ahead.
func (c *cursor[K, V]) skip() {
	if p := c.top(); p.done >= 0 {
		p.done++
		if p.done < len(p.node.keys) {
			return
		}
	}
	c.stack = c.stack[:len(c.stack)-1]
	for p := c.top(); p != nil; p = c.top() {
		p.done++
		if p.done < len(p.node.kids) {
			c.stack = append(c.stack, place[K, V]{p.node.kids[p.done], -1})
			return
		}
		c.stack = c.stack[:len(c.stack)-1]
	}
}

func (c *cursor[K, V]) entry() (K, V) {
	p := c.top()
	return p.node.keys[p.done], p.node.vals[p.done]
}

func (d *differ[K, V]) run(a, b *cursor[K, V]) {
	for a.top() != nil && b.top() != nil {
		ha, hb := a.height(), b.height()
		switch {
		case ha > 0 && a.top().node == b.top().node && ha == hb:
			a.skip()
			b.skip()
		case ha == 0 && hb == 0:
			d.step(a, b)
		default:
			if ha >= hb {
				a.enter()
			}
			if hb >= ha {
				b.enter()
			}
		}
	}
	d.rest(a, true)
	d.rest(b, false)
}

// step compares one entry of each.
func (d *differ[K, V]) step(a, b *cursor[K, V]) {
	ka, va := a.entry()
	kb, vb := b.entry()
	var none V
	switch c := d.compare(ka, kb); {
	case c < 0:
		d.found(ka, va, none, true, false)
		a.skip()
	case c > 0:
		d.found(kb, none, vb, false, true)
		b.skip()
	default:
		if !d.same(va, vb) {
			d.found(ka, va, vb, true, true)
		}
		a.skip()
		b.skip()
	}
}

// rest reports what is left of one tree when the other is at its end.
func (d *differ[K, V]) rest(c *cursor[K, V], inA bool) {
	var none V
	for c.top() != nil {
		if c.height() > 0 {
			c.enter()
			continue
		}
		k, v := c.entry()
		if inA {
			d.found(k, v, none, true, false)
		} else {
			d.found(k, none, v, false, true)
		}
		c.skip()
	}
}
