package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
)

func TestManyProducedBatchesGoOutAsOneAppend(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentBytes = 1 << 20
	l := w.fresh()
	var set []storage.AppendBatch
	base := model.Offset(0)
	for n := 1; n < 40; n++ {
		set = append(set, storage.AppendBatch{Bytes: batch(n, base, now), Stamp: true, Base: base, Epoch: 3,
			Epochs: []model.EpochStart{{Epoch: 3, Start: 0}}})
		base += model.Offset(n)
	}
	a, err := l.Append(now, set...)
	must(t, err)
	if a.End != base || l.LEO() != base || a.Pos != (model.Position{Segment: 0, Byte: l.Size()}) || a.Flush {
		t.Errorf("%+v, want end %d", a, base)
	}
	if got := l.Epochs(); !slices.Equal(got, []model.EpochStart{{Epoch: 3, Start: 0}}) {
		t.Errorf("epochs %v", got)
	}
	checkAll(t, l)
}

func TestOneAppendMayFillManySegments(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	var set []byte
	for o := model.Offset(0); o < 300; o += 3 {
		b := batch(3, o, now)
		record.Stamp(b, o, 0)
		set = append(set, b...)
	}
	_, err := l.Append(now, storage.AppendBatch{Bytes: set})
	must(t, err)
	segs := l.Segments()
	if len(segs) < 5 || l.LEO() != 300 {
		t.Fatalf("%d segments, end %d", len(segs), l.LEO())
	}
	for i, s := range segs {
		if s.Bytes > int64(w.cfg.SegmentBytes) || s.Active != (i == len(segs)-1) {
			t.Errorf("segment %+v", s)
		}
	}
	checkAll(t, l)
	must(t, w.dir.CloseClean(1))
	l = w.reopen()
	if len(l.Segments()) != len(segs) {
		t.Errorf("%d segments after a restart", len(l.Segments()))
	}
	checkAll(t, l)
}

func TestBatchesThatDoNotFollowAreRefused(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 5, 0, now)
	b := batch(2, 3, now)
	record.Stamp(b, 3, 0)
	if _, err := l.Append(now, storage.AppendBatch{Bytes: b}); err == nil {
		t.Error("a batch below the log end was taken")
	}
	if _, err := l.Append(now, storage.AppendBatch{Bytes: b[:50]}); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("half a batch: %v", err)
	}
	if l.LEO() != 5 || w.dir.Err() != nil {
		t.Errorf("end %d, %v", l.LEO(), w.dir.Err())
	}
	checkAll(t, l)
}

func TestReadObeysItsBounds(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentBytes = 1 << 20
	l := w.fresh()
	for range 200 {
		produce(t, l, 5, 0, now)
	}
	one := len(batch(5, 0, now)) + 10 // at most
	cases := []struct {
		from, limit model.Offset
		max         int
		minOne      bool
		first, next model.Offset
	}{
		{0, 1000, 1 << 20, true, 0, 1000},
		{0, 1000, 1, true, 0, 5},
		{0, 1000, 1, false, 0, 0},
		{7, 1000, 1, true, 5, 10},
		{7, 9, 1 << 20, true, 7, 7}, // its batch is not below the limit
		{7, 10, 1 << 20, true, 5, 10},
		{7, 14, 1 << 20, true, 5, 10},
		{7, 15, 1 << 20, true, 5, 15},
		{995, 1000, 1 << 20, false, 995, 1000},
		{999, 2000, 1 << 20, false, 995, 1000},
		{1000, 1000, 1 << 20, true, 1000, 1000},
		{500, 400, 1 << 20, true, 500, 500},
		{100, 1000, 2 * one, false, 100, 110},
	}
	for _, reload := range []bool{false, true} {
		if reload {
			must(t, w.dir.CloseClean(1))
			l = w.reopen()
		}
		for _, c := range cases {
			s, err := l.Read(c.from, c.max, c.limit, c.minOne)
			must(t, err)
			if s.First != c.first || s.Next != c.next || (s.Len == 0) != (c.first == c.next) {
				t.Errorf("reloaded %v: Read(%d, %d, %d, %v) = [%d, %d) of %d bytes, want [%d, %d)", reload, c.from, c.max, c.limit, c.minOne, s.First, s.Next, s.Len, c.first, c.next)
			}
			s.Release()
		}
		for _, o := range []model.Offset{-1, 1001} {
			if _, err := l.Read(o, 1, 1000, true); !errors.Is(err, storage.ErrOffsetOutOfRange) {
				t.Errorf("Read(%d): %v", o, err)
			}
			if _, err := l.Locate(o); !errors.Is(err, storage.ErrOffsetOutOfRange) {
				t.Errorf("Locate(%d): %v", o, err)
			}
		}
	}
}

