package group

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// driver plays clients that do whatever comes to mind, with ids that were given
// to anybody, over a log that takes its time.
type driver struct {
	t       *rapid.T
	s       *Shard
	now     model.Time
	nextTo  int
	open    map[int]string // requests without an answer
	ids     []string
	log     []Record
	pending []Write
}

func (d *driver) wall() model.Millis {
	return origin + model.Millis(time.Duration(d.now).Milliseconds())
}

func (d *driver) act(r Ready) {
	d.pending = append(d.pending, r.Writes...)
	for _, reply := range r.Replies {
		to := reply.To.(int)
		if _, ok := d.open[to]; !ok {
			d.t.Fatalf("request %d was answered twice, now by %s", to, show(reply.Resp))
		}
		delete(d.open, to)
		if j, ok := reply.Resp.(*kmsg.JoinGroupResponse); ok && j.MemberID != "" {
			d.ids = append(d.ids, j.MemberID)
		}
	}
}

func (d *driver) send(req kmsg.Request) {
	d.nextTo++
	d.open[d.nextTo] = fmt.Sprintf("%T", req)
	d.act(d.s.Handle(d.now, d.wall(), Request{Req: req, ClientID: "c", Host: "/h", To: d.nextTo}))
}

func (d *driver) id() string {
	if len(d.ids) == 0 {
		return ""
	}
	return rapid.SampledFrom(append(d.ids[max(0, len(d.ids)-6):], "")).Draw(d.t, "id")
}

func (d *driver) instance() *string {
	if i := rapid.IntRange(0, 4).Draw(d.t, "instance"); i < 2 {
		name := fmt.Sprint("i", i)
		return &name
	}
	return nil
}

func (d *driver) generation() int32 {
	if g := d.s.groups["g"]; g != nil {
		return g.generation - int32(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(d.t, "stale"))
	}
	return -1
}

func (d *driver) join() {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = rapid.Int16Range(0, 9).Draw(d.t, "version")
	req.Group, req.MemberID, req.ProtocolType = "g", d.id(), consumerProtocol
	if req.Version >= 5 {
		req.InstanceID = d.instance()
	}
	req.SessionTimeoutMillis = rapid.Int32Range(1000, 5000).Draw(d.t, "session")
	req.RebalanceTimeoutMillis = rapid.Int32Range(1, 8000).Draw(d.t, "rebalance")
	for _, p := range rapid.SliceOfN(rapid.SampledFrom([]string{"range", "sticky", "sticky"}), 1, 3).Draw(d.t, "protocols") {
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: subscription("t")})
	}
	d.send(req)
}

func (d *driver) sync() {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation, req.InstanceID = 4, "g", d.id(), d.generation(), d.instance()
	if g := d.s.groups["g"]; g != nil {
		for id := range maps.Keys(g.byID) {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(id)})
		}
	}
	d.send(req)
}

func (d *driver) step() {
	switch rapid.IntRange(0, 9).Draw(d.t, "kind") {
	case 0, 1, 2:
		d.join()
	case 3, 4:
		d.sync()
	case 5:
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group, req.MemberID, req.Generation, req.InstanceID = 4, "g", d.id(), d.generation(), d.instance()
		d.send(req)
	case 6:
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group = 5, "g"
		req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: d.id(), InstanceID: d.instance()}}
		d.send(req)
	case 7:
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.MemberID, req.Generation = 9, "g", d.id(), d.generation()
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = rapid.Int32Range(0, 3).Draw(d.t, "partition"), int64(d.nextTo)
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		d.send(req)
	case 8:
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Version, req.Groups = 2, []string{"g"}
		d.send(req)
	case 9:
		d.now = d.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(d.t, "wait")) * time.Millisecond)
		d.act(d.s.Tick(d.now, d.wall()))
	}
	for n := rapid.IntRange(0, 2).Draw(d.t, "written"); n > 0 && len(d.pending) > 0; n-- {
		d.settle(rapid.IntRange(0, 9).Draw(d.t, "fate") == 0)
	}
}

// settle lets the oldest write into the log, or not.
func (d *driver) settle(fails bool) {
	w := d.pending[0]
	d.pending = d.pending[1:]
	if fails {
		d.act(d.s.Failed(d.now, d.wall(), w.ID, model.ErrMessageTooLarge))
		return
	}
	d.log = append(d.log, w.Records...)
	d.act(d.s.Committed(d.now, d.wall(), w.ID))
}

// Every request is answered exactly once, whatever clients and the log do; a
// group that nobody talks to ends empty; and another coordinator reads the same
// from the log.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEnv()
		e.cfg.InitialDelay = time.Duration(rapid.IntRange(0, 2).Draw(t, "delay")) * time.Second
		e.cfg.MaxSize = rapid.IntRange(1, 5).Draw(t, "size")
		e.s = New(e.cfg, 0, origin)
		e.s.Loaded(0, origin)
		d := &driver{t: t, s: e.s, open: map[int]string{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			d.step()
			checkCounts(t, e.s)
		}
		for end := d.now.Add(10 * time.Minute); ; {
			for len(d.pending) > 0 {
				d.settle(false)
			}
			next, ok := d.s.NextDeadline()
			if !ok || next > end || len(d.s.groups) == 0 {
				break
			}
			d.now = next
			d.act(d.s.Tick(d.now, d.wall()))
		}
		if len(d.open) > 0 {
			t.Fatalf("never answered: %v", d.open)
		}
		if len(d.s.groups) > 0 {
			t.Fatalf("group %s outlives its members: %s", facts(d.s.groups["g"]), d.s.groups["g"].state)
		}
		e.log = d.log
		if heir := e.reloaded(); len(heir.groups) > 0 {
			t.Fatalf("an heir finds the group alive: %s, offsets %v", facts(heir.groups["g"]), heir.groups["g"].offsets)
		}
	})
}

// checkCounts holds that counters agree with what they count, and that nothing
// waits without a timer.
func checkCounts(t interface{ Fatalf(string, ...any) }, s *Shard) {
	for id, g := range s.groups {
		joined, unsynced := 0, 0
		for _, m := range g.members {
			if m.join != nil {
				joined++
			}
			if m.owesSync {
				unsynced++
			}
			if !m.session.Active() && m.join == nil && m.sync == nil {
				t.Fatalf("member %s of group %s lives for ever", m.id, id)
			}
		}
		if joined != g.joined || unsynced != g.unsynced || len(g.byID) != len(g.members) {
			t.Fatalf("group %s counts %d joined, %d unsynced; it has %d and %d", id, g.joined, g.unsynced, joined, unsynced)
		}
		if g.state == Preparing && !g.joinTimer.Active() {
			t.Fatalf("the rebalance of group %s would never end", id)
		}
		if (g.state == Empty) != (len(g.members) == 0) && g.state != Preparing {
			t.Fatalf("group %s is %s with %d members", id, g.state, len(g.members))
		}
	}
}
