// Package tidemark embeds a broker of the Tidemark log in a Go program.
//
// Open starts one node that is broker and controller in one, speaks Kafka's
// protocol on its address and keeps Kafka's files in its directory. Any Kafka
// client can talk to it. For a cluster of several nodes inside a test, with
// faults, see the package tidetest.
package tidemark
