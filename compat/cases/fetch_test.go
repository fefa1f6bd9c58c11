package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// B73: between the high watermark and the log end there is nothing to see, and
// nothing wrong either.
func TestAnOffsetBetweenHighWatermarkAndLogEndIsNotOutOfRange(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		leader := w.Leader("t", 0)
		for _, f := range w.followers("t") {
			w.Pause(f)
		}
		for i := range 10 {
			code(t, "acks=1", w.produce(leader, "t", 1, time.Second, batch(fmt.Sprint(i))).ErrorCode, model.None)
		}
		for _, offset := range []int64{0, 5, 10} {
			f := at("t", offset)
			f.wait = 500 * time.Millisecond
			p, took := w.fetch(leader, f)
			code(t, fmt.Sprint("fetch at ", offset), p.ErrorCode, model.None)
			if p.HighWatermark != 0 || len(p.RecordBatches) != 0 {
				t.Errorf("fetch at %d: HW %d, %d bytes", offset, p.HighWatermark, len(p.RecordBatches))
			}
			if offset == 0 {
				about(t, "a fetch at the high watermark", took, 500*time.Millisecond, 50*time.Millisecond)
			} else if took > 100*time.Millisecond {
				t.Errorf("a fetch at %d above the high watermark waited %v", offset, took)
			}
		}
		p, took := w.fetch(leader, at("t", 11))
		code(t, "fetch at 11", p.ErrorCode, model.ErrOffsetOutOfRange)
		if took > 100*time.Millisecond {
			t.Errorf("OFFSET_OUT_OF_RANGE came after %v", took)
		}
	}, steady()...)
}
