package replicas

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// session is what a follower and its connection keep of a standing: the seats, and
// which of them the next request has to name.
type session struct {
	c      *crank
	who    model.BrokerID
	handle *api.Standing
	at     []*api.Seat
	of     map[*api.Seat]*replica
	wish   map[*api.Seat]model.Offset
	active []*api.Seat
}

// stand opens a session for replicas.
func (c *crank) stand(who model.BrokerID, of ...*replica) *session {
	s := &session{c: c, who: who, handle: &api.Standing{}, of: map[*api.Seat]*replica{}, wish: map[*api.Seat]model.Offset{}}
	for _, r := range of {
		seat := &api.Seat{}
		s.at, s.active = append(s.at, seat), append(s.active, seat)
		s.of[seat] = r
	}
	return s
}

// ask sends the session's next request.
func (s *session) ask(wait time.Duration) *poll {
	f := s.request(wait)
	s.c.ask(f)
	return f
}

func (s *session) request(wait time.Duration) *poll {
	f := fetchOf(s.who, wait, 1, 0)
	f.Standing, f.Epoch = s.handle, model.BrokerEpoch(10*s.who)
	for _, seat := range s.active {
		p := fetchOf(s.who, wait, 1, s.wish[seat], s.of[seat]).Parts[0]
		p.Seat = seat
		f.Parts = append(f.Parts, p)
	}
	return f
}

// took has the follower take what an answer brought.
func (s *session) took(f *poll) {
	s.active = s.active[:0]
	for i := range f.Parts {
		p := &f.Parts[i]
		if p.Reply.Err == model.None && p.Reply.Limit > s.wish[p.Seat] {
			s.wish[p.Seat] = p.Reply.Limit
		}
		if !p.Quiet {
			s.active = append(s.active, p.Seat)
		}
	}
}

// rest lets the session's partitions come to rest.
func (s *session) rest() {
	s.c.t.Helper()
	for range 4 {
		f := s.ask(0)
		f.ends(s.c.t)
		s.took(f)
	}
	if len(s.active) > 0 {
		s.c.t.Fatalf("%d partitions do not come to rest", len(s.active))
	}
}

func TestIdlePartitionsOfASessionCostNothing(t *testing.T) {
	c := newCrank(t)
	var all []*replica
	for n := range byte(20) {
		all = append(all, c.led(n))
	}
	s, other := c.stand(2, all...), c.stand(3, all...)
	s.rest()
	other.rest()
	s.rest() // the other one's first fetch was news
	before := c.steps
	for range 10 {
		f := s.ask(500 * time.Millisecond)
		f.waits(t)
		c.wait(500 * time.Millisecond)
		f.ends(t)
		s.took(f)
	}
	if c.steps != before {
		t.Errorf("ten requests for nothing took %d steps", c.steps-before)
	}
	if len(s.handle.Owner.(*standing).quiet) != 20 || c.fetches.Watched() != 0 {
		t.Errorf("%d are quiet, %d watched", len(s.handle.Owner.(*standing).quiet), c.fetches.Watched())
	}
}

func TestWhatHappensToAQuietPartitionIsTold(t *testing.T) {
	when := map[string]func(c *crank, s *session, r *replica) *poll{
		"while the request waits": func(c *crank, s *session, r *replica) *poll {
			f := s.ask(time.Minute)
			f.waits(c.t)
			c.append(10, r)
			return f
		},
		"between two requests": func(c *crank, s *session, r *replica) *poll {
			c.append(10, r)
			return s.ask(time.Minute)
		},
	}
	for name, happen := range when {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			a, b := c.led(0), c.led(1)
			s := c.stand(2, a, b)
			s.rest()
			f := happen(c, s, b)
			if f.ends(t, 1); len(f.Parts) != 1 || f.Parts[0].Hosted != b.hosted {
				t.Fatalf("answered for %d partitions", len(f.Parts))
			}
			s.took(f)
			s.rest()
			if b.p.View().Remotes[0].LEO != 1 {
				t.Error("the follower is not known at its new end")
			}
		})
	}
}

func TestAQuietFollowerStaysInTheISR(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	s, other := c.stand(2, r), c.stand(3, r)
	s.rest()
	other.rest()
	for range 7 {
		for _, x := range []*session{s, other} {
			x.took(x.ask(0))
		}
		c.wait(10 * time.Second)
	}
	c.append(10, r)
	c.wait(20 * time.Second) // it asked 30 s ago
	if v := r.p.View(); v.PendingISR || len(v.ISR) != 3 {
		t.Errorf("ISR %v, pending %v", v.ISR, v.PendingISR)
	}
	c.wait(c.opts.LagMax)
	if v := r.p.View(); !v.PendingISR {
		t.Error("who does not fetch what was appended has to leave")
	}
}

func TestAQuietFollowerWhoseSessionEndsKeepsItsCredit(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	s, other := c.stand(2, r), c.stand(3, r)
	s.rest()
	other.rest()
	c.wait(25 * time.Second)
	s.took(s.ask(0))
	other.took(other.ask(0))
	c.Leave(s.handle)
	c.posted()
	c.append(10, r)
	c.wait(20 * time.Second)
	if v := r.p.View(); v.PendingISR {
		t.Error("who asked 20 s ago is to leave the ISR")
	}
}

func TestAFollowerThatComesInAnotherSessionKeepsItsCredit(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	s, other := c.stand(2, r), c.stand(3, r)
	s.rest()
	c.append(10, r)
	s.rest()
	other.rest()
	for range 5 {
		c.wait(5 * time.Second)
		s.took(s.ask(0))
		other.took(other.ask(0))
	}
	c.wait(10 * time.Second)
	again := c.stand(2, r) // its log was lost
	again.ask(0)
	c.wait(5 * time.Second)
	if v := r.p.View(); v.PendingISR || v.Remotes[0].LEO != 0 {
		t.Errorf("who asked 15 s ago is to leave the ISR: %+v", v.Remotes[0])
	}
}

