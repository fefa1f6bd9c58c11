// Package producers keeps what a partition must remember of its producers.
//
// That is the window of recent batches, open transactions and the aborted ones
// (R2.10-R2.16, R1.8). It is a fold over batches: the storage room folds what it
// wrote, the partition core what it has accepted.
package producers

import "github.com/tidemark-log/tidemark/internal/core/model"

// Batch is what the header of one record batch says about its producer. ID is
// NoProducerID for a batch of a plain producer.
type Batch struct {
	ID            model.ProducerID
	Epoch         int16
	BaseSequence  int32
	Records       int32        // last offset delta + 1
	Base          model.Offset // first offset; assigned by the leader
	MaxTimestamp  model.Millis
	Transactional bool
	Control       bool
	// Verified says that the transaction's coordinator confirmed that this
	// partition takes part. Without it a client's batch opens no transaction (R2.14).
	Verified bool
	// Of a control batch: whether it commits, and the coordinator's epoch.
	Commit           bool
	CoordinatorEpoch int32
}

// Last is the offset of the batch's last record.
func (b Batch) Last() model.Offset { return b.Base + model.Offset(b.Records) - 1 }

// LastSequence is the sequence of the last record; sequences wrap from 2^31-1
// to 0 (R2.13).
func (b Batch) LastSequence() int32 {
	if b.BaseSequence < 0 {
		return b.BaseSequence
	}
	return int32((int64(b.BaseSequence) + int64(b.Records) - 1) & 0x7fffffff)
}
