package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// lifecycle is the broker's standing with the controller: it registers, sends
// heartbeats, waits to be unfenced and leaves in an orderly way.
//
//	STARTING -> FENCED (registered) -> RUNNING (unfenced) -> SHUTTING DOWN -> gone
type lifecycle struct {
	cfg       *config.Config
	source    controlplane.Source
	log       *slog.Logger
	cluster   string
	directory model.UUID
	clean     model.BrokerEpoch // epoch of the clean-shutdown file
	listeners func() []config.Listener
	applied   func() model.Offset // end of the metadata that our replicas follow

	epoch      atomic.Int64  // of our registration; -1 before it
	registered chan struct{} // closed when the controllers have taken us
	joinOnce   sync.Once
	unfenced   chan struct{}
	leave      chan struct{} // closed to ask for a controlled shutdown
	left       chan struct{} // closed when the controller let us go
	leaveOnce  sync.Once
	leftOnce   sync.Once
	nudge      chan struct{} // asks for a heartbeat now
	answered   chan struct{} // a heartbeat was accepted
	done       chan struct{}

	refusal model.Error // the last one that was told
}

func newLifecycle(cfg *config.Config, src controlplane.Source, log *slog.Logger) *lifecycle {
	lc := &lifecycle{cfg: cfg, source: src, log: log, registered: make(chan struct{}), unfenced: make(chan struct{}), leave: make(chan struct{}),
		left: make(chan struct{}), nudge: make(chan struct{}, 1), answered: make(chan struct{}, 1), done: make(chan struct{})}
	lc.epoch.Store(int64(model.UnknownBrokerEpoch))
	return lc
}

// Epoch is the broker epoch of this incarnation (R1.14).
func (lc *lifecycle) Epoch() model.BrokerEpoch { return model.BrokerEpoch(lc.epoch.Load()) }

// soon asks for a heartbeat at once.
func (lc *lifecycle) soon() { tell(lc.nudge) }

