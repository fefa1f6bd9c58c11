package workload

import (
	"errors"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/conns"
)

// outcome is what a client makes of an error code or of a missing answer.
type outcome int

const (
	done    outcome = iota // it happened
	refused                // it did not happen and would not the next time either
	again                  // it did not happen; another try may do
	unknown                // it may have happened
)

// String is for traces.
func (o outcome) String() string { return [...]string{"done", "refused", "again", "unknown"}[o] }

// noAnswer is the outcome of a request that got none.
func noAnswer(err error) outcome {
	if errors.Is(err, conns.ErrNotSent) {
		return again
	}
	return unknown
}

// writeOutcome is what an error code says of a batch. A leader that is replaced
// while a batch waits for its followers answers NOT_LEADER_OR_FOLLOWER or forgets
// the topic, so these too leave open what happened.
func writeOutcome(e model.Error) outcome {
	switch e {
	case model.None, model.ErrDuplicateSequenceNumber:
		return done
	case model.ErrNotEnoughReplicas, model.ErrUnknownLeaderEpoch, model.ErrLeaderNotAvailable:
		return again
	case model.ErrNotLeaderOrFollower, model.ErrUnknownTopicOrPartition, model.ErrUnknownTopicID,
		model.ErrFencedLeaderEpoch, model.ErrNotEnoughReplicasAfterAppend, model.ErrRequestTimedOut,
		model.ErrKafkaStorageError, model.ErrNetworkException, model.ErrUnknownServerError:
		return unknown
	}
	return refused
}

// stale says that a code calls for fresh metadata.
func stale(e model.Error) bool {
	switch e {
	case model.ErrNotLeaderOrFollower, model.ErrLeaderNotAvailable, model.ErrUnknownTopicOrPartition,
		model.ErrUnknownTopicID, model.ErrFencedLeaderEpoch, model.ErrUnknownLeaderEpoch, model.ErrReplicaNotAvailable,
		model.ErrInconsistentTopicID, model.ErrOffsetNotAvailable, model.ErrKafkaStorageError, model.ErrBrokerNotAvailable:
		return true
	}
	return false
}

// moved says that a code calls for another look for the coordinator.
func moved(e model.Error) bool {
	switch e {
	case model.ErrNotCoordinator, model.ErrCoordinatorNotAvailable, model.ErrCoordinatorLoadInProgress:
		return true
	}
	return false
}
