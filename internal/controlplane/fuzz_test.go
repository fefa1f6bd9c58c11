package controlplane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/controlplane/raftlog"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// What the metadata plane reads: the formats of FuzzMetadata. The quorum-state
// file is only written.
var metadataFormats = []func(*testing.T, []byte){
	fuzzRecord, fuzzBatches, fuzzCheckpoint, fuzzSegment, fuzzRaftLog, fuzzRaftMessage, fuzzRaftRequest,
}

// FuzzMetadata reads metadata records, batches of them, checkpoints, segments, the
// raft log's files, raft messages and the requests that carry them: format
// chooses. Checksums are put right first, for they would hide all else.
func FuzzMetadata(f *testing.F) {
	addMetadata(f)
	addRaft(f)
	f.Fuzz(func(t *testing.T, format uint8, b []byte) {
		used := allocated(func() { metadataFormats[int(format)%len(metadataFormats)](t, slices.Clone(b)) })
		if most := uint64(16<<20 + 2000*len(b)); used > most {
			t.Fatalf("format %d: %d bytes took %d MiB", format, len(b), used>>20)
		}
	})
}

func addMetadata(f *testing.F) {
	names, err := filepath.Glob("../core/metalog/testdata/*.*")
	if err != nil || len(names) < 4 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		switch filepath.Ext(name) {
		case ".checkpoint":
			f.Add(uint8(2), b)
		case ".log":
			f.Add(uint8(1), b)
			f.Add(uint8(3), b)
		}
		_, _ = metalog.DecodeBatches(b, func(batch metalog.Batch) error {
			f.Add(uint8(1), batch.Raw)
			for _, rec := range batch.Records {
				f.Add(uint8(0), metalog.Append(nil, rec, math.MaxInt16))
			}
			return nil
		})
	}
}

func addRaft(f *testing.F) {
	batch := metalog.AppendBatch(nil, 0, 1, 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level)
	fs := vfs.NewMem()
	l, _, err := raftlog.Open(fs, "/wal")
	if err != nil {
		f.Fatal(err)
	}
	save := func(hs *pb.HardState, e ...*pb.Entry) {
		if err := l.Save(hs, e, true); err != nil {
			f.Fatal(err)
		}
	}
	state := &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(1))}
	e := &pb.Entry{Index: new(uint64(1)), Term: new(uint64(1)), Type: pb.EntryNormal.Enum(), Data: batch}
	save(state, e)
	f.Add(uint8(4), contentOf(f, fs, "/wal/00000000000000000001.wal"))
	snap := quorum.Snapshot{Point: quorum.Point{Index: 1, Term: 1, End: 1, Epoch: 1}, Conf: quorum.Conf([]model.BrokerID{0, 1, 2})}
	if err := l.Compact(snap, state, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(4), contentOf(f, fs, "/wal/00000000000000000002.wal"))
	for _, m := range []*pb.Message{
		{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1)), Commit: new(uint64(1)), Entries: []*pb.Entry{e}},
		{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1)), Commit: new(uint64(9))},
		{Type: pb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1)), Snapshot: quorum.EncodeSnapshot(snap)},
		{Type: pb.MsgVote.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(uint64(2)), Index: new(uint64(1)), LogTerm: new(uint64(1))},
	} {
		b, err := quorum.AppendMessage(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(5), b)
		f.Add(uint8(6), (&raftRequest{key: keyRaft, clusterID: testCluster, from: 1, messages: []*pb.Message{m, m}}).AppendTo(nil))
	}
}

// fuzzRecord: what is read can be written and read again as the same.
func fuzzRecord(t *testing.T, b []byte) {
	rec, err := metalog.Decode(b)
	if err != nil {
		return
	}
	if _, err := metalog.Dump(b); err != nil {
		t.Fatalf("%+v is not printed: %v", rec, err)
	}
	first := metalog.Append(nil, rec, math.MaxInt16)
	again, err := metalog.Decode(first)
	if err != nil {
		t.Fatalf("%+v: %v", rec, err)
	}
	if second := metalog.Append(nil, again, math.MaxInt16); !bytes.Equal(first, second) {
		t.Fatalf("%x became %x", first, second)
	}
}

