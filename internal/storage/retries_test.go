package storage_test

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// writeRetries appends n batches of two producers, by turns, and returns them.
func writeRetries(t *testing.T, l *storage.Log, n int) (all []producers.Batch) {
	for i := range n {
		b := record.NewBuilder(record.BatchOptions{ProducerID: model.ProducerID(7 + i%2), BaseSequence: int32(i / 2)})
		b.Add(now, nil, []byte("0123456789"))
		h, _ := record.ParseHeader(b.Bytes())
		p := h.Producer()
		p.Base = l.LEO()
		_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
		must(t, err)
		all = append(all, p)
	}
	return all
}

// knowsRetries checks that the last five batches of each of the two producers are
// known again.
func knowsRetries(t *testing.T, what string, state *producers.State, all []producers.Batch) {
	t.Helper()
	for _, b := range all[max(0, len(all)-10):] {
		if v := state.Check(b, true); !v.Duplicate || v.Base != b.Base {
			t.Errorf("%s: the batch at %d of %d: %+v", what, b.Base, len(all), v)
		}
	}
}

// However a log was closed or cut, it knows as many retries as before (R2.10,
// B65), though a snapshot holds one batch of each producer.
func TestRetriesAreKnownAfterEveryReload(t *testing.T) {
	for n := 11; n < 60; n += 3 { // the end is near a roll, or far from it
		w := newWorld(t)
		l := w.fresh()
		all := writeRetries(t, l, n)
		must(t, w.dir.CloseClean(1))
		l = w.reopen()
		knowsRetries(t, "closed in order", l.Producers(), all)
		cut, err := l.Truncate(l.LEO()-1, nil, now)
		must(t, err)
		all = all[:n-1]
		knowsRetries(t, "cut", cut.Producers, all)
		must(t, w.dir.Close())
		l = w.reopen()
		knowsRetries(t, "killed", l.Producers(), all)
		must(t, w.dir.CloseClean(1))
		l = w.reopen()
		knowsRetries(t, "closed in order again", l.Producers(), all)
	}
}
