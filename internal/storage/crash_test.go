package storage_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

var errCut = errors.New("the power is cut")

// history is one log that existed: what was written at each offset.
type history map[model.Offset]string

// voyage drives one log through everything that changes files, keeps what a
// crash may find, and stops at the operation where the power is cut.
type voyage struct {
	t        testing.TB
	mem      *vfs.Mem
	w        *world
	l        *storage.Log
	left     int // file operations until the cut
	cut      bool
	current  history
	before   []history    // logs that a cut replaced
	promised model.Offset // what was flushed; -1 nothing, not even that there is a log
	written  model.Offset // what was appended and reported
	epoch    model.Epoch
	cache    epochs.Cache
	seq      int32
	clean    model.BrokerEpoch // of the clean stop that the next opening must report
}

func newVoyage(t testing.TB, left int) *voyage {
	v := &voyage{t: t, mem: vfs.NewMem(), left: left, current: history{}, promised: -1, clean: -1}
	v.w = newWorld(t)
	v.w.fs = vfs.Faulty(v.mem, func(op vfs.Op) error {
		if v.cut {
			return errCut
		}
		if op.Kind.Changes() {
			if v.left == 0 {
				v.cut = true
				return errCut
			}
			v.left--
		}
		return nil
	})
	return v
}

// ok reports whether the voyage goes on; any error but the cut is a failure.
func (v *voyage) ok(err error) bool {
	v.t.Helper()
	if err != nil && !errors.Is(err, errCut) {
		v.t.Fatalf("%v", err)
	}
	return err == nil
}

func (v *voyage) open() bool {
	d, err := storage.OpenDir(v.w.fs, v.w.path, v.w.options())
	if !v.ok(err) {
		return false
	}
	v.w.dir, v.l = d, d.Log(events0)
	return true
}

func (v *voyage) create() bool {
	l, err := v.w.dir.Create(events0, topicID, v.w.cfg, now)
	v.l = l
	return v.ok(err)
}

// elect begins an epoch at the log end.
func (v *voyage) elect() bool {
	v.epoch++
	v.cache.Assign(v.epoch, v.l.LEO())
	return v.ok(v.l.WriteEpochs(v.cache.Entries()))
}

// write appends a batch of n records; every fifth belongs to a transaction, of
// which some abort.
func (v *voyage) write(n int) bool {
	opts := record.PlainOptions()
	kind := v.l.LEO() % 5
	if kind < 2 {
		opts = record.BatchOptions{ProducerID: 40, BaseSequence: v.seq, Transactional: true}
		v.seq += int32(n)
	}
	b := record.NewBuilder(opts)
	base := v.l.LEO()
	for i := range n {
		b.Add(now, []byte("k"), []byte(v.value(base+model.Offset(i))))
	}
	if !v.append(b.Bytes(), n, false) || kind >= 2 {
		return !v.cut
	}
	m := record.Marker{Producer: 40, Commit: kind == 0}
	return v.append(m.Batch(0, 0, now), 1, true)
}

func (v *voyage) value(o model.Offset) string { return fmt.Sprintf("%d in epoch %d", o, v.epoch) }

func (v *voyage) append(b []byte, n int, marker bool) bool {
	base := v.l.LEO()
	for i := range n {
		v.current[base+model.Offset(i)] = v.value(base + model.Offset(i))
		if marker {
			v.current[base+model.Offset(i)] = "marker"
		}
	}
	a := storage.AppendBatch{Bytes: b, Stamp: true, Base: base, Epoch: v.epoch, Epochs: v.cache.Entries()}
	got, err := v.l.Append(now, a)
	if !v.ok(err) {
		return false
	}
	v.written = got.End
	return true
}

func (v *voyage) writes(times int) bool {
	for i := range times {
		if !v.write(1 + i%3) {
			return false
		}
	}
	return true
}

func (v *voyage) flush() bool {
	if !v.ok(v.l.Flush(now)) {
		return false
	}
	v.promised = v.l.LEO()
	return true
}

// replace says that a cut to an offset, -1 for a fresh start, begins: until it
// is flushed over, a crash may find the old log or the new.
func (v *voyage) replace(to model.Offset) {
	v.before = append(v.before, maps.Clone(v.current))
	maps.DeleteFunc(v.current, func(o model.Offset, _ string) bool { return o >= to })
	v.promised, v.written = min(v.promised, to), min(v.written, to)
}

