package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/sim/check"
)

func TestARunEndsWhenItIsStopped(t *testing.T) {
	asked := 0
	r := Run(mustDraw(t, 7), Options{Stop: func() bool { asked++; return asked == 3 }})
	if !errors.Is(r.Err, ErrStopped) || r.Steps != 2048 {
		t.Errorf("it ended at step %d: %v", r.Steps, r.Err)
	}
}

// panicking is an invariant with a mistake of its own.
type panicking struct{}

func (panicking) Name() string               { return "Panicking" }
func (panicking) Check(*check.Cluster) error { panic("no marks") }

func TestAnInvariantThatPanicsFailsTheRun(t *testing.T) {
	r := Run(mustDraw(t, 7), Options{Own: func(Outlook) Own { return Own{Invariants: []check.Invariant{panicking{}}} }})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "no marks") {
		t.Errorf("it ended with %v", r.Err)
	}
}
