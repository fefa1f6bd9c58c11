// Command acceptance runs the reference cluster: four real broker processes,
// one topic of three partitions in three replicas, three foreign producers
// under a killer of leaders, three foreign consumers that read it all back.
//
// It prints counts and ends with status 1 if a promise was broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

type settings struct {
	binary    string
	kafka     string
	dir       string
	records   int
	seconds   int
	kills     int
	blackouts int
	lineSize  int
	defaults  bool
	text      string
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "./bin/tidemark", "the tidemark binary")
	flag.StringVar(&s.kafka, "kafka", os.Getenv("KAFKA"), "command that runs Apache Kafka's tools: COMMAND tool NAME ARGS (default $KAFKA); empty leaves them out")
	flag.StringVar(&s.dir, "dir", "", "state of the brokers; default a throwaway directory")
	flag.IntVar(&s.records, "records", 5_000_000, "records of all clients together")
	flag.IntVar(&s.seconds, "seconds", 190, "time over which each client is paced")
	flag.IntVar(&s.kills, "kills", 10, "leaders to kill")
	flag.IntVar(&s.blackouts, "blackouts", 3, "times that all brokers are killed at once")
	flag.IntVar(&s.lineSize, "line", 215, "bytes of text in a record, at least")
	flag.BoolVar(&s.defaults, "kafka-timeouts", false, "Kafka's default heartbeat and session timeouts instead of dev's")
	flag.StringVar(&s.text, "text", "/usr/share,/usr/lib/python3,/usr/local/go/src", "where real text is found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "acceptance: FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("acceptance: PASSED")
}

const topic = "reference"

func run(ctx context.Context, s settings) error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "acceptance-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.dir = dir
	}
	c, err := startCluster(s)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.createTopic(ctx, topic, 3, 3); err != nil {
		return err
	}
	clients := producersOf(s, c)
	fmt.Printf("reference cluster: 4 brokers, topic of 3 partitions, RF 3, min.insync.replicas 2; %d clients, %d records\n", len(clients), s.records)
	sent, err := produceUnderFire(ctx, s, c, clients)
	if err != nil {
		return err
	}
	if err := c.waitISR(ctx, topic, 3, time.Minute); err != nil {
		return err
	}
	if err := c.checkReplicas(topic, false); err != nil {
		return err
	}
	if err := readBack(ctx, s, c, sent); err != nil {
		return err
	}
	if err := blackout(ctx, c, s.blackouts); err != nil {
		return err
	}
	return c.compareLogs(ctx, topic, 3)
}

// produceUnderFire runs all producers and kills leaders meanwhile.
func produceUnderFire(ctx context.Context, s settings, c *cluster, clients []producer) (map[string]int, error) {
	probe, err := startProbe(c, 3)
	if err != nil {
		return nil, err
	}
	type result struct {
		name string
		n    int
		err  error
	}
	results := make(chan result, len(clients))
	each := s.records / len(clients)
	start := time.Now()
	for _, p := range clients {
		go func() {
			err := p.produce(ctx, newText(s, p.name(), each))
			results <- result{p.name(), each, err}
		}()
	}
	killErr := make(chan error, 1)
	go func() { killErr <- killLeaders(ctx, s, c, probe) }()
	sent := map[string]int{}
	for range clients {
		r := <-results
		if r.err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, r.err)
		}
		sent[r.name] = r.n
		fmt.Printf("%-10s %d records acknowledged after %.0f s\n", r.name, r.n, time.Since(start).Seconds())
	}
	if err := <-killErr; err != nil {
		return nil, err
	}
	for name, n := range probe.stop() {
		sent[name] = n
	}
	return sent, nil
}

// killLeaders kills the leader of each partition in turn and restarts it.
func killLeaders(ctx context.Context, s settings, c *cluster, probe *probe) error {
	var failovers, rejoins []time.Duration
	pause := time.Duration(s.seconds) * time.Second / time.Duration(max(s.kills, 1)+1)
	for i := range s.kills {
		next := time.Now().Add(pause)
		if err := c.waitISR(ctx, topic, 3, time.Minute); err != nil {
			return err
		}
		p := i % 3
		leader, err := c.leader(ctx, topic, p)
		if err != nil {
			return err
		}
		active := c.activeController(ctx)
		probe.arm(p)
		c.kill(leader)
		took, err := probe.wait(p, 30*time.Second)
		if err != nil {
			return fmt.Errorf("kill %d: no record was acknowledged on partition %d after broker %d died: %w", i+1, p, leader, err)
		}
		failovers = append(failovers, took)
		if err := c.checkReplicas(topic, true); err != nil {
			return err
		}
		if err := c.start(leader); err != nil {
			return err
		}
		back := time.Now()
		if err := c.waitISR(ctx, topic, 3, time.Minute); err != nil {
			return err
		}
		rejoins = append(rejoins, time.Since(back))
		note := ""
		if int32(leader) == active {
			note = " (it was the active controller too)"
		}
		fmt.Printf("kill %2d: broker %d, leader of partition %d: next acknowledged record after %4d ms, in the ISR again %4d ms after its start%s\n",
			i+1, leader, p, took.Milliseconds(), rejoins[i].Milliseconds(), note)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Printf("failover: %s; rejoin: %s\n", spread(failovers), spread(rejoins))
	return nil
}

func spread(ds []time.Duration) string {
	if len(ds) == 0 {
		return "none"
	}
	lo, hi, sum := ds[0], ds[0], time.Duration(0)
	for _, d := range ds {
		lo, hi, sum = min(lo, d), max(hi, d), sum+d
	}
	return fmt.Sprintf("min %d ms, mean %d ms, max %d ms", lo.Milliseconds(), (sum / time.Duration(len(ds))).Milliseconds(), hi.Milliseconds())
}

func (s settings) sources() []string { return strings.Split(s.text, ",") }
