package crash

import (
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const (
	now     = model.Millis(1_796_002_300_000)
	cluster = "P0y1z4e6mz4kF-HprJgivA"
	root    = "/data"
)

var (
	events0 = model.TopicPartition{Topic: "events", Partition: 0}
	topicID = model.UUID{1, 2, 3}
)

// small makes segments roll and indexes fill after a few records.
func small() storage.LogConfig {
	cfg := storage.DefaultLogConfig()
	cfg.SegmentBytes, cfg.SegmentIndexBytes, cfg.IndexIntervalBytes = 2000, 1200, 200
	return cfg
}

// options open a directory in one task, so that a story is the same every time.
func options(now *model.Millis, out *strings.Builder) storage.DirOptions {
	n := byte(0)
	return storage.DirOptions{
		ClusterID: cluster, NodeID: 1, DirectoryID: model.UUID{9}, Manual: true, Workers: 1,
		Config: func(model.TopicPartition) storage.LogConfig { return small() },
		Log:    slog.New(slog.NewTextHandler(out, nil)),
		Now:    func() model.Millis { return *now },
		NewID:  func() [16]byte { n++; return [16]byte{n} },
	}
}

// one is what a log holds at an offset; batch is the one that begins there.
type one struct {
	value string
	batch *producers.Batch
}

// history is a log that existed.
type history map[model.Offset]one

// logStory drives one log. Until it is flushed over, a crash may find the log
// that a truncation replaced, or the new one.
type logStory struct {
	t    testing.TB
	tell func(v *logStory)
	fs   vfs.FS
	d    *storage.Dir
	l    *storage.Log
	now  model.Millis
	id   model.UUID

	epoch model.Epoch
	cache epochs.Cache
	seq   int32

	current  history
	before   []history      // logs that a cut replaced
	promised model.Offset   // what was flushed; -1 nothing, not even that there is a log
	written  model.Offset   // what was appended and reported
	raised   model.Offset   // the log start, at most
	least    model.Offset   // the log start, at least: it was made durable
	firsts   []model.Offset // from where the producers may be known
	hws      []model.Offset // what the HW checkpoint may say
	clean    model.BrokerEpoch
}

func newLogStory(t testing.TB, tell func(v *logStory)) *logStory {
	return &logStory{t: t, tell: tell, now: now, id: topicID, current: history{}, promised: -1, clean: -1, hws: []model.Offset{0}, firsts: []model.Offset{0}}
}

func (v *logStory) play(fs vfs.FS) error {
	v.fs = fs
	v.open()
	v.create()
	v.elect()
	v.tell(v)
	return nil
}

func (v *logStory) fork() story {
	f := *v
	f.current = maps.Clone(v.current)
	f.before, f.hws = slices.Clip(v.before), slices.Clone(v.hws)
	f.cache = epochs.New(v.cache.Entries())
	return &f
}

func (v *logStory) open() {
	d, err := storage.OpenDir(v.fs, root, options(&v.now, &strings.Builder{}))
	must(v.t, err)
	v.d, v.l = d, d.Log(events0)
}

func (v *logStory) create() {
	l, err := v.d.Create(events0, v.id, small(), v.now)
	must(v.t, err)
	v.l = l
}

// elect begins an epoch at the log end.
func (v *logStory) elect() {
	v.epoch++
	v.cache.Assign(v.epoch, v.l.LEO())
	must(v.t, v.l.WriteEpochs(v.cache.Entries()))
}

// write appends a batch of n records; of every fifth kind are transactions, of
// which some abort.
func (v *logStory) write(n int) {
	opts := record.PlainOptions()
	base := v.l.LEO()
	kind := base % 5
	if kind < 2 {
		opts = record.BatchOptions{ProducerID: 40 + model.ProducerID(base%3), BaseSequence: v.seq, Transactional: true}
		v.seq += int32(n)
	}
	b := record.NewBuilder(opts)
	for i := range n {
		b.Add(v.now, []byte("k"), []byte(v.value(base+model.Offset(i))))
	}
	v.append(b.Bytes(), n, false)
	if kind < 2 {
		m := record.Marker{Producer: opts.ProducerID, Commit: kind == 0}
		v.append(m.Batch(0, 0, v.now), 1, true)
	}
}

func (v *logStory) value(o model.Offset) string { return fmt.Sprintf("%d in epoch %d", o, v.epoch) }

func (v *logStory) append(b []byte, n int, marker bool) {
	base := v.l.LEO()
	b = slices.Clone(b)
	record.Stamp(b, base, v.epoch)
	for i := range n {
		o := base + model.Offset(i)
		v.current[o] = one{value: v.value(o)}
		if marker {
			v.current[o] = one{value: "marker"}
		}
	}
	p := record.ProducerOf(b)
	v.current[base] = one{value: v.current[base].value, batch: &p}
	got, err := v.l.Append(v.now, storage.AppendBatch{Bytes: b, Epochs: v.cache.Entries()})
	must(v.t, err)
	v.written = got.End
}

func (v *logStory) writes(times int) {
	for i := range times {
		v.write(1 + i%3)
	}
}

func (v *logStory) flush() {
	must(v.t, v.l.Flush(v.now))
	v.promised, v.raised = v.l.LEO(), v.l.Start()
}

// replace says that a cut to an offset, -1 for a fresh start, begins.
func (v *logStory) replace(to model.Offset) {
	v.before = append(v.before, maps.Clone(v.current))
	maps.DeleteFunc(v.current, func(o model.Offset, _ one) bool { return o >= to })
	v.promised, v.written = min(v.promised, to), min(v.written, to)
	v.least = min(v.least, max(to, 0))
	for _, hw := range v.hws {
		v.hws = append(v.hws, min(hw, max(to, 0)))
	}
}

func (v *logStory) truncate(to model.Offset) {
	switch {
	case to < v.l.Segments()[0].Base:
		v.replace(-1)
		v.raised = max(v.raised, v.l.LEO())
	default:
		for to < v.l.LEO() && to > v.l.Start() && v.current[to].batch == nil {
			to-- // a batch that the offset lies within goes whole
		}
		v.replace(to)
	}
	v.cache.TruncateFromEnd(to)
	first := v.l.Segments()[0].Base
	_, err := v.l.Truncate(to, v.cache.Entries(), v.now)
	must(v.t, err)
	if to = v.l.LEO(); v.l.Segments()[0].Base != first {
		to = min(to, first)
	}
	v.lowered(to)
}

// lowered says that the HW checkpoint has sunk.
func (v *logStory) lowered(to model.Offset) {
	for i := range v.hws {
		v.hws[i] = min(v.hws[i], to)
	}
}

func (v *logStory) restart(at model.Offset) {
	v.replace(-1)
	v.raised = max(v.raised, at, v.l.LEO()) // some segments may go before others
	v.cache.Clear()
	first := v.l.Segments()[0].Base
	_, err := v.l.Restart(at, nil, v.now)
	must(v.t, err)
	v.lowered(min(at, first))
}

// remove takes the log away by Delete or Stray, for good once that returns.
func (v *logStory) remove(by func(model.TopicPartition) error) {
	v.replace(-1)
	v.raised = max(v.raised, v.l.LEO())
	v.written = -1
	must(v.t, by(events0))
	f := newLogStory(v.t, v.tell)
	f.fs, f.d, f.now, f.id, f.epoch, f.seq = v.fs, v.d, v.now, v.id, v.epoch, v.seq+100
	*v = *f
}

// recreate makes a log of the same name for another topic.
func (v *logStory) recreate() {
	v.id[0]++
	v.create()
	v.elect()
}

// raise moves the log start, durably.
func (v *logStory) raise(to model.Offset) {
	v.raised = max(v.raised, to)
	must(v.t, v.l.RaiseStart(to))
	must(v.t, v.d.CheckpointLogStart())
	v.least = to
}

func (v *logStory) retain() {
	_, err := v.l.ApplyRetention(v.now, v.l.LEO())
	must(v.t, err)
	v.raised = max(v.raised, v.l.Start())
	v.cache.TruncateFromStart(v.l.Start())
}

func (v *logStory) background() {
	must(v.t, v.d.RunBackground())
	must(v.t, v.d.CheckpointRecovery())
	v.hws = append(v.hws, v.l.LEO())
	must(v.t, v.d.CheckpointHW(map[model.TopicPartition]model.Offset{events0: v.l.LEO()}))
	v.hws = v.hws[len(v.hws)-1:]
}

func (v *logStory) close(epoch model.BrokerEpoch) {
	must(v.t, v.d.CloseClean(epoch))
	v.clean, v.promised = epoch, v.l.LEO()
}

func (v *logStory) reopen() {
	v.clean = -1 // from here on the file may be gone
	v.open()
}

// goOn is the next process: it leads the log as it found it.
func (v *logStory) goOn(fs vfs.FS) error {
	v.fs = fs
	v.reopen()
	if v.l == nil {
		v.create()
	}
	if v.l.TopicID().IsZero() { // as a broker does that hosts the log
		must(v.t, v.l.SetTopicID(v.id))
	}
	found, err := contents(v.l)
	if err != nil {
		return err
	}
	old := append(v.before, maps.Clone(v.current))
	i := slices.IndexFunc(old, func(h history) bool { return v.matches(h, found) })
	if i < 0 {
		return fmt.Errorf("the log [%d, %d) never was", v.l.Start(), v.l.LEO())
	}
	v.firsts = v.origins(v.l, i)
	v.lowered(v.l.LEO())
	v.before, v.current, v.written = old, history{}, v.l.LEO()
	for o, e := range old[i] {
		if o < v.l.LEO() {
			v.current[o] = e
		}
	}
	v.cache = epochs.New(v.l.Epochs())
	v.seq += 100
	v.elect()
	v.writes(3)
	v.flush()
	v.writes(12)
	v.background()
	v.writes(2)
	return nil
}

// look checks what is promised of the files themselves.
func (v *logStory) look(fs vfs.FS) error {
	if v.clean < 0 {
		return nil
	}
	got, err := format.ParseCleanShutdown(contentOf(fs, path.Join(root, ".kafka_cleanshutdown")))
	if err == nil && got != v.clean {
		err = fmt.Errorf("clean shutdown in broker epoch %d, not %d", got, v.clean)
	}
	return err
}

func (v *logStory) check(fs vfs.FS, killed bool) (string, error) {
	var out strings.Builder
	at := v.now
	d, err := storage.OpenDir(fs, root, options(&at, &out))
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w\n%s", err, out.String())
	}
	defer d.Close()
	l := d.Log(events0)
	if l == nil {
		if v.promised >= 0 {
			return "", fmt.Errorf("the log is gone\n%s", out.String())
		}
		return "no log", nil
	}
	found, err := v.compare(l, killed)
	if err != nil {
		return "", fmt.Errorf("log [%d, %d), promised %d: %w\n%s", l.Start(), l.LEO(), v.promised, err, out.String())
	}
	return found, nil
}

