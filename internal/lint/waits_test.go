package lint

import (
	"go/ast"
	"slices"
)

// simulatedRooms are the shells that the simulator runs.
var simulatedRooms = []string{"internal/storage", "internal/transport", "internal/controlplane", "internal/api", "internal/coordinator",
	"internal/replicas", "internal/node", "internal/sim"}

// waitsElsewhere finds what a simulated room must leave to internal/task: one wait
// that the scheduler does not know of, and no seed runs twice the same way.
func waitsElsewhere(s *source) []finding {
	if !slices.ContainsFunc(simulatedRooms, s.inside) || s.test || slices.Contains(sweeping, s.path) {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, s.found(n.Pos(), "a simulated room starts a goroutine: Runtime.Go starts tasks"))
		case *ast.SelectStmt:
			out = append(out, s.found(n.Pos(), "a simulated room selects: a Waiter waits for signals"))
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && fn.Name == "make" && len(n.Args) > 0 {
				if _, ok := n.Args[0].(*ast.ChanType); ok {
					out = append(out, s.found(n.Pos(), "a simulated room makes a channel: task has Signal and Queue"))
				}
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			switch {
			case !ok:
			case x.Name == "time" && slices.Contains(clock, n.Sel.Name):
				out = append(out, s.found(n.Pos(), "a simulated room uses time.%s: Runtime has the clocks and the waits", n.Sel.Name))
			case x.Name == "context" && slices.Contains([]string{"WithCancel", "WithTimeout", "WithDeadline"}, n.Sel.Name):
				out = append(out, s.found(n.Pos(), "a simulated room uses context.%s: Runtime has it", n.Sel.Name))
			}
		}
		return true
	})
	return out
}

// sweeping are the files that run simulations side by side, in the world outside.
var sweeping = []string{"internal/sim/sweep.go", "internal/sim/tally.go"}
