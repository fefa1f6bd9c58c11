package partition_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/coretest"
)

// TestScripts plays testdata/*.txt: what a reader of docs/replication sees is
// what the core does.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := coretest.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return w.Handle(t, d)
		})
	})
}
