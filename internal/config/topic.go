package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
	IndexBytes     int32         // segment.index.bytes
	IndexInterval  int32         // index.interval.bytes
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
}

// TopicConfig folds the overrides of a topic over the broker-level keys of
// BrokerDefaults. A value that does not parse, which validation never lets into
// the metadata log, counts as absent.
func TopicConfig(brokerDefaults, overrides map[string]string) Topic {
	var t Topic
	for key, m := range topicMeanings {
		d, ok := Lookup(TopicResource, key)
		if !ok || d.Internal {
			continue
		}
		if v, ok := d.effective(brokerDefaults, overrides); ok {
			m.topic(&t, v)
		}
	}
	if v, ok := overrides[keyInternalSegment]; ok && ValidateTopic(keyInternalSegment, v) == nil {
		topicMeanings[keyInternalSegment].topic(&t, v)
	}
	return t
}

// effective returns the value of a key: the override, else the best broker key
// behind it that is set, else the default.
func (d *Def) effective(brokerDefaults, overrides map[string]string) (string, bool) {
	if v, ok := overrides[d.Name]; ok && d.check(v) == nil {
		return v, true
	}
	for _, key := range d.Synonyms {
		if v, ok := brokerDefaults[key]; ok {
			if v = converted(d.Name, key, v); d.check(v) == nil {
				return v, true
			}
		}
	}
	if d.Default == nil {
		return "", false
	}
	return *d.Default, true
}

// converted turns the value of a broker key into the unit of the topic key that
// it stands behind: hours and minutes become milliseconds.
func converted(topicKey, brokerKey, value string) string {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(brokerKey, ".hours"):
		unit = time.Hour
	case strings.HasSuffix(brokerKey, ".minutes"):
		unit = time.Minute
	case topicKey != "retention.ms":
		return value
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch {
	case err != nil:
		return value
	case n < 0: // any negative retention keeps for ever
		return "-1"
	case unit != 0:
		n *= unit.Milliseconds() // hours and minutes are 32 bits wide
	}
	return strconv.FormatInt(n, 10)
}

// ValidateTopic says whether a topic may set key to value. The error is one
// sentence that names the key, the value and what is allowed.
func ValidateTopic(key, value string) error {
	if err := KnownTopic(key); err != nil {
		return err
	}
	if key == keyRemoteStorage && readBool(value) {
		return fmt.Errorf("%s=%s is refused, because tiered storage is not available: leave it at false", key, value)
	}
	d, _ := Lookup(TopicResource, key)
	return d.check(value)
}

// KnownTopic says whether a topic has such a key, in the words of ValidateTopic.
func KnownTopic(key string) error {
	if _, ok := Lookup(TopicResource, key); !ok {
		return unknownKey(TopicResource, key)
	}
	return nil
}

// ValidateTopicSet says whether these overrides of one topic fit together, each
// of them by ValidateTopic and all of them by Kafka's rules between keys.
func ValidateTopicSet(overrides map[string]string) error {
	for _, key := range sortedKeys(overrides) {
		if err := ValidateTopic(key, overrides[key]); err != nil {
			return err
		}
	}
	shortest, longest := lag("min.compaction.lag.ms", overrides), lag("max.compaction.lag.ms", overrides)
	if shortest > longest {
		return fmt.Errorf("min.compaction.lag.ms=%d is more than max.compaction.lag.ms=%d: raise the one or lower the other", shortest, longest)
	}
	return nil
}

// lag is the effective value of a topic key in milliseconds.
func lag(key string, overrides map[string]string) int64 {
	d, _ := Lookup(TopicResource, key)
	v, _ := d.effective(nil, overrides)
	return readInt(v)
}
