// Package cli is the command line of the tidemark binary.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/internal/config"
)

// Exit codes of the binary.
const (
	exitOK    = 0
	exitError = 1 // the command could not do its work
	exitUsage = 2 // the command line itself is wrong
)

// Runner starts nodes. All its methods write what a person or a script waits for
// to out, run until ctx is done or they fail, and return an error of one plain
// sentence with the fix.
type Runner interface {
	// Dev runs a whole cluster and writes one line "ready ADDR,ADDR,…" when a
	// record with acks=all would be accepted.
	Dev(ctx context.Context, out io.Writer, opts DevOptions) error
	// Format prepares the directories of a node for a cluster, and returns.
	Format(ctx context.Context, out io.Writer, clusterID string, cfg *config.Config) error
	// Serve runs one node.
	Serve(ctx context.Context, out io.Writer, cfg *config.Config) error
}

// DevOptions says which development cluster to run.
type DevOptions struct {
	Nodes     int
	Port      int    // of the first node's clients; node i listens on Port+i-1
	Dir       string // of the state; empty for one that is thrown away
	Processes bool   // one process for each node instead of one for all
}

// App is the command line with all that it reaches outside itself.
type App struct {
	Runner  Runner // nil leaves out dev, format and serve
	Version string // what version prints
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run executes one command line, without the name of the binary, and returns
// the exit code. An interrupt ends the command's context.
func (a *App) Run(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(a.Err, "tidemark: %v: see tidemark %s\n", sentence(err), helpFor(root, args))
		return exitUsage
	}
	fmt.Fprintf(a.Err, "tidemark: %v\n", sentence(err))
	return exitError
}

// sentence puts an error on one line.
func sentence(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// helpFor names the help of the command that args got to.
func helpFor(root *cobra.Command, args []string) string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root {
		return "--help"
	}
	return strings.TrimPrefix(cmd.CommandPath(), "tidemark ") + " --help"
}

// root builds the tree of commands.
func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "A replicated commit log that speaks Kafka",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	if a.Runner != nil {
		root.AddCommand(a.dev(), a.format(), a.serve())
	}
	root.AddCommand(newID(), a.topic(), a.produce(), a.consume(), a.replicas(), a.dumpLog(), a.sim(), a.version())
	return root
}

// flagError says of a flag's value what to give, not which function could not
// read it.
func flagError(err error) error {
	text := err.Error()
	for _, w := range [][2]string{
		{": strconv.ParseBool", "true or false"}, {": strconv.", "a whole number that is not too large"}, {": time:", "a time such as 500ms or 10s"},
	} {
		if head, _, ok := strings.Cut(text, w[0]); ok {
			return usagef("%s: give %s", head, w[1])
		}
	}
	return usageError{err}
}

// subcommand refuses what is not a subcommand of a command that only groups.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("there is no command %q", strings.TrimSpace(cmd.CommandPath()+" "+args[0]))
	}
	return nil
}

// exactly asks for the arguments that names list.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("the argument %s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef("the argument %q is one too many", args[len(names)])
		}
		for i, name := range names {
			if args[i] == "" {
				return usagef("the argument %s is empty", name)
			}
		}
		return nil
	}
}

// atLeastOne asks for one or more arguments of this name.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("the argument %s is missing", name)
		}
		return anyNumber(name)(nil, args)
	}
}

// anyNumber takes arguments of this name, or none.
func anyNumber(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return usagef("an argument %s is empty", name)
		}
		return nil
	}
}

func (a *App) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "tidemark %s\n", a.Version)
			return err
		},
	}
}
