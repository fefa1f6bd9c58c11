package image

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Delta is what differs between two images.
type Delta struct {
	Old, New *Image
	Topics   []TopicDelta  // by name, what was deleted before what was created
	Brokers  []BrokerDelta // by id
	Configs  []ConfigDelta // by type and name
	Features bool          // some finalized feature changed
}

// TopicDelta is one topic that differs. A topic deleted and created again under
// its name appears twice, since the ids differ.
type TopicDelta struct {
	Old        *Topic  // nil: created
	New        *Topic  // nil: deleted
	Partitions []int32 // the partitions that differ; all of them when created or deleted
}

// BrokerDelta is one broker that differs.
type BrokerDelta struct {
	Old *Broker // nil: registered
	New *Broker // nil: unregistered
}

// ConfigDelta is one resource whose configs differ.
type ConfigDelta struct {
	Resource int8
	Name     string
	Old, New map[string]string
}

// Diff compares two images of one log. What they share is told by pointers and
// not looked at, so that the cost follows what changed between them.
func Diff(old, new *Image) *Delta {
	d := &Delta{Old: old, New: new, Features: !slices.Equal(old.features, new.features)}
	diff(old.byID, new.byID, func(a, b *Topic) bool { return a == b }, d.topic)
	slices.SortStableFunc(d.Topics, func(a, b TopicDelta) int {
		return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.order(), b.order()))
	})
	diff(old.configs, new.configs, maps.Equal, func(k resource, a, b map[string]string, _, _ bool) {
		d.Configs = append(d.Configs, ConfigDelta{k.kind, k.name, a, b})
	})
	d.Brokers = diffBrokers(old.brokers, new.brokers)
	return d
}

func (t TopicDelta) name() string {
	if t.New != nil {
		return t.New.Name
	}
	return t.Old.Name
}

// order puts a deletion before a creation.
func (t TopicDelta) order() int {
	if t.New == nil {
		return 0
	}
	return 1
}

func (d *Delta) topic(_ model.UUID, a, b *Topic, _, _ bool) {
	t := TopicDelta{Old: a, New: b}
	var was, is []*Partition
	if a != nil {
		was = a.Partitions
	}
	if b != nil {
		is = b.Partitions
	}
	for n := range max(len(was), len(is)) {
		if n >= len(was) || n >= len(is) || was[n] != is[n] {
			t.Partitions = append(t.Partitions, int32(n))
		}
	}
	if a == nil || b == nil || len(t.Partitions) > 0 {
		d.Topics = append(d.Topics, t)
	}
}

func diffBrokers(a, b []*Broker) []BrokerDelta {
	var out []BrokerDelta
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].ID < b[0].ID:
			out = append(out, BrokerDelta{Old: a[0]})
			a = a[1:]
		case len(a) == 0 || b[0].ID < a[0].ID:
			out = append(out, BrokerDelta{New: b[0]})
			b = b[1:]
		default:
			if a[0] != b[0] {
				out = append(out, BrokerDelta{a[0], b[0]})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}
