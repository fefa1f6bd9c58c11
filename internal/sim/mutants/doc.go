// Package mutants removes the rules of the shipped code one by one. A script, a
// seed of the cores' random walks or a seed of the simulator must notice each
// (R11.1).
//
// It has tests only. The plain test checks that every patch still fits the
// source; with -mutants each patched room is built and tested, then the patched
// program is built and simulates seeds until an invariant breaks in one that the
// shipped program survives. What came of it is written into docs/proof.md:
//
//	go test ./internal/sim/mutants -mutants -v -timeout 0
//
// The shipped code has no switches: a mutant is a replacement of text, which the
// go command lays over the file.
package mutants
