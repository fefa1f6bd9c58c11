package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// prints are the files that are printed, and how.
var prints = []struct {
	files string // a pattern below a node's data directory
	least int    // how many files there must be
	args  []string
}{
	{"prints-0/*.log", 2, []string{"--deep-iteration", "--print-data-log"}},
	{"prints-0/*.log", 2, nil},
	{"prints-0/*.index", 2, nil},
	{"prints-0/*.timeindex", 2, nil},
	{"prints-0/*.snapshot", 1, nil},
	{"__consumer_offsets-0/*.log", 1, []string{"--offsets-decoder"}},
	{"__cluster_metadata-0/*.log", 1, []string{"--cluster-metadata-decoder"}},
	{"__cluster_metadata-0/*.log", 1, []string{"--cluster-metadata-decoder", "--skip-record-metadata"}},
	{"__cluster_metadata-0/*.checkpoint", 1, []string{"--cluster-metadata-decoder"}},
}

// samePrint fills a cluster, ends it, then prints the files of its partitions with
// Apache's kafka-dump-log and with ours.
func samePrint(ctx context.Context, s settings) error {
	c, err := startCluster(ctx, s, "prints", 3, "offsets.topic.num.partitions=1", "metadata.log.max.record.bytes.between.snapshots=2000")
	if err != nil {
		return err
	}
	defer c.stop()
	if err := fill(ctx, c); err != nil {
		return err
	}
	c.stop()
	var all error
	for _, p := range prints {
		files, err := filepath.Glob(filepath.Join(c.dir, "1", "data", p.files))
		if err != nil {
			return err
		}
		if len(files) < p.least {
			all = errors.Join(all, fmt.Errorf("%s: %d files, not %d", p.files, len(files), p.least))
			continue
		}
		if err := comparePrint(ctx, s, files, p.args); err != nil {
			all = errors.Join(all, fmt.Errorf("%s %s:\n%w", p.files, strings.Join(p.args, " "), err))
		}
	}
	return all
}

// fill writes records of many kinds: several segments, codecs, an idempotent
// producer, a group.
func fill(ctx context.Context, c *cluster) error {
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	size := "1048576"
	if _, err := k.admin.CreateTopic(ctx, 1, 3, map[string]*string{"segment.bytes": &size}, "prints"); err != nil {
		return err
	}
	n := 0
	for range 6 {
		if err := k.produce(ctx, "prints", n, 20_000); err != nil {
			return err
		}
		n += 20_000
	}
	for _, codec := range []string{"gzip", "snappy", "lz4", "zstd", "none"} {
		cmd := exec.CommandContext(ctx, "kcat", "-P", "-b", c.bootstrap(), "-t", "prints", "-z", codec, "-K", ":", "-H", "a=b", "-H", "codec="+codec)
		cmd.Stdin = strings.NewReader(strings.Repeat("key:value\n", 3) + strings.Repeat(strings.Repeat("long ", 200_000/5)+"\n", 3))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kcat -z %s: %w: %s", codec, err, out)
		}
	}
	if err := readGroup(ctx, c.bootstrap(), "prints", 1000, map[string]int{}); err != nil {
		return err
	}
	for i := range 30 {
		if err := k.create(ctx, fmt.Sprintf("more-%d", i), 2, 3); err != nil {
			return err
		}
	}
	return nil
}

// comparePrint prints the files with both programs. What they say on the standard
// error is left out; Apache's tool complains there of indexes that are right.
func comparePrint(ctx context.Context, s settings, files, args []string) error {
	run := func(name string, first ...string) ([]string, error) {
		cmd := exec.CommandContext(ctx, name, append(append(first, args...), "--files", strings.Join(files, ","))...)
		cmd.Env = append(os.Environ(), "KAFKA_TOOL_OPTS=-Xmx256M -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
		}
		return strings.Split(strings.TrimRight(string(out), "\n"), "\n"), nil
	}
	want, err := run(s.kafka, "tool", "dump-log")
	if err != nil {
		return err
	}
	got, err := run(s.binary, "dump-log")
	if err != nil {
		return err
	}
	return firstDifferences(want, got)
}

// firstDifferences compares texts of any length line by line.
func firstDifferences(want, got []string) error {
	if slices.Equal(want, got) {
		return nil
	}
	if len(want) != len(got) {
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				return fmt.Errorf("%d lines, not %d; line %d:\nwant %s\ngot  %s", len(got), len(want), i+1, cut(want[i]), cut(got[i]))
			}
		}
		return fmt.Errorf("%d lines, not %d", len(got), len(want))
	}
	var all error
	count := 0
	for i := range want {
		if want[i] != got[i] {
			if count++; count <= 3 {
				all = errors.Join(all, fmt.Errorf("line %d:\nwant %s\ngot  %s", i+1, cut(want[i]), cut(got[i])))
			}
		}
	}
	return errors.Join(all, fmt.Errorf("%d of %d lines differ", count, len(want)))
}

func cut(line string) string { return line[:min(len(line), 500)] }
