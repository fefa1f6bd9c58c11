package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	proof       = "docs/proof.md"
	beginMarker = "<!-- mutants:begin -->\n"
	endMarker   = "<!-- mutants:end -->\n"
)

// line is what is known of one mutant, as the table in docs/proof.md says it.
type line struct {
	cores, aim, seeds, invariant, seconds string
}

// report is the table: what this run found out, and what earlier ones did.
type report struct {
	lines map[string]*line
}

// readReport reads the table of earlier runs.
func readReport() (*report, error) {
	text, err := os.ReadFile(filepath.Join(root, proof))
	if err != nil {
		return nil, err
	}
	r := &report{lines: map[string]*line{}}
	for _, row := range strings.Split(string(text), "\n") {
		f := strings.Split(row, "|")
		if len(f) != 9 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		r.lines[f[1]+" "+f[2]] = &line{cores: f[3], aim: f[4], seeds: f[5], invariant: f[6], seconds: f[7]}
	}
	return r, nil
}

func (r *report) line(m mutant) *line {
	l := r.lines[m.key()]
	if l == nil {
		l = &line{}
		r.lines[m.key()] = l
	}
	if whole := halves[m.key()]; whole != "" {
		*l = line{cores: l.cores, seeds: "half of: " + whole}
	}
	return l
}

// write puts the table between its markers.
func (r *report) write() error {
	path := filepath.Join(root, proof)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMarker)
	_, after, ok2 := strings.Cut(rest, endMarker)
	if !ok || !ok2 {
		return fmt.Errorf("%s lacks %q and %q", proof, beginMarker, endMarker)
	}
	return os.WriteFile(path, []byte(before+beginMarker+r.String()+endMarker+after), 0o644)
}

// String is the tables in markdown.
func (r *report) String() string {
	var b strings.Builder
	b.WriteString("\n| rule | mutant | own room | faults | seeds | invariant | seconds |\n|---|---|---|---|---:|---|---:|\n")
	for _, m := range all() {
		l := r.line(m)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", m.rule, m.name, l.cores, l.aim, l.seeds, l.invariant, l.seconds)
	}
	b.WriteString("\nThe bug classes of Kafka's history, and the mutants that bring each back:\n\n| bug | what | mutants, or why none |\n|---|---|---|\n")
	for _, bug := range bugs {
		told := make([]string, len(bug.mutants))
		for i, key := range bug.mutants {
			told[i] = key + r.short(key)
		}
		if bug.why != "" {
			told = append(told, bug.why)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", bug.id, bug.what, strings.Join(told, "; "))
	}
	b.WriteString("\n")
	return b.String()
}

// short is a mutant's seed in parentheses. A half stands beside its whole.
func (r *report) short(key string) string {
	if halves[key] != "" {
		return " (half)"
	}
	i := slices.IndexFunc(all(), func(m mutant) bool { return m.key() == key })
	if l := r.lines[key]; i >= 0 && l != nil && l.seeds != "" {
		return " (" + l.seeds + ")"
	}
	return ""
}
