package cli

import (
	"fmt"
	"io"
	"time"
)

// progressEvery is how often a count is redrawn.
const progressEvery = 100 * time.Millisecond

// progress shows a running count on a terminal, and nothing anywhere else.
type progress struct {
	w     io.Writer // nil when nobody looks
	verb  string
	began time.Time
	drawn time.Time
}

func newProgress(w io.Writer, verb string, now time.Time) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, verb: verb, began: now, drawn: now}
}

// show redraws the count when the last drawing is old enough.
func (p *progress) show(now time.Time, records, bytes int64) {
	if p.w == nil || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	p.draw(now, records, bytes, "")
}

// end draws the final count and leaves the line.
func (p *progress) end(now time.Time, records, bytes int64) {
	if p.w != nil {
		p.draw(now, records, bytes, "\n")
	}
}

func (p *progress) draw(now time.Time, records, bytes int64, tail string) {
	seconds := max(now.Sub(p.began).Seconds(), 0.001)
	fmt.Fprintf(p.w, "\r\x1b[K%s %d records, %.1f MB, %.0f records/s%s", p.verb, records, float64(bytes)/1e6, float64(records)/seconds, tail)
}
