package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// lifecycle is the broker's standing with the controller: it registers, sends
// heartbeats, waits to be unfenced and leaves in an orderly way.
//
//	STARTING -> FENCED (registered) -> RUNNING (unfenced) -> SHUTTING DOWN -> gone
type lifecycle struct {
	rt        *task.Runtime
	cfg       *config.Config
	source    controlplane.Source
	log       *slog.Logger
	cluster   string
	directory model.UUID
	clean     model.BrokerEpoch // epoch of the clean-shutdown file
	listeners func() []config.Listener
	applied   func() model.Offset // end of the metadata that our replicas follow

	epoch      atomic.Int64 // of our registration; -1 before it
	registered *task.Signal // closed when the controllers have taken us
	unfenced   *task.Signal
	leave      *task.Signal // closed to ask for a controlled shutdown
	left       *task.Signal // closed when the controller let us go
	nudge      *task.Signal // asks for a heartbeat now
	answered   *task.Signal // a heartbeat was accepted
	done       *task.Signal

	refusal model.Error // the last one that was told
}

func newLifecycle(rt *task.Runtime, cfg *config.Config, src controlplane.Source, log *slog.Logger) *lifecycle {
	lc := &lifecycle{rt: rt, cfg: cfg, source: src, log: log, registered: rt.NewSignal(), unfenced: rt.NewSignal(),
		leave: rt.NewSignal(), left: rt.NewSignal(), nudge: rt.NewSignal(), answered: rt.NewSignal(), done: rt.NewSignal()}
	lc.epoch.Store(int64(model.UnknownBrokerEpoch))
	return lc
}

// Epoch is the broker epoch of this incarnation (R1.14).
func (lc *lifecycle) Epoch() model.BrokerEpoch { return model.BrokerEpoch(lc.epoch.Load()) }

// soon asks for a heartbeat at once.
func (lc *lifecycle) soon() { lc.nudge.Raise() }

// run is the task; it ends with ctx or when the controller let us go.
func (lc *lifecycle) run(ctx context.Context) {
	defer lc.done.Close()
	if !lc.register(ctx) {
		return
	}
	w := lc.rt.NewWaiter()
	running := false
	for ctx.Err() == nil {
		resp := lc.heartbeat(ctx)
		switch {
		case resp == nil || resp.ErrorCode != 0:
			if resp != nil {
				lc.refused(ctx, model.Error(resp.ErrorCode))
			}
		case resp.ShouldShutdown:
			lc.left.Close()
			return
		case !resp.IsFenced && !running:
			running = true
			lc.unfenced.Close()
			lc.log.Info("broker is unfenced", "epoch", lc.Epoch())
		}
		if resp != nil && resp.ErrorCode == 0 {
			lc.answered.Raise()
		}
		lc.wait(ctx, w, running, resp)
	}
}

// wait is the pause before the next heartbeat: the interval, or less while a
// change of our standing is under way.
func (lc *lifecycle) wait(ctx context.Context, w *task.Waiter, running bool, resp *kmsg.BrokerHeartbeatResponse) {
	pause := lc.cfg.BrokerHeartbeatInterval
	if !running || resp == nil || resp.ErrorCode != 0 || lc.leaving() {
		pause = min(pause, 20*time.Millisecond)
	}
	leave := lc.leave
	if lc.leaving() {
		leave = nil
	}
	w.Wait(ctx, pause, lc.nudge, leave)
}

func (lc *lifecycle) leaving() bool { return lc.leave.Closed() }

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
	ctx, cancel := lc.rt.WithTimeout(ctx, lc.cfg.BrokerSessionTimeout)
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
		try, cancel := lc.rt.WithTimeout(ctx, lc.cfg.BrokerSessionTimeout)
		resp, err := lc.source.Forward(try, req)
		cancel()
		if err == nil {
			r := resp.(*kmsg.BrokerRegistrationResponse)
			if r.ErrorCode == 0 {
				lc.epoch.Store(r.BrokerEpoch)
				lc.registered.Close()
				lc.log.Info("broker is registered", "epoch", r.BrokerEpoch)
				return true
			}
			lc.notRegistered(model.Error(r.ErrorCode))
		}
		if !lc.rt.Sleep(ctx, pause) {
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
	lc.leave.Close()
	w := lc.rt.NewWaiter()
	for {
		switch w.Wait(ctx, unanswered, lc.left, lc.done, lc.answered) {
		case 2:
			continue
		case task.Timeout:
			lc.log.Info("no controller answers: this broker stops before its partitions were moved")
		}
		return
	}
}
