package storage

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Defaults of DirOptions.
const (
	defaultMaxOpen = 1024
	defaultWorkers = 4
)

// DirOptions say how a log directory is opened.
type DirOptions struct {
	Runtime *task.Runtime // nil: goroutines and the machine's clock
	// ClusterID and NodeID must match meta.properties; they go into one that is
	// missing, with DirectoryID.
	ClusterID   string
	NodeID      model.BrokerID
	DirectoryID model.UUID // zero: a random one
	// Config gives the configs of a log found at opening; nil: the defaults.
	Config func(tp model.TopicPartition) LogConfig
	Log    *slog.Logger        // nil: silent
	Now    func() model.Millis // the wall clock; nil: the machine's
	// NewID makes the ids in names of folders set aside; nil: random ones.
	NewID func() [16]byte
	// ProducerExpiry is how long an idle producer id is remembered
	// (producer.id.expiration.ms); 0: 24 hours.
	ProducerExpiry time.Duration
	MaxOpen        int // files open at most; 0: 1024
	Workers        int // logs recovered at once; 0: 4
	// Manual: no task of its own; the owner calls RunBackground.
	Manual bool
}

func (o *DirOptions) fill() {
	if o.Config == nil {
		o.Config = func(model.TopicPartition) LogConfig { return DefaultLogConfig() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() model.Millis { return model.Millis(o.Runtime.Wall().UnixMilli()) }
	}
	if o.NewID == nil {
		o.NewID = func() (id [16]byte) {
			if _, err := rand.Read(id[:]); err != nil {
				panic("no random bytes: " + err.Error())
			}
			return id
		}
	}
	o.ProducerExpiry = cmp.Or(o.ProducerExpiry, 24*time.Hour)
	o.MaxOpen = cmp.Or(o.MaxOpen, defaultMaxOpen)
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
}

// Dir is one log directory with all its logs. Its methods may be called from
// any goroutine.
type Dir struct {
	fs    vfs.FS
	path  string
	opts  DirOptions
	files *fileCache
	lock  io.Closer
	meta  format.Meta
	clean model.BrokerEpoch

	mu     sync.Mutex // guards logs and sorted
	logs   map[model.TopicPartition]*Log
	sorted []*Log // what Logs returns; nil when logs changed since

	// checkpoints is held while a checkpoint file of the directory is written; it
	// guards what those files say.
	checkpoints *task.Mutex
	saved       checkpointed

	failed atomic.Pointer[error]
	broken *task.Signal // latched
	once   sync.Once

	work background
}

// ID is the directory's id of meta.properties.
func (d *Dir) ID() model.UUID { return d.meta.DirectoryID }

// ClusterID is the cluster's id of meta.properties.
func (d *Dir) ClusterID() string { return d.meta.ClusterID }

// Path is where the directory lies.
func (d *Dir) Path() string { return d.path }

// CleanShutdownEpoch is the broker epoch of the clean-shutdown file that was
// found at opening; UnknownBrokerEpoch after an unclean stop (R8.24).
func (d *Dir) CleanShutdownEpoch() model.BrokerEpoch { return d.clean }

// Logs lists the logs in order of topic and partition. The list is shared: the
// caller does not change it.
func (d *Dir) Logs() []*Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sorted == nil {
		d.sorted = slices.SortedFunc(maps.Values(d.logs), func(a, b *Log) int { return a.tp.Compare(b.tp) })
	}
	return d.sorted
}

// Log returns one log, nil when it is not here.
func (d *Dir) Log(tp model.TopicPartition) *Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.logs[tp]
}

// OpenFiles is the number of files that the directory holds open.
func (d *Dir) OpenFiles() int { return d.files.count() }

// Failed is closed when an I/O error took the directory offline; Err tells it.
func (d *Dir) Failed() <-chan struct{} { return d.broken.C() }

// FailedSignal is Failed for the tasks of the process.
func (d *Dir) FailedSignal() *task.Signal { return d.broken }

