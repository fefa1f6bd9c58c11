package metalog

import "github.com/tidemark-log/tidemark/internal/core/model"

// Record is one data record of the metadata log. Every implementation is a
// pointer to a struct of this package.
type Record interface {
	// Type is the number of the record in Kafka's table.
	Type() Type
	// walk visits the fields of version v in the order of the wire.
	walk(w walker, v int16)
}

// Type is the number of a record in Kafka's table of metadata records.
type Type int16

// The types of metadata records.
const (
	TypeRegisterBroker            Type = 0
	TypeUnregisterBroker          Type = 1
	TypeTopic                     Type = 2
	TypePartition                 Type = 3
	TypeConfig                    Type = 4
	TypePartitionChange           Type = 5
	TypeFenceBroker               Type = 7
	TypeUnfenceBroker             Type = 8
	TypeRemoveTopic               Type = 9
	TypeDelegationToken           Type = 10
	TypeUserScramCredential       Type = 11
	TypeFeatureLevel              Type = 12
	TypeClientQuota               Type = 14
	TypeProducerIDs               Type = 15
	TypeBrokerRegistrationChange  Type = 17
	TypeAccessControlEntry        Type = 18
	TypeRemoveAccessControlEntry  Type = 19
	TypeNoOp                      Type = 20
	TypeZkMigrationState          Type = 21
	TypeRemoveUserScramCredential Type = 22
	TypeBeginTransaction          Type = 23
	TypeEndTransaction            Type = 24
	TypeAbortTransaction          Type = 25
	TypeRemoveDelegationToken     Type = 26
	TypeRegisterController        Type = 27
	TypeClearELR                  Type = 28
	TypeUnregisterController      Type = 29
)

// Level is the metadata.version level of clusters formatted by Tidemark: 4.0-IV3.
const Level int16 = 25

// Resource types of a Config record.
const (
	ResourceTopic         int8 = 2
	ResourceBroker        int8 = 4 // the name is a broker id, or empty for all brokers
	ResourceClientMetrics int8 = 16
	ResourceGroup         int8 = 32
)

// LeaderUnchanged as the Leader of a PartitionChange keeps the leader and its
// epoch; model.NoBroker takes the leader away.
const LeaderUnchanged model.BrokerID = -2

// RecoveryState is the leader recovery state of a partition (R1.16).
type RecoveryState int8

// The recovery states.
const (
	RecoveryUnchanged RecoveryState = -1 // in a PartitionChange: as it was
	Recovered         RecoveryState = 0
	Recovering        RecoveryState = 1
)

// Reserved directory ids (KIP-858).
var (
	DirMigrating  = model.UUID{}
	DirUnassigned = model.UUID{15: 1}
	DirLost       = model.UUID{15: 2}
)