// resum puts the checksums of the batches in b right.
func resum(b []byte) {
	for len(b) >= 61 {
		n := int64(int32(binary.BigEndian.Uint32(b[8:]))) + 12
		if n < 61 || n > int64(len(b)) {
			return
		}
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:n], crc32.MakeTable(crc32.Castagnoli)))
		b = b[n:]
	}
}

// fuzzBatches: whatever the records say, an image takes them, and the checkpoint
// of that image gives the same image.
func fuzzBatches(t *testing.T, b []byte) {
	resum(b)
	img := image.New()
	n, _ := metalog.DecodeBatches(b, func(batch metalog.Batch) error {
		if got := len(batch.Records) + len(batch.Control); got != int(batch.End-batch.Base) || got == 0 {
			t.Errorf("%d records in [%d, %d)", got, batch.Base, batch.End)
		}
		img = projection.Fold(img, batch, batch.End, batch.Epoch)
		return nil
	})
	if n > len(b) {
		t.Fatalf("%d of %d bytes", n, len(b))
	}
	first := checkpointOf(t, img)
	heir := image.New()
	if err := metalog.ReadSnapshot(first, func(batch metalog.Batch) error {
		heir = projection.Fold(heir, batch, batch.End, batch.Epoch)
		return nil
	}); err != nil {
		t.Fatalf("the checkpoint is not read: %v", err)
	}
	if second := checkpointOf(t, heir); !bytes.Equal(first, second) {
		t.Fatalf("the image changed with its checkpoint: %x became %x", first, second)
	}
}

