package image

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
)

// readApacheImages returns logs of records and what Apache's image shows after
// each, in the form of dump and sorted.
func readApacheImages(t *testing.T) (logs [][]metalog.Record, shows [][]string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "apache_images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		verb, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		raw, _ := hex.DecodeString(text)
		last := len(logs) - 1
		switch verb {
		case "log":
			logs, shows = append(logs, nil), append(shows, nil)
		case "apply":
			rec, err := metalog.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			logs[last] = append(logs[last], rec)
		case "shows":
			text, err := metalog.Dump(raw)
			if err != nil {
				t.Fatal(err)
			}
			shows[last] = append(shows[last], text)
		}
	}
	return logs, shows
}

func TestRandomLogsAddUpToWhatApachesImageShows(t *testing.T) {
	logs, shows := readApacheImages(t)
	if len(logs) < 30 {
		t.Fatalf("%d logs", len(logs))
	}
	for n, recs := range logs {
		img := apply(New(), recs...)
		got := []string{}
		for rec := range img.Records() {
			got = append(got, dump(rec))
		}
		slices.Sort(got)
		slices.Sort(shows[n])
		if diff := cmp.Diff(shows[n], got); diff != "" || img.Ignored() != 0 {
			t.Errorf("log %d, ignored %d (-Apache +Tidemark):\n%s", n, img.Ignored(), diff)
		}
	}
}
