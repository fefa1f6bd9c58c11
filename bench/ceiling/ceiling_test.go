package ceiling

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestEveryCeilingIsMeasuredAndNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	c, err := Measure(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	if c.Loopback <= 0 || c.Write <= 0 || c.Sendfile <= 0 || c.Copy <= 0 {
		t.Errorf("%+v", c)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEveryFloorIsMeasuredAndNothingIsLeftBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	dir, procs := t.TempDir(), runtime.GOMAXPROCS(0)
	f, err := MeasureFloors(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []float64{f.ProduceRF1, f.ProduceRF3, f.Sendfile, f.Mapped, f.Copied, f.Memory, f.Consume()} {
		if v <= 0 || math.IsInf(v, 0) {
			t.Errorf("%+v", f)
		}
	}
	one, err := MeasureFloors(dir, 3, Sendfile, ProduceRF1)
	if err != nil || math.IsInf(one.Sendfile, 0) || math.IsInf(one.ProduceRF1, 0) || !math.IsInf(one.ProduceRF3, 1) || !math.IsInf(one.Mapped, 1) {
		t.Errorf("of two that were asked for: %+v, %v", one, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if runtime.GOMAXPROCS(0) != procs {
		t.Error("the runtime is not what it was")
	}
}

func TestASyncIsMeasuredAndNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	if took, err := Sync(dir, 3); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Sync(filepath.Join(dir, "none"), 3); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestFilesAreCopiedWholeAndNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := range 3 {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(name, make([]byte, i*700_000), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	if took, err := CopyFiles(dir, files...); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != len(files) {
		t.Errorf("left behind: %v", left)
	}
	if _, err := CopyFiles(dir, filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there was copied")
	}
}

func TestTheFloorOfConsumingIsTheCheaperWayFromTheFile(t *testing.T) {
	if got := (Floors{Sendfile: 3, Mapped: 2, Memory: 1}).Consume(); got != 2 {
		t.Errorf("%v", got)
	}
}

// A server that cannot write ends, and so does the client that sends to it.
func TestAFloorThatCannotBeMeasuredIsAnError(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if _, err := MeasureFloors(none, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	m := mover{dir: none, bytes: 16 << 20, piece: 64 << 10}
	if _, err := m.produce(2); err == nil {
		t.Error("nothing was stored")
	}
}
