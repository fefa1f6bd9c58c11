package workload

// Compaction will be a producer of few keys with many values and tombstones for a
// topic with cleanup.policy=compact. What joins here: the keys, of which a reader
// that begins anew must find the last acknowledged value of each, in the order of
// offsets, while older ones may be gone.
type Compaction struct{}
