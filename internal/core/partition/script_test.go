package partition_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/coretest"
)

// TestScripts plays testdata/*.txt: what a reader of docs/replication sees is
// what the core does.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			w := coretest.New()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return w.Handle(t, d)
			})
		})
	}
}
