// Package outcome is what a client makes of an error code or of a missing answer.
package outcome

import (
	"errors"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/conns"
)

// Outcome is what became of a request.
type Outcome int

// What may have become of it.
const (
	Done    Outcome = iota // it happened
	Refused                // it did not happen and would not the next time either
	Again                  // it did not happen; another try may do
	Unknown                // it may have happened
)

// String is for traces.
func (o Outcome) String() string { return [...]string{"done", "refused", "again", "unknown"}[o] }

// NoAnswer is the outcome of a request that got none, by its error.
func NoAnswer(err error) Outcome {
	if errors.Is(err, conns.ErrNotSent) {
		return Again
	}
	return Unknown
}

// OfWrite is what an error code says of a batch. A leader that is replaced
// while a batch waits for its followers answers NOT_LEADER_OR_FOLLOWER or forgets
// the topic, so these too leave open what happened.
func OfWrite(e model.Error) Outcome {
	switch e {
	case model.None, model.ErrDuplicateSequenceNumber:
		return Done
	case model.ErrNotEnoughReplicas, model.ErrUnknownLeaderEpoch, model.ErrLeaderNotAvailable:
		return Again
	case model.ErrNotLeaderOrFollower, model.ErrUnknownTopicOrPartition, model.ErrUnknownTopicID,
		model.ErrFencedLeaderEpoch, model.ErrNotEnoughReplicasAfterAppend, model.ErrRequestTimedOut,
		model.ErrKafkaStorageError, model.ErrNetworkException, model.ErrUnknownServerError:
		return Unknown
	}
	return Refused
}

// Stale says that a code calls for fresh metadata.
func Stale(e model.Error) bool {
	switch e {
	case model.ErrNotLeaderOrFollower, model.ErrLeaderNotAvailable, model.ErrUnknownTopicOrPartition,
		model.ErrUnknownTopicID, model.ErrFencedLeaderEpoch, model.ErrUnknownLeaderEpoch, model.ErrReplicaNotAvailable,
		model.ErrInconsistentTopicID, model.ErrOffsetNotAvailable, model.ErrKafkaStorageError, model.ErrBrokerNotAvailable:
		return true
	}
	return false
}

// Moved says that a code calls for another look for the coordinator.
func Moved(e model.Error) bool {
	switch e {
	case model.ErrNotCoordinator, model.ErrCoordinatorNotAvailable, model.ErrCoordinatorLoadInProgress:
		return true
	}
	return false
}
