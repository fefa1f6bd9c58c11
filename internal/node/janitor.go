package node

import (
	"context"
	"time"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/task"
)

// janitor does what is due from time to time: checkpoints, retention.
type janitor struct {
	cfg      *config.Config
	clock    replicas.Clock
	dir      *storage.Dir
	replicas *replicas.Loop
	fail     func(error)
	rt       *task.Runtime
}

// flushCheck is how often flush.ms is looked at. Kafka looks at every
// log.flush.scheduler.interval.ms, which is never by default.
const flushCheck = time.Second

// run is the janitor's task; it ends with ctx.
func (j *janitor) run(ctx context.Context) {
	due := []duty{
		{every: j.cfg.HWCheckpoint, do: j.checkpointHW},
		{every: j.cfg.RecoveryCheckpoint, do: j.dir.CheckpointRecovery},
		{every: j.cfg.LogStartCheckpoint, do: j.dir.CheckpointLogStart},
		{every: j.cfg.RetentionCheck, do: func() error { j.replicas.Retain(); return nil }},
		{every: flushCheck, do: j.flushDue},
	}
	for i := range due {
		due[i].next = j.rt.Now().Add(due[i].every)
	}
	w := j.rt.NewWaiter()
	for w.Wait(ctx, max(soonest(due).Sub(j.rt.Now()), 0)) != task.Ended {
		for i := range due {
			if err := due[i].doIfDue(j.rt.Now()); err != nil && ctx.Err() == nil {
				j.fail(err)
				return
			}
		}
	}
}

// duty is one thing that is due every so often.
type duty struct {
	every time.Duration
	next  time.Time
	do    func() error
}

func soonest(due []duty) time.Time {
	next := due[0].next
	for _, d := range due {
		if d.next.Before(next) {
			next = d.next
		}
	}
	return next
}

func (d *duty) doIfDue(now time.Time) error {
	if d.next.After(now) {
		return nil
	}
	d.next = now.Add(max(d.every, time.Millisecond))
	return d.do()
}

// checkpointHW writes the high watermarks if one moved (R8.16).
func (j *janitor) checkpointHW() error {
	hws, moved := j.replicas.HighWatermarks()
	if !moved {
		return nil
	}
	return j.dir.CheckpointHW(hws)
}

// flushDue syncs the logs whose flush.ms has passed.
func (j *janitor) flushDue() error {
	for _, log := range j.dir.Logs() {
		if !log.FlushDue(j.clock.Wall()) {
			continue
		}
		if err := j.replicas.Write(func() error {
			if j.dir.Log(log.TP()) != log {
				return nil
			}
			return log.Flush(j.clock.Wall())
		}); err != nil {
			return err
		}
	}
	return nil
}
