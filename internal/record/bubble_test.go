package record

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// Coders that one bubble leaves behind serve the next one: a test of a cluster on
// a fake clock may use any codec, as may the test after it, and many at a time.
func TestCodersOutliveTheBubbleThatUsedThem(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 2 * keptZstd {
				all.Go(func() { throughAllCodecs(t, fmt.Sprint("value ", i)) })
			}
			all.Wait()
		})
		throughAllCodecs(t, "outside")
	}
}

func throughAllCodecs(t *testing.T, value string) {
	for c := CodecNone; c <= CodecZstd; c++ {
		for _, n := range []int{1, 1000, 100_000} {
			body := bytes.Repeat([]byte(value), n)
			got, err := inflate(nil, c, deflate(nil, c, 0, body))
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%v: %d of %d bytes come back: %v", c, len(got), len(body), err)
			}
		}
	}
}
