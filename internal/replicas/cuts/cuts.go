// Package cuts is the account of what truncations removed from the logs of a
// directory.
package cuts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// file holds the account of every truncation in a log directory, one JSON object a
// line (docs/format/truncations.md, R13.3).
const file = "tidemark-truncations.jsonl"

// kept is how many truncations of a partition are remembered, the newest ones, and
// limit how many the file keeps when it is opened again.
const (
	kept  = 16
	limit = 10_000
)

// Cut is one truncation as it is accounted for (R13.3).
type Cut struct {
	TimeMs      int64              `json:"timeMs"`
	Topic       string             `json:"topic"`
	Partition   int32              `json:"partition"`
	TopicID     string             `json:"topicId"`
	From        model.Offset       `json:"from"` // removed [from, to)
	To          model.Offset       `json:"to"`
	HW          model.Offset       `json:"hw"` // before the truncation
	BelowHW     bool               `json:"belowHw"`
	Epochs      []model.EpochStart `json:"epochs,omitempty"` // entries of the removed range
	LeaderEpoch model.Epoch        `json:"leaderEpoch"`      // of the leader that is followed
	Rule        string             `json:"rule"`
}

// Log is the file. It is read at the start and written by the log writer,
// before the log itself is cut: what was lost can always be told.
type Log struct {
	fs   vfs.FS
	dir  string
	path string
	byID map[string][]Cut // the newest of each partition
}

// Open reads the file. A torn last line is a truncation that did not
// happen; an old file is cut down to its newest lines.
func Open(files vfs.FS, dir string) (*Log, error) {
	c := &Log{fs: files, dir: dir, path: path.Join(dir, file), byID: map[string][]Cut{}}
	f, err := files.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the account of truncations: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read the account of truncations: %w", err)
	}
	var all []Cut
	lines := bufio.NewScanner(io.NewSectionReader(f, 0, size))
	lines.Buffer(nil, 1<<20)
	torn := false
	for lines.Scan() {
		var l Cut
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			torn = true
			continue
		}
		all = append(all, l)
		key := cutKey(l.TopicID, l.Partition)
		c.byID[key] = Keep(c.byID[key], l)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the account of truncations: %w", err)
	}
	if len(all) > limit || torn || !endsLine(f, size) {
		return c, c.rewrite(newest(all, limit))
	}
	return c, nil
}

// endsLine reports whether the file is empty or ends with a whole line.
func endsLine(f vfs.File, size int64) bool {
	if size == 0 {
		return true
	}
	last := make([]byte, 1)
	_, err := f.ReadAt(last, size-1)
	return err == nil && last[0] == '\n'
}

func cutKey(topicID string, partition int32) string { return fmt.Sprintf("%s/%d", topicID, partition) }

// Keep adds a truncation of a partition to those that are remembered of it.
func Keep(of []Cut, c Cut) []Cut { return newest(append(of, c), kept) }

func newest(l []Cut, n int) []Cut { return l[max(0, len(l)-n):] }

// rewrite replaces the file.
func (c *Log) rewrite(all []Cut) error {
	var text bytes.Buffer
	var err error
	enc := json.NewEncoder(&text)
	for i := range all {
		err = errors.Join(err, enc.Encode(&all[i]))
	}
	if err == nil {
		err = c.replace(text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("shorten the account of truncations: %w", err)
	}
	return nil
}

func (c *Log) replace(text []byte) error {
	tmp := c.path + ".tmp"
	f, err := c.fs.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := c.fs.Rename(tmp, c.path); err != nil {
		return err
	}
	return c.fs.SyncDir(c.dir)
}

// Write adds one line durably.
func (c *Log) Write(l Cut) error {
	text, err := json.Marshal(&l)
	if err == nil {
		err = c.append(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("account for a truncation: %w", err)
	}
	return nil
}

func (c *Log) append(text []byte) error {
	f, err := c.fs.Open(c.path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		f, err = c.fs.Create(c.path)
	}
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		_, err = f.WriteAt(text, size)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil && isNew {
		err = c.fs.SyncDir(c.dir)
	}
	return err
}

// Of returns what is remembered of a partition.
func (c *Log) Of(id model.TopicIDPartition) []Cut {
	return append([]Cut(nil), c.byID[cutKey(id.TopicID.String(), id.Partition)]...)
}
