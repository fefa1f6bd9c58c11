package replicas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/dumplog"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// The log directory that is damaged: two logs, one of them with transactions.
const (
	fuzzDir   = "/data"
	fuzzLog   = "events-0"
	fuzzClean = ".kafka_cleanshutdown"
	fuzzNow   = model.Millis(1_796_002_300_000)
)

var (
	fuzzEvents = model.TopicPartition{Topic: "events", Partition: 0}
	fuzzOther  = model.TopicPartition{Topic: "other", Partition: 1}
)

// Damage to one file, in the two lowest bits: the fuzzer's bytes take its place,
// lie over it, follow a part of it, or it is gone. The next bit is an unclean stop,
// the two highest ones say whether the file is printed.
const (
	damageWhole = iota
	damageOver
	damageTail
	damageGone
	damageUnclean = 1 << 2
	damagePrinted = 1 << 6
)

// FuzzLogDirectory opens a log directory of which one file, that which names, is
// damaged. The directory opens or says why not. No batch before the damage is
// lost, the other log is whole, what is open takes records, and the next start
// finds what this one left. The readers of all small files, and the printer, see
// the same bytes.
func FuzzLogDirectory(f *testing.F) {
	whole := fuzzDirectory(f)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(whole)), func(name string) bool { return strings.HasPrefix(name, "other-1/") })
	for i, name := range names {
		b := whole[name]
		f.Add(uint8(i), uint8(damageWhole), uint16(0), b)
		f.Add(uint8(i), uint8(damageWhole|damageUnclean|damagePrinted), uint16(0), b[:len(b)/2])
		f.Add(uint8(i), uint8(damageOver), uint16(len(b)/2), []byte{0xff, 0xff, 0xff, 0xff})
		f.Add(uint8(i), uint8(damageTail|damageUnclean), uint16(len(b)), make([]byte, 100))
		f.Add(uint8(i), uint8(damageGone), uint16(0), []byte{})
	}
	addKafkasFiles(f, names)
	f.Fuzz(func(t *testing.T, which, how uint8, at uint16, b []byte) {
		name := names[int(which)%len(names)]
		readSmall(t, b)
		d := damaged{t: t, whole: whole, name: name, now: spoil(whole[name], how, int(at), b), gone: how&3 == damageGone}
		d.fs = d.disk(how&damageUnclean != 0)
		used := allocated(d.check)
		if most := uint64(64<<20 + 64*len(b)); used > most {
			t.Fatalf("%s of %d bytes took %d MiB", name, len(d.now), used>>20)
		}
		if how>>6 == 1 {
			d.print()
		}
	})
}

// spoil makes the content of a damaged file.
func spoil(old []byte, how uint8, at int, b []byte) []byte {
	at = min(at, len(old))
	switch how & 3 {
	case damageOver:
		out := slices.Clone(old)
		return append(out[:at], append(slices.Clone(b), out[min(len(out), at+len(b)):]...)...)
	case damageTail:
		return append(slices.Clone(old[:at]), b...)
	}
	return b
}

// damaged is one directory with its damage.
type damaged struct {
	t     *testing.T
	fs    *vfs.Mem
	whole map[string][]byte
	name  string
	now   []byte // the file's content
	gone  bool
}

func (d *damaged) disk(unclean bool) *vfs.Mem {
	fs := vfs.NewMem()
	for _, name := range slices.Sorted(maps.Keys(d.whole)) {
		b := d.whole[name]
		if name == d.name {
			if b = d.now; d.gone {
				continue
			}
		}
		if name != fuzzClean || !unclean {
			put(d.t, fs, filepath.Join(fuzzDir, name), b)
		}
	}
	return fs
}

