package check

import "testing"

// A vote that is forgotten lets two controllers win one epoch.
func TestTwoControllersOfAnEpochAreNoticed(t *testing.T) {
	s := New(Options{})
	c := &Cluster{Controllers: []Controller{{ID: 1, Running: true, Leads: 3}, {ID: 2, Running: true, Leads: -1}}}
	if err := s.AfterStep(c); err != nil {
		t.Fatal(err)
	}
	c.Controllers[0].Leads, c.Controllers[1].Leads = -1, 4
	if err := s.AfterStep(c); err != nil {
		t.Fatal(err)
	}
	c.Controllers[1].Leads = 3
	if v, ok := s.AfterStep(c).(*Violation); !ok || v.Invariant != "OneControllerPerEpoch" {
		t.Fatalf("found %v", v)
	}
}
