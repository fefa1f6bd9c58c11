package config

import (
	"encoding/csv"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestATopicWithoutAnySettingHasKafkasDefaults(t *testing.T) {
	want := Topic{
		CleanupDelete: true, Retention: 7 * 24 * time.Hour, RetentionBytes: -1,
		SegmentBytes: 1 << 30, SegmentAge: 7 * 24 * time.Hour, IndexBytes: 10 << 20, IndexInterval: 4096, FileDelay: time.Minute,
		FlushMessages: math.MaxInt64, FlushInterval: Forever,
		MaxMessageBytes: 1<<20 + 12, MaxDecompressedBytes: math.MaxInt32 - 8,
		TimestampBeforeMax: Forever, TimestampAfterMax: time.Hour,
		Codec: CodecProducer, GzipLevel: -1, LZ4Level: 9, ZstdLevel: 3, MinISR: 1,
	}
	if diff := cmp.Diff(want, TopicConfig(nil, nil), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBrokerKeysAreDefaultsAndTheBestOneCounts(t *testing.T) {
	retention := func(broker map[string]string, topic map[string]string) time.Duration {
		return TopicConfig(broker, topic).Retention
	}
	broker := map[string]string{"log.retention.hours": "24"}
	steps := []struct {
		key, value string
		want       time.Duration
	}{
		{"log.retention.hours", "48", 48 * time.Hour},
		{"log.retention.minutes", "90", 90 * time.Minute},
		{"log.retention.minutes", "-5", -1},
		{"log.retention.ms", "5000", 5 * time.Second},
		{"log.retention.ms", "-1", -1},
	}
	for _, s := range steps {
		broker[s.key] = s.value
		if got := retention(broker, nil); got != s.want {
			t.Errorf("%v: retention %v, want %v", broker, got, s.want)
		}
	}
	if got := retention(broker, map[string]string{"retention.ms": "7000"}); got != 7*time.Second {
		t.Errorf("retention %v, want the topic's own 7s", got)
	}
	if got := retention(broker, map[string]string{"retention.ms": "soon"}); got != -1 {
		t.Errorf("retention %v, want what stands behind a value that does not parse", got)
	}
}

func TestEveryTopicKeyHasItsBrokerKey(t *testing.T) {
	others := TopicConfig(map[string]string{
		"log.roll.hours": "1", "log.roll.jitter.ms": "10", "log.flush.interval.ms": "250", "message.max.bytes": "99",
		"log.cleanup.policy": "compact,delete", "log.message.timestamp.type": "LogAppendTime", "compression.type": "zstd",
		"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "log.retention.bytes": "5000",
	}, map[string]string{"segment.bytes": "2097152", "internal.segment.bytes": "1000", "flush.messages": "1"})
	want := Topic{
		CleanupDelete: true, CleanupCompact: true, SegmentAge: time.Hour, SegmentJitter: 10 * time.Millisecond, FlushInterval: 250 * time.Millisecond,
		MaxMessageBytes: 99, LogAppendTime: true, Codec: CodecZstd, MinISR: 2, UncleanElection: true, RetentionBytes: 5000,
		SegmentBytes: 1000, FlushMessages: 1,
	}
	got := Topic{
		CleanupDelete: others.CleanupDelete, CleanupCompact: others.CleanupCompact, SegmentAge: others.SegmentAge, SegmentJitter: others.SegmentJitter,
		FlushInterval: others.FlushInterval, MaxMessageBytes: others.MaxMessageBytes, LogAppendTime: others.LogAppendTime, Codec: others.Codec,
		MinISR: others.MinISR, UncleanElection: others.UncleanElection, RetentionBytes: others.RetentionBytes, SegmentBytes: others.SegmentBytes,
		FlushMessages: others.FlushMessages,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTopicValuesAreHeldToKafkasRanges(t *testing.T) {
	accepted := []string{
		"segment.bytes=1048576", "internal.segment.bytes=100", "retention.ms=-1", "retention.ms=0", "retention.bytes=-5", "flush.messages=1",
		"cleanup.policy=compact, delete", "cleanup.policy=", "compression.type=uncompressed", "compression.gzip.level=-1", "compression.zstd.level=-131072",
		"min.cleanable.dirty.ratio=0.01", "message.timestamp.type=LogAppendTime", "preallocate=TRUE", "min.insync.replicas=1",
		"leader.replication.throttled.replicas=*", "follower.replication.throttled.replicas=0:1,3:2", "max.message.bytes= 500 ",
		"remote.storage.enable=false", "local.retention.ms=-2", "max.decompressed.message.bytes=1",
	}
	refused := []string{
		"segment.bytes=1048575", "retention.ms=-2", "flush.messages=0", "cleanup.policy=keep", "compression.type=none", "compression.gzip.level=0",
		"compression.lz4.level=18", "min.cleanable.dirty.ratio=1.1", "min.cleanable.dirty.ratio=NaN", "message.timestamp.type=createtime", "preallocate=1",
		"min.insync.replicas=0", "leader.replication.throttled.replicas=0:1,3", "max.message.bytes=-1", "max.message.bytes=1e3", "max.message.bytes=2147483648",
		"remote.storage.enable=true", "local.retention.ms=-3", "retention.hours=1", "segment.ms=0", "max.compaction.lag.ms=0",
	}
	for _, kv := range accepted {
		if k, v, _ := strings.Cut(kv, "="); ValidateTopic(k, v) != nil {
			t.Errorf("%s is refused: %v", kv, ValidateTopic(k, v))
		}
	}
	for _, kv := range refused {
		k, v, _ := strings.Cut(kv, "=")
		if err := ValidateTopic(k, v); err == nil || !strings.Contains(err.Error(), k) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want a sentence that names the key", kv, err)
		}
	}
}

func TestTopicKeysMustFitTogether(t *testing.T) {
	set := map[string]string{"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}
	if err := ValidateTopicSet(set); err == nil || !strings.Contains(err.Error(), "min.compaction.lag.ms=100 is more than max.compaction.lag.ms=50") {
		t.Errorf("error %v, want a refusal", err)
	}
	set["max.compaction.lag.ms"] = "100"
	if err := ValidateTopicSet(set); err != nil {
		t.Error(err)
	}
}

// apacheRow is one line of what Apache Kafka's DescribeConfigs answered.
type apacheRow struct{ name, kind, value, change, sensitive, source, synonyms string }

func apacheListing(t *testing.T, resource string) []apacheRow {
	t.Helper()
	f, err := os.Open("testdata/kafka44/configs-" + resource + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.Comment, r.FieldsPerRecord = '\t', true, '#', -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]apacheRow, len(lines))
	for i, l := range lines {
		rows[i] = apacheRow{l[0], l[1], l[2], l[3], l[4], l[5], l[6]}
	}
	return rows
}

var sourceNames = map[Source]string{
	FromClusterDefault: "DYNAMIC_DEFAULT_BROKER_CONFIG", FromFile: "STATIC_BROKER_CONFIG", FromDefault: "DEFAULT_CONFIG",
}

// row words an entry as the listing does.
func row(e Entry) apacheRow {
	out := apacheRow{name: e.Name, value: "null", change: "dynamic", sensitive: "-", source: sourceNames[e.Source]}
	for name, kind := range typeNames {
		if kind == e.Type {
			out.kind = name
		}
	}
	if e.Value != nil {
		out.value = *e.Value
	}
	if e.ReadOnly {
		out.change = "read-only"
	}
	if e.Sensitive {
		out.sensitive = "sensitive"
	}
	for i, s := range e.Synonyms {
		if i > 0 {
			out.synonyms += " "
		}
		out.synonyms += s.Name + "@" + sourceNames[s.Source]
	}
	return out
}

// ours takes the listing's file, with the dynamic default that a cluster with
// ELR is formatted with.
func ours(t *testing.T, resource string) []Entry {
	t.Helper()
	c, _ := mustLoad(t, "testdata/combined.properties")
	c.static[keyBrokerID] = "2"
	dyn := Dynamic{Cluster: map[string]string{keyMinISR: "1"}}
	switch resource {
	case "topic":
		return c.DescribeTopic(dyn, nil)
	case "group":
		return c.DescribeGroup(dyn, nil)
	}
	return c.DescribeBroker(dyn)
}

func TestConfigsAreDescribedAsApacheKafkaDescribesThem(t *testing.T) {
	for _, resource := range []string{"topic", "group", "broker"} {
		entries := map[string]Entry{}
		for _, e := range ours(t, resource) {
			entries[e.Name] = e
		}
		for _, want := range apacheListing(t, resource) {
			e, ok := entries[want.name]
			if !ok {
				t.Errorf("%s: %s is not described", resource, want.name)
				continue
			}
			delete(entries, want.name)
			got := row(e)
			if want.value == "(set by the file)" || want.name == keyMinISR {
				got.value = want.value
			}
			if want.name == "log.dir" {
				continue // the value that the listing hides is Kafka's default directory
			}
			if got != want {
				t.Errorf("%s:\n got %v\nwant %v", resource, got, want)
			}
		}
		for name := range entries {
			if d, _ := Lookup(BrokerResource, name); d == nil || !d.Own {
				t.Errorf("%s: %s is described, and Apache Kafka does not know it", resource, name)
			}
		}
	}
}
