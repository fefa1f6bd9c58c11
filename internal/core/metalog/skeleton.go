package metalog

import "github.com/tidemark-log/tidemark/internal/core/model"

type walker interface{ none() }

// Append appends the framed record to dst, in the version that level allows.
// It panics when level does not allow the type at all: writing it would end the
// readers of the cluster.
func Append(dst []byte, rec Record, level int16) []byte { return dst }

// Decode reads one framed record. Unknown types and versions and trailing bytes
// are errors.
func Decode(b []byte) (Record, error) { return nil, nil }

// Dump prints the framed record as JSON, as Apache's kafka-dump-log does.
func Dump(b []byte) (string, error) { return "", nil }

// Control is one record of a control batch.
type Control interface {
	// ControlType is the number in the record's key.
	ControlType() int16
}

// LeaderChange is the first record of every leader's epoch.
type LeaderChange struct {
	Leader   model.BrokerID
	Voters   []model.BrokerID
	Granting []model.BrokerID
}

// SnapshotHeader is the first record of a snapshot.
type SnapshotHeader struct {
	LastContainedTimestamp model.Millis
}

// SnapshotFooter is the last record of a snapshot.
type SnapshotFooter struct{}

// KRaftVersion states the level of kraft.version.
type KRaftVersion struct {
	Level int16
}

// Voter is one voter of the metadata quorum.
type Voter struct {
	ID          model.BrokerID
	DirectoryID model.UUID
	Endpoints   []VoterEndpoint
	MinKRaft    int16
	MaxKRaft    int16
}

// VoterEndpoint is one listener of a voter.
type VoterEndpoint struct {
	Name string
	Host string
	Port uint16
}

// KRaftVoters states the whole voter set.
type KRaftVoters struct {
	Voters []Voter
}

// ControlType implements Control.
func (*LeaderChange) ControlType() int16 { return 2 }

// ControlType implements Control.
func (*SnapshotHeader) ControlType() int16 { return 3 }

// ControlType implements Control.
func (*SnapshotFooter) ControlType() int16 { return 4 }

// ControlType implements Control.
func (*KRaftVersion) ControlType() int16 { return 5 }

// ControlType implements Control.
func (*KRaftVoters) ControlType() int16 { return 6 }

// Batch is one decoded batch of the metadata log.
type Batch struct {
	Base      model.Offset // offset of the first record
	End       model.Offset // exclusive
	Epoch     model.Epoch
	Timestamp model.Millis
	Records   []Record  // empty in a control batch
	Control   []Control // empty in a data batch
	Raw       []byte    // the batch as it lies in the log
}

// AppendBatch appends a v2 batch with the records to dst: the first has offset
// base, all have the timestamp. Records must not be empty.
func AppendBatch(dst []byte, base model.Offset, epoch model.Epoch, timestamp model.Millis, recs []Record, level int16) []byte {
	return dst
}

// AppendControlBatch appends a control batch to dst, one offset per record.
func AppendControlBatch(dst []byte, base model.Offset, epoch model.Epoch, timestamp model.Millis, recs []Control) []byte {
	return dst
}

// DecodeBatches reads whole batches and hands each to fn, in order. A partial
// batch at the end is not an error: it is left out. It returns the bytes read.
func DecodeBatches(b []byte, fn func(Batch) error) (int, error) { return 0, nil }
func (*RegisterBroker) walk(walker, int16) {}
func (*UnregisterBroker) walk(walker, int16) {}
func (*Topic) walk(walker, int16) {}
func (*Partition) walk(walker, int16) {}
func (*Config) walk(walker, int16) {}
func (*PartitionChange) walk(walker, int16) {}
func (*FenceBroker) walk(walker, int16) {}
func (*UnfenceBroker) walk(walker, int16) {}
func (*RemoveTopic) walk(walker, int16) {}
func (*DelegationToken) walk(walker, int16) {}
func (*UserScramCredential) walk(walker, int16) {}
func (*FeatureLevel) walk(walker, int16) {}
func (*ClientQuota) walk(walker, int16) {}
func (*ProducerIDs) walk(walker, int16) {}
func (*BrokerRegistrationChange) walk(walker, int16) {}
func (*AccessControlEntry) walk(walker, int16) {}
func (*RemoveAccessControlEntry) walk(walker, int16) {}
func (*NoOp) walk(walker, int16) {}
func (*ZkMigrationState) walk(walker, int16) {}
func (*RemoveUserScramCredential) walk(walker, int16) {}
func (*BeginTransaction) walk(walker, int16) {}
func (*EndTransaction) walk(walker, int16) {}
func (*AbortTransaction) walk(walker, int16) {}
func (*RemoveDelegationToken) walk(walker, int16) {}
func (*RegisterController) walk(walker, int16) {}
func (*ClearELR) walk(walker, int16) {}
func (*UnregisterController) walk(walker, int16) {}
