package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// endRule compares what clients did with a log that is left.
type endRule interface {
	rule
	end(h *History, f *final) string
}

// final is the log of a partition after everything, on its leader.
type final struct {
	p      *part
	start  model.Offset
	end    model.Offset
	values map[model.Offset]string
	at     map[string]model.Offset // where a value is first
	twice  string                  // a value that is there more than once
	calls  []Op                    // produces to this partition
}

// AtEnd checks what must be true once everything has settled: Converged, and
// what clients did against the logs that are left. Without h it is the history of
// the Options.
func (s *Set) AtEnd(c *Cluster, h *History) error {
	if h != nil {
		s.o.History = h
	}
	if err := s.AfterStep(c); err != nil {
		return err
	}
	if err := s.Converged(c); err != nil || s.o.History == nil {
		return err
	}
	h = s.o.History
	for p := range s.alive {
		f, ok := s.finalLog(p)
		if !ok {
			continue
		}
		for _, r := range s.rules.ends {
			if text := r.end(h, f); text != "" {
				return s.violated(r, p, text)
			}
		}
	}
	return nil
}

// finalLog reads the log of a partition's leader from its disk.
func (s *Set) finalLog(p *part) (*final, bool) {
	m := p.mirror(p.truth.Leader)
	if m == nil || !m.live() || s.o.History.deleted[p.id.TopicID] {
		return nil, false
	}
	f := &final{p: p, start: max(m.readable(), p.deletes), end: m.end, values: map[model.Offset]string{}, at: map[string]model.Offset{}}
	list, ok := s.read(m, m.start, m.end)
	for _, n := range list {
		for i, v := range n.values {
			o := n.base + model.Offset(i)
			if _, again := f.at[v]; again && v != "" {
				f.twice = v
			} else {
				f.at[v] = o
			}
			f.values[o] = v
		}
	}
	for op := range s.o.History.calls {
		if c := &s.o.History.calls[op]; c.TP == p.id && len(c.Values) > 0 {
			f.calls = append(f.calls, Op(op))
		}
	}
	return f, ok
}

// AckedKept is I26 and I27 as clients see them.
type AckedKept struct{}

func (AckedKept) end(h *History, f *final) string {
	if f.p.unclean {
		return ""
	}
	for _, op := range f.calls {
		c := &h.calls[op]
		if c.out != OK || c.Acks != -1 || c.offset < 0 {
			continue
		}
		for i, v := range c.Values {
			o := c.offset + model.Offset(i)
			if got, ok := f.values[o]; o >= f.start && (!ok || got != v) {
				return fmt.Sprintf("%s of %s was acknowledged at %d, in the end there is %q; the log is [%d,%d)", v, c.Client, o, got, f.start, f.end)
			}
		}
	}
	return ""
}

// NoDuplicates is I4 as clients see it.
type NoDuplicates struct{}

func (NoDuplicates) end(h *History, f *final) string {
	if f.twice == "" {
		return ""
	}
	for _, op := range f.calls {
		if slices.Contains(h.calls[op].Values, f.twice) {
			return fmt.Sprintf("%s of %s is in the log at %d, and again", f.twice, h.calls[op].Client, f.at[f.twice])
		}
	}
	return ""
}

// ProducerOrder says that a producer's batches lie in the order of their
// sequences.
type ProducerOrder struct{}

func (ProducerOrder) end(h *History, f *final) string {
	type life struct {
		id    model.ProducerID
		epoch int16
	}
	newest := map[life]Op{}
	ops := slices.Clone(f.calls)
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(h.calls[a].Sequence, h.calls[b].Sequence) })
	for _, op := range ops {
		c := &h.calls[op]
		at, ok := f.at[c.Values[0]]
		if c.ProducerID < 0 || !ok {
			continue
		}
		key := life{c.ProducerID, c.ProducerEpoch}
		if was, ok := newest[key]; ok {
			if first := f.at[h.calls[was].Values[0]]; first > at {
				return fmt.Sprintf("producer %d: sequence %d is at %d, sequence %d at %d", c.ProducerID,
					h.calls[was].Sequence, first, c.Sequence, at)
			}
		}
		newest[key] = op
	}
	return ""
}

// A history is put to porcupine in pieces: what is left out of one makes it no
// stricter.
const piece = 300

// appendOrRead is what porcupine is told of one call: the rank of the batch that
// it appended, or of the newest that it read.
type appendOrRead struct {
	rank  int
	reads bool
}

// appendOnly is a log to which batches come in the order of their offsets. Its
// state is how many there are.
var appendOnly = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		in, n := input.(appendOrRead), state.(int)
		if in.reads {
			return in.rank < n, n
		}
		return in.rank == n, n + 1
	},
}

func (LinearizableLog) end(h *History, f *final) string {
	if f.p.unclean {
		return ""
	}
	calls := f.placed(h)
	for len(calls) > 0 {
		n := min(piece, len(calls))
		if !porcupine.CheckOperations(appendOnly, f.operations(h, calls[:n])) {
			return fmt.Sprintf("no order of the calls around offsets [%d,%d] explains what was acknowledged and read when",
				calls[0].offset, calls[n-1].offset)
		}
		calls = calls[n:]
	}
	return ""
}

// placed is a produce whose offset is known.
type placed struct {
	op     Op
	offset model.Offset
}

// placed returns the produces whose records are there, by offset.
func (f *final) placed(h *History) []placed {
	var out []placed
	for _, op := range f.calls {
		c := &h.calls[op]
		at, there := f.at[c.Values[0]]
		switch {
		case there:
			out = append(out, placed{op, at})
		case c.out == OK && c.Acks == -1 && c.offset >= 0 && c.offset < f.start:
			out = append(out, placed{op, c.offset}) // deleted since
		}
	}
	slices.SortFunc(out, func(a, b placed) int { return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.op, b.op)) })
	return out
}

// operations are the calls and what was read of them.
func (f *final) operations(h *History, calls []placed) []porcupine.Operation {
	var out []porcupine.Operation
	for rank, x := range calls {
		c := &h.calls[x.op]
		o := porcupine.Operation{ClientId: rank, Input: appendOrRead{rank: rank}, Call: int64(2 * c.began), Return: int64(2*len(h.events) + 1)}
		if c.ended >= 0 && c.out == OK && c.Acks != 0 {
			o.Return = int64(2*c.ended + 1)
		}
		out = append(out, o)
	}
	for i, e := range h.events {
		if e.kind != fetched || e.tp != f.p.id || len(e.fetch.Offsets) == 0 || len(out) >= 2*piece {
			continue
		}
		newest := e.fetch.Offsets[len(e.fetch.Offsets)-1]
		rank, _ := slices.BinarySearchFunc(calls, newest+1, func(x placed, o model.Offset) int { return cmp.Compare(x.offset, o) })
		if rank--; rank < 0 || newest >= calls[rank].offset+model.Offset(len(h.calls[calls[rank].op].Values)) {
			continue
		}
		out = append(out, porcupine.Operation{ClientId: len(out), Input: appendOrRead{rank: rank, reads: true},
			Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	return out
}
