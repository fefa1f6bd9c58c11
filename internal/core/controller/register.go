package controller

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFacts bounds the directories and the features that a node may state.
const maxFacts = 1000

// register answers a BrokerRegistration: a new incarnation gets a new epoch, the
// offset of its record, and starts fenced; the same incarnation keeps its epoch.
// A predecessor that was not shut down is taken out of the ISRs, and out of the
// ELRs unless PreviousBrokerEpoch proves a clean shutdown (R6.12, R6.14).
// Errors: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION,
// INVALID_REGISTRATION, UNSUPPORTED_VERSION, BROKER_ID_NOT_REGISTERED for a
// broker that migrates from ZooKeeper. KIP-631, KIP-858, KIP-966.
func (s *State) register(c Call, r *kmsg.BrokerRegistrationRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrBrokerRegistrationResponse()
	resp.Version = r.Version
	id := model.BrokerID(r.BrokerID)
	old := s.img.Broker(id)
	if code, why := s.checkRegistration(c, r, old); code != model.None {
		if code == model.ErrDuplicateBrokerRegistration && s.cfg.LivenessProbe && !s.session(old, c.Now).heard {
			d.res.Probes = []Probe{probe(old)}
		}
		resp.ErrorCode, resp.BrokerEpoch = code.Code(), int64(model.UnknownBrokerEpoch)
		d.because(Reason{Code: ReasonRefused, Broker: id, Error: code, Detail: why})
		return d.result(resp)
	}
	rec := registration(r)
	if old != nil && old.Incarnation == rec.IncarnationID {
		rec.BrokerEpoch, rec.Fenced, rec.InControlledShutdown = old.Epoch, old.Fenced, old.InControlledShutdown
		d.because(Reason{Code: ReasonAmended, Broker: id, Epoch: old.Epoch})
		d.emit(rec)
		s.session(old, c.Now).touch(c.Now)
	} else {
		d.incarnate(rec, old, model.BrokerEpoch(r.PreviousBrokerEpoch))
		ss := newSession(rec.BrokerEpoch, c.Now)
		ss.touch(c.Now)
		s.sessions[id] = ss
	}
	resp.BrokerEpoch = int64(rec.BrokerEpoch)
	return d.result(resp)
}

// incarnate registers a new incarnation. previous is the epoch in which the
// broker last shut down cleanly, as it says.
func (d *decision) incarnate(rec *metalog.RegisterBroker, old *image.Broker, previous model.BrokerEpoch) {
	lost := d.elr && (old == nil || old.Epoch != previous)
	d.emit(rec)
	d.leave(rec.BrokerID, lost, ReasonRegistered)
	at := d.call.NextOffset
	if len(d.recs) > MaxBatch {
		at++ // after the record that opens the transaction
	}
	rec.BrokerEpoch = model.BrokerEpoch(at)
	if old != nil && lost {
		d.because(Reason{Code: ReasonUnclean, Broker: rec.BrokerID, Epoch: previous, Previous: old.Epoch})
	}
	d.because(Reason{Code: ReasonRegistered, Broker: rec.BrokerID, Epoch: rec.BrokerEpoch})
}

// registration copies the facts of a request into its record.
func registration(r *kmsg.BrokerRegistrationRequest) *metalog.RegisterBroker {
	rec := &metalog.RegisterBroker{
		BrokerID: model.BrokerID(r.BrokerID), IncarnationID: r.IncarnationID,
		Rack: r.Rack, Fenced: true, Features: brokerFeatures(r),
	}
	for _, l := range r.Listeners {
		rec.Endpoints = append(rec.Endpoints, metalog.Endpoint{
			Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol,
		})
	}
	for _, dir := range r.LogDirs {
		rec.LogDirs = append(rec.LogDirs, dir)
	}
	return rec
}

func brokerFeatures(r *kmsg.BrokerRegistrationRequest) []metalog.FeatureRange {
	out := make([]metalog.FeatureRange, len(r.Features))
	for i, f := range r.Features {
		out[i] = metalog.FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion}
	}
	return out
}

// checkRegistration says why a registration is refused, in the order in which
// Kafka looks.
func (s *State) checkRegistration(c Call, r *kmsg.BrokerRegistrationRequest, old *image.Broker) (model.Error, string) {
	if r.ClusterID != s.cfg.ClusterID {
		return model.ErrInconsistentClusterID,
			fmt.Sprintf("the broker belongs to cluster %q, this is %q", r.ClusterID, s.cfg.ClusterID)
	}
	if old != nil && old.Incarnation != r.IncarnationID && s.alive(old, c.Now) {
		return model.ErrDuplicateBrokerRegistration, "another process is registered under the id and its session is running"
	}
	if r.IsMigratingZkBroker {
		return model.ErrBrokerIDNotRegistered, "brokers that migrate from ZooKeeper are not accepted"
	}
	if why := s.checkDirs(r); why != "" {
		return model.ErrInvalidRegistration, why
	}
	if why := s.checkFeatures(brokerFeatures(r)); why != "" {
		return model.ErrUnsupportedVersion, why
	}
	return model.None, ""
}