// Err is the error that took the directory offline, nil while it is online.
func (d *Dir) Err() error {
	if e := d.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// usable refuses work on a directory that is offline.
func (d *Dir) usable() error {
	if e := d.failed.Load(); e != nil {
		return fmt.Errorf("%w: %w", ErrOffline, *e)
	}
	return nil
}

// fail takes the directory offline for good and returns the error (R8.23).
func (d *Dir) fail(op string, what any, err error) error {
	err = fmt.Errorf("%s %v: %w", op, what, err)
	d.once.Do(func() {
		d.failed.Store(&err)
		d.broken.Close()
		d.opts.Log.Error("log directory is offline", "dir", d.path, "err", err)
	})
	return err
}

// Create makes an empty log. The topic id is durable before the first append
// (R8.9).
func (d *Dir) Create(tp model.TopicPartition, id model.UUID, cfg LogConfig, now model.Millis) (*Log, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if d.Log(tp) != nil {
		return nil, fmt.Errorf("create %s: it exists", tp)
	}
	l := &Log{d: d, tp: tp, dir: path.Join(d.path, tp.String()), topicID: id, metaDirty: true, namesDirty: true, lastFlush: now, snapped: model.UnknownOffset}
	l.cfg.Store(&cfg)
	if err := d.forget(tp); err != nil {
		return nil, err
	}
	if err := l.makeFiles(now); err != nil {
		return nil, d.fail("create", tp, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.logs[tp], d.sorted = l, nil
	return l, nil
}

func (l *Log) makeFiles(now model.Millis) error {
	fs := l.d.fs
	if err := fs.MkdirAll(l.dir); err != nil {
		return err
	}
	f, err := fs.Create(path.Join(l.dir, metadataFile))
	if err != nil {
		return err
	}
	_, err = f.WriteAt(format.PartitionMetadata(l.topicID), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	s := newSegment(l.d.files, l.dir, 0)
	if err := s.create(now); err != nil {
		return err
	}
	s.rest()
	l.segs = []*segment{s}
	return nil
}

// Delete takes a log out of the directory at once: its folder gets the suffix
// -delete and is removed after file.delete.delay.ms.
func (d *Dir) Delete(tp model.TopicPartition) error {
	l, aside, err := d.setAside(tp, deleteDir)
	if err != nil {
		return err
	}
	d.later(chore{remove: aside, after: l.cfg.Load().FileDeleteDelay})
	return nil
}

// Stray sets a log aside that nobody hosts here: its folder gets the suffix
// -stray and stays.
func (d *Dir) Stray(tp model.TopicPartition) error {
	_, aside, err := d.setAside(tp, strayDir)
	if err == nil {
		d.opts.Log.Warn("stray log set aside", "log", tp.String(), "folder", path.Base(aside))
	}
	return err
}

func (d *Dir) setAside(tp model.TopicPartition, suffix string) (*Log, string, error) {
	if err := d.usable(); err != nil {
		return nil, "", err
	}
	d.mu.Lock()
	l := d.logs[tp]
	delete(d.logs, tp)
	d.sorted = nil
	d.mu.Unlock()
	if l == nil {
		return nil, "", fmt.Errorf("%s: no such log", tp)
	}
	l.close()
	aside := path.Join(d.path, asideName(tp, d.opts.NewID(), suffix))
	err := d.fs.Rename(l.dir, aside)
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	if err != nil {
		return nil, "", d.fail("set aside", tp, err)
	}
	return l, aside, nil
}

// close gives the log's files back; nothing is written.
func (l *Log) close() {
	l.mu.Lock()
	l.closed = true
	segs := l.segs
	l.mu.Unlock()
	for _, s := range segs {
		for _, f := range s.files() {
			f.kill()
		}
	}
}

// CloseClean stops the directory in the order of R8.18: all logs are flushed,
// their producers snapshot, their indexes cut to size; then the checkpoints, and
// last the clean-shutdown file with the broker epoch. The HW checkpoint is the
// caller's, before. Nobody may write to a log any more.
func (d *Dir) CloseClean(epoch model.BrokerEpoch) error {
	if err := d.usable(); err != nil {
		return errors.Join(err, d.Close())
	}
	d.work.stop()
	err := d.RunBackground()
	if err == nil {
		logs := d.Logs()
		err = d.each(len(logs), func(i int) error { return logs[i].settle() })
	}
	if err == nil {
		err = errors.Join(d.CheckpointRecovery(), d.CheckpointLogStart())
	}
	if err == nil {
		err = writeFile(d.fs, path.Join(d.path, cleanFile), format.CleanShutdown(epoch))
	}
	return errors.Join(err, d.Close())
}

// settle makes a log ready for a clean stop.
func (l *Log) settle() error {
	v := l.view()
	active := v.segs[len(v.segs)-1]
	if err := active.seal(l.cfg.Load()); err != nil {
		return l.fail("close", err)
	}
	snapped := l.snapped == v.leo || l.producers == nil && v.end == 0
	if snapped && l.RecoveryPoint() == v.leo && !l.namesDirty && !l.epochsDirty {
		return nil // on disk as it was loaded
	}
	if l.epochsDirty {
		if err := l.WriteEpochs(l.epochs.Entries()); err != nil {
			return err
		}
	}
	if !snapped {
		if err := l.snapshot(v.leo, true); err != nil {
			return l.fail("close", err)
		}
	}
	if err := active.sync(); err != nil {
		return l.fail("close", err)
	}
	l.namesDirty = true
	if err := l.sync(); err != nil {
		return l.fail("close", err)
	}
	return nil
}

// Close stops as a killed process would, but gives files and lock back. The next
// OpenDir recovers.
func (d *Dir) Close() error {
	d.work.stop()
	for _, l := range d.Logs() {
		l.close()
	}
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}
