package check

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func values(list ...string) Produce {
	return Produce{Client: "p", TP: tpid, Acks: -1, ProducerID: -1, Sequence: -1, Values: list}
}

// told is what happened to clients, and which checker minds.
var told = []struct {
	rule, why string
	does      func(s *state)
}{
	{"", "a sound history", func(s *state) {
		s.h.ProduceReturned(s.h.ProduceCalled(values("a", "b")), 0, OK)
		s.h.ProduceReturned(s.h.ProduceCalled(values("c", "d")), 2, OK)
		s.h.ProduceReturned(s.h.ProduceCalled(values("x")), -1, Failed)
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 1, Offsets: []model.Offset{1, 2}, Values: []string{"b", "c"}, HW: 3, LSO: 3})
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 3, Offsets: []model.Offset{3}, Values: []string{"d"}, HW: 4, LSO: 4})
		s.h.ListedLatest("c", tpid, 4)
		op := s.h.CommitCalled("g", tpid, 3)
		s.h.CommitReturned(op, OK)
		s.h.CommitCalled("g", tpid, 4)
		s.h.ResumedFrom("g", "c", tpid, 3)
		s.h.ResumedFrom("g", "c", tpid, 4)
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 0, Offsets: []model.Offset{0}, HW: 4, LSO: 4})
	}},
	{"AckedCommitted", "an answer before the commit", func(s *state) {
		s.h.ProduceReturned(s.h.ProduceCalled(values("e")), 4, OK)
	}},
	{"AckedCommitted", "an answer for another record", func(s *state) {
		s.h.ProduceReturned(s.h.ProduceCalled(values("x")), 2, OK)
	}},
	{"LinearizableLog", "a later call with a lower offset", func(s *state) {
		s.h.ProduceReturned(s.h.ProduceCalled(values("c")), 2, OK)
		s.h.ProduceReturned(s.h.ProduceCalled(values("a")), 0, OK)
	}},
	{"ProducerKept", "a batch that was acknowledged is not known any more", func(s *state) {
		s.h.Forgotten("p", tpid, "a was acknowledged at 0, and refused when it was sent again")
	}},
	{"ResponseCut", "a record at the HW", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 2, Offsets: []model.Offset{2}, HW: 2, LSO: 2})
	}},
	{"ResponseCut", "a record at the LSO", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 2, Offsets: []model.Offset{2}, HW: 4, LSO: 2, Committed: true})
	}},
	{"ResponseCut", "a log start above the HW", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 2, LogStart: 5, HW: 4, LSO: 4})
	}},
	{"DeliveredOnce", "a record again", func(s *state) {
		for range 2 {
			s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 1, Offsets: []model.Offset{1}, HW: 4, LSO: 4})
		}
	}},
	{"DeliveredOnce", "a record left out", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 0, Offsets: []model.Offset{0, 2}, HW: 4, LSO: 4})
	}},
	{"RepeatableRead", "another record", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 1, Offsets: []model.Offset{1}, Values: []string{"x"}, HW: 4, LSO: 4})
	}},
	{"RepeatableRead", "a record that was not committed", func(s *state) {
		s.h.Fetched(Fetch{Consumer: "c", TP: tpid, Asked: 4, Offsets: []model.Offset{4}, Values: []string{"e"}, HW: 5, LSO: 5})
	}},
	{"LatestMonotone", "an end that was not committed", func(s *state) { s.h.ListedLatest("c", tpid, 5) }},
	{"GroupOffsets", "an older commit", func(s *state) {
		s.h.CommitReturned(s.h.CommitCalled("g", tpid, 3), OK)
		s.h.CommitReturned(s.h.CommitCalled("g", tpid, 4), OK)
		s.h.ResumedFrom("g", "c", tpid, 3)
	}},
	{"GroupOffsets", "a commit that was lost", func(s *state) {
		s.h.CommitReturned(s.h.CommitCalled("g", tpid, 3), OK)
		s.h.ResumedFrom("g", "c", tpid, -1)
	}},
	{"GroupOffsets", "a commit of nobody", func(s *state) { s.h.ResumedFrom("g", "c", tpid, 3) }},
}

