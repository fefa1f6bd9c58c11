package config

import (
	"strings"
	"testing"
	"time"
)

func entry(t *testing.T, entries []Entry, name string) Entry {
	t.Helper()
	for _, e := range entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not described", name)
	return Entry{}
}

func TestATopicsValueNamesWhereItComesFrom(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties", "log.retention.hours=2", "message.max.bytes=500")
	dyn := Dynamic{Cluster: map[string]string{"message.max.bytes": "600"}, Broker: map[string]string{"message.max.bytes": "700"}}
	entries := c.DescribeTopic(dyn, map[string]string{"max.message.bytes": "800", "internal.segment.bytes": "9"})
	size := entry(t, entries, "max.message.bytes")
	var got []string
	for _, s := range size.Synonyms {
		got = append(got, *s.Value)
	}
	if *size.Value != "800" || size.Source != FromTopic || strings.Join(got, " ") != "800 700 600 500 1048588" || size.Doc == "" {
		t.Errorf("max.message.bytes is %s from %d with %v", *size.Value, size.Source, got)
	}
	age := entry(t, entries, "retention.ms")
	if *age.Value != "7200000" || age.Source != FromFile || age.Synonyms[0].Name != "log.retention.hours" || *age.Synonyms[0].Value != "2" {
		t.Errorf("retention.ms is %s from %d by %v", *age.Value, age.Source, age.Synonyms)
	}
	for _, e := range entries {
		if e.Name == "internal.segment.bytes" {
			t.Error("an internal key is described")
		}
	}
}

// Keys that stand in for each other are described with all that would count, as
// an Apache Kafka 4.4.0 broker does; where only a lesser key is set, a topic still
// tells it.
func TestKeysThatStandInForEachOtherAreDescribedTogether(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties", "log.retention.hours=100", "log.roll.hours=3")
	text := func(e Entry) string {
		out := "null"
		if e.Value != nil {
			out = *e.Value
		}
		for _, s := range e.Synonyms {
			out += " " + s.Name + "=" + *s.Value
		}
		return out
	}
	dyn := Dynamic{Broker: map[string]string{"log.retention.ms": "9"}, Cluster: map[string]string{"log.retention.ms": "8", "log.flush.interval.ms": "7"}}
	topic, broker := c.DescribeTopic(dyn, nil), c.DescribeBroker(dyn)
	all := " log.retention.ms=9 log.retention.ms=8 log.retention.hours=100 log.retention.hours=168"
	flush := "7 log.flush.interval.ms=7 log.flush.scheduler.interval.ms=9223372036854775807"
	for _, c := range []struct {
		entries   []Entry
		key, want string
	}{
		{topic, "retention.ms", "9" + all},
		{broker, "log.retention.ms", "9" + all},
		{broker, "log.retention.minutes", "null"},
		{broker, "log.retention.hours", "100 log.retention.hours=100 log.retention.hours=168"},
		{topic, "flush.ms", flush},
		{broker, "log.flush.interval.ms", flush},
		{topic, "segment.ms", "10800000 log.roll.hours=3"},
		{broker, "log.roll.ms", "null"},
		{broker, "log.roll.hours", "3 log.roll.hours=3 log.roll.hours=168"},
		{broker, "log.roll.jitter.hours", "0 log.roll.jitter.hours=0"},
	} {
		if got := text(entry(t, c.entries, c.key)); got != c.want {
			t.Errorf("%s is %s, want %s", c.key, got, c.want)
		}
	}
}

// The rates of replication are set on brokers while they run, though a file does
// not know them; they are described where they are set.
func TestRatesOfReplicationAreTakenAndDescribedWhereTheyAreSet(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties")
	for _, key := range []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"} {
		for value, ok := range map[string]bool{"0": true, "1000000": true, "-1": false, "abc": false, "": false} {
			if err := ValidateBroker(key, value); (err == nil) != ok {
				t.Errorf("%s=%s: %v", key, value, err)
			}
		}
		e := entry(t, c.DescribeBroker(Dynamic{Broker: map[string]string{key: "1"}, Cluster: map[string]string{key: "2"}}), key)
		if *e.Value != "1" || e.Source != FromBroker || e.ReadOnly || len(e.Synonyms) != 2 || *e.Synonyms[1].Value != "2" {
			t.Errorf("%s is described as %v", key, e)
		}
		for _, e := range c.DescribeBroker(Dynamic{}) {
			if e.Name == key {
				t.Errorf("%s is described though nobody set it", key)
			}
		}
		if all := DescribeDefaults(map[string]string{key: "2"}); len(all) != 1 || *all[0].Value != "2" {
			t.Errorf("the default of %s is described as %v", key, all)
		}
	}
}

func TestSecretsAreNotDescribed(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties", "ssl.keystore.password=hunter2")
	e := entry(t, c.DescribeBroker(Dynamic{}), "ssl.keystore.password")
	if !e.Sensitive || e.Value != nil || len(e.Synonyms) != 1 || e.Synonyms[0].Value != nil {
		t.Errorf("a password is described: %v", e)
	}
}

func TestDynamicKeysChangeTheRunningConfiguration(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties")
	changed := c.With(Dynamic{
		Cluster: map[string]string{"producer.id.expiration.ms": "1000", "max.connections": "7", "broker.session.timeout.ms": "1"},
		Broker:  map[string]string{"max.connections": "8", "max.connections.per.ip": "many"},
	})
	if changed.ProducerIDExpiration != time.Second || changed.MaxConnections != 8 {
		t.Errorf("producer ids live %v, %d connections", changed.ProducerIDExpiration, changed.MaxConnections)
	}
	if changed.BrokerSessionTimeout != 9*time.Second || changed.MaxConnectionsPerIP != c.MaxConnectionsPerIP {
		t.Error("a read-only key or a bad value changed the configuration")
	}
	if c.MaxConnections == 8 {
		t.Error("the configuration before the change is not left alone")
	}
	if got := c.BrokerDefaults(Dynamic{Broker: map[string]string{keyMinISR: "1"}})[keyMinISR]; got != "1" || c.static[keyMinISR] != "2" {
		t.Errorf("min.insync.replicas is %s over %s", got, c.static[keyMinISR])
	}
}

func TestOnlyDynamicKeysMayBeAlteredOnABroker(t *testing.T) {
	for kv, want := range map[string]string{
		"message.max.bytes=1000":         "",
		"log.cleaner.threads=2":          "",
		"message.max.bytes=-1":           "give 0 or more",
		"broker.session.timeout.ms=1000": "set it in the broker's file and restart it",
		"listeners=PLAINTEXT://:1":       "set it in the broker's file and restart it",
		"principal.builder.class=x.Y":    "Java classes cannot be loaded",
		"message.max.byte=1":             "did you mean message.max.bytes",
	} {
		k, v, _ := strings.Cut(kv, "=")
		err := ValidateBroker(k, v)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kv, err, want)
		}
	}
	if err := ValidateGroup("consumer.session.timeout.ms", "0"); err == nil {
		t.Error("a group takes a session timeout of 0")
	}
	if err := ValidateGroup("consumer.session.timeout.ms", "50000"); err != nil {
		t.Error(err)
	}
	set := DescribeDefaults(map[string]string{"message.max.bytes": "9", "unknown": "x"})
	if len(set) != 1 || set[0].Source != FromClusterDefault || *set[0].Value != "9" {
		t.Errorf("the cluster's defaults are described as %v", set)
	}
}
