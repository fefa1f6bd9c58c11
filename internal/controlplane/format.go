package controlplane

import "github.com/tidemark-log/tidemark/internal/core/model"

// FormatOptions says what a new cluster starts with.
type FormatOptions struct {
	// Voters are the first voters of a cluster with kraft.version 1, each with
	// its directory id. Empty for static voters: kraft.version 0, no record of
	// them.
	Voters []Voter
	// ListenerName is the name of the voters' endpoints (default CONTROLLER).
	ListenerName string
	// Features are the finalized levels by name (default: those of Features).
	Features map[string]int16
	// MinISR is the cluster-wide min.insync.replicas that is recorded because
	// eligible.leader.replicas.version is 1 (default 1).
	MinISR int
	Now    model.Millis // time of the records
}

// Features returns the levels that a new cluster is formatted with:
// metadata.version 25, group.version 1, transaction.version 2,
// eligible.leader.replicas.version 1.
func Features() map[string]int16 { return nil }

// Format makes dir, the path of __cluster_metadata-0, with the bootstrap
// checkpoint 00000000000000000000-0000000000.checkpoint. The log directory's
// meta.properties is written by the caller, last: a directory without it was
// never formatted.
func Format(dir string, o FormatOptions) error { return errClosed }

// Formatted reports whether dir holds a bootstrap checkpoint.
func Formatted(dir string) bool { return false }
