package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// forwarder sends requests to the active controller. Each kind of request has
// a connection of its own, as in Kafka, so that a heartbeat does not wait for the
// answer to a slow CreateTopics.
type forwarder struct {
	self   model.BrokerID
	pub    *broadcast
	local  func(context.Context, kmsg.Request) (kmsg.Response, error) // nil: an observer
	closed <-chan struct{}

	dialWith Dial
	lanes    [lanes]lane
}

// lane is one connection. Whoever holds its turn may replace it.
type lane struct {
	turn   chan struct{} // one token
	client *transport.Client
	addr   string
}

// newForwarder makes the lanes.
func newForwarder(self model.BrokerID, pub *broadcast, closed <-chan struct{}, dial Dial) *forwarder {
	f := &forwarder{self: self, pub: pub, closed: closed, dialWith: dial}
	for i := range f.lanes {
		f.lanes[i].turn = make(chan struct{}, 1)
	}
	return f
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
		pause := time.NewTimer(forwardPause)
		select {
		case <-changed:
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			if err == nil {
				err = errors.New("there is no active controller")
			}
			return nil, fmt.Errorf("forward to the active controller: %w: %w", ctx.Err(), err)
		case <-f.closed:
			pause.Stop()
			return nil, errClosed
		}
		pause.Stop()
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
		client, derr := f.dial(ctx, &f.lanes[laneOf(req)], lead.addr)
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

// dial returns the lane's connection to addr, made anew when it ended.
func (f *forwarder) dial(ctx context.Context, l *lane, addr string) (*transport.Client, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.client != nil {
		select {
		case <-l.client.Closed():
		default:
			if l.addr == addr {
				return l.client, nil
			}
		}
		l.client.Close()
		l.client = nil
	}
	select {
	case <-f.closed:
		return nil, errClosed
	default:
	}
	client, err := transport.Dial(ctx, addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: f.dialWith})
	if err != nil {
		return nil, err
	}
	l.client, l.addr = client, addr
	return client, nil
}

// close ends the connections; f.closed is closed by then.
func (f *forwarder) close() {
	for i := range f.lanes {
		l := &f.lanes[i]
		l.turn <- struct{}{}
		if l.client != nil {
			l.client.Close()
			l.client = nil
		}
		<-l.turn
	}
}
