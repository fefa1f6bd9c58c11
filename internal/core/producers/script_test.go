package producers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		e := &env{s: New()}
		datadriven.RunTest(t, path, e.run)
	})
}

// env is a log that consists of nothing but its producers.
type env struct {
	s     *State
	leo   model.Offset
	saved []Entry
	at    model.Offset
}

func (e *env) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "at":
		e.leo = model.Offset(scan(t, d, "leo", 0))
	case "write":
		e.write(t, d, &out)
	case "copy":
		b := e.batch(t, d)
		e.apply(b, &out)
	case "end":
		e.end(t, d, &out)
	case "hw":
		e.s.SetHW(model.Offset(scan(t, d, "to", 0)))
		e.unstable(&out)
	case "save":
		e.saved, e.at = e.s.Entries(), e.leo
		for _, p := range e.saved {
			fmt.Fprintf(&out, "%+v\n", p)
		}
	case "reload":
		e.s.Restore(e.saved)
		e.leo = e.at
		e.unstable(&out)
	case "expire":
		now := model.Millis(scan(t, d, "now", 0))
		n := e.s.Expire(now, time.Duration(scan(t, d, "ttl", 0))*time.Millisecond)
		fmt.Fprintf(&out, "%d expired, %d left\n", n, e.s.Len())
	case "leo":
		fmt.Fprintf(&out, "%d\n", e.leo)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	e.checkClone(t)
	return out.String()
}

// batch reads id= epoch= seq= records= ts= and the flags txn, verified.
func (e *env) batch(t *testing.T, d *datadriven.TestData) Batch {
	return Batch{
		ID: model.ProducerID(scan(t, d, "id", 1)), Epoch: int16(scan(t, d, "epoch", 0)),
		BaseSequence: int32(scan(t, d, "seq", 0)), Records: int32(scan(t, d, "records", 1)),
		Base: e.leo, MaxTimestamp: model.Millis(scan(t, d, "ts", 0)),
		Transactional: d.HasArg("txn"), Verified: d.HasArg("verified"),
	}
}

func (e *env) write(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	b := e.batch(t, d)
	switch v := e.s.Check(b, true); {
	case v.Err != model.None:
		fmt.Fprintf(out, "%s\n", v.Err)
	case v.Duplicate:
		fmt.Fprintf(out, "duplicate of %d..%d, timestamp %d\n", v.Base, v.Last, v.Timestamp)
	default:
		e.apply(b, out)
	}
}

func (e *env) apply(b Batch, out *strings.Builder) {
	aborted, ok := e.s.Apply(b)
	e.leo = b.Last() + 1
	fmt.Fprintf(out, "offsets %d..%d", b.Base, b.Last())
	if ok {
		fmt.Fprintf(out, ", aborted %d..%d of %d, LSO %d", aborted.First, aborted.Last, aborted.ID, aborted.LSO)
	}
	out.WriteString("\n")
	if b.Transactional {
		e.unstable(out)
	}
}

func (e *env) end(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	b := e.batch(t, d)
	b.Transactional, b.Control, b.BaseSequence = true, true, -1
	b.Commit, b.CoordinatorEpoch = d.HasArg("commit"), int32(scan(t, d, "coordinator", 0))
	if v := e.s.Check(b, false); v.Err != model.None {
		fmt.Fprintf(out, "%s\n", v.Err)
		return
	}
	e.apply(b, out)
}

func (e *env) unstable(out *strings.Builder) {
	if first, ok := e.s.Unstable(); ok {
		fmt.Fprintf(out, "unstable from %d\n", first)
	} else {
		out.WriteString("all stable\n")
	}
}

// checkClone holds that a copy says the same and shares nothing.
func (e *env) checkClone(t *testing.T) {
	c, before := e.s.Clone(), e.s.Entries()
	if !slices.Equal(c.Entries(), before) {
		t.Fatalf("a clone differs: %+v, want %+v", c.Entries(), before)
	}
	for _, p := range before {
		c.Apply(Batch{ID: p.ID, Epoch: p.Epoch + 1, Records: 1, Base: e.leo, Transactional: true})
	}
	if !slices.Equal(e.s.Entries(), before) {
		t.Fatal("applying to a clone changed the original")
	}
}

func scan(t *testing.T, d *datadriven.TestData, key string, def int64) int64 {
	d.MaybeScanArgs(t, key, &def)
	return def
}
