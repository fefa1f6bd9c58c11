// Package projection keeps the files of __cluster_metadata-0 as Kafka writes
// them: segments, checkpoints and the small text files beside them.
//
// Only committed batches come here, so nothing is ever truncated. Segments and
// text files are not synced: what a crash takes is written again from the raft
// log, or fetched again. Checkpoints are synced before they get their name.
package projection

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const (
	logSuffix  = ".log"
	partSuffix = ".checkpoint.part"
	// segmentBytes makes a segment roll; checkpoints make it roll earlier.
	segmentBytes = 64 << 20
	// keepCheckpoints is how many checkpoints stay: the newest, and one that
	// may be under download.
	keepCheckpoints = 2
)

// ID names a checkpoint.
type ID = metalog.SnapshotID

// Bootstrap names the checkpoint that a formatted directory holds. It is never
// replicated.
var Bootstrap = ID{}

// Dir is an open directory. It has one owner, who appends; any goroutine reads
// through View.
type Dir struct {
	fs          vfs.FS
	path        string
	segments    []*segment // contiguous; the last is appended to; never empty
	epochs      epochs.Cache
	checkpoints []ID // ascending, without the bootstrap checkpoint
	view        atomic.Pointer[View]
}

// Open reads what dir holds, making it when missing. Segments are checked batch
// by batch and cut at the first that is not whole. A log that does not reach the
// newest checkpoint begins anew behind it.
func Open(fs vfs.FS, dir string) (*Dir, error) {
	if err := vfs.MakeDurably(fs, dir); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	d := &Dir{fs: fs, path: dir}
	bases, err := d.list()
	if err != nil {
		return nil, err
	}
	if err := d.load(bases); err != nil {
		d.Close()
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	if err := d.settleTexts(); err != nil {
		d.Close()
		return nil, err
	}
	d.publish()
	return d, nil
}

// list finds checkpoints and the base offsets of the segments.
func (d *Dir) list() (bases []model.Offset, err error) {
	infos, err := d.fs.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.path, err)
	}
	for _, info := range infos {
		if info.Dir {
			continue
		}
		if strings.HasSuffix(info.Name, partSuffix) {
			if err := d.fs.Remove(path.Join(d.path, info.Name)); err != nil {
				return nil, fmt.Errorf("remove %s: %w", info.Name, err)
			}
		} else if id, ok := metalog.ParseSnapshotName(info.Name); ok {
			if id != Bootstrap {
				d.checkpoints = append(d.checkpoints, id)
			}
		} else if name, ok := strings.CutSuffix(info.Name, logSuffix); ok && len(name) == 20 {
			if base, err := strconv.ParseInt(name, 10, 64); err == nil && base >= 0 {
				bases = append(bases, model.Offset(base))
			}
		}
	}
	slices.SortFunc(d.checkpoints, compareIDs)
	slices.Sort(bases)
	return bases, nil
}

func compareIDs(a, b ID) int {
	switch {
	case a.End != b.End:
		return int(max(-1, min(1, a.End-b.End)))
	default:
		return int(a.Epoch - b.Epoch)
	}
}

// load opens the segments that continue each other and drops the rest.
func (d *Dir) load(bases []model.Offset) error {
	broken := false
	for _, base := range bases {
		if n := len(d.segments); broken || n > 0 && d.segments[n-1].end != base {
			if err := d.fs.Remove(d.file(base)); err != nil {
				return err
			}
			broken = true
			continue
		}
		s, cut, err := openSegment(d.fs, d.file(base), base, &d.epochs)
		if err != nil {
			return err
		}
		d.segments = append(d.segments, s)
		broken = cut
	}
	newest, ok := d.Newest()
	if ok && (len(d.segments) == 0 || d.End() < newest.End || d.Start() > newest.End) {
		return d.restart(newest.End)
	}
	if len(d.segments) > 0 && d.Start() > 0 && !ok {
		return d.restart(0) // the records before the start are nowhere
	}
	if len(d.segments) == 0 {
		return d.restart(0)
	}
	return nil
}

// restart drops all segments and begins an empty log at offset at.
func (d *Dir) restart(at model.Offset) error {
	old := d.segments
	d.segments = nil
	d.epochs.Clear()
	for _, s := range old {
		if err := s.drop(d.fs); err != nil {
			return err
		}
	}
	return d.roll(at)
}

func (d *Dir) roll(at model.Offset) error {
	s, err := createSegment(d.fs, d.file(at), at)
	if err != nil {
		return err
	}
	d.segments = append(d.segments[:len(d.segments):len(d.segments)], s)
	return nil
}

func (d *Dir) file(base model.Offset) string {
	return path.Join(d.path, fmt.Sprintf("%020d%s", base, logSuffix))
}

// Start is the offset of the first record that the segments hold.
func (d *Dir) Start() model.Offset { return d.segments[0].base }

// End is the offset after the last record.
func (d *Dir) End() model.Offset { return d.segments[len(d.segments)-1].end }

