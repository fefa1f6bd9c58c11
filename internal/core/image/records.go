package image

import (
	"iter"
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
)

// metadataVersion is the feature that says which records may be written.
const metadataVersion = "metadata.version"

// Records yields the records that rebuild the image in an order that any reader
// of the log accepts: features first, topics before their partitions and
// configs. The voters are not among them: see Control.
func (i *Image) Records() iter.Seq[metalog.Record] {
	return func(yield func(metalog.Record) bool) {
		for _, part := range []func(func(metalog.Record) bool) bool{
			i.featureRecords, i.nodeRecords, i.topicRecords, i.configRecords, i.quotaRecords, i.securityRecords,
		} {
			if !part(yield) {
				return
			}
		}
	}
}

// Control returns the control records that follow the header of a snapshot; none
// while the voters are static.
func (i *Image) Control() []metalog.Control {
	if i.kraft == 0 {
		return nil
	}
	return []metalog.Control{&metalog.KRaftVersion{Level: i.kraft}, &metalog.KRaftVoters{Voters: i.voters}}
}

// featureRecords yields metadata.version first: readers need it for the rest.
func (i *Image) featureRecords(yield func(metalog.Record) bool) bool {
	if level := i.Feature(metadataVersion); level != 0 {
		if !yield(&metalog.FeatureLevel{Name: metadataVersion, FeatureLevel: level}) {
			return false
		}
	}
	for _, f := range i.features {
		if f.Name != metadataVersion && !yield(&metalog.FeatureLevel{Name: f.Name, FeatureLevel: f.Level}) {
			return false
		}
	}
	return true
}

func (i *Image) nodeRecords(yield func(metalog.Record) bool) bool {
	for _, b := range i.brokers {
		if !yield(&metalog.RegisterBroker{
			BrokerID: b.ID, IncarnationID: b.Incarnation, BrokerEpoch: b.Epoch, Endpoints: b.Endpoints,
			Features: b.Features, Rack: b.Rack, Fenced: b.Fenced, InControlledShutdown: b.InControlledShutdown,
			LogDirs: b.Directories, CordonedLogDirs: b.Cordoned,
		}) {
			return false
		}
	}
	for _, c := range i.controllers {
		if !yield(&metalog.RegisterController{
			ControllerID: c.ID, IncarnationID: c.Incarnation, ZkMigrationReady: c.ZkMigrationReady,
			Endpoints: c.Endpoints, Features: c.Features,
		}) {
			return false
		}
	}
	return true
}

func (i *Image) topicRecords(yield func(metalog.Record) bool) bool {
	for _, t := range i.byName.all() {
		if !yield(&metalog.Topic{Name: t.Name, TopicID: t.ID}) {
			return false
		}
		for id, p := range t.Partitions {
			if p != absent && !yield(p.record(t, int32(id))) {
				return false
			}
		}
	}
	return true
}

// record states the partition in full.
func (p *Partition) record(t *Topic, id int32) *metalog.Partition {
	r := &metalog.Partition{
		PartitionID: id, TopicID: t.ID, Replicas: p.Replicas, ISR: p.ISR, Removing: p.Removing, Adding: p.Adding,
		Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
		Directories: p.Directories, ELR: p.ELR, LastKnownELR: p.LastKnownELR,
	}
	if p.Recovering {
		r.RecoveryState = metalog.Recovering
	}
	return r
}

func (i *Image) configRecords(yield func(metalog.Record) bool) bool {
	for key, m := range i.configs.all() {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			value := m[name]
			if !yield(&metalog.Config{ResourceType: key.kind, ResourceName: key.name, Name: name, Value: &value}) {
				return false
			}
		}
	}
	return true
}

func (i *Image) quotaRecords(yield func(metalog.Record) bool) bool {
	for _, q := range i.quotas.all() {
		for _, key := range slices.Sorted(maps.Keys(q.values)) {
			if !yield(&metalog.ClientQuota{Entity: q.entity, Key: key, Value: q.values[key]}) {
				return false
			}
		}
	}
	return true
}

// securityRecords also yields the producer ids, which Apache puts before the ACLs.
func (i *Image) securityRecords(yield func(metalog.Record) bool) bool {
	if i.nextProducerID != 0 {
		if !yield(&metalog.ProducerIDs{BrokerID: -1, BrokerEpoch: -1, NextProducerID: i.nextProducerID}) {
			return false
		}
	}
	for _, acl := range i.acls.all() {
		if !yield(acl) {
			return false
		}
	}
	for _, c := range i.credentials.all() {
		if !yield(c) {
			return false
		}
	}
	for _, t := range i.tokens.all() {
		if !yield(t) {
			return false
		}
	}
	return true
}
