package cases

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// B186: a static member that restarts takes its place again, and nobody else
// notices; its former self is told so.
func TestAStaticMemberRestartsUnnoticed(t *testing.T) {
	for _, version := range []int16{5, 9} {
		inGroups(t, func(w *world) {
			var members []*member
			for i := range 3 {
				members = append(members, w.newMember("g", version, "range").static(fmt.Sprint("i", i)))
			}
			w.formed(members...)
			generation := members[0].last.Generation
			old := members[slices.IndexFunc(members, func(m *member) bool { return !m.leads() })]
			again := w.newMember("g", version, "range").static(old.instance)
			resp := again.join()
			code(t, "the restarted member", resp.ErrorCode, model.None)
			if resp.Generation != generation || resp.MemberID == old.id {
				t.Errorf("generation %d became %d, the id %s %s", generation, resp.Generation, old.id, resp.MemberID)
			}
			for _, m := range members {
				if m != old {
					code(t, "another member", m.beat(), model.None)
				}
			}
			fenced(t, old)
			code(t, "the old id alone", old.beatAs(old.id, generation, nil), model.ErrUnknownMemberID)
			sync := again.sync(nil)
			if code(t, "sync", sync.ErrorCode, model.None); string(sync.MemberAssignment) != "for "+old.id {
				t.Errorf("the assignment is %q", sync.MemberAssignment)
			}
			code(t, "heartbeat", again.beat(), model.None)
			leaveAs(t, again)
			code(t, "after it left", again.beat(), model.ErrUnknownMemberID)
		})
	}
}

// fenced checks that what was a static member before is refused everywhere.
func fenced(t *testing.T, m *member) {
	t.Helper()
	code(t, "a heartbeat of the old id", m.beat(), model.ErrFencedInstanceID)
	code(t, "a sync of the old id", m.sync(nil).ErrorCode, model.ErrFencedInstanceID)
	code(t, "a join of the old id", m.joinOnce().ErrorCode, model.ErrFencedInstanceID)
	req := commitRequest(7, m.group, m.id, m.last.Generation, "t", 5)
	req.InstanceID = m.instanceID()
	resp := askOn[*kmsg.OffsetCommitResponse](m.w, m.conn, req)
	code(t, "a commit of the old id", resp.Topics[0].Partitions[0].ErrorCode, model.ErrFencedInstanceID)
}

// leaveAs leaves by the instance id alone.
func leaveAs(t *testing.T, m *member) {
	t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 3, m.group
	who := kmsg.NewLeaveGroupRequestMember()
	who.InstanceID = m.instanceID()
	req.Members = append(req.Members, who)
	resp := askOn[*kmsg.LeaveGroupResponse](m.w, m.conn, req)
	code(t, "leave", resp.ErrorCode, model.None)
	code(t, "leave as "+m.instance, resp.Members[0].ErrorCode, model.None)
}

// B188: clients of old and new versions, static or not, make one group, in which
// each true change makes one generation.
func TestOldAndNewClientsMakeOneGroup(t *testing.T) {
	inGroups(t, func(w *world) {
		a := w.newMember("g", 2, "range")
		b := w.newMember("g", 5, "range").static("b")
		c := w.newMember("g", 9, "range").static("c")
		w.formed(a, b, c)
		generation := a.last.Generation
		for range 2 {
			start := time.Now()
			b = w.newMember("g", 5, "range").static("b")
			resp := b.join()
			code(t, "a restart", resp.ErrorCode, model.None)
			within(t, "a restart", time.Since(start), 2*time.Second)
			code(t, "sync", b.sync(nil).ErrorCode, model.None)
			if resp.Generation != generation {
				t.Errorf("a restart made generation %d of %d", resp.Generation, generation)
			}
		}
		a.leave()
		start := time.Now()
		code(t, "of those who stay", b.beat(), model.ErrRebalanceInProgress)
		w.formed(b, c)
		within(t, "the rebalance", time.Since(start), 2*time.Second)
		if g := b.last.Generation; g != generation+1 {
			t.Errorf("one member left: generation %d became %d", generation, g)
		}
	})
}

