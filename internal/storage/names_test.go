package storage_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestNamesOfFoldersSetAsideFit(t *testing.T) {
	w := newWorld(t)
	long := model.TopicPartition{Topic: strings.Repeat("t", 249), Partition: 12345}
	_, err := w.open().Create(long, topicID, w.cfg, now)
	must(t, err)
	must(t, w.dir.Delete(long))
	infos, err := w.fs.ReadDir(w.path)
	must(t, err)
	found := slices.ContainsFunc(infos, func(i vfs.Info) bool { return strings.HasSuffix(i.Name, "-delete") && len(i.Name) == 255 })
	if !found {
		t.Errorf("%+v", infos)
	}
}

func TestOffsetCheckpointsKeepWhatTheySay(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 9, 0, now)
	marks := map[model.TopicPartition]model.Offset{events0: 7, {Topic: "a-b", Partition: 3}: 1 << 40, {Topic: "a", Partition: 10}: 0}
	got, err := format.ParseOffsets(format.Offsets(marks))
	if err != nil || !maps.Equal(got, marks) {
		t.Errorf("%v %v", got, err)
	}
	must(t, w.dir.CheckpointHW(marks)) // two of the logs are gone by now
	got, err = format.ParseOffsets([]byte(read(t, w.fs, w.path+"/replication-offset-checkpoint")))
	if err != nil || !maps.Equal(got, map[model.TopicPartition]model.Offset{events0: 7}) {
		t.Errorf("%v %v", got, err)
	}
	must(t, w.dir.Close())
	if l = w.reopen(); l.CheckpointedHW() != 7 {
		t.Errorf("HW %d", l.CheckpointedHW())
	}
	must(t, w.dir.CheckpointHW(map[model.TopicPartition]model.Offset{events0: 700}))
	if got := read(t, w.fs, w.path+"/replication-offset-checkpoint"); got != "0\n1\nevents 0 9\n" {
		t.Errorf("%q", got)
	}
	must(t, w.dir.Close())
	if l = w.reopen(); l.CheckpointedHW() != 9 {
		t.Errorf("HW %d above the end", l.CheckpointedHW())
	}
}
