package partition

import "github.com/tidemark-log/tidemark/internal/core/model"

// Peer is what the metadata image says about a broker: whether it may be in an
// ISR (R5.5) and where it stands.
type Peer struct {
	Epoch        model.BrokerEpoch
	Fenced       bool
	ShuttingDown bool
	Rack         string
}

// Peers is the brokers of the newest metadata image, shared by all partitions
// of a broker and replaced by their loop between Steps.
type Peers map[model.BrokerID]Peer

// Marks are the offsets of one replica (R1.5-R1.8).
type Marks struct {
	LogStart, LSO, HW, LEO model.Offset
}

// RemoteView is what the leader remembers of one follower (R1.10).
type RemoteView struct {
	ID           model.BrokerID
	LEO          model.Offset // RemoteLEO; UnknownOffset before its first fetch
	LogStart     model.Offset
	LastFetch    model.Time
	LastCaughtUp model.Time
	Epoch        model.BrokerEpoch
	InISR        bool
	// Why it is outside the ISR, or may not join.
	Why Reason
}

// View is a snapshot of a replica for people: replicas, explain, metrics.
type View struct {
	Role           Role
	Leader         model.BrokerID
	LeaderEpoch    model.Epoch
	PartitionEpoch model.PartitionEpoch
	Marks          Marks
	EpochStart     model.Offset // LESO; UnknownOffset on a follower
	Replicas, ISR  []model.BrokerID
	MaximalISR     []model.BrokerID
	MinISR         int // effective (R1.17)
	PendingISR     bool
	Remotes        []RemoteView
	// HoldsHW names the replica or rule that holds the high watermark.
	HoldsHW Reason
}
