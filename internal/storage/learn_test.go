package storage

import (
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// A segment that a power cut brought back, or whose index is rebuilt, is read
// again while the segments behind it are trusted.
func TestABatchThatIsReadAgainLeavesLaterEpochsAlone(t *testing.T) {
	for _, c := range []struct {
		name        string
		known, want []model.EpochStart
		base        model.Offset
		epoch       model.Epoch
	}{
		{"before the first entry, its epoch", []model.EpochStart{{Epoch: 0, Start: 38}, {Epoch: 1, Start: 42}},
			[]model.EpochStart{{Epoch: 0, Start: 30}, {Epoch: 1, Start: 42}}, 30, 0},
		{"before the first entry, an older epoch", []model.EpochStart{{Epoch: 3, Start: 38}, {Epoch: 4, Start: 42}},
			[]model.EpochStart{{Epoch: 1, Start: 30}, {Epoch: 3, Start: 38}, {Epoch: 4, Start: 42}}, 30, 1},
		{"an entry that begins inside it", []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 43}, {Epoch: 2, Start: 53}},
			[]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 42}, {Epoch: 2, Start: 53}}, 42, 1},
		{"an entry that is missing", []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 2, Start: 53}},
			[]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 42}, {Epoch: 2, Start: 53}}, 42, 1},
		{"an entry that comes too early", []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 2, Start: 40}},
			[]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 42}, {Epoch: 2, Start: 46}}, 42, 1},
	} {
		l := &Log{epochs: epochs.New(c.known)}
		l.learnEpoch(&record.Header{Base: c.base, LastOffsetDelta: 3, LeaderEpoch: c.epoch})
		if got := l.epochs.Entries(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}
