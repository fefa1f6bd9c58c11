package group

import (
	"math"
	"testing"
)

func TestPartitionIsJavasHash(t *testing.T) {
	for name, want := range map[string]int32{
		"": 0, "a": 97, "hello": 99162322,
		"polygenelubricants": 0,       // its hash is the smallest int, which has no positive
		"😀":                  1772899, // two chars in Java
	} {
		if got := Partition(name, math.MaxInt32); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	if got := Partition("hello", 50); got != 22 {
		t.Errorf("hello is in partition %d of 50, want 22", got)
	}
}
