package check

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// again is a registration anew of b2, which was in the ELR beside an ISR below the
// minimum, and is what the controllers make of that.
func (s *state) again(is *image.Partition) string {
	old := &image.Partition{Replicas: three, ISR: three[:1], ELR: three[1:2], Leader: 1, PartitionEpoch: 6}
	is.Replicas, is.PartitionEpoch = three, 7
	d := &image.Delta{
		Brokers: []image.BrokerDelta{{Old: &image.Broker{ID: 2, Epoch: 2}, New: &image.Broker{ID: 2, Epoch: 9}}},
		Topics: []image.TopicDelta{{Old: &image.Topic{ID: topic, Partitions: []*image.Partition{old}},
			New: &image.Topic{ID: topic, Partitions: []*image.Partition{is}}, Partitions: []int32{0}}},
	}
	_, text := CleanStopKept{}.image(s.Set, d)
	return text
}

func TestWhoStoppedInOrderKeepsItsClaim(t *testing.T) {
	s := sound()
	s.seats[1].clean = 2
	for _, c := range []struct {
		why string
		is  image.Partition
		ok  bool
	}{
		{"it stays in the ELR", image.Partition{ISR: three[:1], ELR: three[1:2]}, true},
		{"it is left out", image.Partition{ISR: three[:1]}, false},
		{"the ISR is large enough", image.Partition{ISR: []model.BrokerID{1, 3}}, true},
		{"an unclean election", image.Partition{ISR: three[:1], Recovering: true}, true},
	} {
		if text := s.again(&c.is); (text == "") != c.ok {
			t.Errorf("%s, %s: %q", "CleanStopKept", c.why, text)
		}
	}
	s.seats[1].clean = 1 // what an earlier life left
	if text := s.again(&image.Partition{ISR: three[:1]}); text != "" {
		t.Error(text)
	}
}

func TestTheLastMemberStaysInTheISR(t *testing.T) {
	s := sound()
	empty := &image.Partition{Replicas: three, Leader: model.NoBroker}
	if text := (ISRNotEmpty{}).change(s.Set, s.p, nil, empty); text != "" {
		t.Error(text)
	}
	s.elr = false
	if text := (ISRNotEmpty{}).change(s.Set, s.p, nil, empty); text == "" {
		t.Errorf("%s: nobody minds", "ISRNotEmpty")
	}
	if text := (ISRNotEmpty{}).change(s.Set, s.p, nil, &image.Partition{Replicas: three, ISR: three[:1], Leader: model.NoBroker}); text != "" {
		t.Error(text)
	}
}

func TestALifeIsNotReplacedWhileItIsHeardOf(t *testing.T) {
	at := func(d time.Duration) model.Time { return model.Time(0).Add(d) }
	second := controlplane.Beat{Broker: 2, Epoch: 9, Last: at(time.Second), Stands: true}
	for _, c := range []struct {
		why   string
		first controlplane.Beat
		ok    bool
	}{
		{"it was heard of", controlplane.Beat{Broker: 2, Epoch: 2, Last: at(200 * time.Millisecond), Stands: true}, false},
		{"it was silent for a session", controlplane.Beat{Broker: 2, Epoch: 2, Last: at(0), Stands: true}, true},
		{"its connection had ended", controlplane.Beat{Broker: 2, Epoch: 2, Last: at(200 * time.Millisecond)}, true},
		{"it was fenced", controlplane.Beat{Broker: 2, Epoch: 2, Last: at(200 * time.Millisecond), Stands: true, Fenced: true}, true},
	} {
		s := New(Options{SessionTimeout: time.Second})
		k := Controller{ID: 4, Running: true, Leads: 1}
		for _, b := range []controlplane.Beat{c.first, second, second} {
			k.Beats = func(visit func(controlplane.Beat)) { visit(b) }
			if err := s.AfterStep(&Cluster{Controllers: []Controller{k}}); err != nil && c.ok {
				t.Errorf("%s, %s: %v", "OneLife", c.why, err)
			} else if err == nil && b == second && !c.ok {
				t.Errorf("%s, %s: nobody minds", "OneLife", c.why)
			} else if err != nil {
				break
			}
		}
	}
}
