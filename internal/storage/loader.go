package storage

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// loader brings one log up from what a clean or unclean stop left (R8.20-R8.22).
type loader struct {
	l               *Log
	clean           bool
	start, recovery model.Offset // checkpointed, 0 when absent

	segs        []*segment
	sizes       map[string]int64 // of the folder's files
	epochsFound bool             // the epoch checkpoint could be read
	leo         model.Offset     // the end of the last segment
	producers   *producers.State // at leo, when known
	epoch       model.Epoch      // of the last batch that was read again
}

func (r *loader) load() error {
	if err := r.tidy(); err != nil {
		return err
	}
	r.loadMetadata()
	r.loadEpochs()
	if err := r.openSegments(); err != nil {
		return err
	}
	if err := r.recover(); err != nil {
		return err
	}
	if err := r.settleEnds(); err != nil {
		return err
	}
	if err := r.settleEpochs(); err != nil {
		return err
	}
	if err := r.settleProducers(); err != nil || !r.l.namesDirty {
		return err
	}
	// What was removed must not come back under names that are used again.
	r.l.namesDirty = false
	return r.l.d.fs.SyncDir(r.l.dir)
}

// tidy removes what an interrupted change left and lists what remains (R8.20).
func (r *loader) tidy() error {
	infos, err := r.l.names()
	if err != nil {
		return err
	}
	infos, err = r.finishSwaps(infos)
	if err != nil {
		return err
	}
	r.sizes = make(map[string]int64, len(infos))
	for _, info := range infos {
		r.sizes[info.Name] = info.Size
	}
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		_, hasLog := r.sizes[segmentName(base, logSuffix)]
		orphan := ok && !hasLog && (suffix == indexSuffix || suffix == timeSuffix || suffix == txnSuffix)
		if !orphan && !strings.HasSuffix(info.Name, deletedSuffix) && !strings.HasSuffix(info.Name, tmpSuffix) {
			continue
		}
		if err := r.remove(info.Name); err != nil {
			return err
		}
		delete(r.sizes, info.Name)
	}
	return nil
}

func (r *loader) remove(name string) error {
	r.l.namesDirty = true
	err := r.l.d.fs.Remove(path.Join(r.l.dir, name))
	if missing(err) {
		return nil
	}
	return err
}

// finishSwaps completes or undoes a compaction that was interrupted: with
// .cleaned files it had not finished, so they and the .swap files from the
// smallest of them on go; other .swap files replace what they cover.
func (r *loader) finishSwaps(infos []vfs.Info) ([]vfs.Info, error) {
	smallest := model.Offset(-1)
	swaps := false
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if ok && strings.HasSuffix(suffix, cleanedSuffix) && (smallest < 0 || base < smallest) {
			smallest = base
		}
		swaps = swaps || ok && strings.HasSuffix(suffix, swapSuffix)
	}
	if smallest < 0 && !swaps {
		return infos, nil
	}
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok {
			continue
		}
		undone := strings.HasSuffix(suffix, cleanedSuffix) || strings.HasSuffix(suffix, swapSuffix) && smallest >= 0 && base >= smallest
		if undone {
			if err := r.remove(info.Name); err != nil {
				return nil, err
			}
		}
	}
	infos, err := r.l.names()
	if err != nil {
		return nil, err
	}
	if err := r.applySwaps(infos); err != nil {
		return nil, err
	}
	return r.l.names()
}

// applySwaps puts finished .swap segments in the place of those they cover.
func (r *loader) applySwaps(infos []vfs.Info) error {
	fs := r.l.d.fs
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok || suffix != logSuffix+swapSuffix {
			continue
		}
		end, err := r.endOf(info)
		if err != nil {
			return err
		}
		for _, old := range infos {
			b, s, ok := parseSegmentName(old.Name)
			covered := ok && b >= base && b < end && slices.Contains(segmentFiles[:4], s)
			if !covered {
				continue
			}
			if err := r.remove(old.Name); err != nil {
				return err
			}
		}
	}
	for _, info := range infos {
		if name, ok := strings.CutSuffix(info.Name, swapSuffix); ok {
			if err := fs.Rename(path.Join(r.l.dir, info.Name), path.Join(r.l.dir, name)); err != nil {
				return err
			}
		}
	}
	return fs.SyncDir(r.l.dir)
}

// endOf reads the offset after the last batch of a .swap log.
func (r *loader) endOf(info vfs.Info) (model.Offset, error) {
	f, err := r.l.d.fs.Open(path.Join(r.l.dir, info.Name))
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	w := newWalk(f, 0, info.Size)
	defer w.done()
	base, _, _ := parseSegmentName(info.Name)
	end := base
	for {
		h, err := w.peek()
		if err != nil {
			return end, nil //nolint:nilerr // recovery judges what comes after
		}
		end = h.Next()
		w.skip(h)
	}
}

// loadMetadata reads partition.metadata; without it the topic id stays zero.
func (r *loader) loadMetadata() {
	b, err := readFile(r.l.d.fs, path.Join(r.l.dir, metadataFile))
	if err == nil {
		r.l.topicID, err = format.ParsePartitionMetadata(b)
	}
	if err != nil {
		r.l.d.unreadable(path.Join(r.l.tp.String(), metadataFile), err)
	}
}

func (r *loader) loadEpochs() {
	b, err := readFile(r.l.d.fs, path.Join(r.l.dir, epochsFile))
	var entries []model.EpochStart
	if err == nil {
		entries, err = format.ParseEpochs(b)
	}
	switch {
	case err == nil:
		r.epochsFound = true
		r.l.keepEpochs(entries)
	case !missing(err):
		r.l.d.unreadable(path.Join(r.l.tp.String(), epochsFile), err)
	}
}

// openSegments makes a segment of every log file, without reading it.
func (r *loader) openSegments() error {
	now := r.l.d.opts.Now()
	infos, err := r.l.names()
	if err != nil {
		return err
	}
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok || suffix != logSuffix {
			continue
		}
		s := newSegment(r.l.d.files, r.l.dir, base)
		s.created = now
		s.modified.Store(info.ModTime.UnixMilli())
		s.size.Store(info.Size)
		s.index.n = int(r.sizes[segmentName(base, indexSuffix)] / offsetEntrySize)
		s.time.n = int(r.sizes[segmentName(base, timeSuffix)] / timeEntrySize)
		_, txn := r.sizes[segmentName(base, txnSuffix)]
		s.hasTxn.Store(txn)
		r.segs = append(r.segs, s)
	}
	slices.SortFunc(r.segs, func(a, b *segment) int { return cmp.Compare(a.base, b.base) })
	return nil
}

// begin makes the first segment of a log that has none.
func (r *loader) begin(base model.Offset) error {
	s := newSegment(r.l.d.files, r.l.dir, base)
	if err := s.create(r.l.d.opts.Now()); err != nil {
		return err
	}
	r.segs = []*segment{s}
	r.l.namesDirty = true
	return nil
}
