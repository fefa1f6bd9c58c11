package check

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// onDisk gives each replica of a sound state a synced file with these epochs.
func (s *state) onDisk(entries ...model.EpochStart) {
	for _, m := range s.p.mirrors {
		m.seat.synced = func(model.TopicPartition) []byte {
			if len(entries) == 0 {
				return nil
			}
			return format.Epochs(entries)
		}
	}
}

var zero, one, two = model.EpochStart{}, model.EpochStart{Epoch: 1, Start: 2}, model.EpochStart{Epoch: 2, Start: 5}

// disks are the epochs on a disk beside a sound log: [0,1]@0 [2,3]@1 [4,4]@1.
var disks = []struct {
	why     string
	entries []model.EpochStart
	alters  func(s *state)
	sound   bool
}{
	{why: "as it is", entries: []model.EpochStart{zero, one}, sound: true},
	{why: "an epoch without records yet", entries: []model.EpochStart{zero, one, two}, sound: true},
	{why: "no file"},
	{why: "an epoch is missing", entries: []model.EpochStart{zero}},
	{why: "the log starts behind the first", entries: []model.EpochStart{one}, alters: func(s *state) { s.starts(2) }, sound: true},
	{why: "and has gone back since", entries: []model.EpochStart{one}, alters: func(s *state) {
		s.starts(2)
		s.broken("EpochCache")
		s.starts(0)
	}, sound: true},
	{why: "another epoch begins too early", entries: []model.EpochStart{zero, {Epoch: 1, Start: 1}}},
	{why: "an epoch begins too late", entries: []model.EpochStart{zero, {Epoch: 1, Start: 3}}},
	{why: "the leader serves", entries: []model.EpochStart{zero, one, two}, alters: func(s *state) {
		s.m1.now.epoch, s.m1.now.serving = 2, true
	}, sound: true},
	{why: "the leader serves too early", entries: []model.EpochStart{zero, one}, alters: func(s *state) {
		s.m1.now.epoch, s.m1.now.serving = 2, true
	}},
	{why: "the leader does not serve yet", entries: []model.EpochStart{zero, one}, alters: func(s *state) {
		s.m1.now.epoch = 2
	}, sound: true},
}

// starts has every log begin at an offset.
func (s *state) starts(at model.Offset) {
	for _, m := range s.p.mirrors {
		m.start = at
	}
}

func TestAnEpochIsOnTheDiskBeforeItsRecords(t *testing.T) {
	for _, test := range disks {
		t.Run(test.why, func(t *testing.T) {
			s := sound()
			s.onDisk(test.entries...)
			if test.alters != nil {
				test.alters(s)
			}
			if text := s.broken("EpochOnDisk"); (text == "") != test.sound {
				t.Fatalf("found %q", text)
			}
		})
	}
}

// What was found once is not looked for again until the log comes to another epoch
// or was cut.
func TestTheDiskIsReadWhenTheEpochChanges(t *testing.T) {
	s := sound()
	s.onDisk(model.EpochStart{}, model.EpochStart{Epoch: 1, Start: 2})
	if text := s.broken("EpochOnDisk"); text != "" {
		t.Fatal(text)
	}
	s.onDisk()
	s.m2.batches = append(s.m2.batches, &node{base: 5, last: 5, epoch: 1, producer: -1})
	if text := s.broken("EpochOnDisk"); text != "" {
		t.Fatalf("the same epoch: %s", text)
	}
	s.m2.shorten(2)
	if s.broken("EpochOnDisk") == "" {
		t.Fatal("a log that was cut is not looked at")
	}
	s.onDisk(model.EpochStart{}, model.EpochStart{Epoch: 1, Start: 2})
	s.m3.batches = append(s.m3.batches, &node{base: 5, last: 5, epoch: 2, producer: -1})
	if s.broken("EpochOnDisk") == "" {
		t.Fatal("a new epoch is not looked for")
	}
}

func TestEpochsThatDoNotRiseAreFound(t *testing.T) {
	for _, entries := range [][]model.EpochStart{
		{{Epoch: 1, Start: 2}, {Epoch: 2, Start: 2}},
		{{Epoch: 1, Start: 2}, {Epoch: 1, Start: 3}},
		{{Epoch: 0, Start: 0}, {Epoch: 2, Start: 3}, {Epoch: 1, Start: 4}},
	} {
		if ascending(entries) == "" {
			t.Errorf("nothing is found in %v", entries)
		}
	}
	if text := ascending([]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 2, Start: 3}}); text != "" {
		t.Error(text)
	}
}
