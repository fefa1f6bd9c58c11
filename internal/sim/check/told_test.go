package check

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

func TestWhatALeaderHearsIsOfItsEpoch(t *testing.T) {
	p := &part{}
	m := &mirror{part: p, seat: &seat{id: 1}}
	q := &mirror{part: p, seat: &seat{id: 2}}
	p.mirrors = []*mirror{m, q}
	q.looked(facts{epoch: 3, marks: partition.Marks{LEO: 4}})
	q.looked(facts{epoch: 3, marks: partition.Marks{LEO: 8}})
	m.was = facts{role: partition.Leader, epoch: 3}
	m.now = m.was
	for _, c := range []struct {
		epoch model.Epoch
		leo   model.Offset
		ok    bool
	}{{3, 4, true}, {3, 6, true}, {3, 8, true}, {3, 9, false}, {3, 3, false}, {2, 6, false}, {2, model.UnknownOffset, true}} {
		m.was.epoch, m.now.epoch = c.epoch, c.epoch
		m.now.remotes = []partition.RemoteView{{ID: 2, LEO: c.leo}}
		if text := (HeardInEpoch{}).replica(nil, m); (text == "") != c.ok {
			t.Errorf("%s: %v: %q", "HeardInEpoch", c, text)
		}
	}
}

// Who led in the epoch right before may remember; who missed an epoch may not.
func TestALeaderThatMissedAnEpochKnowsNobody(t *testing.T) {
	follower := &mirror{seat: &seat{id: 2}}
	m := &mirror{seat: &seat{id: 1}, part: &part{mirrors: []*mirror{follower}}}
	m.now = facts{role: partition.Leader, epoch: 3, remotes: []partition.RemoteView{{ID: 2, LEO: 5}}}
	for _, c := range []struct {
		was  facts
		told bool // in the epoch 3
		ok   bool
	}{
		{facts{role: partition.Leader, epoch: 2, remotes: m.now.remotes}, false, true},
		{facts{role: partition.Leader, epoch: 1, remotes: m.now.remotes}, false, false},
		{facts{role: partition.Leader, epoch: 1, remotes: m.now.remotes}, true, true},
		{facts{role: partition.Follower, epoch: 2, remotes: m.now.remotes}, false, false},
		{facts{role: partition.Leader, epoch: 3, remotes: m.now.remotes}, false, true},
		{facts{role: partition.Leader, epoch: 3}, false, false},
	} {
		m.was, follower.ends = c.was, map[model.Epoch]span{1: {0, 9}, 2: {6, 9}}
		if c.told {
			follower.ends[3] = span{5, 5}
		}
		if text := (HeardInEpoch{}).replica(nil, m); (text == "") != c.ok {
			t.Errorf("%s: %v: %q", "HeardInEpoch", c, text)
		}
	}
}

func TestWhoIsUnfencedHasReadItsRegistration(t *testing.T) {
	s := &Set{seats: []*seat{{id: 1, running: true, epoch: 9, image: image.New()}}}
	d := &image.Delta{Brokers: []image.BrokerDelta{{New: &image.Broker{ID: 1, Epoch: 9}}}}
	if _, text := (UnfencedInformed{}).image(s, d); text == "" {
		t.Errorf("%s: nobody minds", "UnfencedInformed")
	}
	d.Brokers[0].New.Fenced = true
	if _, text := (UnfencedInformed{}).image(s, d); text != "" {
		t.Error(text)
	}
}

func TestAReassignmentIsCompleteWithItsWholeTarget(t *testing.T) {
	ids := func(ids ...model.BrokerID) []model.BrokerID { return ids }
	old := &image.Partition{Replicas: ids(2, 3, 1), Adding: ids(3), Removing: ids(1), ISR: ids(1, 2)}
	is := &image.Partition{Replicas: ids(2, 3), ISR: ids(2, 3), PartitionEpoch: 1}
	if text := (MovedWhole{}).change(nil, nil, old, is); text != "" {
		t.Error(text)
	}
	is.ISR = ids(3)
	if text := (MovedWhole{}).change(nil, nil, old, is); text == "" {
		t.Errorf("%s: nobody minds", "MovedWhole")
	}
	is.Replicas = ids(2, 1) // it was given up
	if text := (MovedWhole{}).change(nil, nil, old, is); text != "" {
		t.Error(text)
	}
}
