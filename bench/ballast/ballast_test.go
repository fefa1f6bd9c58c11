package ballast_test

import (
	"testing"

	"github.com/tidemark-log/tidemark/bench/ballast"
)

func TestBallastIsTakenAndDropped(t *testing.T) {
	for _, megs := range []int{0, 4} {
		b, err := ballast.Take(megs)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := b.Drop(); err != nil {
				t.Errorf("%d MB: %v", megs, err)
			}
		}
	}
	if _, err := ballast.Take(-1); err == nil {
		t.Error("less than nothing was taken")
	}
	if err := (*ballast.Ballast)(nil).Drop(); err != nil {
		t.Error(err)
	}
}
