package coretest

import (
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// batchBytes is the size that every batch has here.
const batchBytes = 100

// batch is one record batch: its records' values stand in for their bytes.
type batch struct {
	base, last model.Offset
	epoch      model.Epoch
	values     []string
	producer   producers.Batch
}

func (b batch) same(o batch) bool {
	return b.base == o.base && b.epoch == o.epoch && slices.Equal(b.values, o.values)
}

// disk is the log of one replica as storage keeps it.
type disk struct {
	start    model.Offset
	batches  []batch
	empty    model.Offset // end of a log without batches
	epochs   []model.EpochStart
	hw       model.Offset // checkpoint
	segments []model.Offset
}

func (d *disk) end() model.Offset {
	if n := len(d.batches); n > 0 {
		return d.batches[n-1].last + 1
	}
	return d.empty
}

// loadEpochs is what the epoch file holds after a start (R8.22).
func (d *disk) loadEpochs() []model.EpochStart {
	c := epochs.New(d.epochs)
	c.TruncateFromEnd(d.end())
	c.TruncateFromStart(d.start)
	d.epochs = c.Entries()
	return d.epochs
}

// locate is the position of o: each batch has the same size.
func (d *disk) locate(o model.Offset) model.Position {
	segment := model.Offset(0)
	for _, s := range d.segments {
		if s <= o {
			segment = s
		}
	}
	n := 0
	for _, b := range d.batches {
		if b.base >= segment && b.last < o {
			n++
		}
	}
	return model.Position{Segment: segment, Byte: int64(n) * batchBytes}
}

// at is the batch that holds offset o.
func (d *disk) at(o model.Offset) (batch, bool) {
	i, found := slices.BinarySearchFunc(d.batches, o, func(b batch, o model.Offset) int {
		switch {
		case b.last < o:
			return -1
		case b.base > o:
			return 1
		}
		return 0
	})
	if !found {
		return batch{}, false
	}
	return d.batches[i], true
}

// read returns the whole batches that hold [from, limit), at most n.
func (d *disk) read(from, limit model.Offset, n int) []batch {
	var out []batch
	for _, b := range d.batches {
		if b.last >= from && b.base < limit && len(out) < n {
			out = append(out, b)
		}
	}
	return out
}

// job is one piece of work for the log writer.
type job struct {
	truncate *partition.Truncate
	persist  *partition.PersistEpochs
	append   *partition.Append
	payload  []batch
	raise    model.Offset
}

// enqueue hands the storage part of a Ready to the log writer.
func (w *World) enqueue(b *broker, rd partition.Ready, payload []batch) {
	if rd.Cut != nil {
		w.sayCut(b, rd.Cut)
	}
	if rd.Truncate != nil {
		t := *rd.Truncate
		b.jobs = append(b.jobs, job{truncate: &t})
	}
	if rd.PersistEpochs != nil {
		e := *rd.PersistEpochs
		b.jobs = append(b.jobs, job{persist: &e})
	}
	if rd.Append != nil {
		a := *rd.Append
		b.jobs = append(b.jobs, job{append: &a, payload: payload})
	}
	if rd.RaiseLogStart != nil {
		b.jobs = append(b.jobs, job{raise: *rd.RaiseLogStart})
	}
}

func (w *World) sayCut(b *broker, c *partition.Cut) {
	if w.quiet {
		return
	}
	below := ""
	if c.BelowHW {
		below = ", below its HW " + offset(c.HWBefore)
	}
	w.tell(b, "truncates to %d (drops %s%s)", c.From, valuesOf(b.log.read(c.From, c.To, len(b.log.batches))), below)
}

func valuesOf(list []batch) string {
	var out []string
	for _, b := range list {
		out = append(out, b.values...)
	}
	return strings.Join(out, " ")
}

// runJobs lets the log writer work, unless it is held.
func (w *World) runJobs(b *broker) {
	for !b.hold && len(b.jobs) > 0 {
		w.runJob(b)
	}
}

// runJob carries out the oldest job and reports it.
func (w *World) runJob(b *broker) {
	j := b.jobs[0]
	b.jobs = b.jobs[1:]
	d := &b.log
	switch {
	case j.truncate != nil:
		d.truncate(*j.truncate)
		w.step(b, &partition.Truncated{LEO: d.end(), LogStart: d.start, Pos: d.locate(d.end()), Producers: d.fold()}, nil)
	case j.persist != nil:
		d.epochs = slices.Clone(j.persist.Epochs)
		w.step(b, &partition.EpochPersisted{Epoch: j.persist.Epoch}, nil)
	case j.append != nil:
		for len(b.jobs) > 0 && b.jobs[0].append != nil && b.jobs[0].append.Epochs == nil && !b.hold {
			j.append, j.payload = b.jobs[0].append, append(j.payload, b.jobs[0].payload...)
			b.jobs = b.jobs[1:]
		}
		w.write(b, j)
	case j.raise > d.start:
		d.raiseStart(j.raise)
		w.step(b, &partition.LogStartMoved{To: j.raise}, nil)
	}
}

// write appends a batch, or what a follower copied.
func (w *World) write(b *broker, j job) {
	d := &b.log
	if j.append.Epochs != nil {
		d.epochs = slices.Clone(j.append.Epochs) // before the bytes (R8.12)
	}
	for _, x := range j.payload {
		if x.base < d.end() {
			w.fail("LogOrder: b%d writes a batch at %d, its log ends at %d", b.id, x.base, d.end())
		}
		if b.p.Role() == partition.Leader {
			w.checkSequence(b, x)
		}
		d.batches = append(d.batches, x)
	}
	w.step(b, &partition.Appended{End: j.append.End, Pos: d.locate(j.append.End)}, nil)
}

func (d *disk) truncate(t partition.Truncate) {
	if t.Restart {
		*d = disk{start: t.To, empty: t.To}
		return
	}
	d.batches = slices.DeleteFunc(d.batches, func(b batch) bool { return b.last >= t.To })
	d.empty = min(d.empty, t.To)
	d.start = min(d.start, t.To)
	if len(d.batches) == 0 {
		d.empty = t.To
	}
	d.epochs = slices.Clone(t.Epochs)
}

func (d *disk) raiseStart(to model.Offset) {
	end := d.end()
	d.start, d.empty = to, end
	d.batches = slices.DeleteFunc(d.batches, func(b batch) bool { return b.last < to })
}
