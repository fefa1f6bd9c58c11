package node

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// systemClock is the time of this process, from its start on.
type systemClock struct {
	rt     *task.Runtime
	origin time.Time
}

func newSystemClock(rt *task.Runtime) systemClock { return systemClock{rt, rt.Now()} }

func (c systemClock) Now() model.Time    { return model.Time(c.rt.Since(c.origin)) }
func (c systemClock) Wall() model.Millis { return model.Millis(c.rt.Wall().UnixMilli()) }
