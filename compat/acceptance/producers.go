package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// producer writes a text with acks=all and idempotence; an error means that a
// record was not acknowledged.
type producer interface {
	name() string
	produce(ctx context.Context, t *text) error
}

func producersOf(s settings, c *cluster) []producer {
	out := []producer{kcat{c}, franz{c}}
	if s.kafka != "" {
		out = append(out, console{c, strings.Fields(s.kafka)})
	}
	return out
}

// kcat writes to partition 0.
type kcat struct{ c *cluster }

func (kcat) name() string { return "kcat" }

func (p kcat) produce(ctx context.Context, t *text) error {
	// -E: kcat counts a broker that was killed as down until it has a reason to
	// connect to it again, and would give up once that holds for all.
	return pipe(ctx, t, "", "kcat", "-E", "-P", "-b", p.c.bootstrap(), "-t", topic, "-p", "0",
		"-X", "enable.idempotence=true", "-X", "acks=all", "-X", "message.timeout.ms=300000",
		"-X", "retry.backoff.ms=50", "-X", "topic.metadata.refresh.fast.interval.ms=50", "-X", "log_level=0")
}

// console is Apache's console producer; its constant key leads to partition 2.
type console struct {
	c     *cluster
	kafka []string
}

func (console) name() string { return "console" }

func (p console) produce(ctx context.Context, t *text) error {
	args := append(append([]string{}, p.kafka[1:]...), "tool", "console-producer", "--bootstrap-server", p.c.bootstrap(), "--topic", topic,
		"--command-property", "acks=all", "--command-property", "enable.idempotence=true",
		"--command-property", "delivery.timeout.ms=300000", "--command-property", "linger.ms=5",
		"--reader-property", "parse.key=true", "--reader-property", "key.separator=|")
	return pipe(ctx, t, keyFor(2, 3)+"|", p.kafka[0], args...)
}

// pipe feeds the text to a program line by line. Any complaint about a delivery
// counts as a failure.
func pipe(ctx context.Context, t *text, prefix, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var errs bytes.Buffer
	cmd.Stderr, cmd.Stdout = &errs, io.Discard
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	w := bufio.NewWriter(in)
	for n := 0; ; n++ {
		line, ok := t.next()
		if !ok {
			break
		}
		if _, err := w.WriteString(prefix + line + "\n"); err != nil {
			break // the program ended; Wait says why
		}
		if n%100 == 99 {
			w.Flush()
		}
	}
	w.Flush()
	in.Close()
	err = cmd.Wait()
	for _, line := range strings.Split(errs.String(), "\n") {
		if strings.Contains(line, "Delivery failed") || strings.Contains(line, "Error when sending") ||
			strings.Contains(line, "delivery failed") {
			return fmt.Errorf("%s said: %s", name, line)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, tail(errs.String()))
	}
	return nil
}

func tail(s string) string {
	if len(s) > 600 {
		return s[len(s)-600:]
	}
	return s
}

// franz is franz-go; it writes to partition 1.
type franz struct{ c *cluster }

func (franz) name() string { return "franz" }

func (p franz) produce(ctx context.Context, t *text) error {
	cl, err := newClient(p.c, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(50_000), kgo.RecordDeliveryTimeout(5*time.Minute))
	if err != nil {
		return err
	}
	defer cl.Close()
	var mu sync.Mutex
	var failed error
	for {
		line, ok := t.next()
		if !ok {
			break
		}
		cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: 1, Value: []byte(line)}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	return failed
}

// newClient is a client that looks for a new leader within 20 ms; a slower one
// would measure itself.
func newClient(c *cluster, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.bootstrap(), ",")...),
		kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.RecordRetries(1 << 30), kgo.UnknownTopicRetries(-1), kgo.DialTimeout(time.Second),
		// A broker that dies under a new connection is not one that wants SASL.
		kgo.AlwaysRetryEOF(),
	}, opts...)...)
}

// probe writes a record to every partition all the time, and tells how long it
// takes from a kill to the next record that is sent and acknowledged after it.
type probe struct {
	cl     *kgo.Client
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	armed  map[int]time.Time
	waits  map[int]chan time.Duration
	counts map[string]int
	errs   error
}

func startProbe(c *cluster, partitions int) (*probe, error) {
	cl, err := newClient(c, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(5*time.Minute))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &probe{cl: cl, cancel: cancel, armed: map[int]time.Time{}, waits: map[int]chan time.Duration{}, counts: map[string]int{}}
	for part := range partitions {
		p.wg.Go(func() { p.run(ctx, part) })
	}
	return p, nil
}

func (p *probe) run(ctx context.Context, part int) {
	name := fmt.Sprintf("probe%d", part)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		sent := time.Now()
		value := fmt.Sprintf("%s:%09d", name, n)
		p.mu.Lock()
		p.counts[name] = n + 1
		p.mu.Unlock()
		p.cl.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: int32(part), Value: []byte(value)},
			func(_ *kgo.Record, err error) { p.acked(part, sent, err) })
	}
}

func (p *probe) acked(part int, sent time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.errs = errors.Join(p.errs, err)
		return
	}
	if at, ok := p.armed[part]; ok && sent.After(at) {
		delete(p.armed, part)
		p.waits[part] <- time.Since(at)
	}
}

// arm starts the watch of one partition: now is the time of the kill.
func (p *probe) arm(part int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed[part] = time.Now()
	p.waits[part] = make(chan time.Duration, 1)
}

func (p *probe) wait(part int, limit time.Duration) (time.Duration, error) {
	p.mu.Lock()
	ch := p.waits[part]
	p.mu.Unlock()
	select {
	case d := <-ch:
		return d, nil
	case <-time.After(limit):
		return 0, fmt.Errorf("waited %v", limit)
	}
}

// stop ends the probe and returns how much it wrote, by name.
func (p *probe) stop() map[string]int {
	p.cancel()
	p.wg.Wait()
	p.cl.Flush(context.Background())
	p.cl.Close()
	return p.counts
}
