// Package metalog is the codec of Kafka's metadata log, bit by bit as KRaft's own
// readers expect it.
//
// One metadata record is the value of a record of a v2 batch:
//
//	frame version (unsigned varint, always 1) | type (unsigned varint) |
//	version (unsigned varint) | body in Kafka's flexible format
//
// The version of what is written is chosen by the finalized level of
// metadata.version, since a reader dies of a version that it does not know.
package metalog
