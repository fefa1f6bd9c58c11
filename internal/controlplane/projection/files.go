package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// TopicID is the fixed id of __cluster_metadata.
var TopicID = model.UUID{15: 1}

// writeText replaces a small file, unsynced.
func writeText(fs vfs.FS, name string, text []byte) error {
	tmp := name + ".tmp"
	f, err := fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	_, err = f.WriteAt(text, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	if err := fs.Rename(tmp, name); err != nil {
		return fmt.Errorf("rename %s: %w", tmp, err)
	}
	return nil
}

// settleTexts writes the small files whose content is known and which a crash
// took, or left without it.
func (d *Dir) settleTexts() error {
	for _, file := range []struct {
		name string
		text []byte
	}{
		{"partition.metadata", fmt.Appendf(nil, "version: 0\ntopic_id: %s", TopicID)},
		{"leader-epoch-checkpoint", d.epochsText()},
	} {
		name := path.Join(d.path, file.name)
		if holds(d.fs, name, file.text) {
			continue
		}
		if err := writeText(d.fs, name, file.text); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a small file has a content.
func holds(fs vfs.FS, name string, text []byte) bool {
	f, err := fs.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(text)+1)
	n, err := f.ReadAt(b, 0)
	return errors.Is(err, io.EOF) && bytes.Equal(b[:n], text)
}

func (d *Dir) epochsText() []byte {
	entries := d.epochs.Entries()
	text := fmt.Appendf(nil, "0\n%d\n", len(entries))
	for _, e := range entries {
		text = fmt.Appendf(text, "%d %d\n", e.Epoch, e.Start)
	}
	return text
}

func (d *Dir) writeEpochs() error {
	return writeText(d.fs, path.Join(d.path, "leader-epoch-checkpoint"), d.epochsText())
}

// QuorumState is what Kafka's tools read of a node's part in the quorum.
type QuorumState struct {
	Leader model.BrokerID
	Epoch  model.Epoch
	Voted  model.BrokerID // whom the node voted for in Epoch
	// Voters are the static voters; nil with kraft.version 1.
	Voters []model.BrokerID
}

type quorumStateV0 struct {
	ClusterID     string    `json:"clusterId"`
	LeaderID      int32     `json:"leaderId"`
	LeaderEpoch   int32     `json:"leaderEpoch"`
	VotedID       int32     `json:"votedId"`
	AppliedOffset int64     `json:"appliedOffset"`
	CurrentVoters []voterV0 `json:"currentVoters"`
	DataVersion   int16     `json:"data_version"`
}

type voterV0 struct {
	VoterID int32 `json:"voterId"`
}

type quorumStateV1 struct {
	LeaderID         int32  `json:"leaderId"`
	LeaderEpoch      int32  `json:"leaderEpoch"`
	VotedID          int32  `json:"votedId"`
	VotedDirectoryID string `json:"votedDirectoryId"`
	DataVersion      int16  `json:"data_version"`
}

// WriteQuorumState replaces the quorum-state file, for Kafka's tools: the truth
// is in the raft log.
func (d *Dir) WriteQuorumState(q QuorumState) error {
	var doc any
	if q.Voters == nil {
		doc = quorumStateV1{int32(q.Leader), int32(q.Epoch), int32(q.Voted), model.UUID{}.String(), 1}
	} else {
		v0 := quorumStateV0{LeaderID: int32(q.Leader), LeaderEpoch: int32(q.Epoch), VotedID: int32(q.Voted), CurrentVoters: []voterV0{}}
		for _, id := range q.Voters {
			v0.CurrentVoters = append(v0.CurrentVoters, voterV0{int32(id)})
		}
		doc = v0
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode quorum-state: %w", err)
	}
	return writeText(d.fs, path.Join(d.path, "quorum-state"), text)
}

// WriteCheckpoint writes the image as a checkpoint file. It touches nothing that
// the owner of the directory does, so another goroutine may run it; the owner
// then calls Added. last is the time of the last record that the image shows.
func WriteCheckpoint(fs vfs.FS, dir string, img *image.Image, last, now model.Millis) (ID, error) {
	id := ID{End: img.End(), Epoch: img.Epoch()}
	var control []metalog.Control
	if img.KRaftVersion() > 0 {
		control = []metalog.Control{
			&metalog.KRaftVersion{Level: img.KRaftVersion()},
			&metalog.KRaftVoters{Voters: img.Voters()},
		}
	}
	return id, WriteFile(fs, dir, id, func(out io.Writer) error {
		w := metalog.NewSnapshotWriter(out, id.Epoch, last, now, img.Feature("metadata.version"), control...)
		for rec := range img.Records() {
			w.Add(rec)
		}
		return w.Close()
	})
}

// WriteFile makes the checkpoint file id of what fill writes: synced first, then
// named.
func WriteFile(fs vfs.FS, dir string, id ID, fill func(io.Writer) error) error {
	p, err := NewPart(fs, dir, id)
	if err != nil {
		return err
	}
	if err := fill(p); err != nil {
		p.Abort()
		return err
	}
	return p.Commit()
}

// Part is a checkpoint under construction. It is an io.Writer.
type Part struct {
	fs        vfs.FS
	dir, name string
	file      vfs.File
	size      int64
	buf       bytes.Buffer
}

// NewPart begins a checkpoint file.
func NewPart(fs vfs.FS, dir string, id ID) (*Part, error) {
	p := &Part{fs: fs, dir: dir, name: path.Join(dir, id.FileName())}
	var err error
	if p.file, err = fs.Create(p.name + ".part"); err != nil {
		return nil, fmt.Errorf("create checkpoint %s: %w", id.FileName(), err)
	}
	return p, nil
}

// partBuffer is how much of a part is collected before it is written.
const partBuffer = 256 << 10

// Write adds bytes at the end.
func (p *Part) Write(b []byte) (int, error) {
	p.buf.Write(b)
	if p.buf.Len() >= partBuffer {
		if err := p.flush(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (p *Part) flush() error {
	if _, err := p.file.WriteAt(p.buf.Bytes(), p.size); err != nil {
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	p.size += int64(p.buf.Len())
	p.buf.Reset()
	return nil
}

// Size is the number of bytes written so far.
func (p *Part) Size() int64 { return p.size + int64(p.buf.Len()) }

// Commit makes the file durable and gives it its name.
func (p *Part) Commit() error {
	err := p.flush()
	if err == nil {
		err = p.file.Sync()
	}
	if err := errors.Join(err, p.file.Close()); err != nil {
		return fmt.Errorf("finish %s: %w", p.name, err)
	}
	if err := p.fs.Rename(p.name+".part", p.name); err != nil {
		return fmt.Errorf("rename to %s: %w", p.name, err)
	}
	if err := p.fs.SyncDir(p.dir); err != nil {
		return fmt.Errorf("sync %s: %w", p.dir, err)
	}
	return nil
}

// Abort drops the part.
func (p *Part) Abort() {
	p.file.Close()
	_ = p.fs.Remove(p.name + ".part") // Open removes what stays
}

// ReadFile reads a whole checkpoint file. Errors: fs.ErrNotExist among others.
func ReadFile(fs vfs.FS, dir string, id ID) ([]byte, error) {
	f, err := fs.Open(path.Join(dir, id.FileName()))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", id.FileName(), err)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("read checkpoint %s: %w", id.FileName(), err)
	}
	return b, nil
}

// ReadPiece reads up to maxBytes of a checkpoint from pos on, and the size of
// the whole file. Errors: ErrGone when the view does not hold it, or io.EOF when
// pos is not inside the file.
func (v *View) ReadPiece(id ID, pos int64, maxBytes int) ([]byte, int64, error) {
	f, err := v.dir.fs.Open(path.Join(v.dir.path, id.FileName()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, ErrGone
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open checkpoint: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, 0, fmt.Errorf("read checkpoint %s: %w", id.FileName(), err)
	}
	if pos < 0 || pos >= size {
		return nil, size, io.EOF
	}
	b := make([]byte, min(int64(min(max(maxBytes, 1), maxRead)), size-pos))
	if n, err := f.ReadAt(b, pos); n < len(b) {
		return nil, size, fmt.Errorf("read checkpoint %s at %d: %w", id.FileName(), pos, err)
	}
	return b, size, nil
}

// LoadImage reads a checkpoint into an image that ends at the checkpoint's id,
// and returns the time of the last record that it covers.
func LoadImage(fs vfs.FS, dir string, id ID) (*image.Image, model.Millis, error) {
	b, err := ReadFile(fs, dir, id)
	if err != nil {
		return nil, 0, err
	}
	img, last := image.New(), model.Millis(0)
	err = metalog.ReadSnapshot(b, func(batch metalog.Batch) error {
		for _, c := range batch.Control {
			if h, ok := c.(*metalog.SnapshotHeader); ok {
				last = h.LastContainedTimestamp
			}
		}
		img = Fold(img, batch, id.End, id.Epoch)
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint %s: %w", id.FileName(), err)
	}
	return img, last, nil
}

// Fold returns the image after one batch of the log.
func Fold(img *image.Image, b metalog.Batch, end model.Offset, epoch model.Epoch) *image.Image {
	if len(b.Control) > 0 {
		return img.ApplyControl(b.Control, end, epoch)
	}
	return img.Apply(b.Records, end, epoch)
}
