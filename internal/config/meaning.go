package config

import (
	"math"
	"strings"
	"time"
)

// meaning says what a key does here: in words, and to the typed settings. A key
// without one is read, described and otherwise ignored.
type meaning struct {
	doc   string
	set   func(c *Config, value string) // value has passed check; nil where another step reads the key
	topic func(t *Topic, value string)
}

// Keys that code names.
const (
	keyRoles           = "process.roles"
	keyNodeID          = "node.id"
	keyBrokerID        = "broker.id"
	keyListeners       = "listeners"
	keyAdvertised      = "advertised.listeners"
	keyControllerNames = "controller.listener.names"
	keySecurityMap     = "listener.security.protocol.map"
	keyInterBroker     = "inter.broker.listener.name"
	keyInterProtocol   = "security.inter.broker.protocol"
	keyVoters          = "controller.quorum.voters"
	keyBootstrap       = "controller.quorum.bootstrap.servers"
	keyLogDir          = "log.dir"
	keyLogDirs         = "log.dirs"
	keyMetadataDir     = "metadata.log.dir"
	keyHeartbeat       = "broker.heartbeat.interval.ms"
	keySession         = "broker.session.timeout.ms"
	keyLagMax          = "replica.lag.time.max.ms"
	keyFetchWait       = "replica.fetch.wait.max.ms"
	keyReplicaSocket   = "replica.socket.timeout.ms"
	keyQueuedBytes     = "queued.max.request.bytes"
	keyRequestMax      = "socket.request.max.bytes"
	keySelector        = "replica.selector.class"
	keyLivenessProbe   = "broker.liveness.probe"
	keyHTTPListen      = "tidemark.http.listen"
	keyMinISR          = "min.insync.replicas"
	keyZooKeeper       = "zookeeper.connect"
	keyOffsetsCopies   = "offsets.topic.replication.factor"
	keyInternalSegment = "internal.segment.bytes"
	keyRemoteStorage   = "remote.storage.enable"
)

// rackAwareSelector is Kafka's own replica selector, the one that is known here.
const rackAwareSelector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

// duration counts n units; what does not fit is Forever, and a negative count
// stays negative.
func duration(n int64, unit time.Duration) time.Duration {
	switch {
	case n < 0:
		return -1
	case n > int64(Forever/unit):
		return Forever
	}
	return time.Duration(n) * unit
}

// The makers of set functions: each reads one type of value into a field.

func span(doc string, unit time.Duration, field func(*Config) *time.Duration) meaning {
	return meaning{doc: doc, set: func(c *Config, v string) { *field(c) = duration(readInt(v), unit) }}
}

func ms(doc string, field func(*Config) *time.Duration) meaning {
	return span(doc, time.Millisecond, field)
}

// number reads an integer into a field.
func number[T int | int16 | int32 | int64](doc string, field func(*Config) *T) meaning {
	return meaning{doc: doc, set: func(c *Config, v string) { *field(c) = fit[T](readInt(v)) }}
}

// fit cuts n to what T can hold.
func fit[T int | int16 | int32 | int64](n int64) T {
	var top int64 = math.MaxInt64
	switch any(T(0)).(type) {
	case int16:
		top = math.MaxInt16
	case int32:
		top = math.MaxInt32
	}
	return T(min(max(n, -top-1), top))
}

func boolean(doc string, field func(*Config) *bool) meaning {
	return meaning{doc: doc, set: func(c *Config, v string) { *field(c) = readBool(v) }}
}

func word(doc string, field func(*Config) *string) meaning {
	return meaning{doc: doc, set: func(c *Config, v string) { *field(c) = strings.TrimSpace(v) }}
}

// told is a key that a later step reads, such as the listeners.
func told(doc string) meaning { return meaning{doc: doc} }

// The makers for topics.

func topicSpan(doc string, field func(*Topic) *time.Duration) meaning {
	return meaning{doc: doc, topic: func(t *Topic, v string) { *field(t) = duration(readInt(v), time.Millisecond) }}
}

func topicNumber[T int | int32 | int64](doc string, field func(*Topic) *T) meaning {
	return meaning{doc: doc, topic: func(t *Topic, v string) { *field(t) = fit[T](readInt(v)) }}
}

func topicFlag(doc string, field func(*Topic) *bool) meaning {
	return meaning{doc: doc, topic: func(t *Topic, v string) { *field(t) = readBool(v) }}
}

