package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packageNames finds packages that are called after nothing in particular.
func packageNames(s *source) []finding {
	name := strings.TrimSuffix(s.file.Name.Name, "_test")
	if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "base", "misc", "shared", "types"}, name) {
		return []finding{s.found(s.file.Name.Pos(), "package %s says nothing: packages are nouns of the domain", name)}
	}
	return nil
}

var firstClause = regexp.MustCompile(`^[^.:;]*`)

// packageComment finds package comments that do not say in one clause what the
// package is: a room whose sentence needs an "and" is two rooms.
func packageComment(s *source) []finding {
	doc := s.file.Doc
	if doc == nil || s.test || s.generated {
		return nil
	}
	text := doc.Text()
	start := "Package " + s.file.Name.Name + " "
	command := s.file.Name.Name == "main"
	if command {
		start = "Command "
	}
	if !strings.HasPrefix(text, start) {
		return []finding{s.found(doc.Pos(), "the package comment does not start with %q", start)}
	}
	if clause := strings.Join(strings.Fields(firstClause.FindString(text)), " "); !command && strings.Contains(clause, " and ") {
		return []finding{s.found(doc.Pos(), "the package comment needs an \"and\" to say what the package is: %s", clause)}
	}
	return nil
}

// Of all files of a package exactly one has the package comment.
func TestEveryPackageHasOneComment(t *testing.T) {
	comments, files := map[string]int{}, map[string]string{}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		files[s.dir] = s.path
		if s.file.Doc != nil {
			comments[s.dir]++
		}
	}
	for dir, file := range files {
		if comments[dir] != 1 {
			t.Errorf("%s: the package in %s has %d package comments, want 1", file, dir, comments[dir])
		}
	}
}

// docs finds exported names without a comment that starts with them. The values
// of a group may share the comment of the group.
func docs(s *source) []finding {
	if s.test || s.generated || s.file.Name.Name == "main" {
		return nil
	}
	var out []finding
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) && !opensWith(d.Doc, d.Name.Name) {
				out = append(out, s.found(d.Pos(), "%s needs a comment that starts with its name", d.Name.Name))
			}
		case *ast.GenDecl:
			out = append(out, docsOfGroup(s, d)...)
		}
	}
	return out
}

func docsOfGroup(s *source, d *ast.GenDecl) []finding {
	var out []finding
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if spec.Name.IsExported() && !opensWith(doc, spec.Name.Name) {
				out = append(out, s.found(spec.Pos(), "type %s needs a comment that starts with its name", spec.Name.Name))
			}
		case *ast.ValueSpec:
			exported := slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.IsExported() })
			if exported && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				out = append(out, s.found(spec.Pos(), "%s needs a comment, its own or that of its group", spec.Names[0].Name))
			}
		}
	}
	return out
}

// opensWith reports whether the comment starts with the name, after an article
// at most.
func opensWith(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	words := strings.Fields(doc.Text())
	is := func(at int) bool {
		return at < len(words) && strings.TrimRight(words[at], ".,:;'s") == strings.TrimRight(name, "s")
	}
	return is(0) || is(1) && slices.Contains([]string{"A", "An", "The", "Deprecated:"}, words[0])
}

func exportedReceiver(fields *ast.FieldList) bool {
	t := fields.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// spelling is a word that the house writes another way.
type spelling struct {
	wrong  *regexp.Regexp
	right  string
	unless *regexp.Regexp // lines of the comment that mean something else
	except []string       // rooms where it means something else
}

// wired are the rooms where a message is what one node sends to another.
var wired = []string{
	"internal/core/quorum", "internal/core/coretest", "internal/controlplane", "internal/transport", "internal/wire",
	"internal/explain", "internal/sim",
}

// recordish are the words beside which a message can only be a record.
const recordish = `offsets?|append\w*|produc\w*|consum\w*|batch\w*|segments?`

// terms are looked for in comments.
var terms = []spelling{
	{wrong: regexp.MustCompile(`\bHWM\b|\bHwm\b`), right: "HW"},
	{wrong: regexp.MustCompile(`(?i)\bhigh[- ]water[- ]marks?\b|\bhighwater marks?\b|\bhigh-watermarks?\b`), right: "high watermark"},
	{
		wrong: regexp.MustCompile(`(?i)\b(` + recordish + `)\b.*\bmessages?\b|\bmessages?\b.*\b(` + recordish + `)\b`),
		right: "record", except: wired,
		unless: regexp.MustCompile(`(?i)error|panic|log|kmsg|proto|request|response|answer|[._]message|message[._]`),
	},
	{wrong: regexp.MustCompile(`\bISRs? (set|list)\b`), right: "ISR: the S is the set"},
	{wrong: regexp.MustCompile(`(?i)\bleader-epoch\b`), right: "leader epoch", unless: regexp.MustCompile(`leader-epoch([- ]checkpoint|=)`)},
	{wrong: regexp.MustCompile(`(?i)\b(master|slave)s?\b`), right: "leader, follower"},
	{wrong: regexp.MustCompile(`(?i)\b(white|black)list\w*\b`), right: "allow, deny"},
	{wrong: regexp.MustCompile(`\b(zookeeper|Zookeeper)\b`), right: "ZooKeeper"},
	{wrong: regexp.MustCompile(`[a-z,] (kafka|apache) (is|has|does|writes|reads|reports|says|uses)\b`), right: "Kafka, Apache"},
	{wrong: regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`), right: "done now, or an issue"},
}

func (t spelling) hit(s *source, text string) string {
	if t.unless != nil && t.unless.MatchString(text) || slices.ContainsFunc(t.except, s.inside) {
		return ""
	}
	return t.wrong.FindString(text)
}

// words finds terms in comments that the house writes another way.
func words(s *source) []finding {
	if strings.HasPrefix(s.dir, "internal/lint") {
		return nil // where the wrong ones have to stand
	}
	var out []finding
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for n, text := range strings.Split(c.Text, "\n") {
				for _, term := range terms {
					if hit := term.hit(s, text); hit != "" {
						at := finding{at: s.path + ":" + strconv.Itoa(s.line(c.Pos())+n)}
						at.text = fmt.Sprintf("%q is written otherwise here: %s", hit, term.right)
						out = append(out, at)
					}
				}
			}
		}
	}
	return out
}

// initials finds capitals written as a word, at the end or before a capital.
var initials = regexp.MustCompile(`(Id|Ids|Isr|Elr|Leo|Lso|Hwm|Uuid|Http|Json|Tcp|Ip)($|[A-Z0-9])`)

// names finds declared names that write initials as words. Names of other modules
// are theirs.
func names(s *source) []finding {
	if s.generated {
		return nil
	}
	var out []finding
	check := func(id *ast.Ident) {
		if id == nil {
			return
		}
		if hit := initials.FindStringSubmatch(id.Name); hit != nil {
			out = append(out, s.found(id.Pos(), "%s writes %s as a word: %s, as in brokerID", id.Name, hit[1], strings.ToUpper(hit[1][:1])+strings.ToUpper(hit[1][1:])))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					id, _ := e.(*ast.Ident)
					check(id)
				}
			}
		}
		return true
	})
	return out
}