func (v *voyage) truncate(to model.Offset) bool {
	v.replace(to)
	v.cache.TruncateFromEnd(to)
	cut, err := v.l.Truncate(to, v.cache.Entries(), now)
	if err == nil {
		maps.DeleteFunc(v.current, func(o model.Offset, _ string) bool { return o >= cut.LEO })
		v.promised, v.written = min(v.promised, cut.LEO), min(v.written, cut.LEO)
	}
	return v.ok(err)
}

func (v *voyage) restart(at model.Offset) bool {
	v.replace(-1)
	v.cache.Clear()
	_, err := v.l.Restart(at, nil, now)
	return v.ok(err)
}

func (v *voyage) retain() bool {
	if !v.ok(v.l.RaiseStart(v.l.LEO()/2)) || !v.ok(v.w.dir.CheckpointLogStart()) {
		return false
	}
	_, err := v.l.ApplyRetention(now, v.l.LEO())
	return v.ok(err)
}

func (v *voyage) background() bool {
	return v.ok(v.w.dir.RunBackground()) && v.ok(v.w.dir.CheckpointRecovery()) &&
		v.ok(v.w.dir.CheckpointHW(map[model.TopicPartition]model.Offset{events0: v.l.LEO()}))
}

func (v *voyage) close(epoch model.BrokerEpoch) bool {
	err := v.w.dir.CloseClean(epoch)
	if err == nil {
		v.clean, v.promised = epoch, v.l.LEO()
	}
	return v.ok(err)
}

// sail is the whole voyage; it reports whether it ended without the cut.
func (v *voyage) sail() bool {
	return v.open() && v.create() && v.elect() &&
		v.writes(4) && v.flush() && v.writes(30) && v.background() && v.writes(10) &&
		v.elect() && v.writes(25) && v.flush() && v.writes(3) &&
		v.truncate(v.l.LEO()-20) && v.elect() && v.writes(30) && v.background() &&
		v.truncate(33) && v.elect() && v.writes(50) && v.flush() && v.writes(2) &&
		v.retain() && v.writes(20) && v.background() && v.writes(5) &&
		v.close(3) && v.reopen() && v.elect() && v.writes(20) && v.flush() && v.writes(3) &&
		v.restart(v.l.LEO()+500) && v.elect() && v.writes(20) && v.flush() && v.writes(1) &&
		v.restart(600) && v.elect() && v.writes(20) && v.background() && v.flush() && v.close(4)
}

func (v *voyage) reopen() bool {
	v.clean = -1 // from here on the file may be gone
	return v.open()
}

// check opens what the crash left and compares.
func (v *voyage) check(how string, disk *vfs.Mem, killed bool) {
	v.t.Helper()
	w := newWorld(v.t)
	w.fs = disk
	d, err := storage.OpenDir(disk, w.path, w.options())
	if err != nil {
		v.t.Fatalf("%s: %v", how, err)
	}
	defer d.Close()
	if v.clean >= 0 && !v.cut && d.CleanShutdownEpoch() != v.clean {
		v.t.Fatalf("%s: clean epoch %d, want %d", how, d.CleanShutdownEpoch(), v.clean)
	}
	l := d.Log(events0)
	if l == nil {
		if v.promised >= 0 {
			v.t.Fatalf("%s: the log is gone", how)
		}
		return
	}
	least := v.promised
	if killed {
		least = max(least, v.written)
	}
	if l.LEO() < least {
		v.t.Fatalf("%s: log ends at %d, promised %d\n%s", how, l.LEO(), least, w.log.String())
	}
	got := contents(v.t, l)
	if !slices.ContainsFunc(append(v.before, v.current), func(h history) bool { return v.matches(h, got) }) {
		v.t.Fatalf("%s: log [%d, %d), promised %d, is no log that ever was: %v\nnow: %v\n%s", how, l.Start(), l.LEO(), v.promised, got, v.current, w.log.String())
	}
	checkFolds(v.t, how, l)
	if _, err := l.Append(now, storage.AppendBatch{Bytes: batch(3, l.LEO(), now), Stamp: true, Base: l.LEO(), Epoch: 99}); err != nil {
		v.t.Fatalf("%s: append after recovery: %v", how, err)
	}
}

// matches reports whether what was found is a part of the history, and of the
// current one as far as it was promised.
func (v *voyage) matches(h, got history) bool {
	for o, value := range got {
		if h[o] != value || o < v.promised && v.current[o] != value {
			return false
		}
	}
	return true
}

