package sim

import (
	"errors"
	"slices"
	"time"
)

// Shrink looks for a smaller plan in which the same invariant fails: with fewer
// actions and workloads, over sooner. It makes at most tries runs and returns the
// smallest failure it saw, which is at worst the one given.
func Shrink(failed *Result, o Options, tries int) *Result {
	s := &shrinker{best: failed, want: failed.Invariant(), o: o, left: tries}
	s.o.Trace = nil
	s.shorten()
	for changed := true; changed && s.left > 0; {
		changed = s.fewerActions()
		changed = s.fewerWorkloads() || changed
		changed = s.fewerTopics() || changed
	}
	s.shorten()
	return s.best
}

type shrinker struct {
	best *Result
	want string
	o    Options
	left int
}

// try runs a plan and keeps it if it fails in the same way.
func (s *shrinker) try(p *Plan) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	r := Run(p, s.o)
	if errors.Is(r.Err, ErrStopped) {
		s.left = 0
		return false
	}
	if r.Invariant() != s.want {
		return false
	}
	s.best = r
	return true
}

// fewerActions drops actions in ever smaller pieces.
func (s *shrinker) fewerActions() (changed bool) {
	for size := (len(s.best.Plan.Actions) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.best.Plan.Actions) && s.left > 0; {
			if s.try(s.best.Plan.without(func(i int) bool { return i >= from && i < from+size })) {
				changed = true
			} else {
				from += size
			}
		}
		if s.left <= 0 {
			break
		}
	}
	return changed
}

func (s *shrinker) fewerWorkloads() (changed bool) {
	least := 1
	if s.o.Own != nil {
		least = 0 // the user may bring some
	}
	for i := 0; i < len(s.best.Plan.Workloads) && len(s.best.Plan.Workloads) > least; {
		p := s.best.Plan.without(func(int) bool { return false })
		p.Workloads = slices.Delete(p.Workloads, i, i+1)
		if s.try(p) {
			changed = true
		} else {
			i++
		}
		if s.left <= 0 {
			break
		}
	}
	return changed
}

func (s *shrinker) fewerTopics() bool {
	p := s.best.Plan.without(func(int) bool { return false })
	if p.Partitions == 1 {
		return false
	}
	p.Partitions = 1
	return s.try(p)
}

// shorten ends the plan at what the failure needs.
func (s *shrinker) shorten() {
	for _, length := range []time.Duration{s.best.Lasted, s.best.Plan.Length / 2, s.best.Plan.Length * 3 / 4} {
		p := s.best.Plan
		if length <= 0 || length >= p.Length {
			continue
		}
		short := p.without(func(i int) bool { return p.Actions[i].At > length })
		short.Length = length.Round(time.Millisecond)
		s.try(short)
	}
}
