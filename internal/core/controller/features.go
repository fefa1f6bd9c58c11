package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The upgrade types of UpdateFeatures.
const (
	upgrade         int8 = 1
	safeDowngrade   int8 = 2
	unsafeDowngrade int8 = 3
)

// Bootstrap returns what the log of a new cluster starts with, in one
// transaction: the finalized features, metadata.version first, and, with ELR
// on, the cluster-wide min.insync.replicas, so that every controller and broker
// counts with the same.
func Bootstrap(features map[string]int16, minISR int) []metalog.Record {
	name := "Bootstrap records"
	recs := []metalog.Record{
		&metalog.BeginTransaction{Name: &name},
		&metalog.FeatureLevel{Name: featureMetadata, FeatureLevel: features[featureMetadata]},
	}
	for _, f := range slices.Sorted(maps.Keys(features)) {
		if f != featureMetadata && features[f] > 0 {
			recs = append(recs, &metalog.FeatureLevel{Name: f, FeatureLevel: features[f]})
		}
	}
	if features[featureELR] > 0 {
		recs = append(recs, clusterMinISR(strconv.Itoa(max(minISR, 1))))
	}
	return append(recs, &metalog.EndTransaction{})
}

func clusterMinISR(value string) *metalog.Config {
	return &metalog.Config{ResourceType: metalog.ResourceBroker, Name: configMinISR, Value: &value}
}

// updateFeatures answers an UpdateFeatures: all updates are made, or none.
// Errors: INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED, INVALID_REQUEST. A
// downgrade that would lose data is refused whatever its type. KIP-584, KIP-778.
func (s *State) updateFeatures(c Call, r *kmsg.UpdateFeaturesRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrUpdateFeaturesResponse()
	resp.Version = r.Version
	target := map[string]int16{}
	for _, f := range s.img.Features() {
		target[f.Name] = f.Level
	}
	var failed *refusal
	for i := range r.FeatureUpdates {
		u := &r.FeatureUpdates[i]
		no := d.checkUpdate(u, r.Version)
		if no == nil && slices.ContainsFunc(r.FeatureUpdates[:i], func(o kmsg.UpdateFeaturesRequestFeatureUpdate) bool {
			return o.Feature == u.Feature
		}) {
			no = refuse(model.ErrInvalidRequest, "Feature %s is given twice.", u.Feature)
		}
		target[u.Feature] = u.MaxVersionLevel
		if failed == nil {
			failed = no
		}
	}
	if failed == nil {
		failed = d.checkTogether(target)
	}
	answerFeatures(resp, r, failed)
	if failed == nil && !r.ValidateOnly {
		d.writeFeatures(r, target)
	}
	return d.result(resp)
}

// answerFeatures fills in the answer: before version 2 every feature has its
// own.
func answerFeatures(resp *kmsg.UpdateFeaturesResponse, r *kmsg.UpdateFeaturesRequest, failed *refusal) {
	if failed != nil {
		resp.ErrorCode, resp.ErrorMessage = failed.code.Code(), &failed.why
	}
	if r.Version > 1 {
		return
	}
	for i := range r.FeatureUpdates {
		out := kmsg.NewUpdateFeaturesResponseResult()
		out.Feature = r.FeatureUpdates[i].Feature
		out.ErrorCode, out.ErrorMessage = resp.ErrorCode, resp.ErrorMessage
		resp.Results = append(resp.Results, out)
	}
}

// checkUpdate says why one update is refused: its direction must be the one
// asked for, and this controller and every registered node must support the
// level.
func (d *decision) checkUpdate(u *kmsg.UpdateFeaturesRequestFeatureUpdate, version int16) *refusal {
	kind := u.UpgradeType
	if version == 0 {
		if kind = upgrade; u.AllowDowngrade {
			kind = safeDowngrade
		}
	}
	if kind < upgrade || kind > unsafeDowngrade {
		return refuse(model.ErrInvalidUpdateVersion, "The controller does not support the given upgrade type.")
	}
	level, now := u.MaxVersionLevel, d.img.Feature(u.Feature)
	if u.Feature == featureKRaft {
		return refuse(model.ErrInvalidUpdateVersion, "kraft.version is fixed when the cluster is formatted.")
	}
	switch {
	case level < 0 || level == 0 && u.Feature == featureMetadata:
		return refuse(model.ErrInvalidUpdateVersion, "Invalid update version %d for feature %s.", level, u.Feature)
	case level < now && kind == upgrade:
		return refuse(model.ErrInvalidUpdateVersion, "Invalid update version %d for feature %s. "+
			"Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.", level, u.Feature)
	case level > now && kind != upgrade:
		return refuse(model.ErrInvalidUpdateVersion, "Invalid update version %d for feature %s. Can't downgrade to a newer version.", level, u.Feature)
	}
	if who, f := d.unsupported(u.Feature, level); who != "" {
		return refuse(model.ErrInvalidUpdateVersion, "Invalid update version %d for feature %s. %s only supports versions %d-%d",
			level, u.Feature, who, f.Min, f.Max)
	}
	return nil
}

