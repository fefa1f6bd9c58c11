package dumplog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// maxSmall bounds the files that are read whole.
const maxSmall = 256 << 20

func dumpSmall(w *bufio.Writer, f io.ReaderAt, size int64, name, suffix string) error {
	if size > maxSmall {
		return fmt.Errorf("%s: %d bytes are too many", name, size)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	switch suffix {
	case ".txnindex":
		return dumpTxnIndex(w, b)
	case ".snapshot":
		return dumpSnapshot(w, b)
	}
	base, err := baseOffset(name)
	if err != nil {
		return err
	}
	found, err := lookAt(strings.TrimSuffix(name, suffix) + ".log")
	if err != nil {
		return err
	}
	if suffix == ".index" {
		dumpIndex(w, b, base, name, found)
	} else {
		dumpTimeIndex(w, b, base, name, found)
	}
	return nil
}

func dumpTxnIndex(w io.Writer, b []byte) error {
	list, err := format.ParseTxnIndex(b)
	for _, a := range list {
		fmt.Fprintf(w, "version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", a.ID, a.First, a.Last, a.LSO)
	}
	return err
}

func dumpSnapshot(w io.Writer, b []byte) error {
	list, err := format.ParseSnapshot(b)
	for _, e := range list {
		fmt.Fprintf(w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d",
			e.ID, e.Epoch, e.CoordinatorEpoch, optional(int64(e.TxnFirst), e.TxnFirst >= 0), e.Timestamp)
		if e.LastSequence >= 0 {
			first := int32((int64(e.LastSequence) - int64(e.OffsetDelta)) & 0x7fffffff)
			fmt.Fprintf(w, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				first, e.LastSequence, e.LastOffset, e.OffsetDelta, e.Timestamp)
		}
		fmt.Fprintln(w)
	}
	return err
}

// look is what a log file says of its batches, to compare indexes with: the
// last offset by position, the largest timestamp by last offset.
type look struct {
	present bool
	last    map[int64]model.Offset
	times   map[model.Offset]model.Millis
}

// lookAt reads the headers of a log file; one that is not there is no error.
func lookAt(name string) (l look, err error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return look{}, nil
	}
	if err != nil {
		return look{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l = look{present: true, last: map[int64]model.Offset{}, times: map[model.Offset]model.Millis{}}
	head := make([]byte, record.HeaderSize)
	for pos := int64(0); ; {
		n, err := f.ReadAt(head, pos)
		if err != nil && err != io.EOF {
			return l, err
		}
		h, ok := record.ParseHeader(head[:n])
		if !ok {
			return l, nil
		}
		l.last[pos] = h.LastOffset()
		l.times[h.LastOffset()] = h.MaxTimestamp
		pos += int64(h.Size())
	}
}

// dumpIndex prints an offset index up to the zeroes that an active one ends with.
func dumpIndex(w io.Writer, b []byte, base int64, name string, l look) {
	if len(b) < 8 {
		fmt.Fprintf(w, "%s is empty.\n", name)
	}
	var wrong []string
	for i := 0; len(b) >= 8; i, b = i+1, b[8:] {
		offset := base + int64(int32(binary.BigEndian.Uint32(b)))
		pos := int64(int32(binary.BigEndian.Uint32(b[4:])))
		if offset == base && pos == 0 && i > 0 || offset == base && pos == 0 && l.present && l.last[0] != model.Offset(base) {
			break
		}
		fmt.Fprintf(w, "offset: %d position: %d\n", offset, pos)
		if last, ok := l.last[pos]; l.present && (!ok || int64(last) != offset) {
			wrong = append(wrong, fmt.Sprintf("  Index offset: %d, log offset: %s", offset, orNone(int64(last), ok)))
		}
	}
	printWrong(w, "Mismatches in :"+name, wrong)
}

// dumpTimeIndex prints a time index up to the zeroes that an active one ends with.
func dumpTimeIndex(w io.Writer, b []byte, base int64, name string, l look) {
	var wrong []string
	for ; len(b) >= 12; b = b[12:] {
		at := int64(binary.BigEndian.Uint64(b))
		offset := base + int64(int32(binary.BigEndian.Uint32(b[8:])))
		if at == 0 && offset == base {
			break
		}
		fmt.Fprintf(w, "timestamp: %d offset: %d\n", at, offset)
		if t, ok := l.times[model.Offset(offset)]; l.present && (!ok || int64(t) != at) {
			wrong = append(wrong, fmt.Sprintf("  Index timestamp: %d, log timestamp: %s", at, orNone(int64(t), ok)))
		}
	}
	printWrong(w, "Found timestamp mismatch in :"+name, wrong)
}

func orNone(n int64, ok bool) string {
	if !ok {
		return "none"
	}
	return fmt.Sprint(n)
}

func printWrong(w io.Writer, title string, wrong []string) {
	if len(wrong) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, line := range wrong {
		fmt.Fprintln(w, line)
	}
}
