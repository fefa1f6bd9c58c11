package lint

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "shrink the golden lists to what they need to hold")

const module = "github.com/tidemark-log/tidemark"

// source is one parsed Go file.
type source struct {
	path      string // from the root of the repository, with slashes
	dir       string // path without the file
	test      bool   // a _test.go file
	generated bool
	lines     int
	fset      *token.FileSet
	file      *ast.File
}

// finding is one broken rule.
type finding struct {
	at   string // file and line
	text string
}

func (s *source) found(p token.Pos, format string, args ...any) finding {
	return finding{fmt.Sprintf("%s:%d", s.path, s.line(p)), fmt.Sprintf(format, args...)}
}

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// inside reports whether the file lies in the folder or below it.
func (s *source) inside(dir string) bool { return s.dir == dir || strings.HasPrefix(s.dir, dir+"/") }

func parse(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(file),
		lines: strings.Count(string(text), "\n"), fset: fset, file: file,
	}, nil
}

var repository = sync.OnceValues(func() ([]*source, error) {
	var list []*source
	var broken []error
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(short), text)
		if err != nil {
			broken = append(broken, err) // the compiler's business; the rules go on without it
			return nil
		}
		list = append(list, s)
		return nil
	})
	return list, errors.Join(append(broken, err)...)
})

func TestEveryFileParses(t *testing.T) {
	if _, err := repository(); err != nil {
		t.Error(err)
	}
}

func load(t *testing.T) []*source {
	t.Helper()
	list, _ := repository()
	if len(list) == 0 {
		t.Fatal("there are no files")
	}
	return list
}

// rules are checked on every file of the repository.
var rules = map[string]func(*source) []finding{
	"imports run downwards":                imports,
	"cores are pure":                       purity,
	"shells wait in one room":              waitsElsewhere,
	"exported names are documented":        docs,
	"words are spelled one way":            words,
	"names are spelled one way":            names,
	"no test sleeps":                       sleeps,
	"no test is skipped":                   skips,
	"contexts are passed, not kept":        contexts,
	"errors are parts of a line":           errorTexts,
	"only the command speaks":              quiet,
	"nothing is too long":                  tooLong,
	"packages are nouns with a good name":  packageNames,
	"package comments open with their say": packageComment,
}

func TestHouseRules(t *testing.T) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, s := range load(t) {
				for _, f := range rule(s) {
					t.Errorf("%s: %s", f.at, f.text)
				}
			}
		})
	}
}

// A rule that finds nothing proves nothing: each is shown files that break it, and
// files that look as if they did.
func TestEveryRuleFindsWhatItForbids(t *testing.T) {
	for _, c := range breaches {
		s, err := parse(c.path, []byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		got := rules[c.rule](s)
		if len(got) != c.findings {
			t.Errorf("%s: %d findings %v, want %d in\n%s", c.rule, len(got), got, c.findings, c.text)
		}
	}
	for name := range rules {
		shown := false
		for _, c := range breaches {
			shown = shown || c.rule == name && c.findings > 0
		}
		if !shown {
			t.Errorf("the rule %q is shown no file that breaks it", name)
		}
	}
}
