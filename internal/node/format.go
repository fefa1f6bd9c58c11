package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Format makes the log directory of a new node: the bootstrap checkpoint of the
// metadata log first, then meta.properties, whose presence says that all is
// there. A directory that belongs to a cluster already is left as it is.
func Format(cfg *config.Config, clusterID string) error {
	return FormatOn(nil, vfs.OS, cfg, clusterID)
}

// FormatOn is Format on the file system of a process, by its clock.
func FormatOn(rt *task.Runtime, files vfs.FS, cfg *config.Config, clusterID string) error {
	if info, err := files.Stat(cfg.LogDir); err == nil && !info.Dir {
		return fmt.Errorf("%s is a file: remove it, or name another log.dirs", cfg.LogDir)
	}
	if controlplane.FormattedOn(files, cfg.MetadataDir()) && !interrupted(files, cfg) {
		return fmt.Errorf("%s is formatted already: remove it, or name another log.dirs", cfg.LogDir)
	}
	o := controlplane.FormatOptions{MinISR: max(cfg.MinISR, 1), Now: model.Millis(rt.Wall().UnixMilli()), FS: files}
	if len(cfg.ControllerListenerNames) > 0 {
		o.ListenerName = cfg.ControllerListenerNames[0]
	}
	var directory model.UUID
	rand.Read(directory[:])
	if len(cfg.QuorumVoters) == 0 && cfg.Controller {
		at := cfg.ControllerAdvertised[0]
		o.Voters = []controlplane.Voter{{ID: cfg.NodeID, DirectoryID: directory, Host: at.Host, Port: at.Port}}
	}
	if err := vfs.MakeDurably(files, cfg.LogDir); err != nil {
		return fmt.Errorf("%s cannot be made (%w): name a log.dirs that this user may write", cfg.LogDir, err)
	}
	if err := controlplane.Format(cfg.MetadataDir(), o); err != nil {
		return fmt.Errorf("%s cannot be formatted (%w): name a log.dirs that this user may write", cfg.LogDir, err)
	}
	d, err := storage.OpenDir(files, cfg.LogDir, storage.DirOptions{Runtime: rt, ClusterID: clusterID, NodeID: cfg.NodeID, DirectoryID: directory})
	if err != nil {
		return err
	}
	return d.Close()
}

// interrupted reports whether a format was cut off before meta.properties, and
// nothing was kept in the directory since.
func interrupted(files vfs.FS, cfg *config.Config) bool {
	for _, name := range []string{path.Join(cfg.LogDir, "meta.properties"), path.Join(cfg.MetadataDir(), "wal")} {
		if _, err := files.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
