package load

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest latency that is told apart from longer ones.
const longest = 10 * time.Minute

// histogram holds latencies in microseconds with three digits. It has one writer.
type histogram struct{ h *hdr.Histogram }

func newHistogram() histogram { return histogram{hdr.New(1, longest.Microseconds(), 3)} }

func (h histogram) add(d time.Duration) {
	h.h.RecordValue(min(max(d.Microseconds(), 1), longest.Microseconds()))
}

// merged is the sum of histograms.
func merged(list ...histogram) histogram {
	sum := newHistogram()
	for _, h := range list {
		sum.h.Merge(h.h)
	}
	return sum
}

// Latency tells how long something took, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// latency is nil for a histogram without values.
func (h histogram) latency() *Latency {
	if h.h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return float64(h.h.ValueAtQuantile(q)) / 1000 }
	return &Latency{Count: h.h.TotalCount(), P50: at(50), P99: at(99), P999: at(99.9), Max: float64(h.h.Max()) / 1000}
}
