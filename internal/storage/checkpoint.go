package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// maxSmallFile bounds what is read of a file that must be small.
const maxSmallFile = 256 << 20

// readFile reads a whole file.
func readFile(fsys vfs.FS, name string) (b []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxSmallFile {
		return nil, fmt.Errorf("%s: %d bytes are too many", name, size)
	}
	b = make([]byte, size)
	if size > 0 {
		if n, err := f.ReadAt(b, 0); n < len(b) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return b, nil
}

// writeFile writes a file that is there whole or not at all: a temporary file,
// fsync, rename, fsync of the folder (R8.7).
func writeFile(fsys vfs.FS, name string, b []byte) error {
	tmp := name + tmpSuffix
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// checkpointLines splits a text checkpoint: version 0, a count, that many lines
// (R8.7).
func checkpointLines(b []byte) ([]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) < 2 || lines[0] != "0" {
		return nil, errors.New("no checkpoint of version 0")
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("%d entries, but the count says %q", len(lines)-2, lines[1])
	}
	return lines[2:], nil
}

func checkpointHead(n int) *bytes.Buffer {
	var b bytes.Buffer
	b.WriteString("0\n")
	b.WriteString(strconv.Itoa(n))
	b.WriteByte('\n')
	return &b
}

// ParseOffsets reads an offset checkpoint: lines of "topic partition offset".
func ParseOffsets(b []byte) (map[model.TopicPartition]model.Offset, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	m := make(map[model.TopicPartition]model.Offset, len(lines))
	for _, line := range lines {
		f := strings.Split(line, " ")
		if len(f) != 3 || f[0] == "" {
			return nil, fmt.Errorf("bad line %q", line)
		}
		p, perr := strconv.ParseInt(f[1], 10, 32)
		o, oerr := strconv.ParseInt(f[2], 10, 64)
		if perr != nil || oerr != nil || p < 0 || o < 0 {
			return nil, fmt.Errorf("bad line %q", line)
		}
		m[model.TopicPartition{Topic: f[0], Partition: int32(p)}] = model.Offset(o)
	}
	return m, nil
}

// formatOffsets is the inverse, in order of topic and partition.
func formatOffsets(m map[model.TopicPartition]model.Offset) []byte {
	b := checkpointHead(len(m))
	keys := make([]model.TopicPartition, 0, len(m))
	for tp := range m {
		keys = append(keys, tp)
	}
	slices.SortFunc(keys, model.TopicPartition.Compare)
	for _, tp := range keys {
		fmt.Fprintf(b, "%s %d %d\n", tp.Topic, tp.Partition, m[tp])
	}
	return b.Bytes()
}

// ParseEpochs reads a leader-epoch checkpoint: lines of "epoch start", both
// strictly ascending.
func ParseEpochs(b []byte) ([]model.EpochStart, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	out := make([]model.EpochStart, 0, len(lines))
	for _, line := range lines {
		es, ss, ok := strings.Cut(line, " ")
		e, eerr := strconv.ParseInt(es, 10, 32)
		s, serr := strconv.ParseInt(ss, 10, 64)
		if !ok || eerr != nil || serr != nil || e < 0 || s < 0 {
			return nil, fmt.Errorf("bad line %q", line)
		}
		if n := len(out); n > 0 && (out[n-1].Epoch >= model.Epoch(e) || out[n-1].Start >= model.Offset(s)) {
			return nil, fmt.Errorf("line %q does not ascend", line)
		}
		out = append(out, model.EpochStart{Epoch: model.Epoch(e), Start: model.Offset(s)})
	}
	return out, nil
}

func formatEpochs(entries []model.EpochStart) []byte {
	b := checkpointHead(len(entries))
	for _, e := range entries {
		fmt.Fprintf(b, "%d %d\n", e.Epoch, e.Start)
	}
	return b.Bytes()
}

// missing reports whether an error says that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