var topicMeanings = map[string]meaning{
	"cleanup.policy": {
		doc: "What happens to old segments: delete drops them by age or size; compact asks to keep the last record of each key, and keeps all of them as long as there is no cleaner (deviation 9).",
		topic: func(t *Topic, v string) {
			t.CleanupDelete, t.CleanupCompact = inSet(splitList(v), "delete", false), inSet(splitList(v), "compact", false)
		},
	},
	"compression.type": {
		doc:   "The codec in which batches are stored; producer keeps what the producer chose, uncompressed stores plain.",
		topic: func(t *Topic, v string) { t.Codec = codecs[strings.TrimSpace(v)] },
	},
	"compression.gzip.level": topicNumber("The effort of gzip when a batch is compressed here; -1 is the codec's own choice.",
		func(t *Topic) *int { return &t.GzipLevel }),
	"compression.lz4.level": topicNumber("The effort of lz4 when a batch is compressed here.",
		func(t *Topic) *int { return &t.LZ4Level }),
	"compression.zstd.level": topicNumber("The effort of zstd when a batch is compressed here.",
		func(t *Topic) *int { return &t.ZstdLevel }),
	"file.delete.delay.ms": topicSpan("How long the files of a deleted segment stay on disk, for reads that are under way.",
		func(t *Topic) *time.Duration { return &t.FileDelay }),
	"flush.messages": topicNumber("Sync the log after this many records; 1 acknowledges nothing that is not on the disk.",
		func(t *Topic) *int64 { return &t.FlushMessages }),
	"flush.ms": topicSpan("Sync the log when records have waited this long.",
		func(t *Topic) *time.Duration { return &t.FlushInterval }),
	"index.interval.bytes": topicNumber("About how many bytes of log lie between two entries of the offset index.",
		func(t *Topic) *int32 { return &t.IndexInterval }),
	"max.decompressed.message.bytes": topicNumber("The largest record that a compressed batch may unfold to, in bytes.",
		func(t *Topic) *int32 { return &t.MaxDecompressedBytes }),
	"max.message.bytes": topicNumber("The largest batch that is accepted, in bytes as stored.",
		func(t *Topic) *int32 { return &t.MaxMessageBytes }),
	"message.timestamp.after.max.ms": topicSpan("How far the timestamp of a record may lie ahead of the broker's clock.",
		func(t *Topic) *time.Duration { return &t.TimestampAfterMax }),
	"message.timestamp.before.max.ms": topicSpan("How far the timestamp of a record may lie behind the broker's clock.",
		func(t *Topic) *time.Duration { return &t.TimestampBeforeMax }),
	"message.timestamp.type": {
		doc:   "Whose time a record bears: the producer's (CreateTime) or the broker's (LogAppendTime).",
		topic: func(t *Topic, v string) { t.LogAppendTime = strings.TrimSpace(v) == "LogAppendTime" },
	},
	keyMinISR: topicNumber("How many replicas must be in sync before acks=all is accepted and the high watermark may move.",
		func(t *Topic) *int { return &t.MinISR }),
	"retention.bytes": topicNumber("How many bytes a partition keeps before its oldest segments go; -1 has no bound.",
		func(t *Topic) *int64 { return &t.RetentionBytes }),
	"retention.ms": topicSpan("How long a segment stays after its newest record; -1 keeps it for ever.",
		func(t *Topic) *time.Duration { return &t.Retention }),
	"segment.bytes": topicNumber("The size at which a segment is closed and the next one opened.",
		func(t *Topic) *int32 { return &t.SegmentBytes }),
	keyInternalSegment: topicNumber("Like segment.bytes without its lower bound; for tests.",
		func(t *Topic) *int32 { return &t.SegmentBytes }),
	"segment.index.bytes": topicNumber("The largest size of an index file; a full index closes its segment.",
		func(t *Topic) *int32 { return &t.IndexBytes }),
	"segment.jitter.ms": topicSpan("Up to how much earlier a segment may be closed, so that not all close at once.",
		func(t *Topic) *time.Duration { return &t.SegmentJitter }),
	"segment.ms": topicSpan("The age at which a segment is closed although it is not full.",
		func(t *Topic) *time.Duration { return &t.SegmentAge }),
	"unclean.leader.election.enable": topicFlag("Elect a replica that may lack committed records when no other is left; what it lacks is lost.",
		func(t *Topic) *bool { return &t.UncleanElection }),
}

var codecs = map[string]Codec{
	"producer": CodecProducer, "uncompressed": CodecNone, "gzip": CodecGzip,
	"snappy": CodecSnappy, "lz4": CodecLZ4, "zstd": CodecZstd,
}
