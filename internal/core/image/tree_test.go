package image

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func newIntTree() tree[int, int] { return tree[int, int]{compare: cmp.Compare[int]} }

func toMap(t tree[int, int]) map[int]int { return maps.Collect(t.all()) }

// A tree and a plain map get the same changes, and every snapshot of the tree
// still says what the map said when it was taken.
func TestTreeIsAMapWhoseSnapshotsNeverChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, model := newIntTree(), map[int]int{}
		var trees []tree[int, int]
		var models []map[int]int
		key := rapid.IntRange(0, rapid.SampledFrom([]int{5, 300, 3000}).Draw(t, "keys"))
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			e := new(edit)
			for range rapid.IntRange(0, 200).Draw(t, "changes") {
				k := key.Draw(t, "key")
				if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
					tr.remove(e, k)
					delete(model, k)
				} else {
					v := rapid.IntRange(0, 3).Draw(t, "value")
					tr.set(e, k, v)
					model[k] = v
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "thin out") == 0 {
				for k := range maps.Clone(model) {
					if k > 2 {
						tr.remove(e, k)
						delete(model, k)
					}
				}
			}
			trees, models = append(trees, tr), append(models, maps.Clone(model))
		}
		for i := range trees {
			checkTree(t, trees[i], models[i])
			checkTreeDiff(t, trees[0], trees[i], models[0], models[i])
			checkTreeDiff(t, trees[i], trees[max(i-1, 0)], models[i], models[max(i-1, 0)])
		}
	})
}

func checkTree(t *rapid.T, tr tree[int, int], want map[int]int) {
	if got := toMap(tr); !maps.Equal(got, want) || tr.len != len(want) {
		t.Fatalf("%d entries, tree says %d, want %d", len(got), tr.len, len(want))
	}
	sorted := slices.Sorted(maps.Keys(want))
	if got := slices.Collect(keys(tr.all())); !slices.Equal(got, sorted) {
		t.Fatalf("keys %v are not in order", got)
	}
	for _, k := range []int{-1, 0, 2, 150, 151, 4000} {
		at, _ := slices.BinarySearch(sorted, k)
		if got := slices.Collect(keys(tr.from(k))); !slices.Equal(got, sorted[at:]) {
			t.Fatalf("from %d: %v, want %v", k, got, sorted[at:])
		}
		v, ok := tr.get(k)
		if w, has := want[k]; ok != has || v != w {
			t.Fatalf("get %d: %d %v, want %d %v", k, v, ok, w, has)
		}
	}
	if tr.root != nil && len(tr.root.kids) == 1 {
		t.Fatal("the root has a single kid")
	}
	checkNodes(t, &tr, tr.root)
}

// checkNodes checks the order that find and child rely on.
func checkNodes(t *rapid.T, tr *tree[int, int], n *node[int, int]) {
	if n == nil {
		return
	}
	if len(n.keys) == 0 || len(n.keys) > fanout || !slices.IsSorted(n.keys) {
		t.Fatalf("node with keys %v", n.keys)
	}
	if n.leaf() && len(n.vals) != len(n.keys) || !n.leaf() && len(n.kids) != len(n.keys) {
		t.Fatalf("%d keys, %d values, %d kids", len(n.keys), len(n.vals), len(n.kids))
	}
	for i, kid := range n.kids {
		if kid.keys[0] < n.keys[i] || i+1 < len(n.keys) && kid.keys[len(kid.keys)-1] >= n.keys[i+1] {
			t.Fatalf("kid %v does not fit its parent %v", kid.keys, n.keys)
		}
		checkNodes(t, tr, kid)
	}
}

func checkTreeDiff(t *rapid.T, a, b tree[int, int], wantA, wantB map[int]int) {
	got := []int{}
	diff(a, b, func(x, y int) bool { return x == y }, func(k, x, y int, inA, inB bool) {
		va, okA := wantA[k]
		vb, okB := wantB[k]
		if x != va || y != vb || inA != okA || inB != okB {
			t.Fatalf("key %d: %d %v, %d %v", k, x, inA, y, inB)
		}
		got = append(got, k)
	})
	want := []int{}
	for k, v := range wantA {
		if w, ok := wantB[k]; !ok || v != w {
			want = append(want, k)
		}
	}
	for k := range wantB {
		if _, ok := wantA[k]; !ok {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("differ in %v, want %v", got, want)
	}
}

func TestADiffDoesNotLookAtWhatIsShared(t *testing.T) {
	old := newIntTree()
	for k := range 100_000 {
		old.set(new(edit), k, 0)
	}
	changed := old
	e := new(edit)
	changed.set(e, 17, 1)
	changed.set(e, 100_000, 1)
	changed.remove(e, 50_000)
	looked := 0
	var found []int
	diff(old, changed, func(a, b int) bool { looked++; return a == b }, func(k, _, _ int, _, _ bool) { found = append(found, k) })
	if !slices.Equal(found, []int{17, 50_000, 100_000}) {
		t.Errorf("found %v", found)
	}
	if looked > 4*fanout {
		t.Errorf("looked at %d values for three changes", looked)
	}
}

func TestAWalkStopsWhenAsked(t *testing.T) {
	tr := newIntTree()
	for k := range 1000 {
		tr.set(new(edit), k, k)
	}
	for _, seq := range []func(func(int, int) bool){tr.all(), tr.from(0), tr.from(100)} {
		n := 0
		for range seq {
			if n++; n == 70 {
				break
			}
		}
		if n != 70 {
			t.Errorf("stopped after %d", n)
		}
	}
}