func (v *logStory) compare(l *storage.Log, killed bool) (string, error) {
	least := v.promised
	if killed {
		least = max(least, v.written)
	}
	if l.LEO() < least {
		return "", fmt.Errorf("it should not end before %d", least)
	}
	if err := v.marks(l); err != nil {
		return "", err
	}
	got, err := contents(l)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(append(v.before, v.current), func(h history) bool { return v.matches(h, got) })
	if i < 0 {
		return "", fmt.Errorf("it never was: %v\nnow: %v", describe(got), describe(v.current))
	}
	h := append(v.before, v.current)[i]
	for o := range v.current {
		if _, ok := got[o]; !ok && o >= v.raised && o < least {
			return "", fmt.Errorf("offset %d is lost", o)
		}
	}
	if err := folds(l, h, v.origins(l, i)...); err != nil {
		return "", err
	}
	return fmt.Sprint(l.Start(), l.LEO(), l.CheckpointedHW(), l.TopicID(), l.Epochs(), l.Producers().Entries(), describe(got)), nil
}

// origins are the offsets from which on a recovered log may know its producers.
func (v *logStory) origins(l *storage.Log, history int) []model.Offset {
	out := slices.Clip(v.firsts)
	if l.Start() == l.LEO() && l.Start() > v.promised { // what lay below it was lost: the log begins anew
		out = append(out, l.LEO())
	}
	if history < len(v.before) { // of a log that was to go, older segments may be gone
		out = append(out, l.Segments()[0].Base)
	}
	return out
}

// marks checks I1.
func (v *logStory) marks(l *storage.Log) error {
	start, hw, leo := l.Start(), l.CheckpointedHW(), l.LEO()
	switch {
	case start < v.least || start > v.raised:
		return fmt.Errorf("it should start within [%d, %d]", v.least, v.raised)
	case start > hw || hw > leo || l.RecoveryPoint() > leo:
		return fmt.Errorf("HW %d, recovery point %d", hw, l.RecoveryPoint())
	case !slices.ContainsFunc(v.hws, func(x model.Offset) bool { return max(start, min(x, leo)) == hw }):
		return fmt.Errorf("HW %d, the checkpoint said one of %v", hw, v.hws)
	case v.promised >= 0 && l.TopicID() != v.id:
		return fmt.Errorf("topic id %s, not %s", l.TopicID(), v.id)
	}
	return nil
}

// matches reports whether what was found is a part of the history, and of the
// current one as far as it was promised.
func (v *logStory) matches(h, got history) bool {
	for o, e := range got {
		if h[o].value != e.value || o < v.promised && v.current[o].value != e.value {
			return false
		}
	}
	return true
}
