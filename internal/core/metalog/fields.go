package metalog

// The fields of every record, in the order of Kafka's schema.

func (r *RegisterBroker) walk(w walker, v int16) {
	w.int32("brokerId", (*int32)(&r.BrokerID))
	if v >= 2 {
		w.bool("isMigratingZkBroker", &r.IsMigratingZkBroker)
	}
	w.uuid("incarnationId", &r.IncarnationID)
	w.int64("brokerEpoch", (*int64)(&r.BrokerEpoch))
	structs(w, "endPoints", &r.Endpoints, 6, walkEndpoint)
	structs(w, "features", &r.Features, 6, walkFeature)
	w.nullString("rack", &r.Rack)
	w.bool("fenced", &r.Fenced)
	if v >= 1 {
		w.bool("inControlledShutdown", &r.InControlledShutdown)
	}
	if v >= 3 {
		w.tagUUIDs(0, "logDirs", &r.LogDirs, true)
	}
	if v >= 4 {
		w.tagUUIDs(1, "cordonedLogDirs", &r.CordonedLogDirs, false)
	}
}

func walkEndpoint(w walker, e *Endpoint) {
	w.string("name", &e.Name)
	w.string("host", &e.Host)
	w.uint16("port", &e.Port)
	w.int16("securityProtocol", &e.SecurityProtocol)
}

func walkFeature(w walker, f *FeatureRange) {
	w.string("name", &f.Name)
	w.int16("minSupportedVersion", &f.Min)
	w.int16("maxSupportedVersion", &f.Max)
}

func (r *UnregisterBroker) walk(w walker, _ int16) {
	w.int32("brokerId", (*int32)(&r.BrokerID))
	w.int64("brokerEpoch", (*int64)(&r.BrokerEpoch))
}

func (r *Topic) walk(w walker, _ int16) {
	w.string("name", &r.Name)
	w.uuid("topicId", &r.TopicID)
}

func (r *Partition) walk(w walker, v int16) {
	w.int32("partitionId", &r.PartitionID)
	w.uuid("topicId", &r.TopicID)
	w.ids("replicas", &r.Replicas)
	w.ids("isr", &r.ISR)
	w.ids("removingReplicas", &r.Removing)
	w.ids("addingReplicas", &r.Adding)
	w.int32("leader", (*int32)(&r.Leader))
	w.tagInt8(0, "leaderRecoveryState", (*int8)(&r.RecoveryState), int8(Recovered))
	w.int32("leaderEpoch", (*int32)(&r.LeaderEpoch))
	w.int32("partitionEpoch", (*int32)(&r.PartitionEpoch))
	if v >= 1 {
		w.uuids("directories", &r.Directories)
	}
	if v >= 2 {
		w.tagIDs(1, "eligibleLeaderReplicas", &r.ELR)
		w.tagIDs(2, "lastKnownElr", &r.LastKnownELR)
	}
}

func (r *Config) walk(w walker, _ int16) {
	w.int8("resourceType", &r.ResourceType)
	w.string("resourceName", &r.ResourceName)
	w.string("name", &r.Name)
	w.nullString("value", &r.Value)
}

func (r *PartitionChange) walk(w walker, v int16) {
	w.int32("partitionId", &r.PartitionID)
	w.uuid("topicId", &r.TopicID)
	w.tagIDs(0, "isr", &r.ISR)
	w.tagInt32(1, "leader", (*int32)(&r.Leader), int32(LeaderUnchanged))
	w.tagIDs(2, "replicas", &r.Replicas)
	w.tagIDs(3, "removingReplicas", &r.Removing)
	w.tagIDs(4, "addingReplicas", &r.Adding)
	w.tagInt8(5, "leaderRecoveryState", (*int8)(&r.RecoveryState), int8(RecoveryUnchanged))
	if v >= 1 {
		w.tagUUIDs(8, "directories", &r.Directories, false)
	}
	if v >= 2 {
		w.tagIDs(6, "eligibleLeaderReplicas", &r.ELR)
		w.tagIDs(7, "lastKnownElr", &r.LastKnownELR)
	}
}

func (r *FenceBroker) walk(w walker, _ int16) {
	w.int32("id", (*int32)(&r.BrokerID))
	w.int64("epoch", (*int64)(&r.BrokerEpoch))
}

func (r *UnfenceBroker) walk(w walker, _ int16) {
	w.int32("id", (*int32)(&r.BrokerID))
	w.int64("epoch", (*int64)(&r.BrokerEpoch))
}