func (d *damaged) check() {
	if d.name == cutsFile {
		d.checkCuts()
		return
	}
	dir, err := openFuzzed(d.fs)
	if err != nil {
		if text := err.Error(); !strings.HasPrefix(text, "open log directory /data: ") || strings.Contains(text, "\n") {
			d.t.Fatalf("the refusal is not one clear line: %q", text)
		}
		if !d.mayRefuse() {
			d.t.Fatalf("%s damaged: %v", d.name, err)
		}
		return
	}
	log, other := dir.Log(fuzzEvents), dir.Log(fuzzOther)
	if log == nil || other == nil {
		d.t.Fatal("a log is gone")
	}
	if all, err := recordsOf(other, other.Start()); err != nil || !slices.Equal(all, fuzzRecords(20, 0)) && !d.movesStart() {
		d.t.Fatalf("%s damaged: the other log holds %v, %v", d.name, all, err)
	}
	all, err := recordsOf(log, log.Start())
	d.checkRecords(log, all, err)
	if err != nil {
		dir.Close()
		return
	}
	_, _, timeErr := log.OffsetForTime(fuzzNow + 3)
	_, _, maxErr := log.MaxTimestampOffset()
	_, abortedErr := log.Aborted(log.Start(), log.LEO())
	if err := errors.Join(timeErr, maxErr, abortedErr); err != nil && !strings.HasSuffix(d.name, ".log") {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	d.goOn(dir, log, all)
}

// mayRefuse says which files the directory cannot be opened without.
func (d *damaged) mayRefuse() bool {
	return d.name == "meta.properties" || strings.HasSuffix(d.name, ".log")
}

// movesStart says that the damage may move where the logs begin.
func (d *damaged) movesStart() bool { return d.name == "log-start-offset-checkpoint" }

// checkRecords: nothing is missing before the damage, and nothing is made up but
// by a file of batches.
func (d *damaged) checkRecords(log *storage.Log, got []string, err error) {
	want := contentOf(d.whole)
	switch {
	case d.movesStart():
		if log.LEO() != model.Offset(len(want)) { // it claims that all is deleted
			return
		}
		want = want[log.Start():]
	case strings.HasPrefix(d.name, fuzzLog+"/") && strings.HasSuffix(d.name, ".log"):
		want = want[:d.safe()]
		if len(got) >= len(want) {
			got, err = got[:len(want)], nil
		}
	}
	if err != nil || !slices.Equal(got, want) {
		d.t.Fatalf("%s damaged: the log [%d, %d) holds %d records, %v; want %d:\n%v\n%v", d.name, log.Start(), log.LEO(), len(got), err, len(want), got, want)
	}
}

// safe is the offset after the last batch that lies wholly before the damage of a
// log file.
func (d *damaged) safe() model.Offset {
	old := d.whole[d.name]
	same := 0
	for same < len(old) && same < len(d.now) && old[same] == d.now[same] {
		same++
	}
	if d.gone {
		same = 0
	}
	var end model.Offset
	fmt.Sscanf(filepath.Base(d.name), "%d.log", &end)
	for h, b := range record.Split(old) {
		if same -= len(b); same < 0 {
			break
		}
		end = h.Next()
	}
	return end
}

// goOn appends to what was opened, stops and starts again.
func (d *damaged) goOn(dir *storage.Dir, log *storage.Log, all []string) {
	end := log.LEO()
	if end > 1<<40 {
		dir.Close()
		return
	}
	if _, err := log.Append(fuzzNow, storage.AppendBatch{Bytes: fuzzBatch(1, end), Stamp: true, Base: end, Epoch: 1 << 30}); err != nil {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	if err := dir.CloseClean(9); err != nil {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	dir, err := openFuzzed(d.fs)
	if err != nil {
		d.t.Fatalf("%s damaged: the next start: %v", d.name, err)
	}
	defer dir.Close()
	log = dir.Log(fuzzEvents)
	got, err := recordsOf(log, log.Start())
	if want := append(all, fuzzRecords(1, end)...); err != nil || !slices.Equal(got, want) {
		d.t.Fatalf("%s damaged: the next start finds %d records, %v; want %d:\n%v\n%v", d.name, len(got), err, len(want), got, want)
	}
}

// checkCuts: the account of truncations is read, and takes the next one.
func (d *damaged) checkCuts() {
	id := model.TopicIDPartition{TopicID: model.UUID{200, 9}, Partition: 3}
	c, err := openCuts(d.fs, fuzzDir)
	if err == nil {
		err = c.write(line(id.TopicID, 7))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	before := len(c.of(id))
	if c, err = openCuts(d.fs, fuzzDir); err != nil {
		d.t.Fatal(err)
	}
	if got := c.of(id); len(got) != min(before+1, keptCuts) || got[len(got)-1].From != 7 {
		d.t.Fatalf("%d truncations after one was added to %d", len(got), before)
	}
}

// print has the printer of log files print the damaged one with every decoder.
func (d *damaged) print() {
	name := filepath.Join(d.t.TempDir(), filepath.Base(d.name))
	if err := os.WriteFile(name, d.now, 0o644); err != nil {
		d.t.Fatal(err)
	}
	for _, decoder := range []dumplog.Decoder{dumplog.Plain, dumplog.ClusterMeta, dumplog.TransactionLog, dumplog.Offsets} {
		_ = dumplog.File(io.Discard, name, dumplog.Options{Deep: true, Data: true, Decoder: decoder})
	}
}

// readSmall gives the bytes to every reader of a small file: what it takes it can
// write and read again.
func readSmall(t *testing.T, b []byte) {
	if m, err := format.ParseOffsets(b); err == nil {
		if again, err := format.ParseOffsets(format.Offsets(m)); err != nil || !maps.Equal(again, m) {
			t.Errorf("%v became %v, %v", m, again, err)
		}
	}
	if list, err := format.ParseEpochs(b); err == nil {
		if again, err := format.ParseEpochs(format.Epochs(list)); err != nil || !slices.Equal(again, list) {
			t.Errorf("%v became %v, %v", list, again, err)
		}
	}
	if m, err := format.ParseMeta(b); err == nil {
		if again, err := format.ParseMeta(m.Format()); err != nil || again != m {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	}
	if _, err := format.ParseSnapshot(b); err == nil && len(b) < 10 {
		t.Error("a snapshot is too short")
	}
	if list, err := format.ParseTxnIndex(b); err == nil && len(list) != len(b)/format.TxnEntrySize {
		t.Error("a transaction index of another length")
	}
	_, _ = format.ParsePartitionMetadata(b)
	_, _ = format.ParseCleanShutdown(b)
}

func fuzzConfig() storage.LogConfig {
	cfg := storage.DefaultLogConfig()
	cfg.SegmentBytes, cfg.SegmentIndexBytes, cfg.IndexIntervalBytes = 2000, 1200, 200
	return cfg
}

func openFuzzed(fs vfs.FS) (*storage.Dir, error) {
	return storage.OpenDir(fs, fuzzDir, storage.DirOptions{
		ClusterID: "P0y1z4e6mz4kF-HprJgivA", NodeID: 1, DirectoryID: model.UUID{9}, Workers: 1, Manual: true,
		Config: func(model.TopicPartition) storage.LogConfig { return fuzzConfig() },
		Now:    func() model.Millis { return fuzzNow },
	})
}

// fuzzDirectory makes a directory that was stopped cleanly and returns its files.
func fuzzDirectory(f *testing.F) map[string][]byte {
	fs := vfs.NewMem()
	check := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	dir, err := openFuzzed(fs)
	check(err)
	for i, tp := range []model.TopicPartition{fuzzEvents, fuzzOther} {
		_, err := dir.Create(tp, model.UUID{1, byte(i)}, fuzzConfig(), fuzzNow)
		check(err)
	}
	check(fillFuzzed(dir))
	check(dir.CheckpointHW(map[model.TopicPartition]model.Offset{fuzzEvents: 50, fuzzOther: 20}))
	check(dir.CheckpointLogStart())
	check(dir.CloseClean(8))
	cuts, err := openCuts(fs, fuzzDir)
	check(err)
	check(cuts.write(line(model.UUID{1}, 5)))
	check(cuts.write(line(model.UUID{1}, 7)))
	files := map[string][]byte{}
	gather(f, fs, fuzzDir, files)
	delete(files, ".lock")
	if files["log-start-offset-checkpoint"] == nil {
		files["log-start-offset-checkpoint"] = []byte("0\n0\n")
	}
	return files
}

// fillFuzzed writes three epochs with five transactions into one log, and ten
// batches into the other.
func fillFuzzed(dir *storage.Dir) (err error) {
	add := func(tp model.TopicPartition, epoch model.Epoch, batch func(model.Offset) []byte) {
		l := dir.Log(tp)
		if n := l.Epochs(); len(n) == 0 || n[len(n)-1].Epoch < epoch {
			err = errors.Join(err, l.WriteEpochs(append(n, model.EpochStart{Epoch: epoch, Start: l.LEO()})))
		}
		_, failed := l.Append(fuzzNow, storage.AppendBatch{Bytes: batch(l.LEO()), Stamp: true, Base: l.LEO(), Epoch: epoch})
		err = errors.Join(err, failed)
	}
	for i := range 40 {
		epoch := model.Epoch(i / 15)
		add(fuzzEvents, epoch, func(at model.Offset) []byte { return fuzzBatch(1+i%3, at) })
		if i%8 == 3 {
			add(fuzzEvents, epoch, fuzzTxn)
			add(fuzzEvents, epoch, func(at model.Offset) []byte {
				return record.Marker{Producer: 7, Commit: i == 3}.Batch(at, epoch, fuzzNow)
			})
		}
		if i < 10 {
			add(fuzzOther, 0, func(at model.Offset) []byte { return fuzzBatch(2, at) })
		}
	}
	return err
}

// addKafkasFiles adds what a real Kafka wrote, in the place of our files of the
// same kind.
func addKafkasFiles(f *testing.F, names []string) {
	err := filepath.WalkDir("../storage/testdata/kafka-4.4/node1", func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		for i, ours := range names {
			if len(b) < 4000 && filepath.Ext(ours) == filepath.Ext(name) && (filepath.Ext(ours) != "" || filepath.Base(ours) == filepath.Base(name)) {
				f.Add(uint8(i), uint8(damageWhole|damageUnclean|damagePrinted), uint16(0), b)
				return err
			}
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

func gather(f *testing.F, fs vfs.FS, dir string, out map[string][]byte) {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, info := range infos {
		name := filepath.Join(dir, info.Name)
		if info.Dir {
			gather(f, fs, name, out)
			continue
		}
		file, err := fs.Open(name)
		if err != nil {
			f.Fatal(err)
		}
		b, err := io.ReadAll(io.NewSectionReader(file, 0, info.Size))
		if err = errors.Join(err, file.Close()); err != nil {
			f.Fatal(err)
		}
		out[strings.TrimPrefix(name, fuzzDir+"/")] = b
	}
}

func put(t *testing.T, fs vfs.FS, name string, b []byte) {
	err := fs.MkdirAll(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := fs.Create(name)
	if err == nil {
		_, err = file.WriteAt(b, 0)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// fuzzBatch makes a batch of n records whose values name their offsets.
func fuzzBatch(n int, from model.Offset) []byte { return fuzzBatchOf(record.PlainOptions(), n, from) }

func fuzzBatchOf(o record.BatchOptions, n int, from model.Offset) []byte {
	b := record.NewBuilder(o)
	for i := range model.Offset(n) {
		b.Add(fuzzNow+model.Millis(from+i), []byte("k"), fmt.Appendf(nil, "value %d", from+i))
	}
	return bytes.Clone(b.Bytes())
}

// fuzzTxn makes a batch of a transaction of producer 7.
func fuzzTxn(from model.Offset) []byte {
	return fuzzBatchOf(record.BatchOptions{ProducerID: 7, BaseSequence: int32(from), Transactional: true}, 2, from)
}

// fuzzRecords are n records of fuzzBatch as recordsOf tells them.
func fuzzRecords(n int, from model.Offset) (out []string) {
	for i := range model.Offset(n) {
		out = append(out, fmt.Sprintf("%d:value %d", from+i, from+i))
	}
	return out
}

// contentOf is what recordsOf tells of the log before the damage.
func contentOf(files map[string][]byte) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, fuzzLog+"/") && strings.HasSuffix(name, ".log") {
			out = append(out, textOf(files[name])...)
		}
	}
	return out
}

// textOf tells the records of batches; a control record's value is left out.
func textOf(set []byte) (out []string) {
	for h, b := range record.Split(set) {
		_ = record.Records(b, func(r *record.Record) bool {
			value := r.Value
			if h.Control() {
				value = nil
			}
			out = append(out, fmt.Sprintf("%d:%s", r.Offset, value))
			return true
		})
	}
	return out
}

// recordsOf reads all records of a log from an offset on, batch by batch.
func recordsOf(l *storage.Log, from model.Offset) (out []string, err error) {
	for at := from; at < l.LEO(); {
		s, err := l.Read(at, 1, l.LEO(), true)
		if err != nil {
			return out, err
		}
		b := make([]byte, s.Len)
		_, err = s.File.ReadAt(b, s.Pos)
		s.Release()
		if err != nil && err != io.EOF {
			return out, err
		}
		if s.Next <= at {
			return out, fmt.Errorf("the batch at %d ends at %d", at, s.Next)
		}
		for _, text := range textOf(b) {
			var o model.Offset
			if _, err := fmt.Sscanf(text, "%d:", &o); err == nil && o >= at {
				out = append(out, text)
			}
		}
		at = s.Next
	}
	return out, nil
}

// allocated is how many bytes of heap f took, freed or not.
func allocated(f func()) uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	before := s[0].Value.Uint64()
	f()
	metrics.Read(s)
	return s[0].Value.Uint64() - before
}