// Endpoint is one listener of a broker or controller.
type Endpoint struct {
	Name             string
	Host             string
	Port             uint16
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// FeatureRange is what a node supports of one feature: [Min, Max], both included.
type FeatureRange struct {
	Name string
	Min  int16
	Max  int16
}

// RegisterBroker registers an incarnation of a broker.
type RegisterBroker struct {
	BrokerID             model.BrokerID
	IsMigratingZkBroker  bool
	IncarnationID        model.UUID
	BrokerEpoch          model.BrokerEpoch // the offset of this very record (R1.14)
	Endpoints            []Endpoint
	Features             []FeatureRange
	Rack                 *string // nil: none
	Fenced               bool
	InControlledShutdown bool
	LogDirs              []model.UUID // directories online
	CordonedLogDirs      []model.UUID // nil: not told (version 4)
}

// UnregisterBroker removes a broker.
type UnregisterBroker struct {
	BrokerID    model.BrokerID
	BrokerEpoch model.BrokerEpoch
}

// Topic creates a topic; its partitions and configs follow.
type Topic struct {
	Name    string
	TopicID model.UUID
}

// Partition creates a partition, or states it in full in a snapshot.
type Partition struct {
	PartitionID    int32
	TopicID        model.UUID
	Replicas       []model.BrokerID // AR, the preferred leader first
	ISR            []model.BrokerID
	Removing       []model.BrokerID
	Adding         []model.BrokerID
	Leader         model.BrokerID // model.NoBroker: none
	RecoveryState  RecoveryState
	LeaderEpoch    model.Epoch
	PartitionEpoch model.PartitionEpoch
	Directories    []model.UUID     // one for each of Replicas, in the same order
	ELR            []model.BrokerID // nil: none
	LastKnownELR   []model.BrokerID // nil: none
}

// Config sets or deletes one config of one resource.
type Config struct {
	ResourceType int8
	ResourceName string
	Name         string
	Value        *string // nil deletes
}

// PartitionChange changes a partition. A nil list means unchanged, an empty one
// means empty. Every change bumps the partition epoch; setting Leader, even to
// its old value, bumps the leader epoch. Make it with NewPartitionChange.
type PartitionChange struct {
	PartitionID   int32
	TopicID       model.UUID
	ISR           []model.BrokerID
	Leader        model.BrokerID // LeaderUnchanged, model.NoBroker or the leader
	Replicas      []model.BrokerID
	Removing      []model.BrokerID
	Adding        []model.BrokerID
	RecoveryState RecoveryState // RecoveryUnchanged, Recovered or Recovering
	ELR           []model.BrokerID
	LastKnownELR  []model.BrokerID
	Directories   []model.UUID
}

// NewPartitionChange returns a change of the partition that changes nothing yet.
func NewPartitionChange(topic model.UUID, partition int32) *PartitionChange {
	return &PartitionChange{
		PartitionID: partition, TopicID: topic,
		Leader: LeaderUnchanged, RecoveryState: RecoveryUnchanged,
	}
}

// FenceBroker fences a broker. Only clusters before 3.3-IV2 wrote it.
type FenceBroker struct {
	BrokerID    model.BrokerID
	BrokerEpoch model.BrokerEpoch
}

// UnfenceBroker unfences a broker. Only clusters before 3.3-IV2 wrote it.
type UnfenceBroker struct {
	BrokerID    model.BrokerID
	BrokerEpoch model.BrokerEpoch
}

// RemoveTopic deletes a topic with its partitions and configs.
type RemoveTopic struct {
	TopicID model.UUID
}

// DelegationToken states a token, without its secret.
type DelegationToken struct {
	Owner               string
	Requester           string
	Renewers            []string
	IssueTimestamp      model.Millis
	MaxTimestamp        model.Millis
	ExpirationTimestamp model.Millis
	TokenID             string
}

// UserScramCredential sets the salted password of a user.
type UserScramCredential struct {
	Name       string
	Mechanism  int8 // 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
	Iterations int32
}

// FeatureLevel finalizes a level of a feature; level 0 removes it.
type FeatureLevel struct {
	Name         string
	FeatureLevel int16
}

// QuotaEntity is one part of the entity that a quota is for.
type QuotaEntity struct {
	EntityType string
	EntityName *string // nil: the default of the type
}

// ClientQuota sets or removes one quota of one entity.
type ClientQuota struct {
	Entity []QuotaEntity
	Key    string
	Value  float64
	Remove bool
}

// ProducerIDs hands a block of producer ids to a broker.
type ProducerIDs struct {
	BrokerID       model.BrokerID
	BrokerEpoch    model.BrokerEpoch
	NextProducerID model.ProducerID // the first id that was never handed out
}

// The values of BrokerRegistrationChange.Fenced and InControlledShutdown.
const (
	FencedUnchanged int8 = 0
	FencedSet       int8 = 1
	FencedCleared   int8 = -1
)

// BrokerRegistrationChange changes the registration of a broker.
type BrokerRegistrationChange struct {
	BrokerID             model.BrokerID
	BrokerEpoch          model.BrokerEpoch
	Fenced               int8         // -1 unfences, 0 leaves, 1 fences
	InControlledShutdown int8         // 1 enters controlled shutdown, 0 leaves it as it was
	LogDirs              []model.UUID // directories online now; empty: unchanged
	CordonedLogDirs      []model.UUID // nil: unchanged (version 3)
}

// AccessControlEntry adds an ACL.
type AccessControlEntry struct {
	ID             model.UUID
	ResourceType   int8
	ResourceName   string
	PatternType    int8
	Principal      string
	Host           string
	Operation      int8
	PermissionType int8
}

// RemoveAccessControlEntry removes an ACL.
type RemoveAccessControlEntry struct {
	ID model.UUID
}

// NoOp changes nothing; it lets the high watermark move when nothing happens.
type NoOp struct{}

// ZkMigrationState tells how far a migration from ZooKeeper is.
type ZkMigrationState struct {
	State int8
}

// RemoveUserScramCredential removes one credential of a user.
type RemoveUserScramCredential struct {
	Name      string
	Mechanism int8
}

// BeginTransaction opens a transaction: readers publish nothing until its end.
type BeginTransaction struct {
	Name *string // nil: unnamed
}

// EndTransaction commits the open transaction.
type EndTransaction struct{}

// AbortTransaction drops what came since the BeginTransaction.
type AbortTransaction struct {
	Reason *string // nil: none told
}

// RemoveDelegationToken removes a token.
type RemoveDelegationToken struct {
	TokenID string
}

// RegisterController registers an incarnation of a controller.
type RegisterController struct {
	ControllerID     model.BrokerID
	IncarnationID    model.UUID
	ZkMigrationReady bool
	Endpoints        []Endpoint
	Features         []FeatureRange
}

// ClearELR empties the ELR and last-known ELR of a topic's partitions.
type ClearELR struct {
	TopicName string // empty: all topics
}

// UnregisterController removes a controller's registration.
type UnregisterController struct {
	ControllerID model.BrokerID
}

// Type implements Record.
func (*RegisterBroker) Type() Type { return TypeRegisterBroker }

// Type implements Record.
func (*UnregisterBroker) Type() Type { return TypeUnregisterBroker }

// Type implements Record.
func (*Topic) Type() Type { return TypeTopic }

// Type implements Record.
func (*Partition) Type() Type { return TypePartition }

// Type implements Record.
func (*Config) Type() Type { return TypeConfig }

// Type implements Record.
func (*PartitionChange) Type() Type { return TypePartitionChange }

// Type implements Record.
func (*FenceBroker) Type() Type { return TypeFenceBroker }

// Type implements Record.
func (*UnfenceBroker) Type() Type { return TypeUnfenceBroker }

// Type implements Record.
func (*RemoveTopic) Type() Type { return TypeRemoveTopic }

// Type implements Record.
func (*DelegationToken) Type() Type { return TypeDelegationToken }

// Type implements Record.
func (*UserScramCredential) Type() Type { return TypeUserScramCredential }

// Type implements Record.
func (*FeatureLevel) Type() Type { return TypeFeatureLevel }

// Type implements Record.
func (*ClientQuota) Type() Type { return TypeClientQuota }

// Type implements Record.
func (*ProducerIDs) Type() Type { return TypeProducerIDs }

// Type implements Record.
func (*BrokerRegistrationChange) Type() Type { return TypeBrokerRegistrationChange }

// Type implements Record.
func (*AccessControlEntry) Type() Type { return TypeAccessControlEntry }

// Type implements Record.
func (*RemoveAccessControlEntry) Type() Type { return TypeRemoveAccessControlEntry }

// Type implements Record.
func (*NoOp) Type() Type { return TypeNoOp }

// Type implements Record.
func (*ZkMigrationState) Type() Type { return TypeZkMigrationState }

// Type implements Record.
func (*RemoveUserScramCredential) Type() Type { return TypeRemoveUserScramCredential }

// Type implements Record.
func (*BeginTransaction) Type() Type { return TypeBeginTransaction }

// Type implements Record.
func (*EndTransaction) Type() Type { return TypeEndTransaction }

// Type implements Record.
func (*AbortTransaction) Type() Type { return TypeAbortTransaction }

// Type implements Record.
func (*RemoveDelegationToken) Type() Type { return TypeRemoveDelegationToken }

// Type implements Record.
func (*RegisterController) Type() Type { return TypeRegisterController }

// Type implements Record.
func (*ClearELR) Type() Type { return TypeClearELR }

// Type implements Record.
func (*UnregisterController) Type() Type { return TypeUnregisterController }
