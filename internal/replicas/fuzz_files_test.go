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
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

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
	account, err := cuts.Open(fs, fuzzDir)
	check(err)
	check(account.Write(cutAt(model.UUID{1}, 5)))
	check(account.Write(cutAt(model.UUID{1}, 7)))
	files := map[string][]byte{}
	gather(f, fs, fuzzDir, files)
	delete(files, ".lock")
	if files[cutsFile] == nil {
		f.Fatal("the account of truncations has another name")
	}
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
		if s.Len == 0 {
			return out, fmt.Errorf("nothing at %d of [%d, %d)", at, l.Start(), l.LEO())
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

// allocated is how many bytes of heap f took, freed or not. What others took is in
// it, and what was not counted yet: a MiB or two.
func allocated(f func()) uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	before := s[0].Value.Uint64()
	f()
	metrics.Read(s)
	return s[0].Value.Uint64() - before
}
