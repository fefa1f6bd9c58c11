// Command peak compares peak produce and consume of Tidemark and Apache Kafka:
// the same client, the same work, alternating runs, data in memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/bench/proc"
)

type settings struct {
	binary  string
	kafka   []string
	dir     string
	rounds  int
	megs    int
	size    int
	clients int
	parts   int
	only    string
	set     string
	rf      int
}

func main() {
	var s settings
	kafka := flag.String("kafka", os.Getenv("KAFKA"), "command that starts clusters: COMMAND start|stop|pids (default $KAFKA)")
	flag.StringVar(&s.binary, "binary", "./bin/tidemark", "the tidemark binary")
	flag.StringVar(&s.dir, "dir", "/dev/shm", "where both systems keep their data")
	flag.IntVar(&s.rounds, "rounds", 3, "alternating pairs")
	flag.IntVar(&s.megs, "mb", 1500, "megabytes per run")
	flag.IntVar(&s.size, "size", 1024, "bytes per record")
	flag.IntVar(&s.clients, "clients", 2, "producing clients")
	flag.IntVar(&s.parts, "partitions", 6, "partitions of the topic")
	flag.StringVar(&s.only, "only", "", "ours or kafka: run one system alone")
	flag.StringVar(&s.set, "set", "", "a key for our brokers, as KEY=VALUE")
	flag.IntVar(&s.rf, "rf", 0, "one replication factor alone; 0 runs 3 and 1")
	flag.Parse()
	if s.kafka = strings.Fields(*kafka); len(s.kafka) == 0 {
		fmt.Fprintln(os.Stderr, "peak: name the command that starts clusters with -kafka or $KAFKA")
		os.Exit(2)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(1)
	}
}

// figure is what one run measured.
type figure struct{ mbs, cpu float64 }

func run(s settings) error {
	for _, rf := range []int{3, 1} {
		if s.rf != 0 && s.rf != rf {
			continue
		}
		produce, consume := map[string][]figure{}, map[string][]figure{}
		for round := range s.rounds {
			for _, system := range []string{"kafka", "ours"} {
				if s.only != "" && s.only != system {
					continue
				}
				p, c, err := measure(s, system, rf)
				if err != nil {
					return fmt.Errorf("%s, RF %d, round %d: %w", system, rf, round+1, err)
				}
				produce[system], consume[system] = append(produce[system], p), append(consume[system], c)
				fmt.Printf("RF %d round %d %-6s produce %6.0f MB/s %5.2f CPU s/GB   consume %6.0f MB/s %5.2f CPU s/GB\n",
					rf, round+1, system, p.mbs, p.cpu, c.mbs, c.cpu)
			}
		}
		tell(fmt.Sprintf("produce, %d B, RF %d, acks=all", s.size, rf), produce)
		tell(fmt.Sprintf("consume, hot, RF %d", rf), consume)
	}
	return nil
}

// tell prints medians and their ratio.
func tell(what string, f map[string][]figure) {
	med := func(system string, of func(figure) float64) float64 {
		var v []float64
		for _, x := range f[system] {
			v = append(v, of(x))
		}
		if len(v) == 0 {
			return 0
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	mbs, cpu := func(x figure) float64 { return x.mbs }, func(x figure) float64 { return x.cpu }
	o, k := med("ours", mbs), med("kafka", mbs)
	oc, kc := med("ours", cpu), med("kafka", cpu)
	fmt.Printf("== %-32s ours %6.0f MB/s, kafka %6.0f: ratio %5.2f | ours %5.2f CPU s/GB, kafka %5.2f: ratio %5.2f\n",
		what, o, k, o/k, oc, kc, oc/kc)
}

// measure starts a cluster, fills it and reads it.
func measure(s settings, system string, rf int) (p, c figure, err error) {
	dir, err := os.MkdirTemp(s.dir, "peak-")
	if err != nil {
		return p, c, err
	}
	defer os.RemoveAll(dir)
	nodes := 3
	if rf == 1 {
		nodes = 1
	}
	state := filepath.Join(dir, "state")
	args := []string{"start", "-d", state, "-n", strconv.Itoa(nodes), "-p", "29092"}
	if system == "ours" {
		args = append(args, "-x", s.binary)
		if s.set != "" {
			args = append(args, s.set)
		}
	}
	out, err := s.command(args...)
	if err != nil {
		return p, c, err
	}
	defer s.command("stop", "-d", state)
	pids, err := s.pids(state)
	if err != nil {
		return p, c, err
	}
	addrs := strings.Split(strings.TrimSpace(out), ",")
	if err := create(addrs, s.parts, rf); err != nil {
		return p, c, err
	}
	if _, err := produce(s, addrs, pids, s.megs/10); err != nil { // warm-up
		return p, c, err
	}
	if p, err = produce(s, addrs, pids, s.megs); err != nil {
		return p, c, err
	}
	c, err = consume(s, addrs, pids, s.megs)
	return p, c, err
}

func (s settings) command(args ...string) (string, error) {
	cmd := exec.Command(s.kafka[0], append(slices.Clone(s.kafka[1:]), args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", s.kafka[0], args[0], err)
	}
	return string(out), nil
}

func (s settings) pids(state string) ([]int, error) {
	out, err := s.command("pids", "-d", state)
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 2 {
			pid, err := strconv.Atoi(f[1])
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

const topic = "peak"

func create(addrs []string, parts, rf int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := kadm.NewClient(cl).CreateTopic(ctx, int32(parts), int16(rf), nil, topic)
	if err != nil {
		return err
	}
	return r.Err
}

// during measures what the brokers spend while f moves megs megabytes.
func during(pids []int, megs int, f func() error) (figure, error) {
	before, err := proc.CPU(pids...)
	if err != nil {
		return figure{}, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return figure{}, err
	}
	took := time.Since(start).Seconds()
	after, err := proc.CPU(pids...)
	if err != nil {
		return figure{}, err
	}
	return figure{mbs: float64(megs) / took, cpu: (after - before).Seconds() / (float64(megs) / 1000)}, nil
}

func produce(s settings, addrs []string, pids []int, megs int) (figure, error) {
	value := make([]byte, s.size)
	for i := range value {
		value[i] = byte(i*7 + i/13)
	}
	each := megs * 1_000_000 / s.size / s.clients
	return during(pids, megs, func() error {
		var wg sync.WaitGroup
		var failed atomic.Pointer[error]
		for range s.clients {
			wg.Go(func() {
				if err := produceOne(addrs, value, each, &failed); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
		}
		wg.Wait()
		if e := failed.Load(); e != nil {
			return *e
		}
		return nil
	})
}

func produceOne(addrs []string, value []byte, n int, failed *atomic.Pointer[error]) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(1<<20-1000),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(200_000), kgo.UnknownTopicRetries(-1), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx := context.Background()
	for range n {
		cl.Produce(ctx, &kgo.Record{Topic: topic, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return cl.Flush(ctx)
}

func consume(s settings, addrs []string, pids []int, megs int) (figure, error) {
	want := megs * 1_000_000 / s.size
	return during(pids, megs, func() error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.FetchMaxBytes(50<<20),
			kgo.FetchMaxPartitionBytes(10<<20), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			return err
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		for got := 0; got < want; {
			fs := cl.PollFetches(ctx)
			if err := fs.Err0(); err != nil {
				return err
			}
			got += fs.NumRecords()
		}
		return nil
	})
}