// unsupported names a node that does not support a feature at a level.
func (d *decision) unsupported(name string, level int16) (who string, f FeatureRange) {
	own, ok := d.s.cfg.Features[name]
	if !ok && level > 0 || level < own.Min && level > 0 || level > own.Max {
		return "This controller", own
	}
	lacks := func(ranges []metalog.FeatureRange) (FeatureRange, bool) {
		for _, r := range ranges {
			if r.Name == name {
				return FeatureRange{r.Min, r.Max}, level != 0 && (level < r.Min || level > r.Max)
			}
		}
		return FeatureRange{}, level > 0
	}
	for _, b := range d.img.Brokers() {
		if f, no := lacks(b.Features); no {
			return fmt.Sprintf("Broker %d", b.ID), f
		}
	}
	for _, c := range d.img.Controllers() {
		if f, no := lacks(c.Features); no {
			return fmt.Sprintf("Controller %d", c.ID), f
		}
	}
	return "", FeatureRange{}
}

// checkTogether says why the levels cannot stand beside each other, or would
// lose data.
func (d *decision) checkTogether(target map[string]int16) *refusal {
	if target[featureELR] > 0 && target[featureMetadata] < elrMetadata {
		return refuse(model.ErrInvalidUpdateVersion, "%s %d needs %s %d or higher.",
			featureELR, target[featureELR], featureMetadata, elrMetadata)
	}
	if d.elr && target[featureELR] == 0 {
		for tp := range d.img.Leaderless() {
			if p := d.img.Partition(tp.TopicID, tp.Partition); len(p.ISR) == 0 {
				return refuse(model.ErrFeatureUpdateFailed, "A partition has an empty ISR, which only %s can express.", featureELR)
			}
		}
	}
	return nil
}

// writeFeatures emits the levels that change. Switching ELR on fixes the
// cluster-wide minimum of in-sync replicas, and members of an ISR that do not
// serve move to the ELR; switching it off empties the ELRs.
func (d *decision) writeFeatures(r *kmsg.UpdateFeaturesRequest, target map[string]int16) {
	for i := range r.FeatureUpdates {
		name := r.FeatureUpdates[i].Feature
		if target[name] != d.img.Feature(name) {
			d.emit(&metalog.FeatureLevel{Name: name, FeatureLevel: target[name]})
		}
	}
	was := d.elr
	if on := target[featureELR] > 0; on && !was {
		d.startELR()
	}
	if d.settle(); was == d.elr {
		return
	}
	for t := range d.img.Topics() {
		for id, p := range t.Partitions {
			if p.Leader == model.NoBroker || len(p.ELR)+len(p.LastKnownELR) > 0 {
				c := d.change(t, int32(id))
				c.isr = d.active(p.ISR)
				c.unclean = d.uncleanAllowed(t.Name)
				d.apply(c)
			}
		}
	}
}

// startELR writes the minimum of in-sync replicas down for the whole cluster and
// takes back what single brokers say of it.
func (d *decision) startELR() {
	if _, ok := d.img.Config(metalog.ResourceBroker, "")[configMinISR]; !ok {
		d.emit(clusterMinISR(d.s.cfg.Configs.Static(configMinISR)))
	}
	for name := range d.img.ConfigNames(metalog.ResourceBroker) {
		if _, ok := d.img.Config(metalog.ResourceBroker, name)[configMinISR]; ok && name != "" {
			d.emit(&metalog.Config{ResourceType: metalog.ResourceBroker, ResourceName: name, Name: configMinISR})
		}
	}
}
