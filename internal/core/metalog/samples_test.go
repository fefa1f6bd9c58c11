package metalog

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func ptr(s string) *string { return &s }

func uuidOf(n byte) model.UUID { return model.UUID{0: n, 7: 0x40, 15: n} }

var sampleEndpoints = []Endpoint{
	{"PLAINTEXT", "b1.example", 9092, 0}, {"Ünïcode \"quoted\"\n\x01", "::1", 65535, 3},
}

var sampleFeatures = []FeatureRange{{"metadata.version", 7, 25}, {"kraft.version", 0, 1}}

// samples holds at least one record of every type, with every field set to
// something that its default is not, and the corners of null, empty and sign.
func samples() []Record { return append(clusterSamples(), otherSamples()...) }

func clusterSamples() []Record {
	t, ids := uuidOf(9), []model.BrokerID{3, 1, 2147483647}
	full := &PartitionChange{
		PartitionID: 7, TopicID: t, ISR: ids, Leader: model.NoBroker, Replicas: ids[:2],
		Removing: ids[:1], Adding: ids[1:2], RecoveryState: Recovering, ELR: ids[2:],
		LastKnownELR: ids[:1], Directories: []model.UUID{uuidOf(1), DirUnassigned},
	}
	empty := NewPartitionChange(t, 1)
	empty.ISR, empty.Replicas, empty.Removing = []model.BrokerID{}, []model.BrokerID{}, []model.BrokerID{}
	empty.Adding, empty.ELR, empty.LastKnownELR = []model.BrokerID{}, []model.BrokerID{}, []model.BrokerID{}
	empty.Directories, empty.Leader, empty.RecoveryState = []model.UUID{}, 0, Recovered
	return []Record{
		&RegisterBroker{
			BrokerID: 1, IsMigratingZkBroker: true, IncarnationID: uuidOf(2), BrokerEpoch: 1 << 40,
			Endpoints: sampleEndpoints, Features: sampleFeatures, Rack: ptr("r\\1"), Fenced: true,
			InControlledShutdown: true, LogDirs: []model.UUID{uuidOf(3)}, CordonedLogDirs: []model.UUID{uuidOf(3)},
		},
		&RegisterBroker{BrokerID: 2, CordonedLogDirs: []model.UUID{}},
		&UnregisterBroker{1, 5}, &Topic{"orders", t},
		&Partition{
			PartitionID: 3, TopicID: t, Replicas: ids, ISR: ids[:1], Removing: ids[1:2], Adding: ids[2:],
			Leader: 3, RecoveryState: Recovering, LeaderEpoch: 4, PartitionEpoch: 5,
			Directories: []model.UUID{uuidOf(1), DirUnassigned, DirLost}, ELR: ids[1:2], LastKnownELR: ids[2:],
		},
		&Partition{TopicID: t, Leader: model.NoBroker, LeaderEpoch: -1, ELR: []model.BrokerID{}},
		&Config{ResourceTopic, "orders", "cleanup.policy", ptr("compact")}, &Config{4, "", "x", nil},
		full, empty, NewPartitionChange(t, 2), &FenceBroker{1, 2}, &UnfenceBroker{1, 2}, &RemoveTopic{t},
	}
}

func otherSamples() []Record {
	return []Record{
		&DelegationToken{"User:a", "User:b", []string{"User:c", ""}, 1, 2, 3, "id"},
		&DelegationToken{TokenID: "none"},
		&UserScramCredential{"a", 2, []byte{0xff, 0}, []byte("stored"), nil, 4096},
		&FeatureLevel{"metadata.version", 25},
		&ClientQuota{[]QuotaEntity{{"user", ptr("a")}, {"client-id", nil}}, "producer_byte_rate", 1048576, false},
		&ClientQuota{nil, "k", 1e7, true}, &ClientQuota{Key: "k", Value: 12345.678}, &ClientQuota{Key: "k", Value: -1e-4},
		&ClientQuota{Key: "k", Value: math.Inf(1)}, &ClientQuota{Key: "k", Value: 0.001}, &ClientQuota{Key: "k", Value: 1.5e300},
		&ProducerIDs{1, 2, 3000},
		&BrokerRegistrationChange{1, 2, FencedCleared, 1, []model.UUID{uuidOf(1)}, []model.UUID{}},
		&BrokerRegistrationChange{1, 2, FencedSet, 0, nil, nil},
		&AccessControlEntry{uuidOf(4), 2, "orders", 3, "User:a", "*", 3, 3}, &RemoveAccessControlEntry{uuidOf(4)},
		&NoOp{}, &ZkMigrationState{3}, &RemoveUserScramCredential{"a", 1},
		&BeginTransaction{ptr("create")}, &BeginTransaction{}, &EndTransaction{}, &AbortTransaction{ptr("")}, &AbortTransaction{},
		&RemoveDelegationToken{"id"}, &RegisterController{3, uuidOf(5), true, sampleEndpoints, sampleFeatures},
		&RegisterController{}, &ClearELR{"orders"}, &ClearELR{}, &UnregisterController{3},
	}
}

func controlSamples() []Control {
	return []Control{
		&LeaderChange{Leader: 2, Voters: []model.BrokerID{1, 2, 3}, Granting: []model.BrokerID{2, 3}},
		&SnapshotHeader{1796002267186}, &SnapshotFooter{}, &KRaftVersion{1},
		&KRaftVoters{[]Voter{
			{1, uuidOf(1), []VoterEndpoint{{"CONTROLLER", "c1", 9093}, {"B", "::1", 65535}}, 0, 1},
			{2, uuidOf(2), nil, 0, 1},
		}},
		&KRaftVoters{},
	}
}

// leaderChangeV1 is a version that Apache's own reader refuses, so that we never
// write it into a log.
func leaderChangeV1() *LeaderChange {
	return &LeaderChange{
		Leader: 2, Voters: []model.BrokerID{1, 2}, Granting: []model.BrokerID{2},
		VoterDirs: []model.UUID{uuidOf(1), uuidOf(2)}, GrantingDirs: []model.UUID{uuidOf(2)},
	}
}

// sampleLog is a log of all samples, each data record in each of its versions.
func sampleLog() []byte {
	log := AppendControlBatch(nil, 0, 1, 1000, controlSamples())
	base := model.Offset(len(controlSamples()))
	for _, rec := range samples() {
		b := beginBatch(log)
		for v := range schemas[rec.Type()].levels {
			b.value = b.w.appendVersion(b.value[:0], rec, int16(v))
			b.record(nil)
		}
		log = b.finish(base, 1, 1000, 0)
		base += model.Offset(binary.BigEndian.Uint32(log[b.start+57:]))
	}
	return log
}
