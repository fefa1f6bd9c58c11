package crash

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
)

func describe(h history) string {
	var out strings.Builder
	for _, o := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&out, "%d:%s, ", o, h[o].value)
	}
	return out.String()
}

// eachBatch reads a log whole.
func eachBatch(l *storage.Log, fn func(h record.Header, batch []byte) error) error {
	for at := l.Start(); at < l.LEO(); {
		s, err := l.Read(at, 500, l.LEO(), true)
		if err != nil {
			return err
		}
		b := make([]byte, s.Len)
		_, err = s.File.ReadAt(b, s.Pos)
		s.Release()
		if err != nil {
			return fmt.Errorf("read at %d: %w", at, err)
		}
		for h, batch := range record.Split(b) {
			if h.Next() <= at || !record.Valid(batch) {
				return fmt.Errorf("bad batch [%d, %d] at %d", h.Base, h.LastOffset(), at)
			}
			if err := fn(h, batch); err != nil {
				return err
			}
			at = h.Next()
		}
		if at > s.Next {
			return fmt.Errorf("a slice ends at %d and says %d", at, s.Next)
		}
		at = s.Next // a removed segment that did not come back leaves a hole
	}
	return nil
}

// contents checks I2 on the way.
func contents(l *storage.Log) (history, error) {
	h, epoch := history{}, model.NoEpoch
	err := eachBatch(l, func(hd record.Header, batch []byte) error {
		if hd.LeaderEpoch < epoch {
			return fmt.Errorf("epoch %d at %d comes after %d", hd.LeaderEpoch, hd.Base, epoch)
		}
		epoch = hd.LeaderEpoch
		return record.Records(batch, func(r *record.Record) bool {
			if r.Offset < l.Start() {
				return true
			}
			if h[r.Offset] = (one{value: string(r.Value)}); hd.Control() {
				h[r.Offset] = one{value: "marker"}
			}
			return true
		})
	})
	return h, err
}

// folds compares epochs, producers and the transaction index with the log from one
// of the offsets on (I3, I4).
func folds(l *storage.Log, h history, firsts ...model.Offset) error {
	cache := epochs.New(l.Epochs())
	err := eachBatch(l, func(hd record.Header, _ []byte) error {
		if e := cache.At(max(hd.Base, l.Start())); e != hd.LeaderEpoch {
			return fmt.Errorf("epoch %d at %d, the cache %v says %d", hd.LeaderEpoch, hd.Base, l.Epochs(), e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(l.Epochs()); n > 0 && l.Epochs()[n-1].Start > max(l.LEO(), l.Start()) {
		return fmt.Errorf("epochs %v", l.Epochs())
	}
	var errs []error
	for _, first := range firsts {
		if err = foldsFrom(l, h, first); err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func foldsFrom(l *storage.Log, h history, first model.Offset) error {
	state := producers.New()
	var aborted []storage.AbortedTxn
	for _, o := range slices.Sorted(maps.Keys(h)) {
		if b := h[o].batch; b != nil && b.ID >= 0 && o >= first && o < l.LEO() {
			if a, ok := state.Apply(*b); ok && a.Last >= l.Start() {
				aborted = append(aborted, storage.AbortedTxn(a))
			}
		}
	}
	if got, want := l.Producers().Entries(), state.Entries(); !slices.Equal(got, want) {
		return fmt.Errorf("producers\n%+v, not\n%+v", got, want)
	}
	got, err := l.Aborted(l.Start(), l.LEO())
	if err == nil && !slices.Equal(got, aborted) {
		err = fmt.Errorf("aborted %v, not %v", got, aborted)
	}
	return err
}
