// Package format is the small files of a log directory as bytes: what they hold,
// read strictly, written as Kafka 4.4 writes it.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

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

// Offsets is the inverse of ParseOffsets, in order of topic and partition.
func Offsets(m map[model.TopicPartition]model.Offset) []byte {
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

// Epochs is the inverse of ParseEpochs.
func Epochs(entries []model.EpochStart) []byte {
	b := checkpointHead(len(entries))
	for _, e := range entries {
		fmt.Fprintf(b, "%d %d\n", e.Epoch, e.Start)
	}
	return b.Bytes()
}
