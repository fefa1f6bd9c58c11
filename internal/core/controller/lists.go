package controller

import (
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// contains reports whether list holds b.
func contains(list []model.BrokerID, b model.BrokerID) bool { return slices.Contains(list, b) }

// sameSet reports whether two lists without duplicates hold the same brokers.
func sameSet(a, b []model.BrokerID) bool { return len(a) == len(b) && containsAll(a, b) }

// containsAll reports whether a holds every broker of b.
func containsAll(a, b []model.BrokerID) bool {
	for _, x := range b {
		if !slices.Contains(a, x) {
			return false
		}
	}
	return true
}

// without returns a new list of the brokers of a that are not in drop.
func without(a []model.BrokerID, drop ...model.BrokerID) []model.BrokerID {
	out := make([]model.BrokerID, 0, len(a))
	for _, x := range a {
		if !slices.Contains(drop, x) {
			out = append(out, x)
		}
	}
	return out
}

// within returns a new list of the brokers of a that are in keep.
func within(a, keep []model.BrokerID) []model.BrokerID {
	out := make([]model.BrokerID, 0, len(a))
	for _, x := range a {
		if slices.Contains(keep, x) {
			out = append(out, x)
		}
	}
	return out
}

// toInts converts broker ids to the numbers of the wire.
func toInts(ids []model.BrokerID) []int32 {
	out := make([]int32, len(ids))
	for i, b := range ids {
		out[i] = int32(b)
	}
	return out
}

// toBrokers converts the numbers of the wire to broker ids.
func toBrokers(ids []int32) []model.BrokerID {
	out := make([]model.BrokerID, len(ids))
	for i, b := range ids {
		out[i] = model.BrokerID(b)
	}
	return out
}

// joinIDs prints ids separated by commas.
func joinIDs(ids []model.UUID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, ", ")
}
