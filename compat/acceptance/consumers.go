package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger checks that the records of every writer come once, in order.
type ledger struct {
	next  map[string]int
	total int
	wrong []string
}

func (l *ledger) add(value string) {
	name, rest, ok := strings.Cut(value, ":")
	if !ok || len(rest) < 9 {
		l.complain("a record that nobody wrote: %.60q", value)
		return
	}
	n, err := strconv.Atoi(rest[:9])
	if err != nil {
		l.complain("a record that nobody wrote: %.60q", value)
		return
	}
	l.total++
	if want := l.next[name]; n != want {
		l.complain("%s: record %d came where %d was due", name, n, want)
	}
	l.next[name] = n + 1
}

func (l *ledger) complain(format string, args ...any) {
	if len(l.wrong) < 5 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// verdict compares with what was acknowledged.
func (l *ledger) verdict(who string, sent map[string]int) error {
	total := 0
	for name, n := range sent {
		total += n
		if l.next[name] != n {
			l.complain("%s: %d records acknowledged, read up to %d", name, n, l.next[name])
		}
	}
	if l.total != total {
		l.complain("%d records acknowledged, %d read", total, l.total)
	}
	if len(l.wrong) > 0 {
		return fmt.Errorf("read back by %s: %s", who, strings.Join(l.wrong, "; "))
	}
	fmt.Printf("read back by %-24s %d records, each once and in order\n", who+":", l.total)
	return nil
}

// readBack reads everything with three clients.
func readBack(ctx context.Context, s settings, c *cluster, sent map[string]int) error {
	total := 0
	for _, n := range sent {
		total += n
	}
	if err := readFranz(ctx, c, topic, sent, total); err != nil {
		return err
	}
	if err := readProgram(ctx, "kcat", sent, "kcat", "-C", "-q", "-e", "-b", c.bootstrap(), "-t", topic, "-o", "beginning",
		"-X", "check.crcs=true"); err != nil {
		return err
	}
	if s.kafka == "" {
		return nil
	}
	k := strings.Fields(s.kafka)
	return readProgram(ctx, "kafka-console-consumer", sent, k[0], append(slices.Clone(k[1:]), "tool", "console-consumer",
		"--bootstrap-server", c.bootstrap(), "--topic", topic, "--from-beginning", "--max-messages", strconv.Itoa(total),
		"--timeout-ms", "60000")...)
}

func readFranz(ctx context.Context, c *cluster, topic string, sent map[string]int, total int) error {
	cl, err := newClient(c, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	l := &ledger{next: map[string]int{}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for l.total < total {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return fmt.Errorf("read back by franz-go after %d of %d records: %w", l.total, total, err)
		}
		fs.EachRecord(func(r *kgo.Record) { l.add(string(r.Value)) })
	}
	return l.verdict("franz-go", sent)
}

// readProgram reads the values that a program prints, one a line.
func readProgram(ctx context.Context, who string, sent map[string]int, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	l := &ledger{next: map[string]int{}}
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	for lines.Scan() {
		l.add(lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	return l.verdict(who, sent)
}
