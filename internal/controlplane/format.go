package controlplane

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

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
	FS     vfs.FS       // default: vfs.OS
}

const featureELR = "eligible.leader.replicas.version"

// Features returns the levels that a new cluster is formatted with.
func Features() map[string]int16 {
	return map[string]int16{featureMetadata: metalog.Level, "group.version": 1, "transaction.version": 2, featureELR: 1}
}

// SupportedFeatures returns what this program's controllers and brokers support,
// both ends included.
func SupportedFeatures() map[string]controller.FeatureRange {
	return map[string]controller.FeatureRange{
		featureMetadata:       {Min: 7, Max: metalog.Level},
		featureKRaft:          {Min: 0, Max: 1},
		"group.version":       {Min: 0, Max: 1},
		"transaction.version": {Min: 0, Max: 2},
		featureELR:            {Min: 0, Max: 1},
	}
}

// Format makes dir, the path of __cluster_metadata-0, with the bootstrap
// checkpoint 00000000000000000000-0000000000.checkpoint. The log directory's
// meta.properties is written by the caller, last: a directory without it was
// never formatted.
func Format(dir string, o FormatOptions) error {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.ListenerName == "" {
		o.ListenerName = defaultListenerName
	}
	if o.Features == nil {
		o.Features = Features()
	}
	if err := vfs.MakeDurably(o.FS, dir); err != nil {
		return fmt.Errorf("format %s: %w", dir, err)
	}
	var control []metalog.Control
	if len(o.Voters) > 0 {
		recs := &metalog.KRaftVoters{}
		for _, v := range sortedVoters(o.Voters) {
			recs.Voters = append(recs.Voters, toLog(v, o.ListenerName))
		}
		control = []metalog.Control{&metalog.KRaftVersion{Level: 1}, recs}
	}
	level := o.Features[featureMetadata]
	err := projection.WriteFile(o.FS, dir, projection.Bootstrap, func(out io.Writer) error {
		w := metalog.NewSnapshotWriter(out, 0, 0, o.Now, level, control...)
		for _, rec := range o.records() {
			w.Add(rec)
		}
		return w.Close()
	})
	if err != nil {
		return fmt.Errorf("format %s: %w", dir, err)
	}
	return nil
}

// records are the first records of the cluster: metadata.version ahead of all
// others.
func (o *FormatOptions) records() []metalog.Record {
	recs := []metalog.Record{&metalog.FeatureLevel{Name: featureMetadata, FeatureLevel: o.Features[featureMetadata]}}
	for _, name := range sortedKeys(o.Features) {
		if level := o.Features[name]; name != featureMetadata && level > 0 {
			recs = append(recs, &metalog.FeatureLevel{Name: name, FeatureLevel: level})
		}
	}
	if o.Features[featureELR] > 0 {
		min := strconv.Itoa(max(o.MinISR, 1))
		recs = append(recs, &metalog.Config{ResourceType: metalog.ResourceBroker, Name: "min.insync.replicas", Value: &min})
	}
	return recs
}

// Formatted reports whether dir, the path of __cluster_metadata-0, holds a
// bootstrap checkpoint or a raft log.
func Formatted(dir string) bool { return FormattedOn(vfs.OS, dir) }

// FormattedOn is Formatted on another file system.
func FormattedOn(files vfs.FS, dir string) bool {
	for _, name := range []string{projection.Bootstrap.FileName(), "wal"} {
		if _, err := files.Stat(path.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
