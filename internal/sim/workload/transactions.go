package workload

// Transactions will be a producer whose batches in several partitions, and whose
// offsets in a group, become visible together or not at all. What joins here:
// InitProducerId with a transactional id, AddPartitionsToTxn, AddOffsetsToTxn,
// TxnOffsetCommit, EndTxn and retries of it, a second life that fences the first,
// and in the history which values stand or fall together; readers with
// Consumer.Committed then skip the aborted ones by the answer's list.
type Transactions struct{}
