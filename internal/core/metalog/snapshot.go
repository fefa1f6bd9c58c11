package metalog

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// SnapshotID names a snapshot: End is the offset after the last record that it
// covers, Epoch the epoch of that record.
type SnapshotID struct {
	End   model.Offset
	Epoch model.Epoch
}

// FileName is the name of the snapshot's file, such as
// 00000000000000000299-0000000001.checkpoint.
func (id SnapshotID) FileName() string {
	return fmt.Sprintf("%020d-%010d.checkpoint", id.End, id.Epoch)
}

// ParseSnapshotName reads what FileName returns; false for any other name.
func ParseSnapshotName(name string) (SnapshotID, bool) {
	base, ok := strings.CutSuffix(name, ".checkpoint")
	end, epoch, cut := strings.Cut(base, "-")
	if !ok || !cut || len(end) != 20 || len(epoch) != 10 {
		return SnapshotID{}, false
	}
	e, err1 := strconv.ParseUint(end, 10, 63)
	p, err2 := strconv.ParseUint(epoch, 10, 31)
	if err1 != nil || err2 != nil {
		return SnapshotID{}, false
	}
	return SnapshotID{model.Offset(e), model.Epoch(p)}, true
}

// snapshotBatch is the size from which a batch of a snapshot is closed, in bytes.
const snapshotBatch = 1 << 20

// SnapshotWriter writes the bytes of one snapshot. Offsets inside it start at 0.
type SnapshotWriter struct {
	out   io.Writer
	epoch model.Epoch
	now   model.Millis
	level int16
	next  model.Offset
	batch batch
	open  bool
	err   error
}

// NewSnapshotWriter starts a snapshot in out. epoch is that of the snapshot's
// id, last the append time of the last batch that it covers, now the time of
// writing, level that of metadata.version. The control records, if any, follow
// the header: KRaftVersion and KRaftVoters, when the log states them.
func NewSnapshotWriter(out io.Writer, epoch model.Epoch, last, now model.Millis, level int16,
	control ...Control) *SnapshotWriter {
	w := &SnapshotWriter{out: out, epoch: epoch, now: now, level: level}
	head := append([]Control{&SnapshotHeader{LastContainedTimestamp: last}}, control...)
	w.control(head)
	return w
}

func (w *SnapshotWriter) control(recs []Control) {
	w.write(AppendControlBatch(nil, w.next, w.epoch, w.now, recs))
	w.next += model.Offset(len(recs))
}

// Add adds a data record. Errors of the output wait for Close.
func (w *SnapshotWriter) Add(rec Record) {
	if !w.open {
		w.batch.b, w.batch.start, w.batch.count = append(w.batch.b[:0], make([]byte, headerSize)...), 0, 0
		w.open = true
	}
	w.batch.add(rec, w.level)
	if w.batch.size() >= snapshotBatch {
		w.flush()
	}
}

func (w *SnapshotWriter) flush() {
	if !w.open {
		return
	}
	w.write(w.batch.finish(w.next, w.epoch, w.now, 0))
	w.next += model.Offset(w.batch.count)
	w.open = false
}

func (w *SnapshotWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
	}
}

// Close writes the footer. It returns the first error of the output, which it
// does not close.
func (w *SnapshotWriter) Close() error {
	w.flush()
	w.control([]Control{&SnapshotFooter{}})
	if w.err != nil {
		return fmt.Errorf("write snapshot: %w", w.err)
	}
	return nil
}

// ReadSnapshot hands the batches of a whole snapshot to fn, header and footer
// included. A snapshot without its header or footer, or with anything after the
// footer, is an error; fn may have seen a part of it by then.
func ReadSnapshot(b []byte, fn func(Batch) error) error {
	var next model.Offset
	footer := false
	n, err := DecodeBatches(b, func(batch Batch) error {
		if footer {
			return errors.New("a batch follows the footer")
		}
		if batch.Base != next {
			return fmt.Errorf("a batch has offset %d, not %d", batch.Base, next)
		}
		if next == 0 && !startsSnapshot(batch) {
			return errors.New("the first record is not the header")
		}
		next = batch.End
		footer = endsSnapshot(batch)
		return fn(batch)
	})
	switch {
	case err != nil:
		return fmt.Errorf("read snapshot: %w", err)
	case n < len(b):
		return fmt.Errorf("read snapshot: %d bytes are left after the last batch", len(b)-n)
	case !footer:
		return errors.New("read snapshot: the footer is missing")
	}
	return nil
}

func startsSnapshot(b Batch) bool {
	if len(b.Control) == 0 {
		return false
	}
	_, ok := b.Control[0].(*SnapshotHeader)
	return ok
}

func endsSnapshot(b Batch) bool {
	if len(b.Control) == 0 {
		return false
	}
	_, ok := b.Control[len(b.Control)-1].(*SnapshotFooter)
	return ok
}
