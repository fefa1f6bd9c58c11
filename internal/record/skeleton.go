package record

import (
	"iter"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// Check judges one produced batch against the rules; now is the broker's wall
// clock.
func Check(batch []byte, now model.Millis, rules *CheckRules) CheckResult {
	return CheckResult{Err: model.ErrCorruptMessage}
}

// Split yields the whole batches at the front of set, each with its header; a
// partial or garbled tail ends the walk.
func Split(set []byte) iter.Seq2[Header, []byte] {
	return func(yield func(Header, []byte) bool) {}
}

// Valid reports whether the whole batch's checksum is right.
func Valid(batch []byte) bool { return false }

// ProducerOf is what a whole batch says about its producer. Of a control batch
// it reads the marker.
func ProducerOf(batch []byte) producers.Batch { return producers.Batch{} }

// HeaderField is one header of a record. A nil value is null.
type HeaderField struct {
	Key   string
	Value []byte
}

// Record is one record of a batch. Nil keys and values are null. Slices point
// into the batch, or into memory that is reused by the next batch.
type Record struct {
	Offset    model.Offset
	Timestamp model.Millis
	Sequence  int32 // -1 without a producer
	Key       []byte
	Value     []byte
	Headers   []HeaderField
}

// Records calls fn for each record of a whole batch until it returns false.
// The record is only valid during the call. The error says why the body cannot
// be read.
func Records(batch []byte, fn func(*Record) bool) error { return nil }

// BatchOptions are the header fields of a batch to be built.
type BatchOptions struct {
	Base          model.Offset
	LeaderEpoch   model.Epoch
	Codec         Codec
	Level         int
	ProducerID    model.ProducerID // NoProducerID for a plain batch
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool
}

// PlainOptions are the options of a batch without a producer id.
func PlainOptions() BatchOptions {
	return BatchOptions{ProducerID: model.NoProducerID, ProducerEpoch: -1, BaseSequence: -1}
}

// Builder makes a batch, record by record. It can be reused after Reset.
type Builder struct{}

// NewBuilder starts a batch.
func NewBuilder(opts BatchOptions) *Builder { return &Builder{} }

// Reset starts another batch, reusing the memory of the last.
func (b *Builder) Reset(opts BatchOptions) {}

// Add appends a record.
func (b *Builder) Add(timestamp model.Millis, key, value []byte, headers ...HeaderField) {}

// Len is the number of records so far; Size is what they take uncompressed.
func (b *Builder) Len() int { return 0 }

// Size is the size of the batch so far, before compression.
func (b *Builder) Size() int { return HeaderSize }

// Bytes ends the batch and returns it; it is valid until Reset.
func (b *Builder) Bytes() []byte { return nil }

// EndMarker builds the control batch that ends a transaction (R2.15).
func EndMarker(base model.Offset, epoch model.Epoch, now model.Millis, id model.ProducerID, producerEpoch int16, commit bool, coordinatorEpoch int32) []byte {
	return nil
}
