package replicas

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is posted while the loop ends may come with the end in one wake-up.
func TestALoopEndsWithItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrank(t)
		go c.run()
		busy := make(chan struct{})
		c.inbox.Post(call(func(*Loop) { <-busy }))
		synctest.Wait()
		c.inbox.Post(call(func(*Loop) {}))
		began, ended := time.Now(), make(chan struct{})
		go func() { defer close(ended); c.close() }()
		synctest.Wait()
		close(busy)
		<-ended
		if took := time.Since(began); took > 0 {
			t.Errorf("the loop ended after %v", took)
		}
	})
}