func TestLocateFindsWhereReadBegins(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for range 100 {
		produce(t, l, 4, 0, now)
	}
	for range 2 {
		for o := model.Offset(0); o < 400; o++ {
			p, err := l.Locate(o)
			must(t, err)
			s, err := l.Read(o, 1, 400, true)
			must(t, err)
			if p.Byte != s.Pos || p.Segment > o {
				t.Fatalf("Locate(%d) = %+v, Read at %d", o, p, s.Pos)
			}
			s.Release()
		}
		end, pos := l.End()
		if p, err := l.Locate(end); err != nil || p != pos {
			t.Errorf("Locate(end) = %+v, %v; want %+v", p, err, pos)
		}
		must(t, w.dir.CloseClean(1))
		l = w.reopen()
	}
}

// bases are the base offsets of the segments.
func bases(l *storage.Log) (out []model.Offset) {
	for _, s := range l.Segments() {
		out = append(out, s.Base)
	}
	return out
}

func TestSegmentsRollBySize(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentBytes = int32(3 * len(batch(1, 0, now)))
	l := w.fresh()
	for range 7 {
		produce(t, l, 1, 0, now)
	}
	if got := bases(l); !slices.Equal(got, []model.Offset{0, 3, 6}) {
		t.Errorf("%v", got)
	}
}

func TestSegmentsRollByTheRecordsTime(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentMs = 1000
	l := w.fresh()
	for _, at := range []model.Millis{0, 1000, 500, 1001, 2001, 2002} {
		produce(t, l, 1, 0, now+at)
	}
	if got := bases(l); !slices.Equal(got, []model.Offset{0, 3, 5}) {
		t.Errorf("%v", got)
	}
	must(t, w.dir.CloseClean(1))
	l = w.reopen()
	produce(t, l, 1, 0, now+2003)
	produce(t, l, 1, 0, now+3003)
	if got := bases(l); !slices.Equal(got, []model.Offset{0, 3, 5, 7}) {
		t.Errorf("after a restart %v", got)
	}
}

func TestSegmentsWithoutTimesRollByTheClock(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentMs = 1000
	l := w.fresh()
	for _, clock := range []model.Millis{0, 1000, 1001, 2001, 2002} {
		b := batch(1, 0, -1)
		_, err := l.Append(now+clock, storage.AppendBatch{Bytes: b, Stamp: true, Base: l.LEO()})
		must(t, err)
	}
	if got := bases(l); !slices.Equal(got, []model.Offset{0, 2, 4}) {
		t.Errorf("%v", got)
	}
}

func TestSegmentsRollWhenAnIndexIsFull(t *testing.T) {
	w := newWorld(t)
	w.cfg.SegmentBytes, w.cfg.IndexIntervalBytes = 1<<20, 0
	w.cfg.SegmentIndexBytes = 12 * 6 // the last slot of the time index is for the roll
	l := w.fresh()
	for i := range 20 {
		produce(t, l, 1, 0, now+model.Millis(i))
	}
	var set []storage.AppendBatch
	for i := range 20 {
		set = append(set, storage.AppendBatch{Bytes: batch(1, l.LEO()+model.Offset(i), now+model.Millis(20+i)), Stamp: true, Base: l.LEO() + model.Offset(i)})
	}
	_, err := l.Append(now, set...)
	must(t, err)
	if got := bases(l); len(got) < 6 {
		t.Errorf("%v", got)
	}
	must(t, w.dir.CloseClean(1))
	for name, content := range tree(t, w.fs, w.path) {
		if strings.HasSuffix(name, "index") && len(content) > 72 {
			t.Errorf("%s has %d bytes", name, len(content))
		}
	}
	checkAll(t, w.reopen())
}

