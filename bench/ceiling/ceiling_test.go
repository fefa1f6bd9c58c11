package ceiling

import (
	"os"
	"testing"
)

func TestEveryCeilingIsMeasuredAndNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	c, err := Measure(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	if c.Loopback <= 0 || c.Write <= 0 || c.Sendfile <= 0 {
		t.Errorf("%+v", c)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
