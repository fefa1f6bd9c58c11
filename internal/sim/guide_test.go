package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

func TestTheGuideNamesEverythingInAPlan(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	must := func(what string) {
		if !strings.Contains(string(text), what) {
			t.Errorf("the guide does not tell of %s", what)
		}
	}
	for v := range verbs {
		must("| `" + string(v) + " A")
	}
	for _, x := range workload.All() {
		must("`" + x.Name() + "`")
	}
	for _, f := range Faults() {
		must("`" + f + "`")
	}
}
