package config

import (
	"fmt"
	"strings"
)

// prefixes are families of keys that Kafka reads for plugins, for one listener
// or, in the past, for ZooKeeper; its listing does not have them.
var prefixes = []string{
	"listener.name.", "rlmm.config.", "rsm.config.", "config.providers.", "zookeeper.",
	"confluent.", "metrics.context.", "quota.consumer.", "quota.producer.",
}

// outdated are keys of authorizers and of older releases of Kafka.
var outdated = map[string]bool{
	"super.users": true, "allow.everyone.if.no.acl.found": true,
	"inter.broker.protocol.version": true, "log.message.format.version": true,
	"log.message.timestamp.difference.max.ms": true, "broker.id.generation.enable": true,
	"reserved.broker.max.id": true, "control.plane.listener.name": true, "password.encoder.secret": true,
	"delegation.token.master.key": true, "offsets.commit.required.acks": true,
	"host.name": true, "port": true, "advertised.host.name": true, "advertised.port": true,
	"auto.include.jmx.reporter": true, "log.message.downconversion.enable": true, "lz4.level": true,
}

// isPrefixed reports whether a key outside the listing is one of Kafka's, now or
// in the past.
func isPrefixed(key string) bool {
	if outdated[key] {
		return true
	}
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// unknownKey words the refusal of a key, with the nearest known one.
func unknownKey(res Resource, key string) error {
	if near := nearest(res, key); near != "" {
		return fmt.Errorf("there is no key %s: did you mean %s", key, near)
	}
	return fmt.Errorf("there is no key %s: drop it, or look up its name in Kafka's documentation", key)
}

// nearest returns the known key within a few edits, more for a long key, or
// nothing.
func nearest(res Resource, key string) string {
	best, name := max(2, len(key)/6)+1, ""
	for _, d := range Keys(res) {
		if n := distance(key, d.Name, best); n < best {
			best, name = n, d.Name
		}
	}
	return name
}

// distance counts the letters to insert, drop or change to turn a into b, and
// stops counting at limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
