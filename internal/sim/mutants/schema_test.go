package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chosen is the environment variable that says which mutant a patched program
// is, by its number in all, from 1 on; without it the program is as shipped.
const chosen = "TIDEMARK_MUTANT"

// asks is added to each patched package.
const asks = `package %s

import (
	"os"
	"strconv"
)

var mutantNow = func() int { n, _ := strconv.Atoi(os.Getenv("` + chosen + `")); return n }()
`

// variant is a function as one mutant has it.
type variant struct {
	number int
	text   string // under its new name
}

// overlay writes every patched file once, with all mutants in it: each function
// that a mutant changes is there a second time, under another name, and the first
// hands over to it when that mutant is chosen. So one build serves all. It returns
// the list of the files that the go command takes.
func overlay(t *testing.T) string {
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(path, text string) {
		real, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replace[real] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(replace[real], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		s := sources[path]
		put(path, s.combined())
		put(filepath.Join(filepath.Dir(path), "mutant_now.go"), fmt.Sprintf(asks, s.file.Name.Name))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// patched is a file with what the mutants make of its functions.
type patched struct {
	text     string
	fset     *token.FileSet
	file     *ast.File
	variants map[*ast.FuncDecl][]variant
}

// readSources takes all mutants in.
func readSources() (map[string]*patched, error) {
	out := map[string]*patched{}
	for i, m := range all() {
		files, err := m.files()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.key(), err)
		}
		for path, text := range files {
			if out[path] == nil {
				if out[path], err = parse(path); err != nil {
					return nil, err
				}
			}
			if err := out[path].take(i+1, text); err != nil {
				return nil, fmt.Errorf("%s: %w", m.key(), err)
			}
		}
	}
	return out, nil
}

func parse(path string) (*patched, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &patched{text: string(text), fset: token.NewFileSet(), variants: map[*ast.FuncDecl][]variant{}}
	p.file, err = parser.ParseFile(p.fset, path, text, parser.SkipObjectResolution)
	return p, err
}

// take adds what a mutant changes. It must keep to the bodies of functions.
func (p *patched) take(number int, text string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if len(file.Decls) != len(p.file.Decls) {
		return fmt.Errorf("it adds or removes a declaration")
	}
	for i, d := range p.file.Decls {
		at := func(fset *token.FileSet, pos token.Pos) int { return fset.Position(pos).Offset }
		was := p.text[at(p.fset, d.Pos()):at(p.fset, d.End())]
		is := text[at(fset, file.Decls[i].Pos()):at(fset, file.Decls[i].End())]
		if was == is {
			continue
		}
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			return fmt.Errorf("it changes what is no function:\n%s", was)
		}
		name := file.Decls[i].(*ast.FuncDecl).Name
		start := at(fset, name.Pos()) - at(fset, file.Decls[i].Pos())
		p.variants[f] = append(p.variants[f], variant{number, is[:start] + f.Name.Name + suffix(number) + is[start+len(f.Name.Name):]})
	}
	return nil
}

func suffix(number int) string { return fmt.Sprintf("Mutant%d", number) }

// combined is the file with all variants.
func (p *patched) combined() string {
	var b bytes.Buffer
	last := 0
	for _, d := range p.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || p.variants[f] == nil {
			continue
		}
		in := p.fset.Position(f.Body.Lbrace).Offset + 1
		b.WriteString(p.text[last:in])
		last = in
		for _, v := range p.variants[f] {
			fmt.Fprintf(&b, " if mutantNow == %d { %s };", v.number, handOver(f, v.number))
		}
	}
	b.WriteString(p.text[last:])
	for _, d := range p.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			for _, v := range p.variants[f] {
				b.WriteString("\n" + v.text + "\n")
			}
		}
	}
	return b.String()
}

// handOver calls the variant of a function with what the function was given.
func handOver(f *ast.FuncDecl, number int) string {
	call := f.Name.Name + suffix(number)
	if f.Recv != nil {
		call = f.Recv.List[0].Names[0].Name + "." + call
	}
	var args []string
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			arg := name.Name
			if _, ok := field.Type.(*ast.Ellipsis); ok {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return"
	}
	return "return " + call
}
