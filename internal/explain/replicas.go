// Package explain holds the answers in which a broker tells people what its
// replicas know.
package explain

import (
	"encoding/json"
	"fmt"
)

// APIKey numbers the request by which one broker is asked for its Replicas. It
// is Tidemark's own, and ApiVersions does not list it. Version 0 has the
// request header v1 and the response header v0. Each body is one JSON document
// behind its length in bytes, as Kafka writes BYTES (INT32, then the bytes):
// ReplicasRequest one way, Replicas the other.
const APIKey = 10001

// ReplicasRequest asks a broker for what it knows of its replicas.
type ReplicasRequest struct {
	Topics []string `json:"topics,omitempty"` // empty asks for every topic
}

// Replicas is the answer of one broker.
type Replicas struct {
	Broker     int32       `json:"broker"`
	NowMs      int64       `json:"nowMs"` // wall clock of the broker when it answered
	Partitions []Partition `json:"partitions"`
	Error      string      `json:"error,omitempty"` // why there is no answer, in words
}

// Partition is one replica as its own broker sees it.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Role      string `json:"role"` // leader, follower or offline

	Leader         int32 `json:"leader"` // -1 when there is none
	LeaderEpoch    int32 `json:"leaderEpoch"`
	PartitionEpoch int32 `json:"partitionEpoch"`

	LogStart int64 `json:"logStart"`
	LSO      int64 `json:"lso"`
	HW       int64 `json:"hw"`
	LEO      int64 `json:"leo"`

	Replicas   []int32 `json:"replicas"`
	ISR        []int32 `json:"isr"`
	MaximalISR []int32 `json:"maximalIsr,omitempty"` // of a leader: with the members it asked the controller to add
	MinISR     int     `json:"minIsr"`               // effective: never above the number of replicas
	PendingISR bool    `json:"pendingIsr,omitempty"` // of a leader: the controller has not answered yet

	// Remotes is what a leader remembers of each follower; empty on a follower.
	Remotes []Remote `json:"remotes,omitempty"`
	// Cuts is what truncations removed from this replica, the newest ones.
	Cuts []Cut `json:"cuts,omitempty"`
	// HoldsHW says in words which replica or rule holds the high watermark.
	HoldsHW string `json:"holdsHw,omitempty"`
}

// Cut is one truncation: the records [From, To) are gone from this replica.
type Cut struct {
	TimeMs      int64  `json:"timeMs"`
	From        int64  `json:"from"`
	To          int64  `json:"to"`
	HW          int64  `json:"hw"`      // of this replica before it
	BelowHW     bool   `json:"belowHw"` // committed records were among them
	LeaderEpoch int32  `json:"leaderEpoch"`
	Rule        string `json:"rule"`
}

// Remote is a follower as its leader knows it.
type Remote struct {
	ID             int32  `json:"id"`
	LEO            int64  `json:"leo"`            // RemoteLEO; -1 before its first fetch
	LastFetchMs    int64  `json:"lastFetchMs"`    // milliseconds since its last fetch; -1 when it never fetched
	LastCaughtUpMs int64  `json:"lastCaughtUpMs"` // milliseconds since it was last caught up; -1 when it never was
	InISR          bool   `json:"inIsr"`
	Why            string `json:"why,omitempty"` // why it is outside the ISR, or may not join, in words
}

// Encode makes the body of a message: its JSON behind its length.
func Encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	n := len(text)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, text...), nil
}

// Decode reads a body that Encode made into v.
func Decode(body []byte, v any) error {
	if len(body) < 4 {
		return fmt.Errorf("decode %T: %d bytes hold no length", v, len(body))
	}
	n := int64(body[0])<<24 | int64(body[1])<<16 | int64(body[2])<<8 | int64(body[3])
	if n != int64(len(body)-4) {
		return fmt.Errorf("decode %T: the length says %d bytes, there are %d", v, n, len(body)-4)
	}
	if err := json.Unmarshal(body[4:], v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