// Epoch is the epoch of the last record before End; 0 when there is none.
func (d *Dir) Epoch() model.Epoch {
	if latest := d.epochs.Latest(); latest != model.NoEpoch {
		return latest
	}
	newest, _ := d.Newest()
	return newest.Epoch
}

// Clear drops everything but the bootstrap checkpoint.
func (d *Dir) Clear() error {
	for _, id := range d.checkpoints {
		if err := d.fs.Remove(d.checkpoint(id)); err != nil {
			return fmt.Errorf("remove checkpoint %s: %w", id.FileName(), err)
		}
	}
	d.checkpoints = nil
	if err := d.restart(0); err != nil {
		return fmt.Errorf("begin %s anew: %w", d.path, err)
	}
	d.publish()
	return d.writeEpochs()
}

// Newest returns the newest checkpoint, or false; the bootstrap checkpoint does
// not count.
func (d *Dir) Newest() (ID, bool) {
	if len(d.checkpoints) == 0 {
		return ID{}, false
	}
	return d.checkpoints[len(d.checkpoints)-1], true
}

// Has reports whether the directory holds the checkpoint.
func (d *Dir) Has(id ID) bool { return slices.Contains(d.checkpoints, id) }

// Append writes whole batches that continue the log at End. Batches that lie
// before End are known and skipped. It fails on a gap.
func (d *Dir) Append(batches []byte) error {
	changed := false
	for len(batches) > 0 {
		h, size, err := parseBatch(batches)
		if err != nil {
			return fmt.Errorf("append to %s at %d: %w", d.path, d.End(), err)
		}
		if h.base > d.End() {
			return fmt.Errorf("append to %s: batch at %d leaves a gap after %d", d.path, h.base, d.End())
		}
		if h.base < d.End() {
			batches = batches[size:]
			continue
		}
		n := run(batches, h)
		if err := d.append(batches[:n], h); err != nil {
			return fmt.Errorf("append to %s at %d: %w", d.path, h.base, err)
		}
		batches, changed = batches[n:], true
	}
	if changed {
		d.publish()
	}
	return nil
}

// append writes a run of batches of one epoch.
func (d *Dir) append(run []byte, first header) error {
	last := d.segments[len(d.segments)-1]
	if last.size >= segmentBytes {
		if err := d.roll(last.end); err != nil {
			return err
		}
		last = d.segments[len(d.segments)-1]
	}
	if d.epochs.Assign(first.epoch, first.base) {
		if err := d.writeEpochs(); err != nil {
			return err
		}
	}
	return last.append(run)
}

// Reset drops the log and the other checkpoints and begins the log anew behind
// the checkpoint, which is at hand.
func (d *Dir) Reset(id ID) error {
	if err := d.restart(id.End); err != nil {
		return fmt.Errorf("begin %s anew at %d: %w", d.path, id.End, err)
	}
	for _, old := range d.checkpoints {
		if old != id {
			if err := d.fs.Remove(d.checkpoint(old)); err != nil {
				return fmt.Errorf("remove checkpoint %s: %w", old.FileName(), err)
			}
		}
	}
	d.checkpoints = []ID{id}
	if err := d.writeEpochs(); err != nil {
		return err
	}
	d.publish()
	return nil
}

// Roll begins a new segment, so that the log can later be cut at its end.
func (d *Dir) Roll() error {
	if last := d.segments[len(d.segments)-1]; last.base == last.end {
		return nil
	}
	if err := d.roll(d.End()); err != nil {
		return fmt.Errorf("roll %s at %d: %w", d.path, d.End(), err)
	}
	d.publish()
	return nil
}

// Added takes note of a checkpoint that was written to the directory, and drops
// the checkpoints and segments that are not needed any more.
func (d *Dir) Added(id ID) error {
	if !d.Has(id) {
		d.checkpoints = append(slices.Clone(d.checkpoints), id)
		slices.SortFunc(d.checkpoints, compareIDs)
	}
	err := d.prune()
	d.publish()
	return err
}

func (d *Dir) prune() error {
	if len(d.checkpoints) > keepCheckpoints {
		gone := d.checkpoints[:len(d.checkpoints)-keepCheckpoints]
		d.checkpoints = slices.Clone(d.checkpoints[len(gone):])
		for _, id := range gone {
			if err := d.fs.Remove(d.checkpoint(id)); err != nil {
				return fmt.Errorf("remove checkpoint %s: %w", id.FileName(), err)
			}
		}
	}
	if len(d.checkpoints) < keepCheckpoints {
		return nil
	}
	oldest := d.checkpoints[0]
	for len(d.segments) > 1 && d.segments[0].end <= oldest.End {
		s := d.segments[0]
		d.segments = d.segments[1:]
		if err := s.drop(d.fs); err != nil {
			return fmt.Errorf("remove segment %d: %w", s.base, err)
		}
	}
	if d.epochs.TruncateFromStart(d.Start()) {
		return d.writeEpochs()
	}
	return nil
}

func (d *Dir) checkpoint(id ID) string { return path.Join(d.path, id.FileName()) }

// Close closes the files. Views fail from then on.
func (d *Dir) Close() error {
	var errs []error
	for _, s := range d.segments {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}
