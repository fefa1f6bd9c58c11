// Package storage keeps the logs of a broker on disk in Kafka's own files.
package storage

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Errors of reads. ErrOffsetOutOfRange: the offset lies outside [log start,
// LEO]. ErrCorrupt: the bytes found are no batch.
var (
	ErrOffsetOutOfRange = errors.New("offset out of range")
	ErrCorrupt          = errors.New("corrupt log")
	ErrClosed           = errors.New("log is closed")
)

// LogConfig is the part of a topic's configs that storage obeys.
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
func DefaultLogConfig() LogConfig { return LogConfig{} }

// DirOptions say how a log directory is opened.
type DirOptions struct {
	// ClusterID and NodeID go into a meta.properties that is missing, and must
	// match one that is there.
	ClusterID string
	NodeID    model.BrokerID
	// DirectoryID is used when meta.properties is missing; zero: a random one
	// must have been given.
	DirectoryID model.UUID
	Config      func(tp model.TopicPartition) LogConfig // nil: the defaults
	Log         *slog.Logger                            // nil: silent
	Now         func() model.Millis                     // wall clock, for recovery and file delays
	MaxOpen     int                                     // open files at most; 0: a default
	Workers     int                                     // logs recovered at once; 0: a default
	// Manual: no background goroutine; the owner calls RunBackground.
	Manual bool
}

// Dir is one log directory with all its logs.
type Dir struct{}

// OpenDir locks and loads a log directory.
func OpenDir(fs vfs.FS, path string, opts DirOptions) (*Dir, error) { return nil, nil }

// ID is the directory's id in meta.properties; ClusterID the cluster's.
func (d *Dir) ID() model.UUID { return model.UUID{} }

// ClusterID is the cluster's id in meta.properties.
func (d *Dir) ClusterID() string { return "" }

// Logs lists the logs in order of topic and partition.
func (d *Dir) Logs() []*Log { return nil }

// Log returns one log, or nil.
func (d *Dir) Log(tp model.TopicPartition) *Log { return nil }

// Create makes an empty log.
func (d *Dir) Create(tp model.TopicPartition, id model.UUID, cfg LogConfig, now model.Millis) (*Log, error) {
	return nil, nil
}

// Delete takes the log out of the directory; its files go after the delay.
func (d *Dir) Delete(tp model.TopicPartition) error { return nil }

// Stray sets a log aside that nobody hosts here: its folder gets -stray.
func (d *Dir) Stray(tp model.TopicPartition) error { return nil }

// CleanShutdownEpoch is the broker epoch of the clean-shutdown file found at
// opening, UnknownBrokerEpoch after an unclean stop (R8.24).
func (d *Dir) CleanShutdownEpoch() model.BrokerEpoch { return model.UnknownBrokerEpoch }

// CheckpointHW writes replication-offset-checkpoint (R8.16).
func (d *Dir) CheckpointHW(hw map[model.TopicPartition]model.Offset) error { return nil }

// CheckpointRecovery writes recovery-point-offset-checkpoint.
func (d *Dir) CheckpointRecovery() error { return nil }

// CheckpointLogStart writes log-start-offset-checkpoint.
func (d *Dir) CheckpointLogStart() error { return nil }

// RunBackground does the work that waits: flushes of rolled segments, removals
// of files whose delay is over.
func (d *Dir) RunBackground() error { return nil }

// Failed is closed when an I/O error took the directory offline; Err says why.
func (d *Dir) Failed() <-chan struct{} { return nil }

// Err is the error that took the directory offline, or nil.
func (d *Dir) Err() error { return nil }

// CloseClean stops the directory in the order of R8.18 and leaves the
// clean-shutdown file with the broker epoch. The HW checkpoint is the caller's.
func (d *Dir) CloseClean(epoch model.BrokerEpoch) error { return nil }

// Close stops without any promise, as a crash would, but releases the files.
func (d *Dir) Close() error { return nil }

// Log is one partition's log. One goroutine at a time may write (Append, Flush,
// Truncate, Restart, WriteEpochs, RaiseStart, ApplyRetention, Close); reads may
// come from any.
type Log struct{}

// AppendBatch is a run of whole batches to append.
type AppendBatch struct {
	Bytes []byte // whole batches, checked before
	// Stamp: write base offsets from Base on and Epoch into the batches.
	Stamp bool
	Base  model.Offset
	Epoch model.Epoch
	// Epochs, when not nil, is the epoch cache to make durable before the bytes
	// (R8.12).
	Epochs []model.EpochStart
}

// Appended tells where an append ended.
type Appended struct {
	End model.Offset // LEO
	Pos model.Position
	// Flush: flush.messages or flush.ms asks for Log.Flush before the append is
	// reported (R13.9).
	Flush bool
}

// Append writes the batches at the end of the log, in order.
func (l *Log) Append(now model.Millis, batches ...AppendBatch) (Appended, error) {
	return Appended{}, nil
}

// Flush makes everything below LEO durable and raises the recovery point.
func (l *Log) Flush() error { return nil }

// Truncated is what is left after a truncation.
type Truncated struct {
	LEO, Start model.Offset
	Pos        model.Position
	Producers  *producers.State
}

// Truncate cuts the log to the offset and writes the epochs (R4.12).
func (l *Log) Truncate(to model.Offset, epochs []model.EpochStart) (Truncated, error) {
	return Truncated{}, nil
}

// Restart drops everything and starts an empty log at the offset (R4.13).
func (l *Log) Restart(at model.Offset, epochs []model.EpochStart) (Truncated, error) {
	return Truncated{}, nil
}

// WriteEpochs writes the leader-epoch checkpoint with fsync (R8.12).
func (l *Log) WriteEpochs(epochs []model.EpochStart) error { return nil }

// RaiseStart moves the log start offset up (DeleteRecords, R3.27).
func (l *Log) RaiseStart(to model.Offset) error { return nil }

// ApplyRetention deletes old segments below hw by time, size and log start
// (R8.17) and returns the log start offset after it.
func (l *Log) ApplyRetention(now model.Millis, hw model.Offset) (model.Offset, error) { return 0, nil }

// SetConfig changes the configs; SetTopicID writes partition.metadata anew.
func (l *Log) SetConfig(cfg LogConfig) {}

// SetTopicID writes partition.metadata for a log that lost it.
func (l *Log) SetTopicID(id model.UUID) error { return nil }

// Slice is a range of whole batches in one file. Release it after use.
type Slice struct {
	File  io.ReaderAt
	Pos   int64
	Len   int
	First model.Offset // base offset of the first batch
	Next  model.Offset // offset after the last batch
}

// Release gives the file back.
func (s *Slice) Release() {}

// Read finds whole batches from the one that holds from, below limit, of at
// most maxBytes; minOne allows one larger batch. Errors: ErrOffsetOutOfRange.
func (l *Log) Read(from model.Offset, maxBytes int, limit model.Offset, minOne bool) (Slice, error) {
	return Slice{}, nil
}

// Locate says where the batch that holds the offset begins; LEO lies at the end.
func (l *Log) Locate(offset model.Offset) (model.Position, error) { return model.UnknownPosition, nil }

// TimestampOffset is a record's time and offset.
type TimestampOffset struct {
	Timestamp model.Millis
	Offset    model.Offset
	Epoch     model.Epoch
}

// OffsetForTime finds the first record at or above the log start whose time is
// at least ts (R9.5).
func (l *Log) OffsetForTime(ts model.Millis) (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, nil
}

// MaxTimestampOffset finds the record with the largest time (R9.5).
func (l *Log) MaxTimestampOffset() (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, nil
}

// AbortedTxn is an entry of the transaction index.
type AbortedTxn struct {
	ID               model.ProducerID
	First, Last, LSO model.Offset
}

// Aborted lists the aborted transactions that overlap [from, to) (R9.1).
func (l *Log) Aborted(from, to model.Offset) ([]AbortedTxn, error) { return nil, nil }

// TP names the partition.
func (l *Log) TP() model.TopicPartition { return model.TopicPartition{} }

// TopicID is the id in partition.metadata; zero when it is lost.
func (l *Log) TopicID() model.UUID { return model.UUID{} }

// Start is the log start offset.
func (l *Log) Start() model.Offset { return 0 }

// LEO is the log end offset.
func (l *Log) LEO() model.Offset { return 0 }

// End is LEO with its position.
func (l *Log) End() (model.Offset, model.Position) { return 0, model.UnknownPosition }

// RecoveryPoint is the offset below which everything is durable.
func (l *Log) RecoveryPoint() model.Offset { return 0 }

// CheckpointedHW is the high watermark found at load, clamped (R8.16).
func (l *Log) CheckpointedHW() model.Offset { return 0 }

// Producers is a copy of the producer state of everything written.
func (l *Log) Producers() *producers.State { return nil }

// Epochs is the epoch cache last written.
func (l *Log) Epochs() []model.EpochStart { return nil }

// Size is the bytes of all segments.
func (l *Log) Size() int64 { return 0 }

// SegmentInfo describes one segment.
type SegmentInfo struct {
	Base         model.Offset
	Bytes        int64
	MaxTimestamp model.Millis // -1 when it holds none
	Modified     model.Millis
	Active       bool
}

// Segments describes the segments, oldest first.
func (l *Log) Segments() []SegmentInfo { return nil }