// contents reads a log whole and checks that it has no hole.
func contents(t testing.TB, l *storage.Log) history {
	t.Helper()
	h := history{}
	for at := l.Start(); at < l.LEO(); {
		s, err := l.Read(at, 500, l.LEO(), true)
		must(t, err)
		b := make([]byte, s.Len)
		if _, err := s.File.ReadAt(b, s.Pos); err != nil {
			t.Fatalf("read at %d: %v", at, err)
		}
		s.Release()
		for hd, bytes := range record.Split(b) {
			if hd.Base > at || !record.Valid(bytes) {
				t.Fatalf("batch at %d where %d is expected", hd.Base, at)
			}
			must(t, record.Records(bytes, func(r *record.Record) bool {
				if h[r.Offset] = string(r.Value); hd.Control() {
					h[r.Offset] = "marker"
				}
				return true
			}))
			at = hd.Next()
		}
		if at > s.Next {
			t.Fatalf("slice ends at %d, says %d", at, s.Next)
		}
		at = s.Next // a removed segment that did not come back leaves a hole
	}
	maps.DeleteFunc(h, func(o model.Offset, _ string) bool { return o < l.Start() })
	return h
}

// checkFolds compares epochs, producers and the transaction index with the log.
func checkFolds(t testing.TB, how string, l *storage.Log) {
	t.Helper()
	cache := epochs.New(l.Epochs())
	state := producers.New()
	var aborted []storage.AbortedTxn
	for at := l.Segments()[0].Base; at < l.LEO(); {
		s, err := l.Read(max(at, l.Start()), 1, l.LEO(), true)
		must(t, err)
		b := make([]byte, s.Len)
		_, err = s.File.ReadAt(b, s.Pos)
		must(t, err)
		s.Release()
		h, _ := record.ParseHeader(b)
		if e := cache.At(max(h.Base, l.Start())); e != h.LeaderEpoch {
			t.Fatalf("%s: epoch %d at %d, the cache %v says %d", how, h.LeaderEpoch, h.Base, l.Epochs(), e)
		}
		if p := record.ProducerOf(b); p.ID >= 0 {
			if a, ok := state.Apply(p); ok {
				aborted = append(aborted, storage.AbortedTxn(a))
			}
		}
		at = h.Next()
	}
	if n := len(l.Epochs()); n > 0 && l.Epochs()[n-1].Start >= max(l.LEO(), l.Start()+1) {
		t.Fatalf("%s: epochs %v of [%d, %d)", how, l.Epochs(), l.Start(), l.LEO())
	}
	if l.Start() > 0 {
		return // producers of what was deleted are known from snapshots only
	}
	if got, want := l.Producers().Entries(), state.Entries(); !slices.Equal(got, want) {
		t.Fatalf("%s: producers %+v, want %+v", how, got, want)
	}
	got, err := l.Aborted(0, l.LEO())
	must(t, err)
	if !slices.Equal(got, aborted) {
		t.Fatalf("%s: aborted %v, want %v", how, got, aborted)
	}
}

func TestNoCutOfThePowerLosesWhatWasFlushed(t *testing.T) {
	seeds := 2
	if testing.Short() {
		seeds = 1
	}
	for left := 0; ; left++ {
		v := newVoyage(t, left)
		done := v.sail()
		for seed := range seeds {
			how := fmt.Sprintf("cut at operation %d, seed %d", left, seed)
			var r *rand.Rand
			if seed > 0 {
				r = rand.New(rand.NewPCG(uint64(left), uint64(seed)))
			}
			v.check(how, v.mem.CrashClone(vfs.CrashOptions{Rand: r}), false)
		}
		v.check(fmt.Sprintf("killed at operation %d", left), v.mem.Clone(), true)
		if done {
			t.Logf("%d operations", left)
			return
		}
	}
}

func TestARecoveryThatIsCutIsRecovered(t *testing.T) {
	for left := 50; ; left += 37 {
		v := newVoyage(t, left)
		if v.sail() {
			return
		}
		disk := v.mem.CrashClone(vfs.CrashOptions{Rand: rand.New(rand.NewPCG(1, uint64(left)))})
		for ops := 0; ; ops++ {
			again := disk.Clone()
			n := ops
			faulty := vfs.Faulty(again, func(op vfs.Op) error {
				if op.Kind.Changes() {
					if n--; n < 0 {
						return errCut
					}
				}
				return nil
			})
			w := newWorld(t)
			d, err := storage.OpenDir(faulty, w.path, w.options())
			r := rand.New(rand.NewPCG(2, uint64(ops)))
			v.check(fmt.Sprintf("cut at %d, recovery at %d", left, ops), again.CrashClone(vfs.CrashOptions{Rand: r}), false)
			if err == nil {
				must(t, d.Close())
				break
			}
			if !errors.Is(err, errCut) {
				t.Fatal(err)
			}
		}
	}
}
