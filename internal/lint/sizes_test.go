package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Lines that a file, a function and a package may have.
const (
	softFile, hardFile         = 500, 800
	softFunction, hardFunction = 40, 70
	softPackage                = 3000 // without tests
)

// tooLong finds what is over a hard limit. There is no exception to those.
func tooLong(s *source) []finding {
	if s.generated {
		return nil
	}
	var out []finding
	if s.lines > hardFile {
		out = append(out, s.found(s.file.Package, "%d lines, over the hard limit of %d for a file", s.lines, hardFile))
	}
	for name, n := range functions(s) {
		if n > hardFunction {
			out = append(out, finding{s.path, fmt.Sprintf("%s has %d lines, over the hard limit of %d for a function", name, n, hardFunction)})
		}
	}
	return out
}

// functions returns the lines of every function of the file.
func functions(s *source) map[string]int {
	out := map[string]int{}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			out[functionName(f)] = s.line(f.End()) - s.line(f.Pos()) + 1
		}
	}
	return out
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if i, ok := t.(*ast.IndexListExpr); ok {
		t = i.X
	}
	if i, ok := t.(*ast.IndexExpr); ok {
		t = i.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// oversize returns what is over a soft limit: "file a/b.go", "function a/b.go
// T.F" and "package a", with its lines.
func oversize(list []*source) map[string]int {
	out, packages := map[string]int{}, map[string]int{}
	for _, s := range list {
		if s.generated {
			continue
		}
		if s.lines > softFile {
			out["file "+s.path] = s.lines
		}
		for name, n := range functions(s) {
			if n > softFunction {
				out["function "+s.path+" "+name] = n
			}
		}
		if !s.test {
			packages[s.dir] += s.lines
		}
	}
	for dir, n := range packages {
		if n > softPackage {
			out["package "+dir] = n
		}
	}
	return out
}

var sizesGolden = filepath.Join("testdata", "sizes.golden")

// The list of what is over a soft limit may only shrink: what is not in it must
// stay under the limit, what is in it must not grow, and an entry that became
// shorter is lowered by -rewrite.
func TestTheListOfOversizeMayOnlyShrink(t *testing.T) {
	have, listed := oversize(load(t)), readSizes(t)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		switch limit, ok := listed[name]; {
		case !ok:
			t.Errorf("over the soft limit (file %d, function %d, package %d lines): %d %s", softFile, softFunction, softPackage, have[name], name)
		case have[name] > limit:
			t.Errorf("%s: grew from %d to %d lines while over the soft limit", name, limit, have[name])
		}
	}
	next := map[string]int{}
	for name, limit := range listed {
		if n, ok := have[name]; ok {
			next[name] = min(n, limit)
		}
	}
	switch {
	case maps.Equal(next, listed):
	case *rewrite:
		writeSizes(t, next)
	default:
		t.Errorf("%s holds entries that became shorter: go test ./internal/lint -rewrite", sizesGolden)
	}
}

func readSizes(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(sizesGolden)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		count, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if err != nil || name == "" {
			t.Fatalf("%s: line %q", sizesGolden, line)
		}
		out[name] = n
	}
	return out
}

func writeSizes(t *testing.T, sizes map[string]int) {
	t.Helper()
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(&b, "%d %s\n", sizes[name], name)
	}
	if err := os.WriteFile(sizesGolden, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every module is a decision with an ADR, so that go.mod changes by intent only.
func TestModulesAreThoseOfTheGoldenList(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "modules.golden")
	have := strings.Join(requires(string(b)), "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if have != string(want) {
		t.Errorf("go.mod requires\n%s\nand %s says\n%s", have, golden, want)
	}
}

// requires returns the direct and indirect requirements of a go.mod, sorted, and
// its replacements, which there should be none of.
func requires(text string) []string {
	var out []string
	block := ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "//"):
		case words[0] == ")":
			block = ""
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		case block == "require":
			out = append(out, strings.Join(words, " "))
		case block != "":
			out = append(out, block+" "+strings.Join(words, " "))
		case words[0] == "require":
			out = append(out, strings.Join(words[1:], " "))
		case words[0] != "module" && words[0] != "go" && words[0] != "toolchain":
			out = append(out, strings.Join(words, " "))
		}
	}
	slices.Sort(out)
	return out
}

func TestRequirementsAreReadFromBlocksAndLines(t *testing.T) {
	got := requires("module m\n\ngo 1.26\n\nrequire b v1\n// no\nrequire (\n\tc v2 // indirect\n\ta v1\n)\nreplace a => ../a\ntool (\n\tx/y\n)\n")
	want := []string{"a v1", "b v1", "c v2 // indirect", "replace a => ../a", "tool x/y"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOversizeIsCountedByFileFunctionAndPackage(t *testing.T) {
	body := strings.Repeat("\tx()\n", 45)
	s, err := parse("internal/node/a.go", []byte("package node\n\nfunc f() {\n"+body+"}\n\nfunc (t *T) g() {\n"+body[:5*36]+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := oversize([]*source{s}); !maps.Equal(got, map[string]int{"function internal/node/a.go f": 47}) {
		t.Errorf("%v", got)
	}
	s.lines = 3001
	if got := oversize([]*source{s}); got["file internal/node/a.go"] != 3001 || got["package internal/node"] != 3001 || len(got) != 3 {
		t.Errorf("%v", got)
	}
	s.generated = true
	if got := oversize([]*source{s}); len(got) != 0 {
		t.Errorf("generated: %v", got)
	}
}
