// Package dumplog prints the files of a log directory in words, line by line as
// Apache's kafka-dump-log does.
package dumplog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
)

// Decoder turns keys and values of an internal topic's records into text.
type Decoder int

// The decoders, by kafka-dump-log's options.
const (
	Plain          Decoder = iota // --print-data-log: bytes as text
	ClusterMeta                   // --cluster-metadata-decoder
	TransactionLog                // --transaction-log-decoder
	Offsets                       // --offsets-decoder
)

// Options are what kafka-dump-log's options say.
type Options struct {
	Deep    bool    // --deep-iteration: a line for each record
	Data    bool    // --print-data-log, or a decoder: keys and values too
	Decoder Decoder // how keys and values are printed
	// SkipRecordMetadata leaves only keys and values of a record's line.
	SkipRecordMetadata bool
}

// File prints one file, known by its suffix: .log, .checkpoint, .index,
// .timeindex, .txnindex or .snapshot. Index files are compared with the log file
// beside them. Errors: the file cannot be read, or has another suffix.
func File(out io.Writer, name string, opts Options) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, w.Flush()) }()
	fmt.Fprintf(w, "Dumping %s\n", name)
	return dump(w, f, fi.Size(), name, opts)
}

func dump(w *bufio.Writer, f *os.File, size int64, name string, opts Options) error {
	switch suffix := filepath.Ext(name); suffix {
	case ".log":
		base, err := baseOffset(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "Log starting offset: %d\n", base)
		return dumpBatches(w, f, size, name, opts)
	case ".checkpoint":
		id, ok := metalog.ParseSnapshotName(filepath.Base(name))
		if !ok {
			return fmt.Errorf("%s is not named as a metadata snapshot", name)
		}
		fmt.Fprintf(w, "Snapshot end offset: %d, epoch: %d\n", id.End, id.Epoch)
		return dumpBatches(w, f, size, name, opts)
	case ".index", ".timeindex", ".txnindex", ".snapshot":
		return dumpSmall(w, f, size, name, suffix)
	default:
		return fmt.Errorf("%s is no file of a log: give files that end in .log, .index, .timeindex, .txnindex, .snapshot or .checkpoint", filepath.Base(name))
	}
}

// baseOffset reads the offset in a file's name.
func baseOffset(name string) (int64, error) {
	digits, _, _ := strings.Cut(filepath.Base(name), ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s does not begin with an offset", name)
	}
	return n, nil
}
