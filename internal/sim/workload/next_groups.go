package workload

// ConsumerGroup will be a member of a group of the new protocol (KIP-848). What
// joins here: ConsumerGroupHeartbeat with what is owned, assignments that the
// broker reconciles, member epochs in OffsetCommit and OffsetFetch; reader,
// member.commit and member.resume serve it as they are.
type ConsumerGroup struct{}
