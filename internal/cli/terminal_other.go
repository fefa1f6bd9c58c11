//go:build !unix

package cli

// isTerminal reports whether a stream is a terminal that a person looks at.
func isTerminal(any) bool { return false }
