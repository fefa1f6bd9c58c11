// Package mutants removes the rules of the cores one by one. A script or a seed
// must notice each (R11.1).
//
// It has tests only. The plain test checks that every patch still fits the
// source; with -mutants each patched core is built and tested:
//
//	go test ./internal/core/coretest/mutants -mutants
//
// The shipped core has no switches: a mutant is a replacement of text, which the
// go command lays over the file.
package mutants
