package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// contexts finds contexts that are kept in a struct or are not the first
// argument: a context lives as long as one call.
func contexts(s *source) []finding {
	if s.test || s.generated {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if isSelector(f.Type, "context", "Context") {
					out = append(out, s.found(f.Pos(), "a struct keeps a context: pass it as an argument"))
				}
			}
		case *ast.FuncType:
			for i, f := range n.Params.List {
				if i > 0 && isSelector(f.Type, "context", "Context") {
					out = append(out, s.found(f.Pos(), "a context is not the first argument"))
				}
			}
		}
		return true
	})
	return out
}

// errorTexts finds errors whose text starts with a capital or ends like a
// sentence: they are parts of longer lines.
func errorTexts(s *source) []finding {
	if s.test || s.generated {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isSelector(call.Fun, "errors", "New") && !isSelector(call.Fun, "fmt", "Errorf") {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && looksLikeSentence(text) {
			out = append(out, s.found(lit.Pos(), "the error %q reads as a sentence: start it in lower case, end it without a full stop", text))
		}
		return true
	})
	return out
}

// looksLikeSentence spares names and abbreviations, which have capitals inside.
func looksLikeSentence(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	first, size := utf8.DecodeRuneInString(word)
	capital := unicode.IsUpper(first) && len(word) > 1 && strings.ToLower(word[size:]) == word[size:]
	return capital && word != "Kafka" && word != "Kafka's" && word != "Apache" || strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...")
}

// talkers are the rooms that may write to the terminal or end the process.
var talkers = []string{"cmd", "internal/cli", "compat", "bench"}

// quiet finds code that writes to the terminal or ends the process, which only
// the command may.
func quiet(s *source) []finding {
	if s.test || slices.ContainsFunc(talkers, s.inside) {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, f := range [][2]string{
			{"fmt", "Print"}, {"fmt", "Println"}, {"fmt", "Printf"}, {"os", "Exit"}, {"log", "Fatal"}, {"log", "Fatalf"}, {"log", "Print"},
			{"log", "Printf"}, {"log", "Println"},
		} {
			if isSelector(call.Fun, f[0], f[1]) {
				out = append(out, s.found(call.Pos(), "%s.%s outside the command: return an error, or log with slog", f[0], f[1]))
			}
		}
		if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			out = append(out, s.found(call.Pos(), "%s is for debugging", id.Name))
		}
		return true
	})
	return out
}

// skips finds tests that are skipped other than with -short or for want of a flag
// of their own.
func skips(s *source) []finding {
	if !s.test {
		return nil
	}
	spared := map[ast.Node]bool{}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			spared[n.Body] = asked(n.Cond)
		case *ast.BlockStmt:
			if spared[n] {
				return false
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "t" || x.Name == "b" || x.Name == "f") {
					out = append(out, s.found(n.Pos(), "a test is skipped: repair it or remove it (only -short or a missing flag may skip)"))
				}
			}
		}
		return true
	})
	return out
}

// asked reports whether the condition is testing.Short() or "if !*flag".
func asked(cond ast.Expr) bool {
	if call, ok := cond.(*ast.CallExpr); ok {
		return isSelector(call.Fun, "testing", "Short")
	}
	not, ok := cond.(*ast.UnaryExpr)
	if !ok || not.Op != token.NOT {
		return false
	}
	_, ok = not.X.(*ast.StarExpr)
	return ok
}
