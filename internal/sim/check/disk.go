package check

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// named is what of a replica was found on its disk.
type named struct {
	batches int         // the first ones of the log, whose epochs are there
	epoch   model.Epoch // of the last of them
	leads   model.Epoch // the newest epoch that its leader serves in, plus one
}

// EpochOnDisk is R8.12 and R4.2a: leader-epoch-checkpoint names an epoch, synced,
// before the log holds a record of it, and before its leader serves. The file is
// read only when the log has come to another epoch, or the leader has. What comes
// back with a log start of before may be of an epoch that is forgotten (R8.17).
type EpochOnDisk struct{}

func (EpochOnDisk) replica(_ *Set, m *mirror) string {
	f, k := &m.now, &m.named
	if m.seat.synced == nil || m.cutsRead != f.cuts {
		return ""
	}
	if m.first {
		*k = named{}
	}
	serves := f.role == partition.Leader && f.serving && k.leads <= f.epoch
	from, to := k.batches, len(m.batches)
	for from < to && from > 0 && m.batches[from].epoch == k.epoch {
		from++
	}
	if k.batches = from; from == to && !serves {
		return ""
	}
	entries, err := format.ParseEpochs(m.seat.synced(m.part.tp))
	if err != nil {
		entries = nil // there is no such file
	}
	m.highest = max(m.highest, m.readable())
	for _, n := range m.batches[from:to] {
		for _, at := range []model.Offset{max(n.base, m.readable()), n.last} {
			got := epochAt(entries, at)
			if n.last >= at && !n.bad && got != n.epoch && (got != model.NoEpoch || at >= m.highest) {
				return fmt.Sprintf("b%d holds %v, the epochs on its disk are %v", m.id(), n, entries)
			}
		}
		k.epoch = n.epoch
	}
	if k.batches = to; !serves {
		return ""
	}
	if at := len(entries) - 1; at < 0 || entries[at].Epoch != f.epoch {
		return fmt.Sprintf("b%d serves in epoch %d, the epochs on its disk are %v", m.id(), f.epoch, entries)
	}
	k.leads = f.epoch + 1
	return ""
}

// epochAt is the epoch that the entries name for an offset.
func epochAt(entries []model.EpochStart, o model.Offset) model.Epoch {
	epoch := model.NoEpoch
	for _, e := range entries {
		if e.Start <= o {
			epoch = e.Epoch
		}
	}
	return epoch
}
