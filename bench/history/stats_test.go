package history

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheMedianOfAnEvenNumberIsBetweenTheMiddleTwo(t *testing.T) {
	list := []float64{9, 1, 5}
	if got := Median(list); got != 5 || !slices.Equal(list, []float64{9, 1, 5}) {
		t.Errorf("%v of %v", got, list)
	}
	if got := Median([]float64{4, 1, 2, 100}); got != 3 {
		t.Errorf("%v", got)
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("%v", got)
	}
}

// The second pair ran while the machine was busy: both were slow, and the ratio
// does not see it.
func TestRatiosAreTakenPairByPair(t *testing.T) {
	ours := []Figures{{"x": 300}, {"x": 30}, {"x": 330}}
	theirs := []Figures{{"x": 100}, {"x": 10}, {"x": 100}}
	got, ok := Compare(ours, theirs, "x")
	if !ok || got.Median != 3 || got.Least != 3 || math.Abs(got.Most-3.3) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

func TestPairsWithoutBothFiguresAreLeftOut(t *testing.T) {
	got, ok := Compare([]Figures{{"x": 3}, {}, {"x": 8}, {"x": 1}}, []Figures{{"x": 0}, {"x": 1}, {"x": 2}}, "x")
	if !ok || got != (Ratio{Median: 4, Least: 4, Most: 4}) {
		t.Errorf("%+v", got)
	}
	if _, ok := Compare([]Figures{{"x": 3}}, nil, "x"); ok {
		t.Error("one system alone has a ratio")
	}
}

func TestMediansHoldEveryFigureOfAnyRun(t *testing.T) {
	got := Medians([]Figures{{"a": 1, "b": 7}, {"a": 3}, {"a": 2}})
	if len(got) != 2 || got["a"] != 2 || got["b"] != 7 {
		t.Errorf("%v", got)
	}
}

func TestSizesAreFoundByTheNameOfTheFigure(t *testing.T) {
	f := Figures{"cores": 1, At("cores", 1000): 2, At("cores", 20): 3, At("client_cores", 7): 4, "cores@x": 5}
	if got := f.Sizes("cores"); !slices.Equal(got, []int{20, 1000}) {
		t.Errorf("%v", got)
	}
}

func TestWhatWasAppendedIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	if _, err := Read(file); err == nil {
		t.Error("there is no file yet")
	}
	for _, e := range []Entry{{Scenario: "a", System: Kafka, Runs: []Figures{{"x": 1}, {"x": 2}}}, {Scenario: "b", System: Tidemark}} {
		if err := Append(file, []Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(file)
	if err != nil || len(got) != 2 || got[0].System != Kafka || got[0].Runs[1]["x"] != 2 || got[1].Scenario != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}
