package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// OpenDir locks and loads a log directory; one that is not there is made. After
// an unclean stop every log is recovered (R8.19-R8.22). Checkpoints that cannot
// be read count as absent, which one log line says. Errors: the directory is
// locked, belongs to another cluster or node, or cannot be read.
func OpenDir(fs vfs.FS, dir string, opts DirOptions) (*Dir, error) {
	opts.fill()
	d := &Dir{
		fs: fs, path: dir, opts: opts, files: &fileCache{fs: fs, max: opts.MaxOpen},
		logs: map[model.TopicPartition]*Log{}, clean: model.UnknownBrokerEpoch,
		broken: opts.Runtime.NewSignal(), checkpoints: opts.Runtime.NewMutex(),
	}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open log directory %s: %w", dir, err), d.Close())
	}
	if !opts.Manual {
		d.work.start(d)
	}
	return d, nil
}

func (d *Dir) open() (err error) {
	if err := vfs.MakeDurably(d.fs, d.path); err != nil {
		return err
	}
	if d.lock, err = d.fs.Lock(path.Join(d.path, lockFile)); err != nil {
		return err
	}
	if err := d.loadMeta(); err != nil {
		return err
	}
	// What is read here may have been named by a process that was killed before
	// it made the name durable.
	if err := d.fs.SyncDir(d.path); err != nil {
		return err
	}
	clean, err := d.takeCleanFile()
	if err != nil {
		return err
	}
	d.saved = checkpointed{
		hw:       d.readOffsets(hwFile),
		recovery: d.readOffsets(recoveryFile),
		start:    d.readOffsets(logStartFile),
	}
	if err := d.loadLogs(clean); err != nil {
		return err
	}
	return d.settleCheckpoints()
}

// loadMeta reads meta.properties, or writes one for a new directory.
func (d *Dir) loadMeta() error {
	name := path.Join(d.path, metaFile)
	want := format.Meta{ClusterID: d.opts.ClusterID, NodeID: d.opts.NodeID, DirectoryID: d.opts.DirectoryID}
	b, err := readFile(d.fs, name)
	if missing(err) {
		if want.DirectoryID.IsZero() {
			want.DirectoryID = d.opts.NewID()
		}
		d.meta = want
		return writeFile(d.fs, name, want.Format())
	}
	if err != nil {
		return err
	}
	m, err := format.ParseMeta(b)
	if err != nil {
		return fmt.Errorf("%s: %w", metaFile, err)
	}
	if m.ClusterID != want.ClusterID || m.NodeID != want.NodeID {
		return fmt.Errorf("%s says cluster %s, node %d, but this is cluster %s, node %d", metaFile, m.ClusterID, m.NodeID, want.ClusterID, want.NodeID)
	}
	if m.DirectoryID.IsZero() { // written before directories had ids
		m.DirectoryID = want.DirectoryID
		if m.DirectoryID.IsZero() {
			m.DirectoryID = d.opts.NewID()
		}
		d.meta = m
		return writeFile(d.fs, name, m.Format())
	}
	d.meta = m
	return nil
}

// takeCleanFile reads the clean-shutdown file and removes it for good, before
// anything is loaded: a crash while loading is unclean (R8.19).
func (d *Dir) takeCleanFile() (bool, error) {
	name := path.Join(d.path, cleanFile)
	b, err := readFile(d.fs, name)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	clean := true
	if d.clean, err = format.ParseCleanShutdown(b); err != nil {
		d.unreadable(cleanFile, err)
		clean = false
	}
	if err := d.fs.Remove(name); err != nil {
		return false, err
	}
	return clean, d.fs.SyncDir(d.path)
}

// unreadable says in one line that a file counts as absent (R13.12).
func (d *Dir) unreadable(name string, err error) {
	d.opts.Log.Warn("file cannot be read and counts as absent", "file", path.Join(d.path, name), "err", err)
}

// readOffsets reads a checkpoint; an empty map when there is none.
func (d *Dir) readOffsets(name string) map[model.TopicPartition]model.Offset {
	b, err := readFile(d.fs, path.Join(d.path, name))
	if err == nil {
		var m map[model.TopicPartition]model.Offset
		if m, err = format.ParseOffsets(b); err == nil {
			return m
		}
	}
	if !missing(err) {
		d.unreadable(name, err)
	}
	return map[model.TopicPartition]model.Offset{}
}

// loadLogs loads every log folder, some at once.
func (d *Dir) loadLogs(clean bool) error {
	infos, err := d.fs.ReadDir(d.path)
	if err != nil {
		return err
	}
	var tps []model.TopicPartition
	for _, info := range infos {
		if !info.Dir {
			continue
		}
		if tp, ok := d.isLog(info.Name); ok {
			tps = append(tps, tp)
		}
	}
	logs := make([]*Log, len(tps))
	err = d.each(len(tps), func(i int) (err error) {
		logs[i], err = d.loadLog(tps[i], clean)
		return err
	})
	for _, l := range logs {
		if l != nil {
			d.logs[l.tp], d.sorted = l, nil
		}
	}
	return err
}

// each calls fn for 0 to n-1, some at once, and waits for all.
func (d *Dir) each(n int, fn func(int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	workers := d.opts.Runtime.NewGroup()
	for range min(d.opts.Workers, n) {
		workers.Go("storage worker", func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				errs[i] = fn(i)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// isLog sorts the folders of the directory out.
func (d *Dir) isLog(name string) (model.TopicPartition, bool) {
	switch {
	case strings.HasSuffix(name, deleteDir):
		d.later(chore{remove: path.Join(d.path, name)})
		return model.TopicPartition{}, false
	case strings.HasSuffix(name, strayDir), name == metadataTopicDir:
		return model.TopicPartition{}, false
	case strings.HasSuffix(name, futureDir):
		d.opts.Log.Warn("a log on its way from another directory is left alone", "folder", name)
		return model.TopicPartition{}, false
	}
	tp, ok := parseLogDir(name)
	if !ok {
		d.opts.Log.Warn("folder is no log and is left alone", "folder", name)
	}
	return tp, ok
}

// loadLog brings one log up.
func (d *Dir) loadLog(tp model.TopicPartition, clean bool) (*Log, error) {
	cfg := d.opts.Config(tp)
	l := &Log{d: d, tp: tp, dir: path.Join(d.path, tp.String()), lastFlush: d.opts.Now(), snapped: model.UnknownOffset}
	l.cfg.Store(&cfg)
	l.metaDirty = !clean // a killed process may have made nothing of it durable
	r := &loader{l: l, clean: clean, start: d.saved.start[tp], recovery: d.saved.recovery[tp], epoch: model.NoEpoch}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("load %s: %w", tp, err)
	}
	for _, s := range l.segs {
		s.rest()
	}
	l.hw = max(l.start, min(d.saved.hw[tp], l.leo))
	return l, nil
}

// names lists the log's folder.
func (l *Log) names() ([]vfs.Info, error) {
	infos, err := l.d.fs.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(infos, func(i vfs.Info) bool { return i.Dir }), nil
}
