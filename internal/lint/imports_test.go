package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// floors says how high in the house each room lies. A room imports rooms on lower
// floors and its own folders, so that reading any walk goes downwards.
var floors = map[string]int{
	"internal/core/model": 0,

	"internal/core": 1, "internal/task": 1,

	"internal/record": 2, "internal/wire": 2, "internal/vfs": 2, "internal/config": 2, "internal/metrics": 2, "internal/explain": 2, "internal/memnet": 2,

	"internal/storage": 3, "internal/transport": 3,

	"internal/controlplane": 4, "internal/api": 4, "internal/dumplog": 4, "internal/console": 4, "internal/coordinator": 4,

	"internal/replicas": 5,

	"internal/node": 6,

	"internal/cluster": 7,

	".": 8, "internal/sim": 8,

	"tidetest": 9, "internal/cli": 9, "compat": 9, "bench": 9,

	"internal/runner": 10,

	"cmd": 11,

	"internal/lint": 0,
}

// room returns the room that the folder belongs to; "" if it belongs to none.
func room(dir string) string {
	for at := dir; ; {
		if _, ok := floors[at]; ok && (at != "." || dir == ".") {
			return at
		}
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			return ""
		}
		at = at[:cut]
	}
}

// imports finds imports that run upwards or sideways. Tests may import what they
// like: they are read from the top.
func imports(s *source) []finding {
	if s.test {
		return nil
	}
	own := room(s.dir)
	if own == "" {
		return []finding{s.found(s.file.Name.Pos(), "the room %s has no floor: give it one in internal/lint", s.dir)}
	}
	var out []finding
	for _, spec := range s.file.Imports {
		to, ok := strings.CutPrefix(importPath(spec), module)
		if !ok {
			continue
		}
		dir := strings.TrimPrefix(to, "/")
		if dir == "" {
			dir = "."
		}
		other := room(dir)
		if other != own && floors[other] >= floors[own] {
			out = append(out, s.found(spec.Pos(), "%s imports %s, which is not below it: imports run downwards, "+
				"model <- core <- record, wire <- storage, transport <- api <- node", own, dir))
		}
	}
	return out
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value)
	return p
}

// pureRooms decide and never act: they run unchanged in the simulator, where
// time, chance, disks and links are its own.
var pureRooms = []string{"internal/core", "internal/record", "internal/wire"}

// banned says why a pure room may not import a package. A name that ends in a
// slash stands for all packages below it too.
var banned = map[string]string{
	"net/":          "sockets belong to internal/transport",
	"os/":           "files belong to internal/vfs and internal/storage",
	"sync/":         "state has one owner, so that there is nothing to lock",
	"context":       "a core never blocks, so that there is nothing to cancel",
	"log/":          "a core returns reasons; its shell logs them",
	"math/rand/":    "chance comes in as an argument, or a seed could not replay a run",
	"crypto/rand":   "ids come in from a generator, or a seed could not replay a run",
	"io/ioutil":     "files belong to internal/vfs and internal/storage",
	"io/fs":         "files belong to internal/vfs and internal/storage",
	"syscall":       "the machine belongs to the shells",
	"unsafe":        "a core has no use for it",
	"testing":       "what only tests need belongs into test files",
	"runtime/":      "the machine belongs to the shells",
	"path/filepath": "files belong to internal/vfs and internal/storage",
}

// excused are the imports that style.md allows a pure room.
var excused = map[string][]string{
	"internal/record": {"sync"}, // the pool of codecs
}

// clock names what reads or waits for the machine's clock in package time.
var clock = []string{"Now", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Since", "Until"}

// purity finds what a pure room must not do.
func purity(s *source) []finding {
	if !slices.ContainsFunc(pureRooms, s.inside) || s.test {
		return nil
	}
	var out []finding
	for _, spec := range s.file.Imports {
		p := importPath(spec)
		if why := whyBanned(p); why != "" && !slices.Contains(excused[room(s.dir)], p) {
			out = append(out, s.found(spec.Pos(), "a pure room imports %s: %s", p, why))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, s.found(n.Pos(), "a pure room starts a goroutine: its state has one owner, the loop that calls it"))
		case *ast.ChanType:
			out = append(out, s.found(n.Pos(), "a pure room has a channel: inputs come by Step, results by its return value"))
		case *ast.SelectStmt:
			out = append(out, s.found(n.Pos(), "a pure room selects: inputs come by Step"))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				out = append(out, s.found(n.Pos(), "a pure room uses time.%s: now comes in as an argument", n.Sel.Name))
			}
		}
		return true
	})
	return out
}

func whyBanned(p string) string {
	if why := banned[p]; why != "" {
		return why
	}
	for name, why := range banned {
		if below, ok := strings.CutSuffix(name, "/"); ok && (p == below || strings.HasPrefix(p, name)) {
			return why
		}
	}
	return ""
}

// sleeps finds tests that wait for the clock. In a synctest bubble the clock is
// not the machine's.
func sleeps(s *source) []finding {
	if !s.test || slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return importPath(i) == "testing/synctest" }) {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && isSelector(call.Fun, "time", "Sleep") {
			out = append(out, s.found(call.Pos(), "a test sleeps: wait for the event itself, or use testing/synctest"))
		}
		return true
	})
	return out
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
