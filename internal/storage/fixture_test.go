package storage_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

func kafkaConfig() storage.LogConfig {
	cfg := storage.DefaultLogConfig()
	cfg.SegmentBytes = 1 << 20
	return cfg
}

func TestADirectoryOfKafkaLoadsUntouched(t *testing.T) {
	w := newWorld(t)
	w.cfg = kafkaConfig()
	copyFixture(t, w.fs, w.path)
	before := tree(t, w.fs, w.path)
	d := w.open()
	if d.CleanShutdownEpoch() != 199 || d.ID().String() != "hW4v64Ut4SysrP6gfwfIdw" || d.ClusterID() != cluster {
		t.Errorf("epoch %d, id %s, cluster %s", d.CleanShutdownEpoch(), d.ID(), d.ClusterID())
	}
	l := d.Log(events0)
	if l.Start() != 0 || l.LEO() != 1548 || l.RecoveryPoint() != 1548 || l.CheckpointedHW() != 1548 || l.TopicID().String() != "_DBuDsoeSKO92UnwpkTFlw" {
		t.Errorf("start %d, end %d, recovery %d, HW %d, id %s", l.Start(), l.LEO(), l.RecoveryPoint(), l.CheckpointedHW(), l.TopicID())
	}
	if got := l.Epochs(); !slices.Equal(got, []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 224}, {Epoch: 2, Start: 1348}}) {
		t.Errorf("epochs %v", got)
	}
	if len(d.Logs()) != 2 {
		t.Errorf("%d logs", len(d.Logs()))
	}
	must(t, d.Close())
	after := tree(t, w.fs, w.path)
	delete(before, ".kafka_cleanshutdown")
	delete(after, ".lock")
	sameFiles(t, after, before)
	if w.log.String() != "" {
		t.Errorf("a good directory needs no word: %s", w.log.String())
	}

	// A clean stop without work leaves the logs as they were, too.
	w.dir = nil
	write(t, w.fs, w.path+"/.kafka_cleanshutdown", `{"version":0,"brokerEpoch":199}`)
	must(t, w.open().CloseClean(200))
	after = tree(t, w.fs, w.path)
	if after[".kafka_cleanshutdown"] != `{"version":0,"brokerEpoch":200}` {
		t.Errorf("clean file %q", after[".kafka_cleanshutdown"])
	}
	for _, name := range []string{".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint"} {
		delete(after, name)
		delete(before, name)
	}
	sameFiles(t, after, before)
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok || g != want[name] {
			t.Errorf("%s: %d bytes, want %d (found %v)", name, len(g), len(want[name]), ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// replayed feeds our writer with the batches that Kafka wrote, restarting where
// Kafka was restarted.
func replayed(t *testing.T, w *world) *storage.Log {
	t.Helper()
	l := w.fresh()
	var cache []model.EpochStart
	feed := func(file string, from, to model.Offset) {
		data, err := os.ReadFile(filepath.Join(fixture, "events-0", file))
		must(t, err)
		var set []storage.AppendBatch
		for h, b := range record.Split(data) {
			if h.Base < from || h.Base >= to {
				continue
			}
			a := storage.AppendBatch{Bytes: b}
			if n := len(cache); n == 0 || cache[n-1].Epoch != h.LeaderEpoch {
				cache = append(cache, model.EpochStart{Epoch: h.LeaderEpoch, Start: h.Base})
				a.Epochs = slices.Clone(cache)
			}
			set = append(set, a)
			if len(set) == 50 {
				_, err := l.Append(now, set...)
				must(t, err)
				set = set[:0]
			}
		}
		_, err = l.Append(now, set...)
		must(t, err)
	}
	feed("00000000000000000000.log", 0, 224)
	must(t, w.dir.CloseClean(5))
	l = w.reopen()
	feed("00000000000000000000.log", 224, 1168)
	feed("00000000000000001168.log", 1168, 1548)
	return l
}

func TestOurWriterMakesKafkasBytes(t *testing.T) {
	w := newWorld(t)
	w.cfg = kafkaConfig()
	replayed(t, w)
	must(t, w.dir.CloseClean(199))
	got := tree(t, w.fs, w.path)
	for _, name := range []string{
		"00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000000000.txnindex",
		"00000000000000001168.log", "00000000000000001168.index", "00000000000000001168.timeindex", "00000000000000001168.txnindex",
		"leader-epoch-checkpoint",
	} {
		want, err := os.ReadFile(filepath.Join(fixture, "events-0", name))
		must(t, err)
		if g := got["events-0/"+name]; g != string(want) {
			t.Errorf("%s differs: %d bytes, want %d", name, len(g), len(want))
		}
	}
	for _, name := range []string{"00000000000000001168.snapshot", "00000000000000001548.snapshot"} {
		want, err := os.ReadFile(filepath.Join(fixture, "events-0", name))
		must(t, err)
		if g, w := entries(t, []byte(got["events-0/"+name])), entries(t, want); !slices.Equal(g, w) {
			t.Errorf("%s holds\n%v, want\n%v", name, g, w)
		}
	}
	marks, err := format.ParseOffsets([]byte(got["recovery-point-offset-checkpoint"]))
	must(t, err)
	if marks[events0] != 1548 {
		t.Errorf("recovery point %d", marks[events0])
	}
}

func entries(t *testing.T, b []byte) []producers.Entry {
	t.Helper()
	list, err := format.ParseSnapshot(b)
	must(t, err)
	slices.SortFunc(list, func(a, b producers.Entry) int { return int(a.ID - b.ID) })
	return list
}

func TestRecoveryMakesKafkasIndexesAnew(t *testing.T) {
	w := newWorld(t)
	w.cfg = kafkaConfig()
	copyFixture(t, w.fs, w.path)
	before := tree(t, w.fs, w.path)
	must(t, w.fs.Remove(w.path+"/.kafka_cleanshutdown"))
	must(t, w.fs.Remove(w.path+"/recovery-point-offset-checkpoint"))
	must(t, w.fs.Remove(w.path+"/events-0/leader-epoch-checkpoint"))
	for _, s := range []string{"index", "timeindex", "txnindex", "snapshot"} {
		must(t, w.fs.Remove(w.path+"/events-0/00000000000000001168."+s))
		write(t, w.fs, w.path+"/events-0/00000000000000000000."+s, "garbage that is no index file at all")
	}
	l := w.reopen()
	if l.LEO() != 1548 || w.dir.CleanShutdownEpoch() != -1 {
		t.Fatalf("end %d, epoch %d", l.LEO(), w.dir.CleanShutdownEpoch())
	}
	if got := l.Epochs(); !slices.Equal(got, []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 224}, {Epoch: 2, Start: 1348}}) {
		t.Errorf("epochs %v", got)
	}
	must(t, w.dir.CloseClean(199))
	after := tree(t, w.fs, w.path)
	// The first segment's index differs: Kafka restarted in its middle.
	for _, name := range []string{"00000000000000001168.index", "00000000000000001168.timeindex", "00000000000000001168.txnindex",
		"00000000000000000000.txnindex", "leader-epoch-checkpoint"} {
		if after["events-0/"+name] != before["events-0/"+name] {
			t.Errorf("%s differs: %d bytes, want %d", name, len(after["events-0/"+name]), len(before["events-0/"+name]))
		}
	}
	snapshot := "events-0/00000000000000001548.snapshot"
	if g, w := entries(t, []byte(after[snapshot])), entries(t, []byte(before[snapshot])); !slices.Equal(g, w) {
		t.Errorf("producers %v, want %v", g, w)
	}
}
