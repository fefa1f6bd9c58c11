package load

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Partition 2 is the last of the three; partition 9 is not asked for, and a record
// from before the moment proves nothing.
func TestAnOutageLastsUntilTheLastPartitionAcknowledges(t *testing.T) {
	w, now := &Watch{topic: "load"}, time.Now()
	type answer struct {
		d   time.Duration
		err error
	}
	got := make(chan answer)
	go func() {
		d, err := w.Outage(t.Context(), now, []int32{0, 1, 2})
		got <- answer{d, err}
	}()
	for asked := false; !asked; {
		w.mu.Lock()
		asked = w.ask != nil
		w.mu.Unlock()
	}
	for _, a := range []struct {
		partition int32
		sent, at  time.Duration
	}{{2, -1, 50}, {0, 1, 60}, {9, 1, 500}, {1, 2, 70}, {2, 3, 80}} {
		w.acknowledged(a.partition, now.Add(a.sent*time.Millisecond), now.Add(a.at*time.Millisecond), nil)
	}
	if a := <-got; a.d != 80*time.Millisecond || a.err != nil {
		t.Errorf("%v, %v", a.d, a.err)
	}
}

func TestAnOutageWithoutEndIsAnError(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	w := &Watch{topic: "load"}
	if d, err := w.Outage(ended, time.Now(), []int32{3}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", d, err)
	}
	lost := errors.New("lost")
	w.acknowledged(3, time.Now(), time.Now(), lost)
	if d, err := w.Outage(ended, time.Now(), nil); !errors.Is(err, lost) {
		t.Errorf("%v, %v", d, err)
	}
}