// timedMember is a member with a session of two seconds and a rebalance timeout
// of six.
func (w *world) timedMember() *member {
	m := w.newMember("g", 5, "range")
	m.session, m.rejoin = 2*time.Second, 6*time.Second
	return m
}

// beatUntil sends heartbeats until one has this code and returns when that was.
func (m *member) beatUntil(want model.Error) time.Duration {
	m.w.t.Helper()
	start := time.Now()
	m.w.WaitFor("a heartbeat tells "+want.Error(), func() bool {
		pass(50 * time.Millisecond)
		return m.beat() == want.Code()
	})
	return time.Since(start)
}

// B189: a silent member is removed when its session ends.
func TestASilentMemberIsRemovedAfterItsSession(t *testing.T) {
	inGroups(t, func(w *world) {
		m, silent := w.timedMember(), w.timedMember()
		w.formed(m, silent)
		if took := m.beatUntil(model.ErrRebalanceInProgress); took < 1900*time.Millisecond || took > 3*time.Second {
			t.Errorf("the silent member was removed after %v", took)
		}
		w.formed(m)
		code(t, "the silent member", silent.beat(), model.ErrUnknownMemberID)
	})
}

// B189: a member that lives but does not rejoin is removed when the rebalance
// may last no longer.
func TestAMemberThatDoesNotRejoinIsRemoved(t *testing.T) {
	inGroups(t, func(w *world) {
		m, busy := w.timedMember(), w.timedMember()
		w.formed(m, busy)
		third := w.timedMember()
		start := time.Now()
		waiting := third.joining()
		m.beatUntil(model.ErrRebalanceInProgress)
		mine := m.joining()
		for range 11 {
			pass(500 * time.Millisecond)
			code(t, "the busy member", busy.beat(), model.ErrRebalanceInProgress)
		}
		for _, c := range []<-chan *kmsg.JoinGroupResponse{waiting, mine} {
			code(t, "those who rejoined", (<-c).ErrorCode, model.None)
		}
		about(t, "the rebalance", time.Since(start), 6*time.Second, 500*time.Millisecond)
		w.synced(nil, m, third)
		code(t, "the busy member, later", busy.beat(), model.ErrUnknownMemberID)
		if s := w.state("g"); s != "Stable" {
			t.Errorf("the group is %s", s)
		}
	})
}

// B189: members that vanish while they join hold nothing up for longer than
// their session.
func TestMembersThatVanishWhileTheyJoin(t *testing.T) {
	inGroups(t, func(w *world) {
		m := w.timedMember()
		w.formed(m)
		code(t, "half a join", w.timedMember().joinOnce().ErrorCode, model.ErrMemberIDRequired)
		code(t, "the member", m.beat(), model.None)
		gone := w.timedMember()
		gone.id = gone.joinOnce().MemberID
		ctx, hangUp := context.WithCancel(context.Background())
		var over sync.WaitGroup
		over.Go(func() {
			req := kmsg.NewPtrJoinGroupRequest()
			req.Version, req.Group, req.MemberID, req.ProtocolType = 5, "g", gone.id, "consumer"
			req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 2000, 6000
			req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscribed("range")}}
			gone.conn.Do(ctx, req)
		})
		m.beatUntil(model.ErrRebalanceInProgress)
		hangUp()
		over.Wait()
		gone.conn.Close()
		start := time.Now()
		code(t, "rejoin", m.join().ErrorCode, model.None)
		within(t, "the rebalance", time.Since(start), 2500*time.Millisecond)
		m.beatUntil(model.ErrRebalanceInProgress) // for the one that is gone
		within(t, "the end of the vanished member", time.Since(start), 5*time.Second)
		w.formed(m)
		if n := len(w.describeGroup(5, "g").Members); n != 1 {
			t.Errorf("%d members", n)
		}
	})
}

// consumers are clients of a group on one topic; together they note who owns
// what. They run on the machine's clock: the client waits in locks, on which a
// fake one stands still.
type consumers struct {
	w     *world
	mu    sync.Mutex
	owner map[int32]string
	wait  sync.WaitGroup
	stops map[string]func()
}

