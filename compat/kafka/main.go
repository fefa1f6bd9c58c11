// Command kafka runs Apache Kafka's own tools against a cluster of three real
// brokers, then compares what they print with the scripts in testdata.
//
// It prints a line for each check and ends with status 1 if one failed. With
// -apache the brokers are Apache's own, so that a script can be checked, or be
// rewritten with -rewrite, against the original.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

//go:embed testdata/*.txt
var scripts embed.FS

type settings struct {
	kafka   string
	binary  string
	dir     string
	port    int
	apache  bool
	rewrite string
	run     string
	patient time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.kafka, "kafka", os.Getenv("KAFKA"), "command that starts clusters and runs Apache Kafka's tools (default $KAFKA)")
	flag.StringVar(&s.binary, "binary", "./bin/tidemark", "the tidemark binary")
	flag.StringVar(&s.dir, "dir", "", "state of the brokers; default a throwaway directory")
	flag.IntVar(&s.port, "port", 31000, "first port to try")
	flag.BoolVar(&s.apache, "apache", false, "run Apache's brokers, not Tidemark's")
	flag.StringVar(&s.rewrite, "rewrite", "", "folder of the scripts, to be rewritten with what was printed")
	flag.StringVar(&s.run, "run", ".", "regular expression of the names of the scripts and checks to run")
	flag.DurationVar(&s.patient, "patience", 40*time.Second, "how long a check that waits for a state is repeated")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat/kafka:", err)
	}
	if err != nil || failed > 0 {
		stop()
		os.Exit(1)
	}
}

// run runs every script on a cluster of three, and every check of a process's
// life on clusters of its own. It returns how many checks failed.
func run(ctx context.Context, s settings) (int, error) {
	if s.kafka == "" {
		return 0, fmt.Errorf("name the command that starts clusters and runs Kafka's tools, in the environment variable KAFKA")
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "compat-kafka-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		s.dir = dir
	}
	wanted, err := regexp.Compile(s.run)
	if err != nil {
		return 0, fmt.Errorf("-run: %w", err)
	}
	b := &board{}
	if err := runScripts(ctx, s, wanted, b); err != nil {
		return 0, err
	}
	if !s.apache {
		for _, l := range lives {
			if wanted.MatchString(l.name) && ctx.Err() == nil {
				b.report(l.name, l.check(ctx, s))
			}
		}
	}
	fmt.Printf("%d passed, %d failed\n", b.passed, b.failed)
	return b.failed, ctx.Err()
}

// runScripts runs the wanted scripts, one after the other, on one cluster.
func runScripts(ctx context.Context, s settings, wanted *regexp.Regexp, b *board) error {
	entries, err := scripts.ReadDir("testdata")
	if err != nil {
		return err
	}
	var c *cluster
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".txt")
		if !wanted.MatchString(name) || ctx.Err() != nil {
			continue
		}
		if c == nil {
			if c, err = startCluster(ctx, s, "cluster", 3, "auto.leader.rebalance.enable=false"); err != nil {
				return err
			}
			defer c.stop()
		}
		text, err := scripts.ReadFile("testdata/" + e.Name())
		if err != nil {
			return err
		}
		sc, err := parseScript(name, string(text))
		if err != nil {
			return err
		}
		for _, ch := range sc.checks {
			if ctx.Err() == nil {
				b.report(name+": "+ch.name, c.check(ctx, ch))
			}
		}
		if s.rewrite == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(s.rewrite, e.Name()), []byte(sc.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// board counts checks and prints a line for each.
type board struct {
	passed, failed int
	last           time.Time
}

func (b *board) report(name string, err error) {
	if b.last.IsZero() {
		b.last = time.Now()
	}
	took := time.Since(b.last).Seconds()
	b.last = time.Now()
	if err == nil {
		b.passed++
		fmt.Printf("ok     %s (%.0f s)\n", name, took)
		return
	}
	b.failed++
	fmt.Printf("FAILED %s (%.0f s)\n%s\n", name, took, indent(err.Error()))
}

func indent(s string) string {
	return "       " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n       ")
}
