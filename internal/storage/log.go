package storage

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// Log is one partition's log. One goroutine at a time may write (Append, Flush,
// Truncate, Restart, WriteEpochs, RaiseStart, ApplyRetention, SetTopicID);
// everything else may be called from any.
type Log struct {
	d   *Dir
	tp  model.TopicPartition
	dir string // its folder
	cfg atomic.Pointer[LogConfig]

	// mu guards what readers and the background see of the writer's work: the
	// fields down to tail. It is held for no I/O.
	mu        sync.Mutex
	segs      []*segment // ascending, never empty, replaced as a whole
	start     model.Offset
	leo       model.Offset
	recovery  model.Offset // everything below is durable
	cuts      uint64       // truncations so far
	topicID   model.UUID
	producers *producers.State // nil while there was no producer
	epochs    epochs.Cache
	tail      *tail
	closed    bool
	fading    bool // segments are on their way out: a crash may bring some back

	hw model.Offset // as checkpointed, clamped at load

	// The writer's own: what is not durable yet of names and identity.
	metaDirty   bool         // partition.metadata was written without fsync
	namesDirty  bool         // the folder has names that were not synced
	epochsDirty bool         // the epoch checkpoint must be written, whatever it holds
	epochsWrong bool         // its entries do not fit the log: not to be trusted with bytes
	epochsGap   bool         // a batch was read again that lies before all known epochs
	snapped     model.Offset // where the newest producer snapshot was taken; -1 none
	lastFlush   model.Millis
}

// TP names the partition.
func (l *Log) TP() model.TopicPartition { return l.tp }

// Config returns the configs in force.
func (l *Log) Config() LogConfig { return *l.cfg.Load() }

// SetConfig changes the configs; the next append obeys them.
func (l *Log) SetConfig(cfg LogConfig) { l.cfg.Store(&cfg) }

// TopicID is the id in partition.metadata; zero when that file was lost, until
// SetTopicID.
func (l *Log) TopicID() model.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topicID
}

// SetTopicID writes partition.metadata for a log that lost it.
func (l *Log) SetTopicID(id model.UUID) error {
	if err := l.d.usable(); err != nil {
		return err
	}
	if err := writeFile(l.d.fs, path.Join(l.dir, metadataFile), format.PartitionMetadata(id)); err != nil {
		return l.fail("write metadata of", err)
	}
	l.mu.Lock()
	l.topicID = id
	l.mu.Unlock()
	return nil
}

// fail takes the directory offline, unless the log was deleted under its writer:
// then it is no fault of the disk that names are gone.
func (l *Log) fail(op string, err error) error {
	if l.isClosed() {
		return fmt.Errorf("%s %s: %w", op, l.tp, ErrClosed)
	}
	return l.d.fail(op, l.tp, err)
}

// Start is the log start offset: the first that can be read.
func (l *Log) Start() model.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// LEO is the log end offset.
func (l *Log) LEO() model.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leo
}

// End is LEO with the position where it lies.
func (l *Log) End() (model.Offset, model.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leo, l.endPos()
}

// endPos needs mu.
func (l *Log) endPos() model.Position {
	active := l.segs[len(l.segs)-1]
	return model.Position{Segment: active.base, Byte: active.size.Load()}
}

// RecoveryPoint is the offset below which everything is durable (R8.15).
func (l *Log) RecoveryPoint() model.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recovery
}

// CheckpointedHW is the high watermark as it was found at load, within log
// start and LEO (R8.16); the log start when there was none.
func (l *Log) CheckpointedHW() model.Offset { return l.hw }

// Producers is a copy of the producer state of everything written.
func (l *Log) Producers() *producers.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.producers == nil {
		return producers.New()
	}
	return l.producers.Clone()
}

// Epochs is the epoch cache last written or recovered.
func (l *Log) Epochs() []model.EpochStart {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.Entries()
}

// Size is the bytes of all segments' log files.
func (l *Log) Size() int64 {
	var n int64
	for _, s := range l.segments() {
		n += s.size.Load()
	}
	return n
}

func (l *Log) segments() []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segs
}

// SegmentInfo describes one segment, for people.
type SegmentInfo struct {
	Base         model.Offset
	Bytes        int64
	MaxTimestamp model.Millis // -1 when its records have none
	Modified     model.Millis
	Active       bool
}

// Segments describes the segments, oldest first.
func (l *Log) Segments() []SegmentInfo {
	segs := l.segments()
	out := make([]SegmentInfo, len(segs))
	for i, s := range segs {
		out[i] = SegmentInfo{
			Base: s.base, Bytes: s.size.Load(), MaxTimestamp: model.Millis(s.maxTime.Load()),
			Modified: model.Millis(s.modified.Load()), Active: i == len(segs)-1,
		}
	}
	return out
}

// view is a consistent cut of what a reader needs.
type view struct {
	segs       []*segment
	start, leo model.Offset
	end        int64 // bytes of the active segment below leo
	closed     bool
	fading     bool
}

func (l *Log) view() view {
	l.mu.Lock()
	defer l.mu.Unlock()
	return view{segs: l.segs, start: l.start, leo: l.leo, end: l.segs[len(l.segs)-1].size.Load(),
		closed: l.closed, fading: l.fading}
}

// floor is the index of the segment that would hold the offset; 0 at least.
func (v *view) floor(offset model.Offset) int {
	i, found := slices.BinarySearchFunc(v.segs, offset, func(s *segment, o model.Offset) int { return cmp.Compare(s.base, o) })
	if !found {
		i--
	}
	return max(i, 0)
}

// size is the bytes of segment i that the view may read.
func (v *view) size(i int) int64 {
	if i == len(v.segs)-1 {
		return v.end
	}
	return v.segs[i].size.Load()
}

// endOf is the offset where segment i ends.
func (v *view) endOf(i int) model.Offset {
	if i == len(v.segs)-1 {
		return v.leo
	}
	return v.segs[i+1].base
}

// tail remembers where the newest batches of the active segment begin, so that
// reads near the end look nothing up. It is guarded by the log's mutex.
type tail struct {
	seg   *segment
	at    [tailBatches]tailBatch
	count int // all that were noted
}

const tailBatches = 64

type tailBatch struct {
	base model.Offset
	pos  int64
}

// note adds a batch of the segment; batches of another one are forgotten.
func (t *tail) note(s *segment, base model.Offset, pos int64) {
	if t.seg != s {
		t.seg, t.count = s, 0
	}
	t.at[t.count%tailBatches] = tailBatch{base, pos}
	t.count++
}

func (t *tail) forget() { t.seg, t.count = nil, 0 }

// find returns the batch that holds the offset, which lies below LEO, if it is
// remembered.
func (t *tail) find(s *segment, offset model.Offset) (tailBatch, bool) {
	if t == nil || t.seg != s {
		return tailBatch{}, false
	}
	for i := t.count - 1; i >= max(0, t.count-tailBatches); i-- {
		if b := t.at[i%tailBatches]; b.base <= offset {
			return b, true
		}
	}
	return tailBatch{}, false
}
