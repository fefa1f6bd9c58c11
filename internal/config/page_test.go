package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write docs/config.md anew")

// page prints the keys that mean something here, as docs/config.md has them.
func page() string {
	var out strings.Builder
	out.WriteString("# Settings\n\nThe keys that do something here, printed from the table of `internal/config` by\n" +
		"`go test ./internal/config -rewrite`. Every other key of Kafka 4.4 is read, checked and described, and changes nothing; a warning\n" +
		"at the start lists those that a file sets. *Live* keys may change while a broker runs.\n")
	for _, section := range []struct {
		title string
		res   Resource
	}{{"A node", BrokerResource}, {"A topic", TopicResource}} {
		fmt.Fprintf(&out, "\n## %s\n\n| key | default | live | what it does |\n|---|---|---|---|\n", section.title)
		for _, d := range Keys(section.res) {
			if d.Doc == "" {
				continue
			}
			value, live := "", ""
			if d.Default != nil && *d.Default != "" {
				value = "`" + *d.Default + "`"
			}
			if d.Dynamic {
				live = "live"
			}
			if d.Own {
				live = strings.TrimSpace(live + " (not Kafka's)")
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", d.Name, value, live, d.Doc)
		}
	}
	return out.String()
}

func TestThePageOfSettingsIsTheTable(t *testing.T) {
	const path = "../../docs/config.md"
	if *rewrite {
		if err := os.WriteFile(path, []byte(page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page(), string(got)); diff != "" {
		t.Errorf("docs/config.md is not the table, run go test ./internal/config -rewrite (-table +page):\n%s", diff)
	}
}
