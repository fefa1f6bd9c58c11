// Package model holds the nouns that every room of Tidemark shares: offsets,
// epochs, broker ids, topic ids, time and Kafka's error codes. They are types,
// not ints, so that a leader epoch cannot be passed for a partition epoch.
package model

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"time"
)

type (
	// Offset is the position of a record in a partition's log. LEO, HW and LSO
	// are offsets too, and exclusive ends.
	Offset int64
	// Epoch is a leader epoch: it grows with every change of the leader.
	Epoch int32
	// PartitionEpoch grows with every change record of a partition (R1.13).
	PartitionEpoch int32
	// BrokerID names a node; brokers and controllers share one namespace.
	BrokerID int32
	// BrokerEpoch is the metadata offset of a broker's registration record: one
	// value is one incarnation of a process (R1.14).
	BrokerEpoch int64
	// ProducerID names an idempotent or transactional producer.
	ProducerID int64
	// Time is a monotonic reading since an arbitrary origin. Cores are handed
	// it and never read a clock.
	Time time.Duration
	// Millis is wall-clock time in milliseconds since the Unix epoch, the unit
	// of record timestamps.
	Millis int64
)

// Unknown values, as they travel on the wire.
const (
	UnknownOffset      Offset         = -1
	NoEpoch            Epoch          = -1
	NoPartitionEpoch   PartitionEpoch = -1
	NoBroker           BrokerID       = -1
	UnknownBrokerEpoch BrokerEpoch    = -1
	NoProducerID       ProducerID     = -1
)

// Add returns the reading d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration since u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// UUID is a topic id, directory id, cluster id or incarnation id.
type UUID [16]byte

// String prints the id as Kafka does: 22 characters of URL-safe base64.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero reports whether the id is all zeroes, which Kafka reads as "none".
func (u UUID) IsZero() bool { return u == UUID{} }

// ParseUUID reads the form that String prints.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(u) {
		return u, fmt.Errorf("%q is not an id of 22 characters of URL-safe base64", s)
	}
	copy(u[:], b)
	return u, nil
}

// TopicPartition names a partition by its topic's name.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String prints "topic-partition", the name of the partition's directory.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Compare orders by topic, then partition.
func (tp TopicPartition) Compare(o TopicPartition) int {
	if c := cmp.Compare(tp.Topic, o.Topic); c != 0 {
		return c
	}
	return cmp.Compare(tp.Partition, o.Partition)
}

// TopicIDPartition names a partition by its topic's id, which a deleted and
// recreated topic does not share.
type TopicIDPartition struct {
	TopicID   UUID
	Partition int32
}

// Position is where an offset lies on disk: the base offset of its segment and
// the byte within that segment's file. It serves only to count bytes (R1.19).
type Position struct {
	Segment Offset // base offset of the segment; UnknownOffset when unknown
	Byte    int64
}

// UnknownPosition is the position of an offset that nobody has looked up.
var UnknownPosition = Position{Segment: UnknownOffset}

// Known reports whether the position was looked up.
func (p Position) Known() bool { return p.Segment >= 0 }

// EpochStart says that Epoch began at offset Start (R1.18).
type EpochStart struct {
	Epoch Epoch
	Start Offset
}

// EpochEnd says that Epoch ended before offset End.
type EpochEnd struct {
	Epoch Epoch
	End   Offset
}

// UndefinedEpochEnd is Kafka's answer when no epoch fits (R4.22).
var UndefinedEpochEnd = EpochEnd{Epoch: NoEpoch, End: UnknownOffset}
