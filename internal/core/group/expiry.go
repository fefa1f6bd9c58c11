package group

import (
	"maps"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// minCheckInterval bounds how often offsets are looked through.
const minCheckInterval = time.Millisecond

// bury writes tombstones for offsets, and for the group itself if whole is set. done may be nil.
func (s *Shard) bury(g *group, keys []topicPartition, whole bool, done func(model.Error)) {
	var records []Record
	for _, k := range keys {
		records = append(records, Record{Key: offsetKey(g.id, k)})
	}
	if whole {
		records = append(records, Record{Key: groupKey(g.id)})
	}
	if len(records) == 0 {
		if done != nil {
			done(model.None)
		}
		return
	}
	generation := g.generation
	s.append(records, done, func(committed bool) {
		if !committed {
			return
		}
		for _, k := range keys {
			delete(g.offsets, k)
		}
		// A group that got members meanwhile goes on.
		if whole && g.state == Empty && g.generation == generation && s.groups[g.id] == g {
			g.protocolType, g.generation = "", 0
			s.dropIfHollow(g)
		}
	})
}

func (s *Shard) scheduleExpiry() {
	s.after(&s.expiry, max(s.cfg.CheckInterval, minCheckInterval), func() {
		s.expire()
		s.scheduleExpiry()
	})
}

// expire buries offsets whose time is up (KIP-211), and empty groups without
// offsets.
func (s *Shard) expire() {
	for _, g := range s.sorted() {
		keep := g.retained()
		if keep == nil {
			continue
		}
		var gone []topicPartition
		for _, k := range sortedKeys(g.offsets) {
			if o := g.offsets[k]; g.inFlight[k] == 0 && !g.subscribesTo(k.topic) && !s.inTransaction(g.id, k) && s.expired(o, keep(o)) {
				gone = append(gone, k)
			}
		}
		whole := g.state == Empty && len(gone) == len(g.offsets) && len(g.inFlight)+len(g.pending) == 0 && !s.hasTransaction(g.id)
		s.bury(g, gone, whole, nil)
	}
}

// retained returns from when on the retention of an offset counts; nil when
// none of the group expires: an empty group's since it became empty, a simple
// consumer's since the commit, and so for topics that a live consumer group no
// longer subscribes to.
func (g *group) retained() func(offset) model.Millis {
	sinceCommit := func(o offset) model.Millis { return o.committed }
	switch {
	case g.protocolType == "":
		return sinceCommit
	case g.state == Empty:
		if g.since < 0 {
			return sinceCommit
		}
		return func(offset) model.Millis { return g.since }
	case g.protocolType == consumerProtocol && g.subscribed != nil && g.state == Stable:
		return sinceCommit
	}
	return nil
}

func (s *Shard) expired(o offset, since model.Millis) bool {
	if o.expires > 0 {
		return s.wall >= o.expires
	}
	return s.wall-since >= model.Millis(s.cfg.Retention.Milliseconds())
}

func (s *Shard) inTransaction(group string, k topicPartition) bool {
	for _, offsets := range s.txns {
		for _, o := range offsets {
			if o.group == group && o.key == k {
				return true
			}
		}
	}
	return false
}

func (s *Shard) hasTransaction(group string) bool {
	for _, offsets := range s.txns {
		for _, o := range offsets {
			if o.group == group {
				return true
			}
		}
	}
	return false
}

// TopicsDeleted buries the offsets of topics that exist no more.
func (s *Shard) TopicsDeleted(now model.Time, wall model.Millis, names map[string]bool) Ready {
	s.enter(now, wall)
	for _, g := range s.sorted() {
		var gone []topicPartition
		held := maps.Clone(g.inFlight)
		for k := range g.offsets {
			held[k]++
		}
		for _, k := range sortedKeys(held) {
			if names[k.topic] {
				gone = append(gone, k)
			}
		}
		s.bury(g, gone, false, nil)
	}
	return s.take()
}