func TestSegmentsRollWhenOffsetsAreTooFar(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	far := model.Offset(1) << 40
	for i, at := range []model.Offset{0, 1<<31 - 1, 1 << 31, far} {
		b := batch(1, at, now)
		record.Stamp(b, at, model.Epoch(i))
		_, err := l.Append(now, storage.AppendBatch{Bytes: b})
		must(t, err)
	}
	if got := bases(l); !slices.Equal(got, []model.Offset{0, 1 << 31, far}) {
		t.Errorf("%v", got)
	}
	must(t, w.dir.Close())
	l = w.reopen() // without the clean file
	if l.LEO() != far+1 || len(values(t, l, far, far+1, 1)) != 1 {
		t.Errorf("end %d after a kill", l.LEO())
	}
}

func TestJitterRollsEarlierButNeverAtOnce(t *testing.T) {
	seen := map[int]bool{}
	for p := range int32(20) {
		w := newWorld(t)
		w.cfg.SegmentMs, w.cfg.SegmentJitterMs, w.cfg.SegmentBytes = 1000, 500, 1<<20
		l, err := w.open().Create(model.TopicPartition{Topic: "t", Partition: p}, topicID, w.cfg, now)
		must(t, err)
		at := 0
		for ; len(l.Segments()) == 1; at += 10 {
			produce(t, l, 1, 0, now+model.Millis(at))
		}
		if at < 500 || at > 1020 {
			t.Errorf("partition %d rolled after %d ms", p, at)
		}
		seen[at] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %d different times", len(seen))
	}
}

func TestIdleProducersAreForgotten(t *testing.T) { // R2.16
	w := newWorld(t)
	l := w.fresh()
	for id := range model.ProducerID(3) {
		b := record.NewBuilder(record.BatchOptions{ProducerID: id, Transactional: id == 2})
		b.Add(now+model.Millis(id)*3_600_000, nil, []byte("x"))
		_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
		must(t, err)
	}
	w.now = now + 24*3_600_000 + 1000
	must(t, w.dir.CloseClean(1))
	l = w.reopen()
	if e := l.Producers().Entries(); len(e) != 2 || e[0].ID != 1 {
		t.Errorf("%+v", e)
	}
	must(t, w.dir.Close())
	w.now += 48 * 3_600_000
	l = w.reopen() // what has an open transaction stays
	if e := l.Producers().Entries(); len(e) != 1 || e[0].ID != 2 {
		t.Errorf("%+v", e)
	}
}

func TestTimeQueriesEqualALinearScan(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	r := rand.New(rand.NewPCG(3, 4))
	var times []model.Millis
	for range 300 {
		b := record.NewBuilder(record.PlainOptions())
		for range 1 + r.IntN(4) {
			at := now + model.Millis(len(times)) + model.Millis(r.IntN(60)-30)
			times = append(times, at)
			b.Add(at, nil, []byte("x"))
		}
		_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
		must(t, err)
	}
	check := func() {
		t.Helper()
		start := int(l.Start())
		for range 300 {
			at := now + model.Millis(r.IntN(len(times)+80)-40)
			want := slices.IndexFunc(times[start:], func(x model.Millis) bool { return x >= at })
			got, ok, err := l.OffsetForTime(at)
			must(t, err)
			if ok != (want >= 0) || ok && (got.Offset != model.Offset(start+want) || got.Timestamp != times[start+want]) {
				t.Fatalf("OffsetForTime(%d) = %+v %v, want %d", at, got, ok, start+want)
			}
		}
		best := slices.Max(times[start:])
		got, ok, err := l.MaxTimestampOffset()
		must(t, err)
		if want := start + slices.Index(times[start:], best); !ok || got.Offset != model.Offset(want) || got.Timestamp != best {
			t.Fatalf("MaxTimestampOffset = %+v %v, want %d", got, ok, want)
		}
	}
	check()
	must(t, w.dir.CloseClean(1))
	l = w.reopen()
	check()
	must(t, l.RaiseStart(l.LEO()/2))
	check()
	_, err := l.ApplyRetention(now, l.LEO())
	must(t, err)
	must(t, l.RaiseStart(l.LEO()-1))
	check()
	must(t, w.dir.Close())
	l = w.reopen()
	check()
}

func TestALogWithoutTimesAnswersNone(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 1, 0, -1)
	if _, ok, err := l.OffsetForTime(0); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if _, ok, err := l.MaxTimestampOffset(); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

