// Package epochs is the leader epoch cache of one log: which leader epoch wrote
// which offsets (KIP-101, R1.18, R4.20-R4.24).
package epochs

import (
	"slices"
	"sort"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Cache holds one entry per leader epoch that the log knows, strictly ascending
// in epoch and in start offset. It has one owner. The zero value is the cache of
// a log without epochs.
//
// The last entry may start at the log end: a leader notes its epoch before its
// first record, so that a follower with records of a failed leader is told where
// to cut.
type Cache struct{ entries []model.EpochStart }

// New returns a cache with a copy of the entries. What is not strictly ascending
// is repaired as Assign would.
func New(entries []model.EpochStart) Cache {
	var c Cache
	for _, e := range entries {
		c.Assign(e.Epoch, e.Start)
	}
	return c
}

// Assign notes that epoch e begins at offset start and reports whether the cache
// changed; the shell persists a changed cache before it writes a record of e
// (R8.12). Entries of e and later epochs, or that start at or after start, give
// way: an epoch without records vanishes when the next one starts there (R4.20).
func (c *Cache) Assign(e model.Epoch, start model.Offset) bool {
	if e < 0 || start < 0 {
		return false
	}
	if n := len(c.entries); n > 0 && c.entries[n-1].Epoch == e && start >= c.entries[n-1].Start {
		return false
	}
	c.entries = slices.DeleteFunc(c.entries, func(s model.EpochStart) bool { return s.Epoch >= e || s.Start >= start })
	c.entries = append(c.entries, model.EpochStart{Epoch: e, Start: start})
	return true
}

// Latest is the newest epoch, NoEpoch when there is none.
func (c *Cache) Latest() model.Epoch {
	if len(c.entries) == 0 {
		return model.NoEpoch
	}
	return c.entries[len(c.entries)-1].Epoch
}

// EndOf returns the greatest epoch <= e that the log knows and the offset before
// which it ended; leo is the log end offset. An e older than every entry ended
// where the first entry starts. UndefinedEpochEnd when e is no epoch, or newer
// than every entry (R4.22).
func (c *Cache) EndOf(e model.Epoch, leo model.Offset) model.EpochEnd {
	if e < 0 || e > c.Latest() {
		return model.UndefinedEpochEnd
	}
	if e == c.Latest() {
		return model.EpochEnd{Epoch: e, End: leo}
	}
	next := c.after(e)
	if next == 0 {
		return model.EpochEnd{Epoch: e, End: c.entries[0].Start}
	}
	return model.EpochEnd{Epoch: c.entries[next-1].Epoch, End: c.entries[next].Start}
}

// after is the index of the first entry with an epoch greater than e.
func (c *Cache) after(e model.Epoch) int {
	return sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Epoch > e })
}

// At returns the epoch of the record at offset o, NoEpoch when no entry starts
// at or before it.
func (c *Cache) At(o model.Offset) model.Epoch {
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Start > o })
	if i == 0 {
		return model.NoEpoch
	}
	return c.entries[i-1].Epoch
}

// Within returns the epochs of the records in [from, to), each with its first
// offset there.
func (c *Cache) Within(from, to model.Offset) []model.EpochStart {
	var out []model.EpochStart
	for i, s := range c.entries {
		end := to
		if i+1 < len(c.entries) {
			end = min(to, c.entries[i+1].Start)
		}
		if start := max(s.Start, from); start < end {
			out = append(out, model.EpochStart{Epoch: s.Epoch, Start: start})
		}
	}
	return out
}

// TruncateFromEnd drops entries that start at or after to, also when to is the
// log end: else an empty term makes a follower diverge for ever (R4.12, R4.21).
// It reports whether the cache changed.
func (c *Cache) TruncateFromEnd(to model.Offset) bool {
	before := len(c.entries)
	c.entries = slices.DeleteFunc(c.entries, func(s model.EpochStart) bool { return s.Start >= to })
	return len(c.entries) != before
}

// TruncateFromStart drops entries that start at or before start but keeps the
// last of them, moved to start: it still names the epoch of the record there
// (R4.21). It reports whether the cache changed.
func (c *Cache) TruncateFromStart(start model.Offset) bool {
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Start > start })
	if i == 0 || i == 1 && c.entries[0].Start == start {
		return false
	}
	c.entries = slices.Delete(c.entries, 0, i-1)
	c.entries[0].Start = start
	return true
}

// Clear forgets everything, for a log that starts anew.
func (c *Cache) Clear() { c.entries = c.entries[:0] }

// Entries returns a copy of the entries, ascending.
func (c *Cache) Entries() []model.EpochStart { return slices.Clone(c.entries) }

// Len is the number of entries.
func (c *Cache) Len() int { return len(c.entries) }
