package metalog

import "strconv"

// schema says which versions of a record type exist and from which level of
// metadata.version on each may be written.
type schema struct {
	name   string  // as kafka-dump-log prints it
	levels []int16 // index: version; value: the lowest level that allows it
	fresh  func() Record
}

// schemas is Kafka's table of metadata records; an absent type is nil.
var schemas = [...]*schema{
	TypeRegisterBroker: {"REGISTER_BROKER_RECORD", []int16{1, 7, 8, 17, 30},
		func() Record { return new(RegisterBroker) }},
	TypeUnregisterBroker: {"UNREGISTER_BROKER_RECORD", []int16{1},
		func() Record { return new(UnregisterBroker) }},
	TypeTopic:     {"TOPIC_RECORD", []int16{1}, func() Record { return new(Topic) }},
	TypePartition: {"PARTITION_RECORD", []int16{1, 17, 23}, func() Record { return new(Partition) }},
	TypeConfig:    {"CONFIG_RECORD", []int16{1}, func() Record { return new(Config) }},
	TypePartitionChange: {"PARTITION_CHANGE_RECORD", []int16{1, 17, 23},
		func() Record { return new(PartitionChange) }},
	TypeFenceBroker:   {"FENCE_BROKER_RECORD", []int16{1}, func() Record { return new(FenceBroker) }},
	TypeUnfenceBroker: {"UNFENCE_BROKER_RECORD", []int16{1}, func() Record { return new(UnfenceBroker) }},
	TypeRemoveTopic:   {"REMOVE_TOPIC_RECORD", []int16{1}, func() Record { return new(RemoveTopic) }},
	TypeDelegationToken: {"DELEGATION_TOKEN_RECORD", []int16{14},
		func() Record { return new(DelegationToken) }},
	TypeUserScramCredential: {"USER_SCRAM_CREDENTIAL_RECORD", []int16{11},
		func() Record { return new(UserScramCredential) }},
	TypeFeatureLevel: {"FEATURE_LEVEL_RECORD", []int16{1}, func() Record { return new(FeatureLevel) }},
	TypeClientQuota:  {"CLIENT_QUOTA_RECORD", []int16{1}, func() Record { return new(ClientQuota) }},
	TypeProducerIDs:  {"PRODUCER_IDS_RECORD", []int16{1}, func() Record { return new(ProducerIDs) }},
	TypeBrokerRegistrationChange: {"BROKER_REGISTRATION_CHANGE_RECORD", []int16{6, 7, 17, 30},
		func() Record { return new(BrokerRegistrationChange) }},
	TypeAccessControlEntry: {"ACCESS_CONTROL_ENTRY_RECORD", []int16{1},
		func() Record { return new(AccessControlEntry) }},
	TypeRemoveAccessControlEntry: {"REMOVE_ACCESS_CONTROL_ENTRY_RECORD", []int16{1},
		func() Record { return new(RemoveAccessControlEntry) }},
	TypeNoOp: {"NO_OP_RECORD", []int16{5}, func() Record { return new(NoOp) }},
	TypeZkMigrationState: {"ZK_MIGRATION_STATE_RECORD", []int16{8},
		func() Record { return new(ZkMigrationState) }},
	TypeRemoveUserScramCredential: {"REMOVE_USER_SCRAM_CREDENTIAL_RECORD", []int16{11},
		func() Record { return new(RemoveUserScramCredential) }},
	TypeBeginTransaction: {"BEGIN_TRANSACTION_RECORD", []int16{13},
		func() Record { return new(BeginTransaction) }},
	TypeEndTransaction: {"END_TRANSACTION_RECORD", []int16{13},
		func() Record { return new(EndTransaction) }},
	TypeAbortTransaction: {"ABORT_TRANSACTION_RECORD", []int16{13},
		func() Record { return new(AbortTransaction) }},
	TypeRemoveDelegationToken: {"REMOVE_DELEGATION_TOKEN_RECORD", []int16{14},
		func() Record { return new(RemoveDelegationToken) }},
	TypeRegisterController: {"REGISTER_CONTROLLER_RECORD", []int16{15},
		func() Record { return new(RegisterController) }},
	TypeClearELR: {"CLEAR_ELR_RECORD", []int16{23}, func() Record { return new(ClearELR) }},
	TypeUnregisterController: {"UNREGISTER_CONTROLLER_RECORD", []int16{33},
		func() Record { return new(UnregisterController) }},
}

func lookup(t Type) *schema {
	if t < 0 || int(t) >= len(schemas) {
		return nil
	}
	return schemas[t]
}

// String prints the type as kafka-dump-log does.
func (t Type) String() string {
	if s := lookup(t); s != nil {
		return s.name
	}
	return "RECORD_" + strconv.Itoa(int(t))
}

// maxVersion returns the highest version of the type that clusters at the level
// can read. False: they cannot read the type at all.
func maxVersion(t Type, level int16) (int16, bool) {
	s := lookup(t)
	if s == nil || level < s.levels[0] {
		return -1, false
	}
	v := len(s.levels) - 1
	for level < s.levels[v] {
		v--
	}
	return int16(v), true
}

// version chooses the version of rec at the level: the highest, but for a
// BrokerRegistrationChange the lowest that tells what it has to tell, as Apache
// does.
func version(rec Record, level int16) (int16, bool) {
	v, ok := maxVersion(rec.Type(), level)
	change, is := rec.(*BrokerRegistrationChange)
	if !is {
		return v, ok
	}
	switch {
	case change.CordonedLogDirs != nil:
		return min(v, 3), ok
	case len(change.LogDirs) > 0:
		return min(v, 2), ok
	case change.InControlledShutdown != 0:
		return min(v, 1), ok
	default:
		return min(v, 0), ok
	}
}
