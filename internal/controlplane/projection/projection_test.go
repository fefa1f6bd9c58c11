package projection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const dir = "/__cluster_metadata-0"

func open(t *testing.T, fs vfs.FS) *Dir {
	t.Helper()
	d, err := Open(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// put writes a file of a test disk.
func put(t *testing.T, fs vfs.FS, name string, data []byte) {
	t.Helper()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(path.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(path.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, _ := f.Size()
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		t.Fatal(err)
	}
	return b
}

// kafka is a disk with the directory that Apache Kafka 4.4 left.
func kafka(t *testing.T) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem()
	for _, name := range []string{
		"00000000000000000000-0000000000.checkpoint", "00000000000000000299-0000000001.checkpoint", "00000000000000000000.log",
	} {
		put(t, fs, name, fixture(t, name))
	}
	return fs
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(path.Join("testdata/kafka", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fold(t *testing.T, img *image.Image, b []byte) *image.Image {
	t.Helper()
	n, err := metalog.DecodeBatches(b, func(batch metalog.Batch) error {
		if batch.End > img.Read() {
			img = Fold(img, batch, batch.End, batch.Epoch)
		}
		return nil
	})
	if err != nil || n != len(b) {
		t.Fatalf("%d of %d bytes: %v", n, len(b), err)
	}
	return img
}

func dump(img *image.Image) string {
	out := fmt.Sprintf("%d %d\n", img.End(), img.Epoch())
	for rec := range img.Records() {
		if b, ok := rec.(*metalog.RegisterBroker); ok { // Kafka's order is that of a hash table
			sorted := *b
			sorted.Features = slices.SortedFunc(slices.Values(b.Features), func(a, b metalog.FeatureRange) int { return strings.Compare(a.Name, b.Name) })
			rec = &sorted
		}
		text, err := metalog.Dump(metalog.Append(nil, rec, 33))
		out += fmt.Sprintln(text, err)
	}
	return out
}

func TestADirectoryOfApacheKafkaIsRead(t *testing.T) {
	fs := kafka(t)
	d := open(t, fs)
	if d.Start() != 0 || d.End() != 486 || d.Epoch() != 1 {
		t.Fatalf("the log holds [%d, %d) of epoch %d", d.Start(), d.End(), d.Epoch())
	}
	id, ok := d.Newest()
	if !ok || id != (ID{End: 299, Epoch: 1}) {
		t.Fatalf("the newest checkpoint is %v", id)
	}
	fromStart := fold(t, image.New(), fixture(t, "00000000000000000000.log"))
	fromCheckpoint, _, err := LoadImage(fs, dir, id)
	if err != nil {
		t.Fatal(err)
	}
	for fromCheckpoint.Read() < d.End() {
		b, err := d.View().Read(fromCheckpoint.Read(), 1)
		if err != nil {
			t.Fatal(err)
		}
		fromCheckpoint = fold(t, fromCheckpoint, b)
	}
	if d := cmp.Diff(dump(fromStart), dump(fromCheckpoint)); d != "" {
		t.Errorf("the log and the checkpoint with the rest of the log add up to different images:\n%s", d)
	}
}

func TestTheSmallFilesAreThoseOfApacheKafka(t *testing.T) {
	fs := vfs.NewMem()
	d := open(t, fs)
	if err := d.Append(fixture(t, "00000000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteQuorumState(QuorumState{Leader: 2, Epoch: 1, Voted: -1, Voters: []model.BrokerID{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00000000000000000000.log", "leader-epoch-checkpoint", "partition.metadata", "quorum-state"} {
		if got, want := get(t, fs, name), fixture(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s: %q, Kafka writes %q", name, got[:min(len(got), 200)], want[:min(len(want), 200)])
		}
	}
	if err := d.WriteQuorumState(QuorumState{Leader: 2, Epoch: 1, Voted: -1}); err != nil {
		t.Fatal(err)
	}
	want := `{"leaderId":2,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`
	if got := get(t, fs, "quorum-state"); string(got) != want {
		t.Errorf("quorum-state %s", got)
	}
}

// batchAt is a batch of n records.
func batchAt(base model.Offset, epoch model.Epoch, n int) []byte {
	recs := make([]metalog.Record, n)
	for i := range recs {
		if base == 0 && i == 0 {
			recs[0] = &metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: metalog.Level}
			continue
		}
		recs[i] = &metalog.Topic{Name: fmt.Sprint("topic-", base, "-", i), TopicID: model.UUID{byte(base), byte(i), 1}}
	}
	return metalog.AppendBatch(nil, base, epoch, 1, recs, metalog.Level)
}

// filled is a directory whose log holds [0, 100) in epochs 2, 3 and 7, which
// begin at 0, 40 and 70.
func filled(t *testing.T, fs vfs.FS) *Dir {
	t.Helper()
	d := open(t, fs)
	for at := model.Offset(0); at < 100; at += 5 {
		if err := d.Append(batchAt(at, epochAt(at), 5)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func epochAt(at model.Offset) model.Epoch {
	switch {
	case at < 40:
		return 2
	case at < 70:
		return 3
	}
	return 7
}

// addCheckpoint writes a checkpoint of the log so far and takes note of it.
func addCheckpoint(t *testing.T, d *Dir, fs vfs.FS) ID {
	t.Helper()
	if err := d.Roll(); err != nil {
		t.Fatal(err)
	}
	v, img := d.View(), image.New()
	if id, ok := d.Newest(); ok {
		var err error
		if img, _, err = LoadImage(fs, dir, id); err != nil {
			t.Fatal(err)
		}
	}
	for img.Read() < v.End() {
		b, err := v.Read(img.Read(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		img = fold(t, img, b)
	}
	id, err := WriteCheckpoint(fs, dir, img, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Added(id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestReadersAreJudgedAsApacheKafkaDoes(t *testing.T) {
	fs := vfs.NewMem()
	d := filled(t, fs)
	type row struct {
		offset  model.Offset
		epoch   model.Epoch
		verdict Verdict
		id      ID
	}
	check := func(rows []row) {
		t.Helper()
		for _, r := range rows {
			if v, id := d.View().Check(r.offset, r.epoch); v != r.verdict || id != r.id {
				t.Errorf("a reader at %d of epoch %d: %v %v, not %v %v", r.offset, r.epoch, v, id, r.verdict, r.id)
			}
		}
	}
	check([]row{
		{0, 0, Valid, ID{}},
		{40, 2, Valid, ID{}},
		{41, 2, Diverging, ID{End: 40, Epoch: 2}},
		{70, 3, Valid, ID{}},
		{75, 3, Diverging, ID{End: 70, Epoch: 3}},
		{80, 5, Diverging, ID{End: 70, Epoch: 3}},
		{100, 7, Valid, ID{}},
		{101, 7, Diverging, ID{End: 100, Epoch: 7}},
		{100, 9, Diverging, ID{End: 100, Epoch: 7}},
		{10, 1, Diverging, ID{End: 0, Epoch: 1}}, // an epoch older than the log ended at its start
	})
	first := addCheckpoint(t, d, fs)
	check([]row{
		{0, 0, Snapshot, first},
		{40, 2, Snapshot, first}, // its epoch is older than the checkpoint's
		{100, 7, Valid, ID{}},
		{95, 7, Valid, ID{}},
	})
	for at := model.Offset(100); at < 120; at += 5 {
		if err := d.Append(batchAt(at, 8, 5)); err != nil {
			t.Fatal(err)
		}
	}
	second := addCheckpoint(t, d, fs)
	if d.Start() != 100 {
		t.Fatalf("the log starts at %d", d.Start())
	}
	check([]row{
		{0, 0, Snapshot, second},
		{95, 7, Snapshot, second},
		{100, 7, Valid, ID{}},
		{100, 3, Snapshot, second},
		{110, 7, Diverging, ID{End: 100, Epoch: 7}},
		{110, 8, Valid, ID{}},
		{120, 8, Valid, ID{}},
		{125, 8, Diverging, ID{End: 120, Epoch: 8}},
	})
}

func TestReadsReturnWholeBatchesFromTheOneWithTheOffset(t *testing.T) {
	fs := vfs.NewMem()
	d := filled(t, fs)
	if err := d.Roll(); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(batchAt(100, 7, 50)); err != nil {
		t.Fatal(err)
	}
	one := len(batchAt(10, 2, 5))
	for _, r := range []struct {
		offset     model.Offset
		max        int
		base, ends model.Offset
	}{
		{10, 1, 10, 15},
		{13, 1, 10, 15},
		{14, 2*one + 7, 10, 20},
		{0, 1 << 30, 0, 100}, // to the end of the segment
		{149, 1, 100, 150},
	} {
		b, err := d.View().Read(r.offset, r.max)
		if err != nil {
			t.Fatal(err)
		}
		base, end := model.UnknownOffset, model.Offset(0)
		if _, err := metalog.DecodeBatches(b, func(b metalog.Batch) error {
			if base < 0 {
				base = b.Base
			}
			end = b.End
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if base != r.base || end != r.ends {
			t.Errorf("read at %d of %d bytes: [%d, %d), not [%d, %d)", r.offset, r.max, base, end, r.base, r.ends)
		}
	}
	if b, err := d.View().Read(150, 1); len(b) != 0 || err != nil {
		t.Errorf("read at the end: %d bytes, %v", len(b), err)
	}
}

func TestAnAppendSkipsWhatIsKnownAndRefusesAGap(t *testing.T) {
	fs := vfs.NewMem()
	d := filled(t, fs)
	all := append(batchAt(95, 7, 5), batchAt(100, 7, 5)...)
	if err := d.Append(all); err != nil || d.End() != 105 {
		t.Fatalf("the log ends at %d: %v", d.End(), err)
	}
	if err := d.Append(batchAt(110, 7, 1)); err == nil {
		t.Fatal("a batch that leaves a gap was written")
	}
	bad := batchAt(105, 7, 1)
	bad[len(bad)-1] ^= 1
	if err := d.Append(bad); err == nil || d.End() != 105 {
		t.Fatalf("a broken batch was written, the log ends at %d", d.End())
	}
}

func TestEveryPrefixOfASegmentIsCutAtItsLastWholeBatch(t *testing.T) {
	data := append(batchAt(0, 1, 3), append(batchAt(3, 1, 1), batchAt(4, 2, 2)...)...)
	ends := []int{0, len(batchAt(0, 1, 3)), len(batchAt(0, 1, 3)) + len(batchAt(3, 1, 1)), len(data)}
	offsets := []model.Offset{0, 3, 4, 6}
	for n := range len(data) + 1 {
		fs := vfs.NewMem()
		put(t, fs, "00000000000000000000.log", data[:n])
		d := open(t, fs)
		whole := 0
		for i, end := range ends {
			if end <= n {
				whole = i
			}
		}
		if d.End() != offsets[whole] || len(get(t, fs, "00000000000000000000.log")) != ends[whole] {
			t.Fatalf("%d bytes: the log ends at %d, not %d", n, d.End(), offsets[whole])
		}
		if err := d.Append(data); err != nil || d.End() != 6 {
			t.Fatalf("%d bytes: the rest was not appended: %v", n, err)
		}
		if !bytes.Equal(get(t, fs, "00000000000000000000.log"), data) {
			t.Fatalf("%d bytes: the segment is not what it was", n)
		}
	}
}

func TestAfterACrashTheLogContinuesItsNewestCheckpoint(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fs := vfs.NewMem()
		d := filled(t, fs)
		id := ID{}
		for at := model.Offset(100); at < model.Offset(100+5*rng.IntN(12)); at += 5 {
			if err := d.Append(batchAt(at, 9, 5)); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(3) == 0 {
				id = addCheckpoint(t, d, fs)
			}
		}
		after := fs.CrashClone(vfs.CrashOptions{Rand: rng})
		again := open(t, after)
		if newest, _ := again.Newest(); newest != id {
			t.Fatalf("seed %d: the newest checkpoint is %v, not %v", seed, newest, id)
		}
		if again.Start() > id.End || again.End() < id.End {
			t.Fatalf("seed %d: the log holds [%d, %d), the checkpoint ends at %d", seed, again.Start(), again.End(), id.End)
		}
		if id != Bootstrap {
			if _, _, err := LoadImage(after, dir, id); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if v, _ := again.View().Check(id.End, id.Epoch); v != Valid {
				t.Fatalf("seed %d: who holds the checkpoint %v cannot go on behind it: %v", seed, id, v)
			}
		}
		if err := again.Append(batchAt(again.End(), 10, 1)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestALogThatBeganAnewContinuesItsNewestCheckpointOnly(t *testing.T) {
	fs := vfs.NewMem()
	d := filled(t, fs)
	addCheckpoint(t, d, fs)
	if err := d.Append(batchAt(d.End(), 9, 5)); err != nil {
		t.Fatal(err)
	}
	id := addCheckpoint(t, d, fs)
	for _, s := range d.segments {
		if err := fs.Remove(d.file(s.base)); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, fs)
	if again.Start() != id.End {
		t.Fatalf("the log starts at %d, not behind the checkpoint %v", again.Start(), id)
	}
	if v, _ := again.View().Check(id.End, id.Epoch); v != Valid {
		t.Fatalf("who holds the checkpoint %v cannot go on behind it: %v", id, v)
	}
}

func TestACheckpointIsReadInPieces(t *testing.T) {
	fs := kafka(t)
	d := open(t, fs)
	id, _ := d.Newest()
	want, got := fixture(t, "00000000000000000299-0000000001.checkpoint"), []byte{}
	for len(got) < len(want) {
		b, size, err := d.View().ReadPiece(id, int64(len(got)), 1000)
		if err != nil || size != int64(len(want)) || len(b) == 0 || len(b) > 1000 {
			t.Fatalf("%d bytes of %d at %d: %v", len(b), size, len(got), err)
		}
		got = append(got, b...)
	}
	if !bytes.Equal(got, want) {
		t.Error("the pieces are not the file")
	}
	for _, pos := range []int64{-1, int64(len(want)), 1 << 40} {
		if _, _, err := d.View().ReadPiece(id, pos, 1); !errors.Is(err, io.EOF) {
			t.Errorf("a piece at %d: %v", pos, err)
		}
	}
	if _, _, err := d.View().ReadPiece(ID{End: 5, Epoch: 1}, 0, 1); !errors.Is(err, ErrGone) {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
}

func TestAResetBeginsBehindTheCheckpointAlone(t *testing.T) {
	fs := vfs.NewMem()
	d := filled(t, fs)
	old := addCheckpoint(t, d, fs)
	id := ID{End: 500, Epoch: 11}
	put(t, fs, id.FileName(), []byte("a checkpoint that was fetched"))
	view := d.View()
	if err := d.Reset(id); err != nil {
		t.Fatal(err)
	}
	if d.Start() != 500 || d.End() != 500 || d.Epoch() != 11 || d.Has(old) {
		t.Errorf("the log holds [%d, %d) of epoch %d", d.Start(), d.End(), d.Epoch())
	}
	if _, err := view.Read(0, 1); !errors.Is(err, ErrGone) {
		t.Errorf("an old view reads on: %v", err)
	}
	if v, got := d.View().Check(500, 11); v != Valid {
		t.Errorf("a reader behind the checkpoint: %v %v", v, got)
	}
}