func TestEveryCheckerOfClientsCanFail(t *testing.T) {
	for _, test := range told {
		t.Run(test.rule+"/"+test.why, func(t *testing.T) {
			s := sound()
			test.does(s)
			v, _ := s.hear().(*Violation)
			switch {
			case v == nil && test.rule != "":
				t.Fatal("nothing is found")
			case v != nil && v.Invariant != test.rule:
				t.Fatalf("found %v", v)
			}
		})
	}
}

// Nothing is demanded of a topic that is being deleted, nor of clients once a
// partition lost more than it must survive.
func TestExcusedClients(t *testing.T) {
	for name, excuse := range map[string]func(s *state){
		"deleted": func(s *state) { s.h.TopicDeleted(topic) },
		"skipped": func(s *state) {
			var all []string
			for _, a := range All() {
				all = append(all, a.Name)
			}
			s.rules = newRuleSet(all)
		},
	} {
		for _, test := range told {
			s := sound()
			excuse(s)
			test.does(s)
			if err := s.hear(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// left makes the log that is left in the end.
func left(s *state, list ...string) *final {
	f := &final{p: s.p, end: model.Offset(len(list)), values: map[model.Offset]string{}, at: map[string]model.Offset{}}
	for i, v := range list {
		if _, ok := f.at[v]; ok {
			f.twice = v
			continue
		}
		f.values[model.Offset(i)], f.at[v] = v, model.Offset(i)
	}
	for op := range s.h.calls {
		f.calls = append(f.calls, Op(op))
	}
	return f
}

func sequence(v string, seq int32) Produce {
	p := values(v)
	p.ProducerID, p.Sequence = 9, seq
	return p
}

// endings are logs that are left, with what clients did.
var endings = []struct {
	rule, why string
	log       []string
	does      func(h *History)
}{
	{"", "a sound end", []string{"a", "b", "c"}, func(h *History) {
		a, b := h.ProduceCalled(sequence("a", 0)), h.ProduceCalled(sequence("b", 1))
		h.ProduceReturned(b, 1, OK)
		h.ProduceReturned(a, 0, OK)
		h.ProduceCalled(values("c"))
		h.ProduceReturned(h.ProduceCalled(values("x")), -1, Unknown)
		h.Fetched(Fetch{TP: tpid, Asked: 0, Offsets: []model.Offset{0, 1, 2}})
	}},
	{"AckedKept", "a record is gone", []string{"a"}, func(h *History) {
		h.ProduceReturned(h.ProduceCalled(values("b")), 1, OK)
	}},
	{"AckedKept", "a record is another", []string{"a", "b"}, func(h *History) {
		h.ProduceReturned(h.ProduceCalled(values("c")), 1, OK)
	}},
	{"NoDuplicates", "a record is there twice", []string{"a", "a"}, func(h *History) {
		h.ProduceReturned(h.ProduceCalled(values("a")), 0, OK)
	}},
	{"ProducerOrder", "sequences are mixed up", []string{"b", "a"}, func(h *History) {
		h.ProduceCalled(sequence("a", 0))
		h.ProduceCalled(sequence("b", 1))
	}},
	{"LinearizableLog", "a later call wrote before", []string{"b", "a"}, func(h *History) {
		h.ProduceReturned(h.ProduceCalled(values("a")), 1, OK)
		h.ProduceReturned(h.ProduceCalled(values("b")), 0, OK)
	}},
	{"LinearizableLog", "a record is read before it is sent", []string{"a", "b"}, func(h *History) {
		h.ProduceReturned(h.ProduceCalled(values("a")), 0, OK)
		h.Fetched(Fetch{TP: tpid, Offsets: []model.Offset{0, 1}})
		h.ProduceReturned(h.ProduceCalled(values("b")), 1, OK)
	}},
}

func TestEveryCheckerOfTheEndCanFail(t *testing.T) {
	for _, test := range endings {
		t.Run(test.rule+"/"+test.why, func(t *testing.T) {
			s := sound()
			test.does(s.h)
			f, found := left(s, test.log...), ""
			for _, r := range s.rules.ends {
				if text := r.end(s.h, f); text != "" {
					found = nameOf(r)
					break
				}
			}
			if found != test.rule {
				t.Errorf("found %q", found)
			}
		})
	}
}
