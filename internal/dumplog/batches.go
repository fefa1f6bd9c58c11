package dumplog

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/record"
)

// dumpBatches prints a line for each batch, and for each record if asked.
func dumpBatches(w *bufio.Writer, f io.ReaderAt, size int64, name string, opts Options) error {
	head := make([]byte, record.HeaderSize)
	pos := int64(0)
	for pos < size {
		n, err := f.ReadAt(head, pos)
		if err != nil && err != io.EOF {
			return err
		}
		h, ok := record.ParseHeader(head[:n])
		if !ok || h.Magic != record.Magic || int64(h.Size()) > size-pos {
			break
		}
		batch := make([]byte, h.Size())
		if _, err := f.ReadAt(batch, pos); err != nil && err != io.EOF {
			return err
		}
		printBatch(w, h, batch, pos)
		if opts.Deep || opts.Data {
			if err := printRecords(w, h, batch, opts); err != nil {
				fmt.Fprintf(w, "| the records cannot be read: %v\n", err)
			}
		}
		pos += int64(h.Size())
	}
	if pos < size {
		fmt.Fprintf(w, "Found %d invalid bytes at the end of %s\n", size-pos, filepath.Base(name))
	}
	return nil
}

func printBatch(w io.Writer, h record.Header, batch []byte, pos int64) {
	lastSequence := h.BaseSequence
	if h.BaseSequence >= 0 {
		lastSequence = h.Producer().LastSequence()
	}
	horizon, has := h.DeleteHorizon()
	fmt.Fprintf(w, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d partitionLeaderEpoch: %d",
		h.Base, h.LastOffset(), h.Count, h.BaseSequence, lastSequence, h.ProducerID, h.ProducerEpoch, h.LeaderEpoch)
	fmt.Fprintf(w, " isTransactional: %v isControl: %v deleteHorizonMs: %s position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %v\n",
		h.Transactional(), h.Control(), optional(int64(horizon), has), pos, timeName(h), h.MaxTimestamp, h.Size(), h.Magic, h.Codec(), h.CRC, record.Valid(batch))
}

func timeName(h record.Header) string {
	if h.LogAppendTime() {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// optional prints a number that may be missing, in Java's words.
func optional(n int64, has bool) string {
	if !has {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", n)
}

func printRecords(w *bufio.Writer, h record.Header, batch []byte, opts Options) error {
	return record.Records(batch, func(r *record.Record) bool {
		w.WriteByte('|')
		if !opts.SkipRecordMetadata {
			fmt.Fprintf(w, " offset: %d %s: %d keySize: %d valueSize: %d sequence: %d headerKeys: [",
				r.Offset, timeName(h), r.Timestamp, sizeOf(r.Key), sizeOf(r.Value), r.Sequence)
			for i, f := range r.Headers {
				if i > 0 {
					w.WriteByte(',')
				}
				w.WriteString(f.Key)
			}
			w.WriteByte(']')
		}
		switch {
		case h.Control():
			w.WriteByte(' ')
			w.WriteString(control(r))
		case opts.Data:
			printData(w, r, opts.Decoder)
		}
		w.WriteByte('\n')
		return true
	})
}

func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// control prints a record of a control batch.
func control(r *record.Record) string {
	kind := record.ControlType(r.Key)
	if kind == record.ControlAbort || kind == record.ControlCommit {
		name := "ABORT"
		if kind == record.ControlCommit {
			name = "COMMIT"
		}
		if len(r.Value) < 6 {
			return "endTxnMarker: " + name
		}
		return fmt.Sprintf("endTxnMarker: %s coordinatorEpoch: %d", name, int32(binary.BigEndian.Uint32(r.Value[2:])))
	}
	text, err := metalog.DumpControl(r.Key, r.Value)
	if err != nil {
		return fmt.Sprintf("controlType: %d", kind)
	}
	return text
}

func printData(w *bufio.Writer, r *record.Record, d Decoder) {
	key, value, err := decode(r, d)
	if err != nil {
		fmt.Fprintf(w, " key: %s payload: %s (%v)", r.Key, r.Value, err)
		return
	}
	if key != "" || d == Plain && r.Key != nil {
		w.WriteString(" key: ")
		w.WriteString(key)
	}
	if value != "" || d == Plain && r.Value != nil {
		w.WriteString(" payload: ")
		w.WriteString(value)
	}
}

// decode turns key and value into text; empty for what is not printed.
func decode(r *record.Record, d Decoder) (key, value string, err error) {
	switch d {
	case ClusterMeta:
		value, err = metalog.Dump(r.Value)
		return "", value, err
	case TransactionLog:
		return decodeTransaction(r.Key, r.Value)
	case Offsets:
		return decodeGroup(r.Key, r.Value)
	}
	return string(r.Key), string(r.Value), nil
}
