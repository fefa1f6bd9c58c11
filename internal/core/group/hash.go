package group

import "unicode/utf16"

// Partition is the partition of __consumer_offsets, of so many, that holds a
// group: Java's hash of the name, without its sign.
func Partition(group string, partitions int32) int32 {
	var hash int32
	for _, unit := range utf16.Encode([]rune(group)) {
		hash = 31*hash + int32(unit)
	}
	if hash == -1<<31 {
		hash = 0
	}
	return max(hash, -hash) % partitions
}
