// Command cmd starts clusters of Apache Kafka, or of a binary with the same
// configuration, for bench/scenarios.
package main

import (
	"fmt"
	"os"

	"github.com/tidemark-log/tidemark/bench/apache"
)

func main() {
	if err := apache.Command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "apache:", err)
		os.Exit(1)
	}
}
