package record

import "github.com/tidemark-log/tidemark/internal/core/model"

// CheckRules say what a topic and a request allow in one produced batch
// (R2.2-R2.5). The zero value of a limit means no limit.
type CheckRules struct {
	MaxBytes     int32 // max.message.bytes, of the whole batch
	SegmentBytes int32 // segment.bytes: a batch never spans segments
	// Compacted: cleanup.policy contains compact, so every record needs a key.
	Compacted bool
	// LogAppendTime: message.timestamp.type=LogAppendTime.
	LogAppendTime bool
	// BeforeMax and AfterMax bound CreateTime around now, in milliseconds
	// (message.timestamp.before.max.ms, message.timestamp.after.max.ms).
	BeforeMax, AfterMax model.Millis
	// Codec is the topic's compression.type; CodecProducer keeps what came.
	Codec Codec
	// Level is the compression level for Codec; 0 is the codec's default.
	Level int
	// NoZstd: the request is older than v7 and may not carry zstd.
	NoZstd bool
	// Internal: the broker's own coordinators write control batches and may
	// use a record of any time.
	Internal bool
}

// BadRecord names one refused record of a batch (KIP-467).
type BadRecord struct {
	Index   int32 // position within the batch
	Message string
}

// CheckResult is the verdict on one produced batch. With Err None, Batch is
// what to append: the bytes that came, patched in place, or a new batch.
type CheckResult struct {
	Err     model.Error
	Message string      // why, in words; empty with None
	Bad     []BadRecord // the refused records, when the fault lies in some of them
	Batch   []byte
	Header  Header // of Batch
	// AppendTime is what to answer as log append time; -1 for CreateTime.
	AppendTime model.Millis
}
