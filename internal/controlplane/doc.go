// Package controlplane runs a node's share of the metadata plane: a voter of the
// controller quorum, or an observer that follows one.
//
// A Controller owns one loop. The loop owns the raft node, its write-ahead log,
// the committed image and, while this node leads, the controller core. Requests
// come in by Submit or over the controller listener, become records, are
// proposed as one raft entry and are answered after the commit. Committed
// entries are projected as Kafka segment files of __cluster_metadata-0, which
// brokers read with Fetch and FetchSnapshot.
//
// An Observer follows a quorum with those two requests only, so it works
// against the controllers of Apache Kafka as well.
//
// Both are a Source: committed metadata, and a way to ask the active controller.
package controlplane