// tell leaves a signal for whoever looks next.
func tell(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run is the goroutine; it ends with ctx or when the controller let us go.
func (lc *lifecycle) run(ctx context.Context) {
	defer close(lc.done)
	if !lc.register(ctx) {
		return
	}
	running := false
	for ctx.Err() == nil {
		resp := lc.heartbeat(ctx)
		switch {
		case resp == nil || resp.ErrorCode != 0:
			if resp != nil {
				lc.refused(ctx, model.Error(resp.ErrorCode))
			}
		case resp.ShouldShutdown:
			lc.leftOnce.Do(func() { close(lc.left) })
			return
		case !resp.IsFenced && !running:
			running = true
			close(lc.unfenced)
			lc.log.Info("broker is unfenced", "epoch", lc.Epoch())
		}
		if resp != nil && resp.ErrorCode == 0 {
			tell(lc.answered)
		}
		lc.wait(ctx, running, resp)
	}
}

// wait is the pause before the next heartbeat: the interval, or less while a
// change of our standing is under way.
func (lc *lifecycle) wait(ctx context.Context, running bool, resp *kmsg.BrokerHeartbeatResponse) {
	pause := lc.cfg.BrokerHeartbeatInterval
	if !running || resp == nil || resp.ErrorCode != 0 || lc.leaving() {
		pause = min(pause, 20*time.Millisecond)
	}
	leave := lc.leave
	if lc.leaving() {
		leave = nil
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-lc.nudge:
	case <-leave:
	case <-ctx.Done():
	}
}

func (lc *lifecycle) leaving() bool {
	select {
	case <-lc.leave:
		return true
	default:
		return false
	}
}

// heartbeat sends one; nil means that nobody answered. It claims the metadata
// that the replicas follow, not what is committed: a broker that were unfenced
// before would still lead what it led in an earlier life, and others that leave
// would be let go before we lead in their place.
func (lc *lifecycle) heartbeat(ctx context.Context) *kmsg.BrokerHeartbeatResponse {
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.Version = 1
	req.BrokerID, req.BrokerEpoch = int32(lc.cfg.NodeID), int64(lc.Epoch())
	end := lc.applied()
	req.CurrentMetadataOffset = int64(end) - 1
	req.WantFence = int64(end)-1 < int64(lc.Epoch())
	req.WantShutdown = lc.leaving()
	ctx, cancel := context.WithTimeout(ctx, lc.cfg.BrokerSessionTimeout)
	defer cancel()
	resp, err := lc.source.Forward(ctx, req)
	if err != nil {
		return nil
	}
	return resp.(*kmsg.BrokerHeartbeatResponse)
}

// refused handles a heartbeat that the controller did not accept: with a stale
// epoch we are another incarnation's past and register anew (R6.14).
func (lc *lifecycle) refused(ctx context.Context, err model.Error) {
	lc.log.Warn("heartbeat refused", "error", err)
	if err == model.ErrStaleBrokerEpoch || err == model.ErrBrokerIDNotRegistered {
		lc.register(ctx)
	}
}

// register tries until the controller takes us; false when ctx ended.
func (lc *lifecycle) register(ctx context.Context) bool {
	req := lc.registration()
	pause := 10 * time.Millisecond
	for {
		try, cancel := context.WithTimeout(ctx, lc.cfg.BrokerSessionTimeout)
		resp, err := lc.source.Forward(try, req)
		cancel()
		if err == nil {
			r := resp.(*kmsg.BrokerRegistrationResponse)
			if r.ErrorCode == 0 {
				lc.epoch.Store(r.BrokerEpoch)
				lc.joinOnce.Do(func() { close(lc.registered) })
				lc.log.Info("broker is registered", "epoch", r.BrokerEpoch)
				return true
			}
			lc.notRegistered(model.Error(r.ErrorCode))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// refusals say in words why the controllers do not take a broker.
var refusals = map[model.Error]string{
	model.ErrDuplicateBrokerRegistration: "another broker with this node.id is running, or was a moment ago: waiting until it is gone",
	model.ErrInconsistentClusterID:       "the controllers belong to another cluster than this directory was formatted for",
	model.ErrUnsupportedVersion:          "the cluster uses features that this broker does not know",
}

// notRegistered says why, once until the reason changes.
func (lc *lifecycle) notRegistered(err model.Error) {
	if err != lc.refusal {
		lc.refusal = err
		lc.log.Warn(cmp.Or(refusals[err], "registration refused"), "error", err)
	}
}

// brokerFeatures is what this build can follow; the controller refuses a broker
// that does not cover every finalized feature.
var brokerFeatures = []struct {
	name     string
	min, max int16
}{
	{"eligible.leader.replicas.version", 0, 1},
	{"group.version", 0, 1},
	{"kraft.version", 0, 1},
	{"metadata.version", 7, 25},
	{"transaction.version", 0, 2},
}

func (lc *lifecycle) registration() *kmsg.BrokerRegistrationRequest {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.Version = 4
	req.BrokerID, req.ClusterID = int32(lc.cfg.NodeID), lc.cluster
	rand.Read(req.IncarnationID[:])
	for _, l := range lc.listeners() {
		e := kmsg.NewBrokerRegistrationRequestListener()
		e.Name, e.Host, e.Port, e.SecurityProtocol = l.Name, l.Host, l.Port, 0
		req.Listeners = append(req.Listeners, e)
	}
	for _, f := range brokerFeatures {
		e := kmsg.NewBrokerRegistrationRequestFeature()
		e.Name, e.MinSupportedVersion, e.MaxSupportedVersion = f.name, f.min, f.max
		req.Features = append(req.Features, e)
	}
	if lc.cfg.Rack != "" {
		req.Rack = &lc.cfg.Rack
	}
	req.LogDirs = [][16]byte{lc.directory}
	req.PreviousBrokerEpoch = int64(lc.clean)
	return req
}

// unanswered is how long a broker that leaves waits for a word of a controller.
// When a whole cluster stops, the controllers may be gone before the last brokers.
const unanswered = 3 * time.Second

// shutdown asks the controller to move our leaderships and waits until it lets
// us go, no controller answers any more, or ctx ends. Who never registered leads
// nothing.
func (lc *lifecycle) shutdown(ctx context.Context) {
	if lc.Epoch() == model.UnknownBrokerEpoch {
		return
	}
	lc.leaveOnce.Do(func() { close(lc.leave) })
	patience := time.NewTimer(unanswered)
	defer patience.Stop()
	for {
		select {
		case <-lc.answered:
			patience.Reset(unanswered)
			continue
		case <-patience.C:
			lc.log.Info("no controller answers: this broker stops before its partitions were moved")
		case <-lc.left:
		case <-lc.done:
		case <-ctx.Done():
		}
		return
	}
}