// checkDirs says what is wrong with the directory ids of a registration: they
// must be there, not reserved, distinct, and no other broker's (KIP-858).
func (s *State) checkDirs(r *kmsg.BrokerRegistrationRequest) string {
	if n := len(r.LogDirs); n == 0 || n > maxFacts {
		return fmt.Sprintf("the registration names %d directories", n)
	}
	for i, dir := range r.LogDirs {
		switch {
		case reserved(dir):
			return fmt.Sprintf("directory id %s is reserved", model.UUID(dir))
		case slices.Contains(r.LogDirs[:i], dir):
			return fmt.Sprintf("directory id %s is named twice", model.UUID(dir))
		}
		for _, b := range s.img.Brokers() {
			if int32(b.ID) != r.BrokerID && slices.Contains(b.Directories, model.UUID(dir)) {
				return fmt.Sprintf("directory id %s is broker %d's", model.UUID(dir), b.ID)
			}
		}
	}
	return ""
}

// reserved reports whether the id is one of the first 100, which mean no
// directory.
func reserved(dir [16]byte) bool {
	for _, b := range dir[:15] {
		if b != 0 {
			return false
		}
	}
	return dir[15] < 100
}

// checkFeatures says which finalized feature a node that supports ranges lacks.
// Every finalized level must lie inside a range; a feature that is not finalized
// is at level 0.
func (s *State) checkFeatures(ranges []metalog.FeatureRange) string {
	if len(ranges) > maxFacts {
		return fmt.Sprintf("the node names %d features", len(ranges))
	}
	for _, f := range s.img.Features() {
		if why := lacks(ranges, f.Name, f.Level); why != "" {
			return why
		}
	}
	for _, f := range ranges {
		level := s.img.Feature(f.Name)
		if f.Name == featureKRaft {
			level = s.img.KRaftVersion()
		}
		if why := lacks(ranges, f.Name, level); why != "" {
			return why
		}
	}
	return lacks(ranges, featureKRaft, s.img.KRaftVersion())
}

// lacks says why ranges do not cover a feature at a level.
func lacks(ranges []metalog.FeatureRange, name string, level int16) string {
	i := slices.IndexFunc(ranges, func(f metalog.FeatureRange) bool { return f.Name == name })
	switch {
	case i < 0 && level > 0:
		return fmt.Sprintf("the node does not support %s, which is at level %d", name, level)
	case i >= 0 && (level < ranges[i].Min || level > ranges[i].Max):
		return fmt.Sprintf("the node supports levels %d to %d of %s, which is at level %d",
			ranges[i].Min, ranges[i].Max, name, level)
	}
	return ""
}

// unregister answers an UnregisterBroker. Nothing can later prove what the
// broker still holds, so it leaves the ELRs too. Errors:
// BROKER_ID_NOT_REGISTERED. KIP-631.
func (s *State) unregister(c Call, r *kmsg.UnregisterBrokerRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrUnregisterBrokerResponse()
	resp.Version = r.Version
	b := s.img.Broker(model.BrokerID(r.BrokerID))
	if b == nil {
		resp.ErrorCode = model.ErrBrokerIDNotRegistered.Code()
		resp.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Broker %d is not registered.", r.BrokerID))
		return d.result(resp)
	}
	d.because(Reason{Code: ReasonUnregistered, Broker: b.ID, Epoch: b.Epoch})
	d.leave(b.ID, true, ReasonUnregistered)
	d.emit(&metalog.UnregisterBroker{BrokerID: b.ID, BrokerEpoch: b.Epoch})
	return d.result(resp)
}

// registerController answers a ControllerRegistration. Errors:
// UNSUPPORTED_VERSION. KIP-919.
func (s *State) registerController(c Call, r *kmsg.ControllerRegistrationRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrControllerRegistrationResponse()
	resp.Version = r.Version
	rec := &metalog.RegisterController{
		ControllerID: model.BrokerID(r.ControllerID), IncarnationID: r.IncarnationID,
		ZkMigrationReady: r.ZkMigrationReady,
	}
	for _, l := range r.Listeners {
		rec.Endpoints = append(rec.Endpoints, metalog.Endpoint{
			Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol,
		})
	}
	for _, f := range r.Features {
		rec.Features = append(rec.Features, metalog.FeatureRange{
			Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion,
		})
	}
	if why := s.checkFeatures(rec.Features); why != "" {
		resp.ErrorCode, resp.ErrorMessage = model.ErrUnsupportedVersion.Code(), &why
		return d.result(resp)
	}
	old := s.img.Controller(rec.ControllerID)
	if old == nil || old.Incarnation != rec.IncarnationID || !slices.Equal(old.Endpoints, rec.Endpoints) ||
		!slices.Equal(old.Features, rec.Features) {
		d.emit(rec)
	}
	return d.result(resp)
}