func (r *RemoveTopic) walk(w walker, _ int16) { w.uuid("topicId", &r.TopicID) }

func (r *DelegationToken) walk(w walker, _ int16) {
	w.string("owner", &r.Owner)
	w.string("requester", &r.Requester)
	w.strings("renewers", &r.Renewers)
	w.int64("issueTimestamp", (*int64)(&r.IssueTimestamp))
	w.int64("maxTimestamp", (*int64)(&r.MaxTimestamp))
	w.int64("expirationTimestamp", (*int64)(&r.ExpirationTimestamp))
	w.string("tokenId", &r.TokenID)
}

func (r *UserScramCredential) walk(w walker, _ int16) {
	w.string("name", &r.Name)
	w.int8("mechanism", &r.Mechanism)
	w.bytes("salt", &r.Salt)
	w.bytes("storedKey", &r.StoredKey)
	w.bytes("serverKey", &r.ServerKey)
	w.int32("iterations", &r.Iterations)
}

func (r *FeatureLevel) walk(w walker, _ int16) {
	w.string("name", &r.Name)
	w.int16("featureLevel", &r.FeatureLevel)
}

func (r *ClientQuota) walk(w walker, _ int16) {
	structs(w, "entity", &r.Entity, 3, func(w walker, e *QuotaEntity) {
		w.string("entityType", &e.EntityType)
		w.nullString("entityName", &e.EntityName)
	})
	w.string("key", &r.Key)
	w.float64("value", &r.Value)
	w.bool("remove", &r.Remove)
}

func (r *ProducerIDs) walk(w walker, _ int16) {
	w.int32("brokerId", (*int32)(&r.BrokerID))
	w.int64("brokerEpoch", (*int64)(&r.BrokerEpoch))
	w.int64("nextProducerId", (*int64)(&r.NextProducerID))
}

func (r *BrokerRegistrationChange) walk(w walker, v int16) {
	w.int32("brokerId", (*int32)(&r.BrokerID))
	w.int64("brokerEpoch", (*int64)(&r.BrokerEpoch))
	w.tagInt8(0, "fenced", &r.Fenced, FencedUnchanged)
	if v >= 1 {
		w.tagInt8(1, "inControlledShutdown", &r.InControlledShutdown, 0)
	}
	if v >= 2 {
		w.tagUUIDs(2, "logDirs", &r.LogDirs, true)
	}
	if v >= 3 {
		w.tagUUIDs(3, "cordonedLogDirs", &r.CordonedLogDirs, false)
	}
}

func (r *AccessControlEntry) walk(w walker, _ int16) {
	w.uuid("id", &r.ID)
	w.int8("resourceType", &r.ResourceType)
	w.string("resourceName", &r.ResourceName)
	w.int8("patternType", &r.PatternType)
	w.string("principal", &r.Principal)
	w.string("host", &r.Host)
	w.int8("operation", &r.Operation)
	w.int8("permissionType", &r.PermissionType)
}

func (r *RemoveAccessControlEntry) walk(w walker, _ int16) { w.uuid("id", &r.ID) }

func (*NoOp) walk(walker, int16) {}

func (r *ZkMigrationState) walk(w walker, _ int16) { w.int8("zkMigrationState", &r.State) }

func (r *RemoveUserScramCredential) walk(w walker, _ int16) {
	w.string("name", &r.Name)
	w.int8("mechanism", &r.Mechanism)
}

func (r *BeginTransaction) walk(w walker, _ int16) { w.tagString(0, "name", &r.Name) }

func (*EndTransaction) walk(walker, int16) {}

func (r *AbortTransaction) walk(w walker, _ int16) { w.tagString(0, "reason", &r.Reason) }

func (r *RemoveDelegationToken) walk(w walker, _ int16) { w.string("tokenId", &r.TokenID) }

func (r *RegisterController) walk(w walker, _ int16) {
	w.int32("controllerId", (*int32)(&r.ControllerID))
	w.uuid("incarnationId", &r.IncarnationID)
	w.bool("zkMigrationReady", &r.ZkMigrationReady)
	structs(w, "endPoints", &r.Endpoints, 6, walkEndpoint)
	structs(w, "features", &r.Features, 6, walkFeature)
}

func (r *ClearELR) walk(w walker, _ int16) { w.string("topicName", &r.TopicName) }

func (r *UnregisterController) walk(w walker, _ int16) {
	w.int32("controllerId", (*int32)(&r.ControllerID))
}
