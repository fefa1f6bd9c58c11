package api

import (
	"unicode/utf16"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Internal topics: clients read them, but only brokers write.
const (
	offsetsTopic      = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
	shareTopic        = "__share_group_state"
)

// maxTopicName is the longest legal topic name: its directory must fit into a
// file name.
const maxTopicName = 249

// validTopic says whether a topic may have this name.
func validTopic(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > maxTopicName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// missingTopic is the error of a topic that does not exist.
func missingTopic(name string) model.Error {
	if validTopic(name) {
		return model.ErrUnknownTopicOrPartition
	}
	return model.ErrInvalidTopicException
}

// groupPartition is the partition of __consumer_offsets, of so many, that holds
// a group: Java's hash of the name, without its sign.
func groupPartition(group string, partitions int32) int32 {
	var hash int32
	for _, unit := range utf16.Encode([]rune(group)) {
		hash = 31*hash + int32(unit)
	}
	if hash == -1<<31 {
		hash = 0
	}
	return max(hash, -hash) % partitions
}

// Bits of the authorized operations, which are all those that a resource has,
// as nobody is refused anything here. The unknown value stands when they were
// not asked for (KIP-430).
const (
	unknownOperations int32 = -1 << 31
	// create, alter, describe, cluster action, describe and alter configs,
	// idempotent write
	clusterOperations int32 = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
	// read, write, create, delete, alter, describe, describe and alter configs
	topicOperations int32 = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
)
