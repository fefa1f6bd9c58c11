package load

import "time"

// schedule says when each record of one producer is meant to be sent, as the time
// since the start. It knows nothing of how the cluster fares: a record that could
// not be sent in time is late, and its latency counts from when it was meant.
type schedule struct {
	rate  float64 // records a second
	phase time.Duration
}

// schedules divides the rate among producers that take turns.
func schedules(rate float64, producers int) []schedule {
	out := make([]schedule, producers)
	for i := range out {
		out[i] = schedule{rate: rate / float64(producers), phase: time.Duration(float64(i) / rate * float64(time.Second))}
	}
	return out
}

// at is when record n, counted from 0, is meant to be sent.
func (s schedule) at(n int64) time.Duration {
	if s.rate == 0 {
		return 0
	}
	return s.phase + time.Duration(float64(n)/s.rate*float64(time.Second))
}

// share is what producer i of several sends of the records.
func share(records int64, i, of int) int64 {
	n := records / int64(of)
	if int64(i) < records%int64(of) {
		n++
	}
	return n
}
