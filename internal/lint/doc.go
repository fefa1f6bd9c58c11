// Package lint holds the house rules of STYLE.md as tests.
//
// It parses every Go file of the repository once. Each rule is a function from
// one file to its findings, and is itself tested with a file that breaks it. What
// is too long already stands in testdata/sizes.golden, a list that may only
// shrink; the modules of go.mod stand in testdata/modules.golden.
//
// Run "go test ./internal/lint -rewrite" after a file became shorter or a module
// changed, and read the diff.
package lint
