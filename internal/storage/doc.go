// Package storage keeps the logs of a broker on disk in Kafka's own files.
//
// A Dir is one log directory, a Log one partition in it, a segment one run of
// offsets with its indexes. One goroutine at a time writes to a log; any may
// read. What is durable when: the epoch checkpoint before the bytes of a new
// epoch, partition.metadata before the first bytes, the log itself only by Flush
// or some time after a roll. Everything below the recovery point is durable, and
// after a crash all above it is read again and cut at the first damage.
package storage
