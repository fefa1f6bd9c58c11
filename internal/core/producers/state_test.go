package producers

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestKnownProducersCostNoAllocation(t *testing.T) {
	s := New()
	b := Batch{ID: 1, Records: 10}
	s.Apply(b)
	n := testing.AllocsPerRun(1000, func() {
		b.BaseSequence, b.Base = (b.LastSequence()+1)&0x7fffffff, b.Last()+1
		if v := s.Check(b, true); v.Err != model.None || v.Duplicate {
			t.Fatalf("batch refused: %+v", v)
		}
		s.Apply(b)
	})
	if n != 0 {
		t.Errorf("%v allocations per batch, want 0", n)
	}
}

// checkRetry sends batch i of the history again.
func checkRetry(t *rapid.T, s *State, history []Batch, i int, leo model.Offset) {
	want := history[i]
	b := want
	b.Base = leo
	v := s.Check(b, true)
	if recent := len(history)-i <= 5; v.Duplicate != recent {
		t.Fatalf("retry of batch %d of %d: %+v", i, len(history), v)
	} else if recent && (v.Base != want.Base || v.Last != want.Last()) {
		t.Fatalf("retry answered %d..%d, written at %d..%d", v.Base, v.Last, want.Base, want.Last())
	}
}

// A model that keeps everything decides the same as the window of five.
func TestWindowAgreesWithFullHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, leo := New(), model.Offset(0)
		var history []Batch // of the current epoch
		next, epoch := rapid.Int32Range(0x7fffffe0, 0x7fffffff).Draw(t, "start"), int16(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			b := Batch{ID: 5, Epoch: epoch, BaseSequence: next, Records: rapid.Int32Range(1, 9).Draw(t, "records"), Base: leo}
			kind := rapid.IntRange(0, 4).Draw(t, "kind")
			switch {
			case kind == 0 && len(history) > 0:
				checkRetry(t, s, history, rapid.IntRange(0, len(history)-1).Draw(t, "which"), leo)
				continue
			case kind == 1 && len(history) > 0: // a gap
				b.BaseSequence = (next + rapid.Int32Range(1, 9).Draw(t, "gap")) & 0x7fffffff
				if v := s.Check(b, true); v.Err != model.ErrOutOfOrderSequenceNumber {
					t.Fatalf("gap: %+v", v)
				}
				continue
			case kind == 2:
				epoch++
				history, b.Epoch, b.BaseSequence = nil, epoch, 0
			}
			if v := s.Check(b, true); v.Err != model.None || v.Duplicate {
				t.Fatalf("next batch %+v refused: %+v", b, v)
			}
			s.Apply(b)
			history = append(history, b)
			leo, next = b.Last()+1, int32((int64(b.LastSequence())+1)&0x7fffffff)
		}
	})
}

func BenchmarkCheckAndApply(b *testing.B) {
	s := New()
	batch := Batch{ID: 1, Records: 10}
	b.ReportAllocs()
	for b.Loop() {
		s.Check(batch, true)
		s.Apply(batch)
		batch.BaseSequence, batch.Base = (batch.LastSequence()+1)&0x7fffffff, batch.Last()+1
	}
}

// A snapshot to which the log's last part is added knows no retry that the state
// it was taken of does not know, and knows all that lie in that part whole.
func TestARecalledSnapshotKnowsTheRetriesInTheTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, leo := New(), model.Offset(0)
		var history []Batch
		next, epochs := map[model.ProducerID]int32{}, map[model.ProducerID]int16{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := model.ProducerID(rapid.IntRange(0, 3).Draw(t, "id"))
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				epochs[id]++
				next[id] = 0
			}
			b := Batch{ID: id, Epoch: epochs[id], BaseSequence: next[id], Records: rapid.Int32Range(1, 3).Draw(t, "records"), Base: leo,
				MaxTimestamp: model.Millis(leo)}
			live.Apply(b)
			history = append(history, b)
			leo, next[id] = b.Last()+1, b.LastSequence()+1
		}
		from := rapid.IntRange(0, len(history)).Draw(t, "from")
		tail, s := New(), New()
		for _, b := range history[from:] {
			tail.Apply(b)
		}
		s.Restore(live.Entries())
		s.Recall(tail)
		for i, b := range history {
			was, is := live.Check(b, true), s.Check(b, true)
			if is.Duplicate && is != was || i >= from && is != was {
				t.Fatalf("batch %d of %d, recalled from %d: %+v, was %+v", i, len(history), from, is, was)
			}
		}
	})
}
