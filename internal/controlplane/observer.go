package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Observer follows a controller quorum by Kafka's Fetch and FetchSnapshot. What
// is committed it keeps in its directory and starts from there; what an Apache
// leader sends beyond the high watermark it holds in memory, so nothing on disk
// is ever truncated.
type Observer struct {
	o       ObserverOptions
	rt      *task.Runtime
	pub     *broadcast
	ready   *task.Signal // closed once it is
	forward *forwarder

	quit     context.CancelFunc
	done     *task.Signal
	err      error // why; set before done is closed
	closing  atomic.Bool
	closed   *task.Signal // closed at the end of Close
	group    *task.Group  // subscribers
	follower *follower
}

// follower is the loop of an observer: what its one task owns.
type follower struct {
	o     ObserverOptions
	rt    *task.Runtime
	pub   *broadcast
	ready *task.Signal
	dir   *projection.Dir
	rand  *rand.Rand

	img       *image.Image // committed, as in dir
	lastStamp model.Millis
	tail      []byte       // batches behind img that may not be committed
	end       model.Offset // after tail
	epoch     model.Epoch  // of the last record before end

	lead       leadership // as far as it is known
	hw         model.Offset
	candidates []string // addresses to try when no leader is known
	next       int

	since, size   int64 // as in checkpointing
	checkpointing bool
	checkpoints   *task.Queue[written]
	group         *task.Group // of checkpoints
}

func (o *ObserverOptions) setDefaults() {
	if o.FetchTimeout <= 0 {
		o.FetchTimeout = 2 * time.Second
	}
	if o.SnapshotBytes <= 0 {
		o.SnapshotBytes = 20 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS
	}
	o.Log = o.Log.With("observer", int(o.NodeID))
}

// StartObserver loads what o.Dir holds and starts to follow the quorum. It
// returns before a leader is found.
func StartObserver(ctx context.Context, o ObserverOptions) (*Observer, error) {
	o.setDefaults()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rt := o.Runtime
	f := &follower{
		o: o, rt: rt, ready: rt.NewSignal(), checkpoints: task.NewQueue[written](rt), group: rt.NewGroup(),
		rand: random(rt, o.Seed, o.NodeID),
		lead: leadership{leader: model.NoBroker, epoch: model.NoEpoch}, hw: model.UnknownOffset,
	}
	for _, v := range o.Voters {
		f.candidates = append(f.candidates, address(v.Host, v.Port))
	}
	f.candidates = append(f.candidates, o.Bootstrap...)
	if len(f.candidates) == 0 {
		return nil, fmt.Errorf("start observer %d: neither voters nor bootstrap servers are known", o.NodeID)
	}
	if err := f.load(); err != nil {
		return nil, fmt.Errorf("start observer %d: %w", o.NodeID, err)
	}
	f.next = f.rand.IntN(len(f.candidates))
	f.pub = newBroadcast(rt, f.img)
	run, quit := rt.WithCancel(context.Background())
	ob := &Observer{
		o: o, rt: rt, pub: f.pub, ready: f.ready, quit: quit, done: rt.NewSignal(), closed: rt.NewSignal(), group: rt.NewGroup(), follower: f,
	}
	ob.forward = newForwarder(rt, o.NodeID, f.pub, ob.done, o.Dial)
	rt.Go("observer", func() {
		ob.err = f.run(run)
		ob.done.Close()
	})
	return ob, nil
}

// Ready is closed once the observer has applied what its leader had committed
// when it was first reached.
func (o *Observer) Ready() <-chan struct{} { return o.ready.C() }

// ReadySignal is Ready for tasks of the node.
func (o *Observer) ReadySignal() *task.Signal { return o.ready }

// Image returns the newest committed image.
func (o *Observer) Image() *image.Image { return o.pub.img.Load() }

// Subscribe is described at Source.
func (o *Observer) Subscribe(fn func(*image.Image)) (stop func()) {
	return o.pub.subscribe(o.done, o.group, fn)
}

// Active returns the active controller and its epoch.
func (o *Observer) Active() (model.BrokerID, model.Epoch) {
	l := o.pub.lead.Load()
	return l.leader, l.epoch
}

// Forward is described at Source.
func (o *Observer) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return o.forward.forward(ctx, req)
}

// Done is closed when the observer has failed or was closed.
func (o *Observer) Done() <-chan struct{} { return o.done.C() }

// DoneSignal is Done for tasks of the node.
func (o *Observer) DoneSignal() *task.Signal { return o.done }

// Err says why Done was closed; nil after a plain Close, and before.
func (o *Observer) Err() error {
	if o.done.Closed() {
		return o.err
	}
	return nil
}

// Close ends the observer and all its tasks.
func (o *Observer) Close() error {
	if !o.closing.CompareAndSwap(false, true) {
		o.rt.Wait(nil, task.Forever, o.closed)
		return nil
	}
	defer o.closed.Close()
	o.quit()
	o.rt.Wait(nil, task.Forever, o.done)
	o.forward.close()
	o.group.Wait()
	o.follower.group.Wait()
	return errors.Join(o.err, o.follower.dir.Close())
}

// load opens the directory and builds the image that it adds up to. A directory
// that cannot be read is begun anew: all of it can be fetched again.
func (f *follower) load() error {
	var err error
	if f.dir, err = projection.Open(f.o.FS, f.o.Dir); err != nil {
		return err
	}
	if err := f.loadImage(); err != nil {
		f.o.Log.Warn("metadata on disk cannot be read, it is fetched again", "err", err)
		if err := f.dir.Clear(); err != nil {
			f.dir.Close()
			return err
		}
		f.img, f.lastStamp = image.New(), 0
	}
	f.end, f.epoch = f.img.Read(), f.dir.Epoch()
	return nil
}

