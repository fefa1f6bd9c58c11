package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// forwarder sends requests to the active controller. Each kind of request has
// a connection of its own, as in Kafka, so that a heartbeat does not wait for the
// answer to a slow CreateTopics.
type forwarder struct {
	rt     *task.Runtime
	self   model.BrokerID
	pub    *broadcast
	local  func(context.Context, kmsg.Request) (kmsg.Response, error) // nil: an observer
	closed *task.Signal

	dialWith Dial
	lanes    [lanes]lane
	group    *task.Group
}

// lane is one connection. Whoever holds its turn may replace it.
type lane struct {
	turn   *task.Signal // raised while nobody has it
	client *transport.Client
	addr   string
	epoch  model.Epoch // of the leadership that it was made for
}

// newForwarder makes the lanes.
func newForwarder(rt *task.Runtime, self model.BrokerID, pub *broadcast, closed *task.Signal, dial Dial) *forwarder {
	f := &forwarder{rt: rt, self: self, pub: pub, closed: closed, dialWith: dial}
	for i := range f.lanes {
		f.lanes[i].turn = rt.NewSignal()
		f.lanes[i].turn.Raise()
	}
	f.group = rt.NewGroup()
	f.group.Go("forwarding", f.follow)
	return f
}

// follow drops the connections to a controller that another one has followed. It
// may have gone without a word, as with the power of its machine, and whoever
// waits for its answer would wait for as long as TCP has patience.
func (f *forwarder) follow() {
	w := f.rt.NewWaiter()
	for {
		changed := f.pub.wait()
		if lead := *f.pub.lead.Load(); lead.leader != model.NoBroker {
			for i := range f.lanes {
				f.lanes[i].dropBefore(w, lead.epoch)
			}
		}
		if w.Wait(nil, task.Forever, changed, f.closed); f.closed.Closed() {
			return
		}
	}
}

// dropBefore ends the connection if it was made for an earlier epoch.
func (l *lane) dropBefore(w *task.Waiter, epoch model.Epoch) {
	w.Wait(nil, task.Forever, l.turn)
	if l.client != nil && l.epoch < epoch {
		l.client.Close()
		l.client = nil
	}
	l.turn.Raise()
}

const (
	laneHeartbeat = iota
	lanePartitions
	laneAdmin
	lanes
)

func laneOf(req kmsg.Request) int {
	switch req.(type) {
	case *kmsg.BrokerHeartbeatRequest, *kmsg.BrokerRegistrationRequest:
		return laneHeartbeat
	case *kmsg.AlterPartitionRequest, *kmsg.AllocateProducerIDsRequest, *kmsg.AssignReplicasToDirsRequest:
		return lanePartitions
	}
	return laneAdmin
}

// repeatable reports whether a request may be carried out twice without harm.
func repeatable(req kmsg.Request) bool {
	switch req.(type) {
	case *kmsg.BrokerHeartbeatRequest, *kmsg.BrokerRegistrationRequest, *kmsg.AlterPartitionRequest,
		*kmsg.AllocateProducerIDsRequest, *kmsg.AssignReplicasToDirsRequest, *kmsg.ControllerRegistrationRequest,
		*kmsg.ListPartitionReassignmentsRequest, *kmsg.DescribeQuorumRequest, *kmsg.DescribeClusterRequest, *kmsg.ApiVersionsRequest:
		return true
	}
	return false
}

// forwardPause is the wait before the next try when nothing has changed.
const forwardPause = 50 * time.Millisecond

// forward is described at Source.
func (f *forwarder) forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	for {
		changed := f.pub.wait()
		lead := *f.pub.lead.Load()
		resp, err, again := f.try(ctx, lead, req)
		if !again {
			return resp, err
		}
		end := f.rt.Wait(ctx, forwardPause, changed, f.closed)
		switch {
		case f.closed.Closed():
			return nil, errClosed
		case end == task.Ended:
			if err == nil {
				err = errors.New("there is no active controller")
			}
			return nil, fmt.Errorf("forward to the active controller: %w: %w", ctx.Err(), err)
		}
	}
}

// try asks the leader once; again says that nothing was done and the request may
// be sent anew.
func (f *forwarder) try(ctx context.Context, lead leadership, req kmsg.Request) (resp kmsg.Response, err error, again bool) {
	switch {
	case lead.leader == f.self && f.local != nil && lead.active:
		resp, err = f.local(ctx, req)
		if err != nil {
			return nil, err, false
		}
	case lead.leader == model.NoBroker || lead.addr == "" || lead.leader == f.self && f.local != nil:
		return nil, nil, true
	default:
		client, derr := f.dial(ctx, &f.lanes[laneOf(req)], lead)
		if derr != nil {
			return nil, derr, ctx.Err() == nil
		}
		if resp, err = client.Do(ctx, req); err != nil {
			return nil, fmt.Errorf("forward to the active controller at %s: %w", lead.addr, err), repeatable(req) && ctx.Err() == nil
		}
	}
	if notController(resp) {
		return nil, model.ErrNotController, true
	}
	return resp, nil, false
}

// dial returns the lane's connection to a leader, made anew when it ended.
func (f *forwarder) dial(ctx context.Context, l *lane, lead leadership) (*transport.Client, error) {
	if f.rt.Wait(ctx, task.Forever, l.turn) == task.Ended {
		return nil, ctx.Err()
	}
	defer l.turn.Raise()
	if l.client != nil {
		if l.addr == lead.addr && l.epoch == lead.epoch && !l.client.ClosedSignal().Closed() {
			return l.client, nil
		}
		l.client.Close()
		l.client = nil
	}
	if f.closed.Closed() {
		return nil, errClosed
	}
	client, err := transport.Dial(ctx, lead.addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: f.dialWith, Runtime: f.rt})
	if err != nil {
		return nil, err
	}
	l.client, l.addr, l.epoch = client, lead.addr, lead.epoch
	return client, nil
}

// close ends the connections; f.closed is closed by then.
func (f *forwarder) close() {
	f.group.Wait()
	for i := range f.lanes {
		l := &f.lanes[i]
		f.rt.Wait(nil, task.Forever, l.turn)
		if l.client != nil {
			l.client.Close()
			l.client = nil
		}
		l.turn.Raise()
	}
}
