package storage

import (
	"errors"
	"math"
	"time"

	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// Errors that callers tell apart. ErrOffsetOutOfRange: the offset lies outside
// [log start, LEO]. ErrCorrupt: the bytes found are no batch. ErrClosed: the log
// was closed or deleted. ErrOffline: an earlier I/O error took the directory
// offline (R8.23).
var (
	ErrOffsetOutOfRange = errors.New("offset out of range")
	ErrCorrupt          = format.ErrCorrupt
	ErrClosed           = errors.New("log is closed")
	ErrOffline          = errors.New("log directory is offline")
)

// LogConfig is the part of a topic's configs that storage obeys. Times are
// milliseconds, sizes bytes, as in Kafka.
type LogConfig struct {
	SegmentBytes       int32         // segment.bytes
	SegmentMs          int64         // segment.ms
	SegmentJitterMs    int64         // segment.jitter.ms
	SegmentIndexBytes  int32         // segment.index.bytes
	IndexIntervalBytes int32         // index.interval.bytes
	RetentionMs        int64         // retention.ms; -1 no limit
	RetentionBytes     int64         // retention.bytes; -1 no limit
	Delete             bool          // cleanup.policy contains delete
	FlushMessages      int64         // flush.messages
	FlushMs            int64         // flush.ms
	FileDeleteDelay    time.Duration // file.delete.delay.ms
}

// DefaultLogConfig is Kafka's defaults (R0.1).
func DefaultLogConfig() LogConfig {
	const day = 24 * 60 * 60 * 1000
	return LogConfig{
		SegmentBytes:       1 << 30,
		SegmentMs:          7 * day,
		SegmentIndexBytes:  10 << 20,
		IndexIntervalBytes: 4096,
		RetentionMs:        7 * day,
		RetentionBytes:     -1,
		Delete:             true,
		FlushMessages:      math.MaxInt64,
		FlushMs:            math.MaxInt64,
		FileDeleteDelay:    time.Minute,
	}
}

// AbortedTxn is an entry of the transaction index.
type AbortedTxn = format.AbortedTxn

// Meta is meta.properties; see format.ParseMeta.
type Meta = format.Meta

// ParseMeta reads meta.properties, for who wants to know whose directory it is
// before opening it.
func ParseMeta(b []byte) (Meta, error) { return format.ParseMeta(b) }
