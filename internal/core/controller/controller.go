// Package controller decides for a whole cluster: which brokers live, who leads
// each partition, what its ISR is, which topics exist.
//
// It is a decide/replay core. A decision (Handle, Tick, ProbeRefused) reads the
// image and returns records, a response, reasons; it changes nothing but soft
// state, which is what a new active controller may safely forget: sessions,
// reported metadata offsets, probes under way. Replay takes the records. It is
// the only way the image moves. Whatever a decision needs to look up (who is
// where, who leads what) it asks of the image, so no index can outlive what it
// points to.
//
// It writes no NoOp records. Kafka needs one every 500 ms because its observers
// are sent uncommitted records, so that they learn of a commit only with the
// next fetch. Here only committed records are served, with the high watermark at
// their end, while liveness rests on heartbeats, connections, the raft election.
package controller

import (
	"strconv"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// State is the active controller's view: the image with everything replayed so
// far, committed or not. A controller that loses its leadership drops it whole.
type State struct {
	cfg      Config
	img      *image.Image
	nodeName string // cfg.NodeID as the name of a configuration resource

	sessions map[model.BrokerID]*session
	since    model.Time // when this controller took over
	probed   bool       // brokers silent since then were probed

	nextRebalance model.Time
	nextRevive    model.Time
}

// New takes over from img, the image of everything in this controller's own
// log. Every unfenced broker gets a fresh session.
func New(cfg Config, img *image.Image, now model.Time) *State {
	cfg.setDefaults()
	s := &State{
		cfg: cfg, img: img, nodeName: strconv.Itoa(int(cfg.NodeID)),
		sessions: map[model.BrokerID]*session{}, since: now, probed: !cfg.LivenessProbe,
		nextRebalance: now.Add(cfg.RebalanceInterval), nextRevive: now.Add(cfg.UncleanInterval),
	}
	for _, b := range img.Brokers() {
		s.sessions[b.ID] = newSession(b.Epoch, now)
	}
	return s
}

// setDefaults gives what is zero Kafka's default.
func (c *Config) setDefaults() {
	defaultTo(&c.SessionTimeout, 9*time.Second)
	defaultTo(&c.ProbeAfter, 500*time.Millisecond)
	defaultTo(&c.RebalanceInterval, 300*time.Second)
	defaultTo(&c.UncleanInterval, 5*time.Minute)
	c.NumPartitions = max(c.NumPartitions, 1)
	c.ReplicationFactor = max(c.ReplicationFactor, 1)
}

func defaultTo(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// TakeOver returns what a controller writes first: the end of a transaction that
// its predecessor left open, the bootstrap records of an empty log, leaders for
// partitions whose election the predecessor did not get to.
func (s *State) TakeOver(c Call) Result {
	d := s.decide(c)
	if s.img.InTransaction() {
		why := "the controller that began it is gone"
		d.emit(&metalog.AbortTransaction{Reason: &why})
	}
	if s.img.Feature(featureMetadata) == 0 {
		d.emit(s.cfg.Bootstrap...)
	}
	d.settle()
	if d.revive(maxElections) {
		s.nextRevive = c.Now
	}
	return d.result(nil)
}

// Handle decides one request. It answers every request it knows, and returns
// false for any other type.
func (s *State) Handle(c Call, req kmsg.Request) (Result, bool) {
	switch r := req.(type) {
	case *kmsg.BrokerHeartbeatRequest:
		return s.heartbeat(c, r), true
	case *kmsg.AlterPartitionRequest:
		return s.alterPartition(c, r), true
	case *kmsg.BrokerRegistrationRequest:
		return s.register(c, r), true
	case *kmsg.AllocateProducerIDsRequest:
		return s.allocateProducerIDs(c, r), true
	case *kmsg.AssignReplicasToDirsRequest:
		return s.assignDirs(c, r), true
	case *kmsg.CreateTopicsRequest:
		return s.createTopics(c, r), true
	case *kmsg.DeleteTopicsRequest:
		return s.deleteTopics(c, r), true
	case *kmsg.CreatePartitionsRequest:
		return s.createPartitions(c, r), true
	case *kmsg.AlterConfigsRequest:
		return s.alterConfigs(c, r), true
	case *kmsg.IncrementalAlterConfigsRequest:
		return s.incrementalAlterConfigs(c, r), true
	case *kmsg.ElectLeadersRequest:
		return s.electLeaders(c, r), true
	case *kmsg.AlterPartitionAssignmentsRequest:
		return s.reassign(c, r), true
	case *kmsg.ListPartitionReassignmentsRequest:
		return s.listReassignments(r), true
	case *kmsg.UpdateFeaturesRequest:
		return s.updateFeatures(c, r), true
	case *kmsg.UnregisterBrokerRequest:
		return s.unregister(c, r), true
	case *kmsg.ControllerRegistrationRequest:
		return s.registerController(c, r), true
	}
	return Result{}, false
}

// Replay moves the image over records that end before end, written in epoch.
func (s *State) Replay(recs []metalog.Record, end model.Offset, epoch model.Epoch) {
	s.img = s.img.Apply(recs, end, epoch)
	for _, r := range recs {
		if u, ok := r.(*metalog.UnregisterBroker); ok && s.img.Broker(u.BrokerID) == nil {
			delete(s.sessions, u.BrokerID)
		}
	}
}

// ReplayControl moves the image over a control batch, such as the LeaderChange
// of this controller's own epoch.
func (s *State) ReplayControl(recs []metalog.Control, end model.Offset, epoch model.Epoch) {
	s.img = s.img.ApplyControl(recs, end, epoch)
}

// Image returns the image with everything replayed.
func (s *State) Image() *image.Image { return s.img }
