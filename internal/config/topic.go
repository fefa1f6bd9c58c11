package config

import (
	"math"
	"time"
)

// Forever is the duration of a time setting that is too long to count.
const Forever = time.Duration(math.MaxInt64)

// Codec numbers a compression type as the attributes of a record batch do.
type Codec int8

// The values of compression.type.
const (
	CodecProducer Codec = -1 // keep what the producer sent
	CodecNone     Codec = 0
	CodecGzip     Codec = 1
	CodecSnappy   Codec = 2
	CodecLZ4      Codec = 3
	CodecZstd     Codec = 4
)

// Topic is the effective configuration of one topic: its own overrides over
// what the broker's keys say, over Kafka's defaults.
type Topic struct {
	CleanupDelete  bool // cleanup.policy names delete
	CleanupCompact bool // cleanup.policy names compact

	Retention      time.Duration // retention.ms; negative keeps for ever
	RetentionBytes int64         // retention.bytes; negative has no bound
	SegmentBytes   int32
	SegmentAge     time.Duration // segment.ms
	SegmentJitter  time.Duration
	IndexBytes     int32 // segment.index.bytes
	IndexInterval  int32 // index.interval.bytes
	Preallocate    bool
	FileDelay      time.Duration // file.delete.delay.ms

	FlushMessages int64         // math.MaxInt64 leaves it to the system; 1 is the fsync class of R13.9
	FlushInterval time.Duration // flush.ms; Forever leaves it to the system

	MaxMessageBytes      int32
	MaxDecompressedBytes int32
	LogAppendTime        bool          // message.timestamp.type
	TimestampBeforeMax   time.Duration // message.timestamp.before.max.ms; Forever has no bound
	TimestampAfterMax    time.Duration // message.timestamp.after.max.ms; Forever has no bound

	Codec     Codec // compression.type
	GzipLevel int
	LZ4Level  int
	ZstdLevel int

	MinISR          int // min.insync.replicas
	UncleanElection bool

	DeleteRetention   time.Duration // delete.retention.ms of tombstones
	MinCompactionLag  time.Duration
	MaxCompactionLag  time.Duration
	MinCleanableRatio float64

	LeaderThrottled   []string // PARTITION:BROKER, or * for all
	FollowerThrottled []string
}

// TopicConfig folds the overrides of a topic over the broker-level keys of
// BrokerDefaults. A value that does not parse, which validation never lets into
// the metadata log, counts as absent.
func TopicConfig(brokerDefaults, overrides map[string]string) Topic { return Topic{} }

// ValidateTopic says whether a topic may set key to value. The error is one
// sentence that names the key, the value and what is allowed.
func ValidateTopic(key, value string) error { return nil }

// ValidateTopicSet says whether these overrides of one topic fit together, each
// of them by ValidateTopic and all of them by Kafka's rules between keys.
func ValidateTopicSet(overrides map[string]string) error { return nil }
