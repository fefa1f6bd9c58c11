package replicas

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// overdue checks what Overdue says, part of it, and that looking changed nothing.
func (c *crank) overdue(t *testing.T, want string) {
	t.Helper()
	steps, produces, fetches := c.Steps(), c.produces.Len(), c.fetches.Len()
	err := c.Overdue()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("overdue is %v, not %q", err, want)
	}
	if c.Steps() != steps || c.produces.Len() != produces || c.fetches.Len() != fetches || len(c.wakes) > 0 {
		t.Error("a look changes the loop")
	}
}

func (c *crank) wake(r *replica, what partition.Wake) {
	c.wakes = append(c.wakes, pendingWake{r, what})
	c.wakeAll()
}

func TestALostWakeUpIsNoticed(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	f := fetchOf(reader, time.Minute, 1, 0, r)
	c.ask(f)
	w := produce(-1, r)
	c.post(w)
	c.settle()
	c.overdue(t, "")
	for _, b := range []model.BrokerID{2, 3} {
		req := fetchOf(b, 0, 1, 1, r).Parts[0].Request
		c.Loop.step(r, &req)
	}
	c.wakes = nil // they are lost
	c.overdue(t, "a produce to a-0 is parked and could be answered")
	c.wake(r, partition.WakeProduce)
	c.overdue(t, "a fetch by -1 of a-0 is parked and could be answered")
	c.wake(r, partition.WakeFetch)
	c.overdue(t, "")
	if w.done != 1 || f.done != 1 {
		t.Errorf("%d produces and %d fetches are answered", w.done, f.done)
	}
}

func TestARequestThatOutlivesItsDeadlineIsNoticed(t *testing.T) {
	c := newCrank(t)
	c.ask(fetchOf(reader, time.Second, 1, 0, c.led(0)))
	c.time.now = c.time.now.Add(time.Second + time.Millisecond)
	c.overdue(t, "")
	c.time.now++
	c.overdue(t, "after its deadline")
	c.turn()
	c.overdue(t, "")
}

func TestReplicasAreInspectedInOrder(t *testing.T) {
	c := newCrank(t)
	for _, n := range []byte{3, 1, 4, 0, 2} {
		c.led(n)
	}
	steps := c.Steps()
	c.turn(call(func(l *Loop) { l.drop(l.all[idOf(1)].hosted) }))
	var seen string
	c.Inspect(func(h *api.Hosted, p *partition.Partition) {
		if seen += h.TP.Topic; p.Role() != partition.Leader {
			t.Errorf("%s is a %s", h.TP, p.Role())
		}
	})
	if hosted := c.Hosted(); seen != "acde" || len(hosted) != 4 || hosted[0].TP.Topic != "a" || hosted[3].TP.Topic != "e" {
		t.Errorf("inspected %q, hosted %v", seen, hosted)
	}
	if c.Steps() == steps {
		t.Error("a stop is no step")
	}
}

func TestParkedFetchesAreToldInOrder(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	c.ask(fetchOf(reader, time.Minute, 70, 0, r))
	c.ask(fetchOf(2, time.Minute, 1, 0, r))
	var seen []string
	c.ParkedFetches(func(by model.BrokerID, minBytes int64, news bool, parts []api.FetchPart) {
		seen = append(seen, fmt.Sprint(by, minBytes, news, parts[0].Hosted.TP, parts[0].Request.Offset))
	})
	if want := []string{"-1 70 false a-0 0", "2 1 false a-0 0"}; !slices.Equal(seen, want) {
		t.Errorf("parked are %q, not %q", seen, want)
	}
}
