package controller

import (
	"math"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lifeState is where a broker is in its life.
//
//	fenced -> unfenced            it asks, and has read its own registration
//	fenced -> stopped             it asks
//	unfenced -> fenced            it asks, has lost its disks, or is silent for a session
//	unfenced -> stopping          it asks to stop and leads something
//	unfenced -> stopped           it asks to stop and leads nothing
//	stopping -> stopped           it leads nothing and every active broker knows
//
// A stopped broker is fenced in the log, and in this life it does not come back
// (R6.15).
type lifeState uint8

const (
	stateFenced lifeState = iota
	stateUnfenced
	stateStopping
	stateStopped
)

func stateOf(b *image.Broker) lifeState {
	switch {
	case b.Fenced:
		return stateFenced
	case b.InControlledShutdown:
		return stateStopping
	}
	return stateUnfenced
}

// heartbeat answers a BrokerHeartbeat. The common one changes nothing and costs
// no more than its response. Errors: STALE_BROKER_EPOCH. KIP-631, R6.15.
func (s *State) heartbeat(c Call, r *kmsg.BrokerHeartbeatRequest) Result {
	resp := kmsg.NewPtrBrokerHeartbeatResponse()
	resp.Version = r.Version
	b := s.img.Broker(model.BrokerID(r.BrokerID))
	if b == nil || int64(b.Epoch) != r.BrokerEpoch {
		resp.ErrorCode = model.ErrStaleBrokerEpoch.Code()
		return Result{Response: resp}
	}
	ss := s.session(b, c.Now)
	ss.touch(c.Now)
	ss.offset = max(ss.offset, model.Offset(r.CurrentMetadataOffset))

	state := stateOf(b)
	next := s.nextState(state, b, ss, r)
	resp.IsCaughtUp = r.CurrentMetadataOffset >= int64(b.Epoch)
	resp.IsFenced = next == stateFenced || next == stateStopped
	resp.ShouldShutdown = next == stateStopped
	moves := next != state && !(state == stateFenced && next == stateStopped)
	handsOver := next == stateStopping && (ss.shutdown < 0 || s.img.LeaderCount(b.ID) > 0)
	if !moves && !handsOver && !lostDirs(b, r) {
		return Result{Response: resp}
	}
	return s.transit(c, b, ss, r, next, resp)
}

// nextState decides the transition of one heartbeat.
func (s *State) nextState(state lifeState, b *image.Broker, ss *session, r *kmsg.BrokerHeartbeatRequest) lifeState {
	switch {
	case state == stateFenced && r.WantShutdown:
		return stateStopped
	case state == stateFenced && !r.WantFence && r.CurrentMetadataOffset >= int64(b.Epoch) &&
		!b.InControlledShutdown && !allLost(b, r):
		return stateUnfenced
	case state == stateUnfenced && r.WantFence && r.WantShutdown:
		return stateStopped
	case state == stateUnfenced && (r.WantFence || allLost(b, r)):
		return stateFenced
	case state == stateUnfenced && r.WantShutdown && s.img.LeaderCount(b.ID) > 0:
		return stateStopping
	case state == stateUnfenced && r.WantShutdown:
		return stateStopped
	case state == stateStopping && s.img.LeaderCount(b.ID) == 0 &&
		ss.shutdown >= 0 && ss.shutdown <= s.lowestActive():
		return stateStopped
	}
	return state
}

// lowestActive is the lowest metadata offset that an active broker has reported;
// no active broker holds nothing up.
func (s *State) lowestActive() model.Offset {
	lowest := model.Offset(math.MaxInt64)
	for _, b := range s.img.Brokers() {
		if b.Fenced || b.InControlledShutdown {
			continue
		}
		lowest = min(lowest, s.session(b, s.since).offset)
	}
	return lowest
}

// transit writes what a heartbeat changes.
func (s *State) transit(c Call, b *image.Broker, ss *session, r *kmsg.BrokerHeartbeatRequest,
	next lifeState, resp *kmsg.BrokerHeartbeatResponse) Result {
	d := s.decide(c)
	d.dropDirs(b, r)
	switch {
	case next == stateUnfenced && b.Fenced:
		d.unfence(b)
	case next == stateFenced && !b.Fenced && allLost(b, r):
		d.fence(b, Reason{Code: ReasonDirectories, Broker: b.ID, Epoch: b.Epoch, Detail: "all of them, so it is fenced"})
	case next == stateFenced && !b.Fenced:
		d.fence(b, Reason{Code: ReasonAsked, Broker: b.ID, Epoch: b.Epoch})
	case next == stateStopped && !b.Fenced:
		d.fence(b, Reason{Code: ReasonStopped, Broker: b.ID, Epoch: b.Epoch})
	case next == stateStopping:
		d.stop(b)
		res := d.result(resp)
		ss.shutdown = max(ss.shutdown, c.NextOffset+model.Offset(len(res.Records))-1)
		return res
	}
	return d.result(resp)
}

// stop begins a controlled shutdown, or hands over what the broker still leads.
func (d *decision) stop(b *image.Broker) {
	if !b.InControlledShutdown {
		d.because(Reason{Code: ReasonStopping, Broker: b.ID, Epoch: b.Epoch})
		d.emit(&metalog.BrokerRegistrationChange{BrokerID: b.ID, BrokerEpoch: b.Epoch, InControlledShutdown: 1})
	}
	d.leave(b.ID, false, ReasonStopping)
}

// lostDirs reports whether a heartbeat names a directory as offline that the log
// still calls online, while others stay.
func lostDirs(b *image.Broker, r *kmsg.BrokerHeartbeatRequest) bool {
	for _, dir := range r.OfflineLogDirs {
		if slices.Contains(b.Directories, model.UUID(dir)) {
			return !allLost(b, r)
		}
	}
	return false
}

// allLost reports whether a heartbeat names every directory of the broker as
// offline. The log cannot say that of a registration; the broker is fenced.
func allLost(b *image.Broker, r *kmsg.BrokerHeartbeatRequest) bool {
	for _, dir := range b.Directories {
		if !slices.Contains(r.OfflineLogDirs, [16]byte(dir)) {
			return false
		}
	}
	return len(b.Directories) > 0
}

// dropDirs takes directories that went offline out of the registration, and the
// broker out of the ISR of every partition that it keeps there (KIP-858).
func (d *decision) dropDirs(b *image.Broker, r *kmsg.BrokerHeartbeatRequest) {
	if !lostDirs(b, r) {
		return
	}
	d.cause = ReasonDirectories
	var online, gone []model.UUID
	for _, dir := range b.Directories {
		if slices.Contains(r.OfflineLogDirs, [16]byte(dir)) {
			gone = append(gone, dir)
		} else {
			online = append(online, dir)
		}
	}
	d.because(Reason{Code: ReasonDirectories, Broker: b.ID, Epoch: b.Epoch, Detail: joinIDs(gone)})
	for t, id := range d.img.PartitionsOf(b.ID) {
		p := t.Partitions[id]
		at := slices.Index(p.Replicas, b.ID)
		if at >= len(p.Directories) || !slices.Contains(gone, p.Directories[at]) || !contains(p.ISR, b.ID) {
			continue
		}
		c := d.change(t, id)
		c.isr, c.leaving = without(p.ISR, b.ID), b.ID
		c.unclean = d.uncleanAllowed(t.Name)
		d.apply(c)
	}
	d.emit(&metalog.BrokerRegistrationChange{BrokerID: b.ID, BrokerEpoch: b.Epoch, LogDirs: online})
	d.settle()
}