// transaction appends two records of a transaction and its end.
func transaction(t *testing.T, l *storage.Log, id model.ProducerID, epoch int16, seq int32, commit bool) {
	t.Helper()
	b := record.NewBuilder(record.BatchOptions{ProducerID: id, ProducerEpoch: epoch, BaseSequence: seq, Transactional: true})
	for i := range 2 {
		b.Add(now, []byte("k"), fmt.Appendf(nil, "value %d", l.LEO()+model.Offset(i)))
	}
	_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
	must(t, err)
	m := record.Marker{Producer: id, ProducerEpoch: epoch, Commit: commit, CoordinatorEpoch: 1}
	_, err = l.Append(now, storage.AppendBatch{Bytes: m.Batch(0, 0, now), Stamp: true, Base: l.LEO()})
	must(t, err)
}

func TestAbortedTransactionsAreFoundAgain(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	var all []storage.AbortedTxn
	for i := range 60 {
		first := l.LEO()
		transaction(t, l, model.ProducerID(i%3), 0, int32(2*(i/3)), i%2 == 0)
		if i%2 == 1 {
			all = append(all, storage.AbortedTxn{ID: model.ProducerID(i % 3), First: first, Last: first + 2, LSO: first + 3})
		}
	}
	if len(l.Segments()) < 3 {
		t.Fatalf("%d segments", len(l.Segments()))
	}
	check := func(l *storage.Log, all []storage.AbortedTxn) {
		t.Helper()
		for from := model.Offset(0); from < l.LEO(); from += 7 {
			to := min(from+40, l.LEO())
			got, err := l.Aborted(from, to)
			must(t, err)
			want := slices.DeleteFunc(slices.Clone(all), func(a storage.AbortedTxn) bool { return a.Last < from || a.First >= to })
			if !slices.Equal(got, want) {
				t.Fatalf("Aborted(%d, %d) = %v, want %v", from, to, got, want)
			}
		}
	}
	check(l, all)
	want := l.Producers().Entries()
	must(t, w.dir.Close())
	l = w.reopen() // recovered
	check(l, all)
	if got := l.Producers().Entries(); !slices.Equal(got, want) {
		t.Errorf("producers %v, want %v", got, want)
	}
	cut, err := l.Truncate(100, nil, now)
	must(t, err)
	all = slices.DeleteFunc(all, func(a storage.AbortedTxn) bool { return a.Last >= 100 })
	check(l, all)
	transaction(t, l, 77, 0, 0, false)
	all = append(all, storage.AbortedTxn{ID: 77, First: cut.LEO, Last: cut.LEO + 2, LSO: all[0].LSO})
	got, err := l.Aborted(cut.LEO, l.LEO())
	must(t, err)
	if len(got) != 1 || got[0].ID != 77 || got[0].First != cut.LEO {
		t.Errorf("after the cut: %v", got)
	}
}

func TestFlushRaisesTheRecoveryPoint(t *testing.T) {
	w := newWorld(t)
	w.cfg.FlushMessages = 1
	l := w.fresh()
	a := produce(t, l, 3, 0, now)
	if !a.Flush || l.RecoveryPoint() != 0 {
		t.Fatalf("%+v, recovery point %d", a, l.RecoveryPoint())
	}
	must(t, l.Flush(now))
	if l.RecoveryPoint() != 3 {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
	cfg := w.cfg
	cfg.FlushMessages, cfg.FlushMs = 10, 500
	l.SetConfig(cfg)
	if a := produce(t, l, 9, 0, now+100); a.Flush {
		t.Error("nine records are not ten")
	}
	if a := produce(t, l, 1, 0, now+100); !a.Flush {
		t.Error("ten records are ten")
	}
	if l.FlushDue(now+499) || !l.FlushDue(now+500) {
		t.Error("flush.ms is not obeyed")
	}
}

func TestARollIsFlushedInTheBackground(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for len(l.Segments()) < 4 {
		produce(t, l, 1, 0, now)
	}
	last := l.Segments()[3].Base
	must(t, w.dir.RunBackground())
	if l.RecoveryPoint() != last {
		t.Errorf("recovery point %d, want %d", l.RecoveryPoint(), last)
	}
}

func TestACutStopsTheBackgroundFromRaisingTheRecoveryPoint(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for len(l.Segments()) < 4 {
		produce(t, l, 1, 0, now)
	}
	_, err := l.Truncate(5, nil, now)
	must(t, err)
	produce(t, l, 60, 0, now)
	must(t, w.dir.RunBackground())
	if l.RecoveryPoint() > 5 {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
}
