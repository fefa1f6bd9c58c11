package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/bench/history"
	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/bench/proc"
)

// startUp starts a formatted cluster and waits for the first acknowledged record
// of a topic with a replica on each node. The client knocks from the first moment
// on.
func startUp(ctx context.Context, b *bed) (figures, error) {
	if err := b.Unused(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lifecycleEnd)
	defer cancel()
	start, started := time.Now(), make(chan error, 1)
	go func() { started <- b.RestartAll() }()
	err := load.First(ctx, b.Brokers, len(b.Brokers))
	took := time.Since(start)
	if late := <-started; err != nil { // the command gives up on a port that opens late
		return nil, errors.Join(err, late)
	}
	pids, err := b.pids()
	if err != nil {
		return nil, err
	}
	spent, err := proc.Take(pids...)
	if err != nil {
		return nil, err
	}
	return figures{"seconds": took.Seconds(), "cpu_seconds": spent.CPU.Seconds(), "peak_rss_mb": mb(spent.PeakRSS)}, nil
}

// lifecycleEnd is when a cluster that does not come back has failed.
const lifecycleEnd = 10 * time.Minute

// tick is the pace at which partitions are watched in a failover.
const tick = 10 * time.Millisecond

// failover kills leaders, in turns one that is not the active controller and one
// that is, and measures until all that they led acknowledges again.
func failover(ctx context.Context, b *bed) (figures, error) {
	o := load.Options{Topic: "load", Partitions: 6, ReplicationFactor: 3}
	if err := b.create(ctx, o); err != nil {
		return nil, err
	}
	w, err := load.NewWatch(ctx, b.Brokers, o.Topic, o.Partitions, tick)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	outages := map[bool][]float64{}
	for n := range b.s.kills {
		controllerToo := n%2 == 1
		d, err := b.strike(ctx, w, o, controllerToo)
		if err != nil {
			return nil, fmt.Errorf("kill %d: %w", n+1, err)
		}
		outages[controllerToo] = append(outages[controllerToo], d.Seconds()*1000)
	}
	f := figures{}
	for too, name := range map[bool]string{false: "failover_ms", true: "failover_controller_ms"} {
		if list := outages[too]; len(list) > 0 {
			f[name] = history.Median(list)
			for _, ms := range list {
				f["failover_max_ms"] = max(f["failover_max_ms"], ms)
			}
		}
	}
	return f, nil
}

// strike kills one leader, waits until the rest leads and acknowledges, and brings
// the cluster back to what it was.
func (b *bed) strike(ctx context.Context, w *load.Watch, o load.Options, controllerToo bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lifecycleEnd)
	defer cancel()
	led, controller, err := load.Leaders(ctx, b.Brokers, o.Topic)
	if err != nil {
		return 0, err
	}
	id := victim(led, controller, controllerToo)
	if id == 0 {
		return 0, fmt.Errorf("no leader to kill: %v are led, %d is the active controller", led, controller)
	}
	if _, err := w.Outage(ctx, time.Now(), led[id]); err != nil { // all acknowledge before
		return 0, err
	}
	at, err := b.Strike(id)
	if err != nil {
		return 0, err
	}
	d, err := w.Outage(ctx, at, led[id])
	if err != nil {
		return 0, err
	}
	if err := b.Restart(id); err != nil {
		return 0, err
	}
	if err := load.AwaitInSync(ctx, b.Brokers, o.Topic, o.Partitions*3, o.Partitions*3); err != nil {
		return 0, err
	}
	if err := load.Prefer(ctx, b.Brokers, o.Topic); err != nil {
		return 0, err
	}
	return d, pause(ctx, afterKill)
}

// afterKill is how long a cluster rests between kills.
const afterKill = time.Second

// victim chooses a node that leads partitions: the active controller or another
// one, the lowest of them. It returns 0 if there is none.
func victim(led map[int][]int32, controller int, controllerToo bool) int {
	for _, id := range slices.Sorted(maps.Keys(led)) {
		if len(led[id]) > 0 && (id == controller) == controllerToo {
			return id
		}
	}
	return 0
}

// recoveryRate is the load during a recovery, in records of 1 KiB a second.
const recoveryRate = 2000

// recovery kills a node that holds much while records arrive, and starts it again
// on what it has; until all its replicas are in the ISR.
func recovery(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(1024, 3, "all")
	o.Topic, o.Partitions, o.Records = "load", 6, int64(b.s.recoveryMB)*1_000_000/1024
	if err := b.room(3 * int64(b.s.recoveryMB) * 1_100_000); err != nil {
		return nil, err
	}
	if err := b.warmOften(ctx, o); err != nil {
		return nil, err
	}
	if err := b.create(ctx, o); err != nil {
		return nil, err
	}
	if _, err := b.load(ctx, o); err != nil {
		return nil, err
	}
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := load.Run(loaded, load.Options{Brokers: b.Brokers, Topic: o.Topic, Producers: 1, Rate: recoveryRate, Duration: 2 * lifecycleEnd})
		ended <- err
	}()
	f, err := b.recover(ctx, o)
	if loaded.Err() == nil {
		select {
		case early := <-ended:
			err = errors.Join(err, fmt.Errorf("the load ended early: %w", early))
		default:
			stop()
			<-ended // cut short, which is its error
		}
	}
	return f, err
}

// room fails if so many bytes more do not fit.
func (b *bed) room(bytes int64) error {
	free, err := b.Free()
	if err == nil && free < bytes {
		err = fmt.Errorf("%.0f MB are needed and %.0f are free: name another directory or ask for less", mb(bytes), mb(free))
	}
	return err
}

func (b *bed) recover(ctx context.Context, o load.Options) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, lifecycleEnd)
	defer cancel()
	if err := pause(ctx, afterKill); err != nil {
		return nil, err
	}
	if _, err := b.Strike(lost); err != nil {
		return nil, err
	}
	if err := load.AwaitInSync(ctx, b.Brokers[:lost-1], o.Topic, 0, o.Partitions*2); err != nil {
		return nil, err
	}
	start, started := time.Now(), make(chan error, 1)
	go func() { started <- b.Restart(lost) }()
	err := load.AwaitInSync(ctx, b.Brokers, o.Topic, o.Partitions*3, o.Partitions*3)
	took := time.Since(start)
	if late := <-started; err != nil { // the command gives up on a port that opens late
		return nil, errors.Join(err, late)
	}
	nodes, err := b.Processes()
	if err != nil {
		return nil, err
	}
	spent, err := proc.Take(nodes[lost])
	if err != nil {
		return nil, err
	}
	return figures{
		"seconds": took.Seconds(), "mb_per_second": float64(b.s.recoveryMB) / took.Seconds(), "cpu_seconds": spent.CPU.Seconds(),
		"peak_rss_mb": mb(spent.PeakRSS), "io_read_mb": mb(spent.Read),
	}, nil
}
