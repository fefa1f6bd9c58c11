package image

import (
	"iter"
	"slices"
)

// fanout is the most entries of a node. A change copies one node per level: at
// 64, three nodes for a quarter of a million topics.
const fanout = 64

// tree is a sorted map that shares structure: copying the struct is a snapshot,
// and set and remove copy only the nodes on the way to the key. Nodes that
// belong to the given edit are changed in place, so that many changes under one
// edit copy each node once.
//
//	inner node: kids[i] holds the keys in [keys[i], keys[i+1])
//	leaf:       keys[i] has the value vals[i]
type tree[K, V any] struct {
	root    *node[K, V]
	len     int
	compare func(a, b K) int
}

// edit is the identity of one round of changes. It has a size, so that no two
// have the same address.
type edit struct{ _ byte }

type node[K, V any] struct {
	edit *edit
	keys []K
	vals []V
	kids []*node[K, V] // nil in a leaf
}

func (n *node[K, V]) leaf() bool { return n.kids == nil }

// find returns the place of k in the keys and whether it is there.
func (t *tree[K, V]) find(n *node[K, V], k K) (int, bool) {
	return slices.BinarySearchFunc(n.keys, k, t.compare)
}

// child returns the place of the kid that holds k.
func (t *tree[K, V]) child(n *node[K, V], k K) int {
	i, found := t.find(n, k)
	if !found && i > 0 {
		i--
	}
	return i
}

// get returns the value of k; false if there is none.
func (t *tree[K, V]) get(k K) (v V, ok bool) {
	n := t.root
	if n == nil {
		return v, false
	}
	for !n.leaf() {
		n = n.kids[t.child(n, k)]
	}
	i, ok := t.find(n, k)
	if ok {
		v = n.vals[i]
	}
	return v, ok
}

// own returns n, or a copy of it that belongs to e.
func (n *node[K, V]) own(e *edit) *node[K, V] {
	if n.edit == e {
		return n
	}
	return &node[K, V]{edit: e, keys: slices.Clone(n.keys), vals: slices.Clone(n.vals), kids: slices.Clone(n.kids)}
}

// set gives k the value v.
func (t *tree[K, V]) set(e *edit, k K, v V) {
	if t.root == nil {
		t.root = &node[K, V]{edit: e, keys: []K{k}, vals: []V{v}}
		t.len = 1
		return
	}
	left, right := t.put(t.root, e, k, v)
	t.root = left
	if right != nil {
		t.root = &node[K, V]{edit: e, keys: []K{left.keys[0], right.keys[0]}, kids: []*node[K, V]{left, right}}
	}
}

// put returns the node that replaces n, and a second one when n had to split.
func (t *tree[K, V]) put(n *node[K, V], e *edit, k K, v V) (left, right *node[K, V]) {
	n = n.own(e)
	if n.leaf() {
		i, found := t.find(n, k)
		if found {
			n.vals[i] = v
			return n, nil
		}
		n.keys, n.vals = slices.Insert(n.keys, i, k), slices.Insert(n.vals, i, v)
		t.len++
		return n.split(e)
	}
	i := t.child(n, k)
	if i == 0 && t.compare(k, n.keys[0]) < 0 {
		n.keys[0] = k
	}
	kid, second := t.put(n.kids[i], e, k, v)
	n.kids[i] = kid
	if second == nil {
		return n, nil
	}
	n.keys, n.kids = slices.Insert(n.keys, i+1, second.keys[0]), slices.Insert(n.kids, i+1, second)
	return n.split(e)
}

// split halves a node that is over the fanout. Keys that arrive in order leave
// full nodes behind, since then only the last entry moves.
func (n *node[K, V]) split(e *edit) (left, right *node[K, V]) {
	if len(n.keys) <= fanout {
		return n, nil
	}
	at := len(n.keys) / 2
	right = &node[K, V]{edit: e, keys: slices.Clone(n.keys[at:])}
	n.keys = slices.Delete(n.keys, at, len(n.keys))
	if n.leaf() {
		right.vals = slices.Clone(n.vals[at:])
		n.vals = slices.Delete(n.vals, at, len(n.vals))
		return n, right
	}
	right.kids = slices.Clone(n.kids[at:])
	n.kids = slices.Delete(n.kids, at, len(n.kids))
	return n, right
}

// remove takes k out. Nodes that run empty disappear; others are not merged.
func (t *tree[K, V]) remove(e *edit, k K) {
	if _, ok := t.get(k); !ok {
		return
	}
	t.root = t.cut(t.root, e, k)
	t.len--
	for t.root != nil && len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
}

// cut returns the node that replaces n without k, which is in it; nil if that
// leaves it empty.
func (t *tree[K, V]) cut(n *node[K, V], e *edit, k K) *node[K, V] {
	n = n.own(e)
	if n.leaf() {
		i, _ := t.find(n, k)
		n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
	} else {
		i := t.child(n, k)
		if kid := t.cut(n.kids[i], e, k); kid != nil {
			n.kids[i] = kid
			return n
		}
		n.keys, n.kids = slices.Delete(n.keys, i, i+1), slices.Delete(n.kids, i, i+1)
	}
	if len(n.keys) == 0 {
		return nil
	}
	return n
}

// all yields the entries in the order of their keys.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.root != nil {
			t.root.walk(yield)
		}
	}
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	for _, kid := range n.kids {
		if !kid.walk(yield) {
			return false
		}
	}
	for i, v := range n.vals {
		if !yield(n.keys[i], v) {
			return false
		}
	}
	return true
}

// from yields the entries whose keys are at least k, in order.
func (t *tree[K, V]) from(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.root != nil {
			t.walkFrom(t.root, k, yield)
		}
	}
}

func (t *tree[K, V]) walkFrom(n *node[K, V], k K, yield func(K, V) bool) bool {
	if n.leaf() {
		at, _ := t.find(n, k)
		for i := at; i < len(n.keys); i++ {
			if !yield(n.keys[i], n.vals[i]) {
				return false
			}
		}
		return true
	}
	at := t.child(n, k)
	if !t.walkFrom(n.kids[at], k, yield) {
		return false
	}
	for _, kid := range n.kids[at+1:] {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}
