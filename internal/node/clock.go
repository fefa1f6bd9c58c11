package node

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Clock is where a node reads the time: a monotonic reading for the cores, the
// wall clock for record timestamps.
type Clock interface {
	Now() model.Time
	Wall() model.Millis
}

type systemClock struct{ origin time.Time }

func newSystemClock() systemClock { return systemClock{origin: time.Now()} }

func (c systemClock) Now() model.Time    { return model.Time(time.Since(c.origin)) }
func (c systemClock) Wall() model.Millis { return model.Millis(time.Now().UnixMilli()) }
