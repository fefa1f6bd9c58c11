package replicas

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/replicas/pace"
)

// synced returns three logs that are synced with every batch.
func (c *crank) synced() []*replica {
	logs := []*replica{c.led(0), c.led(1), c.led(2)}
	for _, r := range logs {
		cfg := r.log.Config()
		cfg.FlushMessages = 1
		r.log.SetConfig(cfg)
	}
	return logs
}

// On a disk whose sync takes long, no log waits for the sync of another: here none ends
// before all have begun. The bubble fails if they wait for each other for ever.
func TestLogsOfASlowDiskAreSyncedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrank(t)
		logs := c.synced()
		c.onSync = func(string) error {
			c.time.now = c.time.now.Add(pace.Slow)
			return nil
		}
		first := produce(1, logs[0])
		c.post(first) // which shows that the disk is slow
		c.settle()
		var begun atomic.Int32
		all := make(chan struct{})
		c.onSync = func(string) error {
			if begun.Add(1) == int32(len(logs)) {
				close(all)
			}
			<-all
			return nil
		}
		w := produce(1, logs...)
		c.post(w)
		c.settle()
		w.answers(t, 1, model.None, model.None, model.None)
	})
}

// On a quick one they are synced one by one, which takes fewer threads.
func TestLogsOfAQuickDiskAreSyncedOneByOne(t *testing.T) {
	c := newCrank(t)
	logs := c.synced()
	var now, most atomic.Int32
	c.onSync = func(string) error {
		most.Store(max(most.Load(), now.Add(1)))
		now.Add(-1)
		return nil
	}
	for range 3 {
		w := produce(1, logs...)
		c.post(w)
		c.settle()
		w.answers(t, 1, model.None, model.None, model.None)
	}
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
}

// A log that cannot be made durable takes the others of its directory with it: nothing
// of that round is acknowledged, however far each of them came.
func TestAFailedSyncAcknowledgesNothing(t *testing.T) {
	for _, slow := range []bool{false, true} {
		c := newCrank(t)
		logs := c.synced()
		if slow {
			c.onSync = func(string) error {
				c.time.now = c.time.now.Add(pace.Slow)
				return nil
			}
			c.post(produce(1, logs[0]))
			c.settle()
		}
		c.onSync = func(log string) error {
			if strings.Contains(log, logs[1].tp().Topic+"-0") {
				return errDisk
			}
			return nil
		}
		w := produce(1, logs...)
		c.post(w)
		if err := c.writer.Turn(c.writer.inbox.Take(nil)); err == nil {
			t.Error("the log writer goes on")
		}
		c.tell()
		w.answers(t, 0)
		if end := logs[1].log.RecoveryPoint(); end != 0 {
			t.Errorf("the log is durable up to %d", end)
		}
	}
}
