// Command start measures how soon a cluster is of use and what it costs idle.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/bench/proc"
	"github.com/tidemark-log/tidemark/internal/cluster"
)

func main() {
	binary := flag.String("binary", "./bin/tidemark", "the stripped binary")
	rounds := flag.Int("rounds", 5, "rounds; the median is told")
	flag.Parse()
	if err := run(*binary, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run(binary string, rounds int) error {
	st, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("%w; build it with make build", err)
	}
	fmt.Printf("%-58s %8.1f MB   (bar 25)\n", "binary, stripped", float64(st.Size())/1e6)
	var first, memory, within []float64
	for range rounds {
		ms, rss, err := dev(binary)
		if err != nil {
			return err
		}
		first, memory = append(first, ms), append(memory, rss)
	}
	fmt.Printf("%-58s %8.0f ms   (bar 1000)\n", "dev -n 3: start to the first RF 3 acks=all record", median(first))
	fmt.Printf("%-58s %8.1f MB   (bar 100)\n", "dev -n 3: resident memory after it", median(memory))
	for range rounds {
		ms, err := inProcess()
		if err != nil {
			return err
		}
		within = append(within, ms)
	}
	fmt.Printf("%-58s %8.0f ms   (bar 300)\n", "in-process cluster of 3 for a test: until all serve", median(within))
	cores, mb, err := idle(binary)
	if err != nil {
		return err
	}
	fmt.Printf("%-58s %8.3f      (bar 0.05)\n", "1,000 idle partitions RF 3 on three nodes: cores", cores)
	fmt.Printf("%-58s %8.1f MB   (bar 150)\n", "1,000 idle partitions RF 3 on three nodes: memory", mb)
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// freePorts finds n ports in a row that nobody uses.
func freePorts(n int) (int, error) {
	for port := 20000; port < 60000; port += 7 {
		free := true
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+i))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// dev starts the binary's cluster, writes one record to three replicas and
// tells the time since the start in milliseconds and the memory in MB.
func dev(binary string) (float64, float64, error) {
	port, err := freePorts(3)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	cmd := exec.Command(binary, "dev", "-n", "3", "--port", strconv.Itoa(port))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("dev ended early: %w", err)
	}
	addrs := strings.TrimSpace(strings.TrimPrefix(line, "ready "))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := load.First(ctx, strings.Split(addrs, ","), 3); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	rss, err := proc.RSS(cmd.Process.Pid)
	return float64(took.Microseconds()) / 1000, float64(rss) / 1e6, err
}

// inProcess starts a cluster as a test does and tells the time in milliseconds.
func inProcess() (float64, error) {
	dir, err := cluster.TempDir()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	start := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 3, Dir: dir, Faults: true})
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	c.Abandon()
	return float64(took.Microseconds()) / 1000, nil
}