func (w *world) consumers() *consumers {
	return &consumers{w: w, owner: map[int32]string{}, stops: map[string]func(){}}
}

// start has a client of this name consume topic t.
func (c *consumers) start(name string, balancer kgo.GroupBalancer) *kgo.Client {
	took := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range m["t"] {
			if o, owned := c.owner[p]; owned {
				c.w.t.Errorf("%s was given partition %d, which %s owns", name, p, o)
			}
			c.owner[p] = name
		}
	}
	gave := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range m["t"] {
			if c.owner[p] == name {
				delete(c.owner, p)
			}
		}
	}
	cl := c.w.client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.Balancers(balancer), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second), kgo.AutoCommitInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(took), kgo.OnPartitionsRevoked(gave), kgo.OnPartitionsLost(gave))
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	c.wait.Go(func() {
		defer close(over)
		for ctx.Err() == nil {
			cl.PollFetches(ctx)
		}
	})
	c.stops[name] = func() { stop(); <-over; cl.Close() }
	return cl
}

// stop ends a client in an orderly way.
func (c *consumers) stop(name string) {
	c.stops[name]()
	delete(c.stops, name)
}

// settled waits until n members share all partitions in a stable group, and
// returns how long that took.
func (c *consumers) settled(n int, partitions int) time.Duration {
	c.w.t.Helper()
	start := time.Now()
	c.w.WaitFor(fmt.Sprintf("%d members share %d partitions", n, partitions), func() bool {
		d := c.w.describeGroup(5, "g")
		c.mu.Lock()
		defer c.mu.Unlock()
		return d.State == "Stable" && len(d.Members) == n && len(c.owner) == partitions
	})
	return time.Since(start)
}

// B185: members of a stable group go on when their coordinator moves.
func TestMembersOutliveTheirCoordinator(t *testing.T) {
	w := newWorld(t, 3)
	w.CreateTopic("t", 6, 3, nil)
	c := w.consumers()
	var clients []*kgo.Client
	for i := range 3 {
		clients = append(clients, c.start(fmt.Sprint("c", i), kgo.CooperativeStickyBalancer()))
	}
	c.settled(3, 6)
	pass(time.Second)
	ids := func() (out []string, generation int32) {
		for _, cl := range clients {
			var id string
			id, generation = cl.GroupMetadata()
			out = append(out, id)
		}
		return out, generation
	}
	before, generation := ids()
	old := w.coordinator("g")
	for _, end := range []func(int){w.Stop, w.Kill} {
		end(old)
		w.WaitLeader("t", 0, old)
		w.serving("t")
		offset := w.mustProduce("t", "x")
		c.settled(3, 6)
		w.WaitFor("what comes now is committed", func() bool { return w.committedOffset("g", "t") == offset+1 })
		w.Restart(old)
		w.WaitISR("t", 0, 1, 2, 3)
		old = w.coordinator("g")
	}
	c.settled(3, 6)
	if after, g := ids(); !slices.Equal(before, after) || g > generation+2 { // one for each move at most
		t.Errorf("members %v of generation %d became %v of %d", before, generation, after, g)
	}
	for name := range c.stops {
		c.stop(name)
	}
}

// B200: members that come and go never own a partition twice, and eager ones
// replace cooperative ones.
func TestNoPartitionHasTwoOwners(t *testing.T) {
	w := newWorld(t, 3)
	w.CreateTopic("t", 6, 3, nil)
	c := w.consumers()
	c.start("a", kgo.CooperativeStickyBalancer())
	c.start("b", kgo.CooperativeStickyBalancer())
	for i := range loops(20) {
		name := fmt.Sprint("c", i)
		c.start(name, kgo.CooperativeStickyBalancer())
		within(t, "a member that joins", c.settled(3, 6), 5*time.Second)
		c.stop(name)
		within(t, "a member that leaves", c.settled(2, 6), 5*time.Second)
	}
	c.start("e0", kgo.RangeBalancer())
	c.stop("a")
	c.start("e1", kgo.RangeBalancer())
	c.stop("b")
	c.settled(2, 6)
	c.stop("e0")
	c.stop("e1")
	c.wait.Wait()
}