func checkpointOf(t *testing.T, img *image.Image) []byte {
	var out bytes.Buffer
	w := metalog.NewSnapshotWriter(&out, 1, 0, 0, math.MaxInt16, img.Control()...)
	for rec := range img.Records() {
		w.Add(rec)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fuzzCheckpoint: a checkpoint file is loaded whole or refused, and the directory
// opens with it.
func fuzzCheckpoint(t *testing.T, b []byte) {
	resum(b)
	id := projection.ID{End: 300, Epoch: 1}
	fs := diskWith(t, "/meta/"+id.FileName(), b)
	img, _, err := projection.LoadImage(fs, "/meta", id)
	if err == nil && img.End() != id.End {
		t.Fatalf("the image ends at %d, not %d", img.End(), id.End)
	}
	d, err := projection.Open(fs, "/meta")
	if err != nil {
		t.Fatal(err)
	}
	if d.Start() != id.End || !d.Has(id) {
		t.Errorf("the log begins at %d behind a checkpoint at %d", d.Start(), id.End)
	}
	d.Close()
}

// fuzzSegment: a segment is kept up to its first bad batch, and the log goes on
// from there.
func fuzzSegment(t *testing.T, b []byte) {
	fs := diskWith(t, "/meta/00000000000000000000.log", b)
	d, err := projection.Open(fs, "/meta")
	if err != nil {
		t.Fatal(err)
	}
	end, epoch := d.End(), d.Epoch()
	if end < 0 || end > math.MaxInt64-10 || epoch == math.MaxInt32 {
		d.Close()
		return
	}
	if err := d.Append(metalog.AppendBatch(nil, end, epoch+1, 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.View().Read(end, 1); err != nil || len(got) == 0 {
		t.Fatalf("read at %d: %d bytes, %v", end, len(got), err)
	}
	d.Close()
	if d, err = projection.Open(fs, "/meta"); err != nil || d.End() != end+1 {
		t.Fatalf("the log ends at %d, not %d: %v", d.End(), end+1, err)
	}
	d.Close()
}

// fuzzRaftLog: a raft log is recovered or damaged, and one that is recovered
// takes the next entry; a node starts on it or says why not.
func fuzzRaftLog(t *testing.T, b []byte) {
	resealWAL(b)
	fs := diskWith(t, "/wal/00000000000000000001.wal", b)
	l, rec, err := raftlog.Open(fs, "/wal")
	if err != nil {
		if !errors.Is(err, raftlog.ErrDamaged) {
			t.Fatal(err)
		}
		return
	}
	startNode(rec)
	next := rec.Snapshot.Index + uint64(len(rec.Entries)) + 1
	if err := l.Save(nil, []*pb.Entry{{Index: &next, Term: new(uint64(9))}}, true); err != nil {
		t.Fatal(err)
	}
	l.Close()
	l, again, err := raftlog.Open(fs, "/wal")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if len(again.Entries) != len(rec.Entries)+1 {
		t.Fatalf("%d entries after one was added to %d", len(again.Entries), len(rec.Entries))
	}
}

// startNode starts a node on what was recovered, as a controller does.
func startNode(rec raftlog.Recovered) (*quorum.Node, error) {
	if rec.Snapshot.Conf == nil {
		rec.Snapshot.Conf = quorum.Conf([]model.BrokerID{0, 1, 2})
	}
	log := quorum.NewLog(rec.State, rec.Snapshot)
	if err := log.Append(rec.Entries); err != nil {
		return nil, err
	}
	return quorum.New(quorum.Config{ID: 0, Log: log, ElectionTicks: 10, HeartbeatTicks: 1, Logger: raftLogger{slog.New(slog.DiscardHandler)}})
}

// resealWAL puts the checksums of a raft log's segment right.
func resealWAL(b []byte) {
	const header = 22
	sum := func(at int, b []byte, of []byte) {
		binary.BigEndian.PutUint32(b[at:], crc32.Checksum(of, crc32.MakeTable(crc32.Castagnoli)))
	}
	if len(b) < header {
		return
	}
	copy(b, "TIDEMWAL\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01")
	sum(header-4, b, b[:header-4])
	for b = b[header:]; len(b) > 8; {
		n := int64(binary.BigEndian.Uint32(b))
		if n > int64(len(b)-8) {
			return
		}
		sum(4, b, b[8:8+n])
		b = b[8+n:]
	}
}

// fuzzRaftMessage: a message is read and written, and a follower takes it or
// refuses it.
func fuzzRaftMessage(t *testing.T, b []byte) {
	m, err := quorum.DecodeMessage(b)
	if err != nil {
		return
	}
	if again, err := quorum.AppendMessage(nil, m); err != nil || len(again) > 2*len(b)+64 {
		t.Fatalf("%d bytes became %d: %v", len(b), len(again), err)
	}
	_, _ = quorum.DecodeSnapshot(m.GetSnapshot())
	n, err := startNode(raftlog.Recovered{})
	if err != nil {
		t.Fatal(err)
	}
	_ = n.Step(m)
	for rd, ok := n.Ready(); ok; rd, ok = n.Ready() {
		if n.Persisted(rd) != nil {
			return
		}
		for _, e := range rd.Committed {
			if _, err := n.Apply(e); err != nil {
				return
			}
		}
		if n.Advance(1) != nil {
			return
		}
	}
}

func fuzzRaftRequest(t *testing.T, b []byte) {
	_ = new(raftResponse).ReadFrom(b)
	r, again := &raftRequest{key: keyRaft}, &raftRequest{key: keyRaft}
	if r.ReadFrom(b) != nil {
		return
	}
	if err := again.ReadFrom(r.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	if again.clusterID != r.clusterID || again.from != r.from || len(again.messages) != len(r.messages) {
		t.Fatal("a request does not survive its own encoding")
	}
}

// diskWith is a disk with one file.
func diskWith(t *testing.T, name string, b []byte) *vfs.Mem {
	fs := vfs.NewMem()
	if err := fs.MkdirAll(filepath.Dir(name)); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(name)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return fs
}

func contentOf(f *testing.F, fs vfs.FS, name string) []byte {
	file, err := fs.Open(name)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
	if err != nil {
		f.Fatal(err)
	}
	return b
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
