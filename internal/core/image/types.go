package image

import (
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Endpoint is one listener of a broker or controller.
type Endpoint = metalog.Endpoint

// FeatureRange is what a node supports of one feature.
type FeatureRange = metalog.FeatureRange

// Topic is one topic. It never changes once published.
type Topic struct {
	ID         model.UUID
	Name       string
	Partitions []*Partition // the index is the partition id; never nil
}

// Partition is one partition. It never changes once published; a copy shares
// its lists, so replace them and do not write into them.
type Partition struct {
	Replicas       []model.BrokerID // AR, the preferred leader first
	ISR            []model.BrokerID
	Adding         []model.BrokerID
	Removing       []model.BrokerID
	ELR            []model.BrokerID // eligible leader replicas (R1.15)
	LastKnownELR   []model.BrokerID
	Directories    []model.UUID   // one for each of Replicas, in the same order
	Leader         model.BrokerID // model.NoBroker: none
	LeaderEpoch    model.Epoch
	PartitionEpoch model.PartitionEpoch
	Recovering     bool // since an unclean election (R1.16)
}

// absent stands in the place of a partition whose record is still to come, while
// one with a higher id is there. Only an image in the middle of a snapshot has it.
var absent = &Partition{Leader: model.NoBroker, LeaderEpoch: model.NoEpoch, PartitionEpoch: model.NoPartitionEpoch}

// Broker is one registered broker. It never changes once published.
type Broker struct {
	ID                   model.BrokerID
	Epoch                model.BrokerEpoch
	Incarnation          model.UUID
	Endpoints            []Endpoint
	Features             []FeatureRange
	Rack                 *string // nil: none
	Fenced               bool
	InControlledShutdown bool
	Directories          []model.UUID // online
	Cordoned             []model.UUID // nil: not told
}

// Controller is one registered controller. It never changes once published.
type Controller struct {
	ID               model.BrokerID
	Incarnation      model.UUID
	Endpoints        []Endpoint
	Features         []FeatureRange
	ZkMigrationReady bool
}

// Feature is one finalized feature.
type Feature struct {
	Name  string
	Level int16
}
