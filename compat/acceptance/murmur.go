package main

import (
	"encoding/binary"
	"fmt"
)

// keyFor finds a key that Kafka's default partitioner sends to the partition.
func keyFor(partition, partitions int) string {
	for i := 0; ; i++ {
		key := fmt.Sprintf("key%d", i)
		if int(murmur2([]byte(key))&0x7fffffff)%partitions == partition {
			return key
		}
	}
}

// murmur2 is the hash of Kafka's default partitioner.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
	}
	for i := len(b) - 1; i >= 0; i-- {
		h ^= uint32(b[i]) << (8 * i)
	}
	if len(b) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
