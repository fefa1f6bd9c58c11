package crash

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// story is one part of a node at work on a disk.
type story interface {
	// play does the work from an empty disk on.
	play(fs vfs.FS) error
	// goOn starts on what an earlier process left, and does a little more work.
	goOn(fs vfs.FS) error
	// fork is a copy with the promises made so far.
	fork() story
	// check starts as a node does on what is on the disk and compares that with
	// the promises. After a kill nothing that was written may be lost; after a
	// power cut, nothing that was promised to be durable. It tells what it found.
	check(fs vfs.FS, killed bool) (found string, err error)
}

// reach says how far an explorer goes.
type reach struct {
	every   int // so manieth cut is gone into
	ways    int // ways to crash that are gone through at one cut
	samples int // that are drawn where there are more
	deep    int // at every so manieth disk the recovery is cut, too, and work goes on
	kills   int // at every so manieth cut work goes on after a kill, and is cut
}

var (
	quick    = reach{every: 3, ways: 3, samples: 1, deep: 61, kills: 47}
	thorough = reach{every: 1, ways: 64, samples: 16, deep: 53, kills: 5}
)

// explorer explores one story.
type explorer struct {
	t    *testing.T
	name string
	reach
	rand *rand.Rand

	ops                int
	cuts, disks, again int // cuts, disks after one, disks after a second one
	where              string
	failed             bool
}

func newExplorer(t *testing.T, name string, r reach) *explorer {
	seed := uint64(len(name))
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	return &explorer{t: t, name: name, reach: r, rand: rand.New(rand.NewPCG(seed, 1))}
}

func (x *explorer) explore(s story) {
	disk := vfs.NewMem()
	must(x.t, s.play(watch(disk, func(op vfs.Op) { x.cut(s, disk, op) })))
	x.cut(s, disk, vfs.Op{Kind: "the end"})
}

// watch has look see every operation that changes a disk, ahead of it.
func watch(disk *vfs.Mem, look func(vfs.Op)) vfs.FS {
	return vfs.Faulty(disk, func(op vfs.Op) error {
		if op.Kind.Changes() {
			look(op)
		}
		return nil
	})
}

// cut ends the story's process, and then the power, ahead of an operation.
func (x *explorer) cut(s story, disk *vfs.Mem, op vfs.Op) {
	if x.ops++; x.failed || x.ops%x.every != 0 {
		return
	}
	x.cuts++
	x.where = fmt.Sprintf("cut %d, at %s %s", x.ops, op.Kind, op.Path)
	x.verify(s, disk.Clone(), true, "killed")
	if x.cuts%x.kills == 0 {
		x.goOn(s, disk.Clone(), "killed")
	}
	for i, d := range x.crashes(disk) {
		x.disks++
		how := fmt.Sprintf("power cut %d", i)
		whole := d.Clone()
		found := x.verify(s, d, false, how)
		if again := x.verify(s, d.Clone(), false, how+", recovered twice"); again != found {
			x.fail(how, fmt.Errorf("recovered\n%s\nand the second time\n%s", found, again))
		}
		x.verify(s, d.CrashClone(vfs.CrashOptions{}), false, how+", recovered, cut again")
		if x.disks%x.deep == 0 {
			x.recoveries(s, whole, how)
			x.goOn(s, whole, how)
		}
	}
}

// recoveries cuts the power at every operation of a recovery.
func (x *explorer) recoveries(s story, disk *vfs.Mem, how string) {
	n, under := 0, disk.Clone()
	x.verify(s, watch(under, func(op vfs.Op) {
		n++
		x.twice(s, under, fmt.Sprintf("%s, recovery cut %d, at %s %s", how, n, op.Kind, op.Path))
	}), false, how)
}

// goOn has the next process work on a disk, and cuts it as well.
func (x *explorer) goOn(s story, disk *vfs.Mem, how string) {
	n, next := 0, s.fork()
	under := disk.Clone()
	err := next.goOn(watch(under, func(op vfs.Op) {
		n++
		x.twice(next, under, fmt.Sprintf("%s, next process cut %d, at %s %s", how, n, op.Kind, op.Path))
	}))
	if err != nil {
		x.fail(how+", next process", err)
		return
	}
	x.twice(next, under, how+", after the next process")
	x.verify(next, under.Clone(), true, how+", next process killed")
}

// twice is a cut after another one: with nothing of what was not synced, and with
// some of it.
func (x *explorer) twice(s story, disk *vfs.Mem, how string) {
	x.again += 2
	x.verify(s, disk.CrashClone(vfs.CrashOptions{}), false, how)
	x.verify(s, disk.CrashClone(vfs.CrashOptions{Rand: x.rand}), false, how+", some kept")
}

func (x *explorer) verify(s story, disk vfs.FS, killed bool, how string) string {
	if x.failed {
		return ""
	}
	found, err := s.check(disk, killed)
	if err != nil {
		x.fail(how, err)
	}
	return found
}

// fail tells the first failure, from whichever task it is found in.
func (x *explorer) fail(how string, err error) {
	if !x.failed {
		x.failed = true
		x.t.Errorf("%s: %s: %s: %v", x.name, x.where, how, err)
	}
}

// crashes are the disks that a power cut may leave: all of them, or where there
// are too many the first ones and a sample.
func (x *explorer) crashes(disk *vfs.Mem) (out []*vfs.Mem) {
	seen := map[[32]byte]bool{}
	add := func(o vfs.CrashOptions) {
		d := disk.CrashClone(o)
		if print := fingerprint(d); !seen[print] {
			seen[print] = true
			out = append(out, d)
		}
	}
	c := vfs.Choices{}
	for range x.ways {
		add(vfs.CrashOptions{Choose: c.Choose})
		if !c.Next() {
			return out
		}
	}
	for range x.samples {
		add(vfs.CrashOptions{Rand: x.rand})
	}
	return out
}

// fingerprint tells disks apart that hold different files.
func fingerprint(disk *vfs.Mem) (sum [32]byte) {
	h := sha256.New()
	var walk func(folder string)
	walk = func(folder string) {
		infos, err := disk.ReadDir(folder)
		if err != nil {
			panic(err)
		}
		for _, info := range infos {
			name := path.Join(folder, info.Name)
			fmt.Fprintf(h, "%s %v %d\n", name, info.Dir, info.Size)
			if info.Dir {
				walk(name)
				continue
			}
			h.Write(contentOf(disk, name))
		}
	}
	walk("/")
	h.Sum(sum[:0])
	return sum
}

func contentOf(disk vfs.FS, name string) []byte {
	f, err := disk.Open(name)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		panic(err)
	}
	b := make([]byte, size)
	if size > 0 {
		if n, err := f.ReadAt(b, 0); n < len(b) {
			panic(err)
		}
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
