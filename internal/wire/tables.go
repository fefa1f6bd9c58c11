package wire

// BrokerVersions is exactly what a broker's client listeners serve. A test
// compares every row with what Apache Kafka 4.4.0 says of itself.
var BrokerVersions = NewVersions(
	Range{Key: 0, Min: 0, Max: 13, Parse: 3}, // Produce
	Range{Key: 1, Min: 4, Max: 18},           // Fetch
	Range{Key: 2, Min: 1, Max: 11},           // ListOffsets
	Range{Key: 3, Min: 0, Max: 13},           // Metadata
	Range{Key: 8, Min: 2, Max: 10},           // OffsetCommit
	Range{Key: 9, Min: 1, Max: 10},           // OffsetFetch
	Range{Key: 10, Min: 0, Max: 6},           // FindCoordinator
	Range{Key: 11, Min: 0, Max: 9},           // JoinGroup
	Range{Key: 12, Min: 0, Max: 4},           // Heartbeat
	Range{Key: 13, Min: 0, Max: 5},           // LeaveGroup
	Range{Key: 14, Min: 0, Max: 5},           // SyncGroup
	Range{Key: 15, Min: 0, Max: 6},           // DescribeGroups
	Range{Key: 16, Min: 0, Max: 5},           // ListGroups
	Range{Key: 18, Min: 0, Max: 5},           // ApiVersions
	Range{Key: 19, Min: 2, Max: 7},           // CreateTopics
	Range{Key: 20, Min: 1, Max: 6},           // DeleteTopics
	Range{Key: 21, Min: 0, Max: 2},           // DeleteRecords
	Range{Key: 22, Min: 0, Max: 5},           // InitProducerId
	Range{Key: 23, Min: 2, Max: 4},           // OffsetForLeaderEpoch
	Range{Key: 32, Min: 1, Max: 4},           // DescribeConfigs
	Range{Key: 33, Min: 0, Max: 2},           // AlterConfigs
	Range{Key: 35, Min: 1, Max: 5},           // DescribeLogDirs
	Range{Key: 37, Min: 0, Max: 3},           // CreatePartitions
	Range{Key: 42, Min: 0, Max: 3},           // DeleteGroups
	Range{Key: 43, Min: 0, Max: 2},           // ElectLeaders
	Range{Key: 44, Min: 0, Max: 1},           // IncrementalAlterConfigs
	Range{Key: 45, Min: 0, Max: 1},           // AlterPartitionReassignments
	Range{Key: 46, Min: 0, Max: 0},           // ListPartitionReassignments
	Range{Key: 47, Min: 0, Max: 0},           // OffsetDelete
	Range{Key: 55, Min: 0, Max: 2},           // DescribeQuorum
	Range{Key: 57, Min: 0, Max: 2},           // UpdateFeatures
	Range{Key: 60, Min: 0, Max: 2},           // DescribeCluster
	Range{Key: 61, Min: 0, Max: 0},           // DescribeProducers
	Range{Key: 64, Min: 0, Max: 0},           // UnregisterBroker
	Range{Key: 74, Min: 0, Max: 1},           // ListConfigResources
	Range{Key: 75, Min: 0, Max: 0},           // DescribeTopicPartitions
)

// ControllerVersions is exactly what a controller listener serves. Raft
// messages travel under private keys that the control plane adds.
var ControllerVersions = NewVersions(
	Range{Key: 1, Min: 4, Max: 18}, // Fetch, of the metadata log
	Range{Key: 18, Min: 0, Max: 5}, // ApiVersions
	Range{Key: 19, Min: 2, Max: 7}, // CreateTopics
	Range{Key: 20, Min: 1, Max: 6}, // DeleteTopics
	Range{Key: 33, Min: 0, Max: 2}, // AlterConfigs
	Range{Key: 37, Min: 0, Max: 3}, // CreatePartitions
	Range{Key: 43, Min: 0, Max: 2}, // ElectLeaders
	Range{Key: 44, Min: 0, Max: 1}, // IncrementalAlterConfigs
	Range{Key: 45, Min: 0, Max: 1}, // AlterPartitionReassignments
	Range{Key: 46, Min: 0, Max: 0}, // ListPartitionReassignments
	Range{Key: 55, Min: 0, Max: 2}, // DescribeQuorum
	Range{Key: 56, Min: 2, Max: 3}, // AlterPartition
	Range{Key: 57, Min: 0, Max: 2}, // UpdateFeatures
	Range{Key: 59, Min: 0, Max: 1}, // FetchSnapshot
	Range{Key: 60, Min: 0, Max: 2}, // DescribeCluster
	Range{Key: 62, Min: 0, Max: 4}, // BrokerRegistration
	Range{Key: 63, Min: 0, Max: 2}, // BrokerHeartbeat
	Range{Key: 64, Min: 0, Max: 0}, // UnregisterBroker
	Range{Key: 67, Min: 0, Max: 0}, // AllocateProducerIds
	Range{Key: 70, Min: 0, Max: 0}, // ControllerRegistration
	Range{Key: 73, Min: 0, Max: 0}, // AssignReplicasToDirs
)

// With returns the table with more ranges, such as private keys.
func (v *Versions) With(more ...Range) *Versions {
	return NewVersions(append(append([]Range(nil), v.ranges...), more...)...)
}