func TestAQuietPartitionHearsOfALostLeadership(t *testing.T) {
	c := newCrank(t)
	a, b := c.led(0), c.led(1)
	s := c.stand(2, a, b)
	s.rest()
	f := s.ask(time.Minute)
	c.assigned(a, 3, 2)
	f.ends(t)
	if len(f.Parts) != 1 || f.Parts[0].Reply.Err != model.ErrFencedLeaderEpoch {
		t.Errorf("the answer is %+v", f.Parts)
	}
}

func TestWhatIsNamedAgainIsNotQuietAnyMore(t *testing.T) {
	c := newCrank(t)
	a, b := c.led(0), c.led(1)
	s := c.stand(2, a, b)
	s.rest()
	c.append(10, a)
	s.active = append(s.active, s.at[0], s.at[1]) // one of them was roused
	f := s.ask(0)
	if len(f.Parts) != 2 {
		t.Fatalf("%d partitions are looked at", len(f.Parts))
	}
	s.took(f)
	s.rest()
}

func TestASessionThatEndsLeavesNothingBehind(t *testing.T) {
	ends := map[string]func(c *crank, s *session){
		"it ends": func(c *crank, s *session) { c.Leave(s.handle); c.posted() },
		"its partitions leave": func(c *crank, s *session) {
			f := s.request(0)
			f.Left = s.at
			c.ask(f)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			a, b, gone := c.led(0), c.led(1), c.led(2)
			s := c.stand(2, a, b, gone)
			s.rest()
			c.turn(call(func(l *Loop) { l.drop(gone.hosted) }))
			end(c, s)
			if st := s.handle.Owner.(*standing); len(st.quiet)+len(st.roused)+len(a.quiet)+len(b.quiet)+len(gone.quiet) > 0 {
				t.Errorf("%d quiet, %d roused, at the replicas %d, %d, %d", len(st.quiet), len(st.roused), len(a.quiet), len(b.quiet), len(gone.quiet))
			}
			s.active = s.at[:1]
			s.took(s.ask(0)) // a request that was under way does no harm
		})
	}
}

func TestAnotherLifeOfTheFollowerIsLookedAtAnew(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	s := c.stand(2, r)
	s.rest()
	c.peers[2] = partition.Peer{Epoch: 21}
	f := s.request(0)
	f.Epoch = 21
	c.ask(f)
	if v := r.p.View().Remotes[0]; v.Epoch != 21 {
		t.Errorf("the follower is known by epoch %d", v.Epoch)
	}
}

func TestARequestThatOvertakesEndsTheOneThatWaits(t *testing.T) {
	c := newCrank(t)
	a, b := c.led(0), c.led(1)
	s := c.stand(2, a, b)
	s.rest()
	first := s.ask(time.Minute)
	c.append(10, a)
	first.ends(t)
	second := s.ask(time.Minute)
	third := s.ask(time.Minute)
	second.ends(t)
	third.waits(t)
	c.append(10, b)
	third.ends(t, 1)
	if len(a.bells)+len(b.bells) > 0 {
		t.Errorf("%d and %d bells are left", len(a.bells), len(b.bells))
	}
}

// TestASessionIsToldWhatFullFetchesAre plays the same chance events for a follower
// that names all its partitions in each fetch, and for one with a standing.
func TestASessionIsToldWhatFullFetchesAre(t *testing.T) {
	for seed := range uint64(60) {
		full, standing := story(t, seed, false), story(t, seed, true)
		for i := range full {
			if full[i] != standing[i] {
				t.Fatalf("seed %d, step %d: before\n%s\nfull fetches\n%s\na standing\n%s", seed, i, full[max(0, i-1)], full[i], standing[i])
			}
		}
	}
}

// story tells what a follower got and what the leader knows of it, step by step.
func story(t *testing.T, seed uint64, stands bool) (told []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := newCrank(t)
	var all []*replica
	for n := range byte(5) {
		all = append(all, c.led(n))
	}
	s, other := c.stand(2, all...), c.stand(3, all...)
	var f *poll
	for range 80 {
		switch r.IntN(6) {
		case 0, 1:
			c.append(10, all[r.IntN(len(all))])
		case 2:
			c.wait(time.Duration(r.IntN(20)) * time.Second)
		case 3:
			g := other.ask(0)
			other.took(g)
			other.active = slices.Clone(other.at) // it always names all
		default:
			if f == nil {
				f = s.ask(time.Second)
			} else {
				c.wait(time.Second)
			}
		}
		if f != nil && f.done > 0 {
			s.took(f)
			if f = nil; !stands {
				s.active = slices.Clone(s.at)
			}
		}
		told = append(told, fmt.Sprintf("waits %v\n", f != nil)+knowledge(c, s))
	}
	return told
}

// knowledge is what the follower has, and what the leader holds of it.
func knowledge(c *crank, s *session) string {
	out := ""
	for _, seat := range s.at {
		r := s.of[seat]
		for _, q := range r.quiet {
			c.hear(q)
		}
		v := r.p.View()
		out += fmt.Sprintf("has %d, known at %d, fetched %v, caught up %v, HW %d, ISR %v %v\n", s.wish[seat], v.Remotes[0].LEO,
			v.Remotes[0].LastFetch, v.Remotes[0].LastCaughtUp, v.Marks.HW, v.ISR, v.PendingISR)
	}
	return out
}
