package partition_test

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestDocsAndScriptsNameEachOther: every script has its place in
// docs/replication, and every link there leads to one.
func TestDocsAndScriptsNameEachOther(t *testing.T) {
	const docs = "../../../docs/replication"
	pages, err := filepath.Glob(docs + "/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	linked := map[string]bool{}
	link := regexp.MustCompile(`\]\((\.\./[^)]*)\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(docs, file)); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(page), m[1])
			}
			linked[filepath.Base(m[1])] = true
		}
	}
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		if !linked[filepath.Base(path)] {
			t.Errorf("no page of docs/replication links to %s", path)
		}
	}
}
