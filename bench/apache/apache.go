// Package apache starts clusters for a rig: nodes of an unpacked distribution of Apache
// Kafka, or of a binary that takes the very same files.
//
// A cluster is a folder. It holds cluster, which is the cluster's id, binary, which is
// empty for Apache Kafka, and a folder for each node with server.properties, address,
// pid, log, format.log and data. Nobody watches the nodes: each call of the command
// learns from these files what there is.
package apache

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	readyLimit = 2 * time.Minute  // for all ports to open; a node that ends is noticed at once
	stopLimit  = 30 * time.Second // for nodes that were asked to stop
	endLimit   = 30 * time.Second // for the kernel to end a process
	deadLimit  = time.Second / 2  // the same before a restart, where it was killed a moment ago

	soon  = 5 * time.Millisecond  // the first pause between two looks
	later = 50 * time.Millisecond // the longest one: what looks for a slow start must not slow it down
)

const help = `Clusters of Apache Kafka on loopback, or of a binary with the same configuration.

  start -d DIR [-n NODES] [-p PORT] [-x BINARY] [KEY=VALUE ...]
                          format and start nodes, by default one, and print their addresses
                          when all listen. Node I serves clients on PORT+I-1, by default from
                          19092 on, and controllers on PORT+99+I. With -x the nodes are
                          'BINARY serve --config FILE', after 'BINARY format'.
  pids -d DIR             the nodes that run, one a line: id, process, address
  kill -d DIR ID [SIGNAL] signal a node, by default KILL, and wait for its end then
  restart -d DIR ID       start a node again on what it has
  stop -d DIR             ask all nodes to stop; after 30 s they are killed
  tool NAME [ARGS ...]    run bin/kafka-NAME.sh of the distribution

KAFKA_HOME is the folder of an unpacked binary distribution of Apache Kafka 4, JAVA_HOME
that of a Java other than the one on the PATH. Brokers run with KAFKA_HEAP_OPTS (by default
-Xms1G -Xmx1G) and KAFKA_JVM_PERFORMANCE_OPTS (by default those of Kafka's own scripts),
tools with KAFKA_TOOL_OPTS (by default what their scripts choose).
`

// places are the fewest and the most words that a command for a cluster takes behind
// its flags.
var places = map[string][2]int{"pids": {0, 0}, "kill": {1, 2}, "restart": {1, 1}, "stop": {0, 0}}

// Command does what the words say, which are those of rig.Starter: start, pids, kill,
// restart, stop or tool, with what belongs to it. The word help prints them all.
func Command(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		return errors.New("say what to do: start, pids, kill, restart, stop or tool; help tells more")
	}
	switch verb, args := args[0], args[1:]; verb {
	case "start":
		p, err := newPlan(args)
		if err != nil {
			return err
		}
		all, err := p.start(ctx)
		if err == nil {
			fmt.Println(all)
		}
		return err
	case "tool":
		return tool(args)
	case "help", "-h", "-help", "--help":
		fmt.Print(help)
		return nil
	default:
		return manage(ctx, verb, args)
	}
}

// manage does what is done to a cluster that was started.
func manage(ctx context.Context, verb string, args []string) error {
	takes, ok := places[verb]
	if !ok {
		return fmt.Errorf("%q is none of start, pids, kill, restart, stop and tool; help tells what they do", verb)
	}
	dir := ""
	words, err := parse(verb, args, func(f *flag.FlagSet) { f.StringVar(&dir, "d", "", "") })
	if err != nil {
		return err
	}
	if len(words) < takes[0] || len(words) > takes[1] {
		return fmt.Errorf("%s does not take %q; help tells what it takes", verb, strings.Join(words, " "))
	}
	c, err := named(dir)
	if err != nil {
		return err
	}
	switch verb {
	case "pids":
		list, err := c.pids()
		fmt.Print(list)
		return err
	case "kill":
		return c.kill(ctx, words[0], append(words, "KILL")[1])
	case "restart":
		return c.restart(ctx, words[0])
	default:
		return c.stop(ctx, stopLimit)
	}
}

// parse reads flags and returns the words behind them.
func parse(verb string, args []string, define func(*flag.FlagSet)) ([]string, error) {
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	define(flags)
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("%s: %w; help tells what it takes", verb, err)
	}
	return flags.Args(), nil
}

// until asks again and again, ever less often, until the answer is yes, an error or the
// context's end.
func until(ctx context.Context, done func() (bool, error)) error {
	for pause := soon; ; pause = min(pause+pause/4, later) {
		yes, err := done()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