func (f *follower) loadImage() error {
	f.img = image.New()
	if id, ok := f.dir.Newest(); ok {
		var err error
		if f.img, f.lastStamp, err = projection.LoadImage(f.o.FS, f.o.Dir, id); err != nil {
			return err
		}
	}
	view := f.dir.View()
	for f.img.Read() < view.End() {
		b, err := view.Read(f.img.Read(), pieceBytes)
		if err != nil {
			return err
		}
		if err := f.fold(b); err != nil {
			return err
		}
	}
	return nil
}

// fold moves the image over whole committed batches that continue it.
func (f *follower) fold(b []byte) error {
	n, err := metalog.DecodeBatches(b, func(batch metalog.Batch) error {
		if batch.Base != f.img.Read() {
			return fmt.Errorf("batch at %d does not follow %d", batch.Base, f.img.Read())
		}
		f.img = projection.Fold(f.img, batch, batch.End, batch.Epoch)
		f.lastStamp = batch.Timestamp
		return nil
	})
	if err == nil && n != len(b) {
		err = fmt.Errorf("%d of %d bytes are whole batches", n, len(b))
	}
	if err != nil {
		return fmt.Errorf("metadata at %d: %w", f.img.Read(), err)
	}
	f.since += int64(n)
	return nil
}

// run follows one node after the other until ctx ends. An error is one of the
// local disk, or a log that this program cannot read.
func (f *follower) run(ctx context.Context) error {
	pause, quiet := redialMin, f.rt.Now()
	for ctx.Err() == nil {
		followed, err := f.follow(ctx, f.target())
		if fatal := new(fatalError); errors.As(err, &fatal) {
			return fatal.err
		}
		if ctx.Err() != nil {
			return nil
		}
		if now := f.rt.Now(); err != nil && !now.Before(quiet) {
			quiet = now.Add(lostQuiet)
			f.lost(err)
		}
		if followed {
			pause = redialMin
			continue
		}
		f.lostLeader()
		if !f.rt.Sleep(ctx, pause/2+time.Duration(f.rand.Int64N(int64(pause)))) {
			return nil
		}
		pause = min(2*pause, f.o.FetchTimeout/4)
	}
	return nil
}

// lostQuiet is how long nothing more is said of controllers that are not reached:
// several tries a second may fail, each in its own words.
const lostQuiet = 5 * time.Second

// lost says why a controller is not followed any more.
func (f *follower) lost(err error) {
	if errors.Is(err, model.ErrInconsistentClusterID) {
		f.o.Log.Warn("the controllers belong to another cluster than this directory was formatted for", "cluster", f.o.ClusterID)
		return
	}
	f.o.Log.Info("controller not followed any more", "err", err)
}

// fatalError ends the observer.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }

// target returns the address to fetch from: the leader's, or the next candidate.
func (f *follower) target() string {
	if f.lead.leader != model.NoBroker && f.lead.addr != "" {
		return f.lead.addr
	}
	f.next = (f.next + 1) % len(f.candidates)
	return f.candidates[f.next]
}

func (f *follower) lostLeader() {
	f.lead.leader, f.lead.addr = model.NoBroker, ""
	f.pub.setLead(f.lead)
}

// follow fetches from one node until it fails or another one leads. It reports
// whether the next try is to be made at once.
func (f *follower) follow(ctx context.Context, addr string) (bool, error) {
	client, err := transport.Dial(ctx, addr, transport.ClientOptions{DialTimeout: f.o.FetchTimeout, Dial: f.o.Dial, Runtime: f.rt})
	if err != nil {
		return false, err
	}
	defer client.Close()
	version, err := f.fetchVersion(ctx, client)
	if err != nil {
		return false, err
	}
	for ctx.Err() == nil {
		if err := f.checkpoint(); err != nil {
			return false, &fatalError{err}
		}
		again, err := f.fetch(ctx, client, addr, version)
		if err != nil || !again {
			return err == nil && f.lead.addr != "", err
		}
	}
	return false, nil
}

// fetch sends one Fetch and applies the answer. False without an error says that
// another node leads.
func (f *follower) fetch(ctx context.Context, client *transport.Client, addr string, version int16) (again bool, err error) {
	ask, cancel := f.rt.WithTimeout(ctx, f.o.FetchTimeout)
	defer cancel()
	resp, frame, err := exchange(ask, client, f.fetchRequest(version))
	if err != nil {
		return false, err
	}
	defer frame.Release()
	p, err := fetchPartition(resp.(*kmsg.FetchResponse))
	if err != nil {
		return false, err
	}
	if !f.adopt(p, resp.(*kmsg.FetchResponse)) {
		return false, fmt.Errorf("%s is behind epoch %d", addr, f.lead.epoch)
	}
	if f.lead.addr != addr {
		return false, nil
	}
	return true, f.take(ctx, client, p)
}

// exchange sends a request and decodes the answer, whose byte fields lie in the
// frame: the caller releases it when done with them.
func exchange(ctx context.Context, client *transport.Client, req kmsg.Request) (kmsg.Response, *transport.Frame, error) {
	frame, err := client.DoFrame(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err := resp.ReadFrom(frame.Body()); err != nil {
		frame.Release()
		return nil, nil, fmt.Errorf("decode the answer to api key %d: %w", req.Key(), err)
	}
	return resp, frame, nil
}

// ask sends a request and gives the node the fetch timeout to answer.
func (f *follower) ask(ctx context.Context, client *transport.Client, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := f.rt.WithTimeout(ctx, f.o.FetchTimeout)
	defer cancel()
	return client.Do(ctx, req)
}
