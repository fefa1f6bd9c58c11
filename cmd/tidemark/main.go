// Command tidemark is a replicated commit log that speaks Kafka.
package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/tidemark-log/tidemark/internal/cli"
	"github.com/tidemark-log/tidemark/internal/runner"
)

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "dev") {
		runner.Calm()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	app := cli.App{
		Runner:  runner.Runner{Log: log, Binary: os.Executable},
		Version: version(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}
	os.Exit(app.Run(context.Background(), os.Args[1:]))
}

// version names what this binary was built from: a release, or a commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (text == "" || text == "(devel)") {
			text = s.Value
		}
	}
	if text == "" {
		text = "(devel)"
	}
	return text + " " + info.GoVersion
}
