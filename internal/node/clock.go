package node

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// systemClock is the time of this machine.
type systemClock struct{ origin time.Time }

func newSystemClock() systemClock { return systemClock{origin: time.Now()} }

func (c systemClock) Now() model.Time    { return model.Time(time.Since(c.origin)) }
func (c systemClock) Wall() model.Millis { return model.Millis(time.Now().UnixMilli()) }
