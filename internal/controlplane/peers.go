package controlplane

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/transport"
)

const (
	redialMin   = 10 * time.Millisecond
	redialMax   = 500 * time.Millisecond
	dialTimeout = 2 * time.Second
	peerTimeout = 5 * time.Second // for an answer to raft messages
	// maxQueued bounds the messages that wait for a peer. Raft sends again what
	// is dropped.
	maxQueued = 4096
	// installTimeout bounds the download of a checkpoint by a peer.
	installTimeout = 10 * time.Minute
)

// peer keeps a connection to one other voter and sends it raft messages. The
// end of the connection is news: a dial that is refused right after it says
// that the process is gone (R13.7).
type peer struct {
	id        model.BrokerID
	addr      string
	clusterID string
	self      model.BrokerID
	dial      Dial
	post      func(any) bool // hands an event to the loop

	mu    sync.Mutex
	queue []*pb.Message
	wake  chan struct{}
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// Events of a peer.
type (
	// peerUp says that a connection to the peer stands.
	peerUp struct{ id model.BrokerID }
	// peerDown says that a dial failed or the connection ended; gone, that
	// nothing listens there any more.
	peerDown struct {
		id   model.BrokerID
		gone bool
	}
	// snapshotSent says how an installation went.
	snapshotSent struct {
		id model.BrokerID
		ok bool
	}
)

func address(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func startPeer(id model.BrokerID, addr string, o Options, post func(any) bool) *peer {
	ctx, cancel := context.WithCancel(context.Background())
	p := &peer{
		id: id, addr: addr, clusterID: o.ClusterID, self: o.NodeID, dial: o.Dial, post: post,
		wake: make(chan struct{}, 1), stop: cancel,
	}
	p.done.Go(func() { p.run(ctx) })
	return p
}

// send queues messages; false says that some were dropped.
func (p *peer) send(m *pb.Message) bool {
	p.mu.Lock()
	full := len(p.queue) >= maxQueued
	if !full {
		p.queue = append(p.queue, m)
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return !full
}

func (p *peer) take() []*pb.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.queue
	p.queue = nil
	return out
}

// run dials, sends until the connection ends, and dials again.
func (p *peer) run(ctx context.Context) {
	delay := redialMin
	for ctx.Err() == nil {
		client, err := transport.Dial(ctx, p.addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: p.dial})
		if err != nil {
			p.take() // stale by the time that the peer is back
			p.post(peerDown{p.id, transport.Refused(err)})
			if !sleep(ctx, delay) {
				return
			}
			delay = min(2*delay, redialMax)
			continue
		}
		delay = redialMin
		p.post(peerUp{p.id})
		p.serve(ctx, client)
		client.Close()
	}
}

// sleep waits; false says that ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve sends what is queued, one request at a time, until the connection ends.
func (p *peer) serve(ctx context.Context, client *transport.Client) {
	for {
		if ms := p.take(); len(ms) > 0 {
			if !p.deliver(ctx, client, ms) {
				p.post(peerDown{p.id, false})
				return
			}
			continue
		}
		select {
		case <-p.wake:
		case <-client.Closed():
			p.post(peerDown{p.id, false})
			return
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends messages in requests of bounded size.
func (p *peer) deliver(ctx context.Context, client *transport.Client, ms []*pb.Message) bool {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	for len(ms) > 0 {
		n, size := 0, 0
		for n < len(ms) && n < maxMessages && (n == 0 || size < maxRaftRequest) {
			for _, e := range ms[n].GetEntries() {
				size += len(e.GetData())
			}
			n++
		}
		resp, err := client.Do(ctx, &raftRequest{key: keyRaft, clusterID: p.clusterID, from: p.self, messages: ms[:n]})
		if err != nil || resp.(*raftResponse).code != 0 {
			return false
		}
		ms = ms[n:]
	}
	return true
}

// maxRaftRequest is the size from which a request takes no more messages.
const maxRaftRequest = 8 << 20

// install has the peer fetch the checkpoint that m names and step m. It uses a
// connection of its own: the answer comes when the checkpoint is at hand.
func (p *peer) install(m *pb.Message) {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	stop := p.stop
	p.stop = func() { cancel(); stop() }
	p.done.Go(func() {
		defer cancel()
		p.post(snapshotSent{p.id, p.offer(ctx, m)})
	})
}

func (p *peer) offer(ctx context.Context, m *pb.Message) bool {
	client, err := transport.Dial(ctx, p.addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: p.dial})
	if err != nil {
		return false
	}
	defer client.Close()
	resp, err := client.Do(ctx, &raftRequest{key: keyInstallSnapshot, clusterID: p.clusterID, from: p.self, messages: []*pb.Message{m}})
	return err == nil && resp.(*raftResponse).code == 0
}

// peers are the connections to all other voters. The loop owns it.
type peers struct {
	byID    map[model.BrokerID]*peer
	retired []*peer // stopped, for they moved or vote no more
}

// send hands messages to their peers; unreachable is called for a peer whose
// message was dropped.
func (ps *peers) send(ms []*pb.Message, unreachable func(model.BrokerID)) {
	for _, m := range ms {
		id := quorum.NodeID(m.GetTo())
		p := ps.byID[id]
		switch {
		case p == nil:
			unreachable(id)
		case m.GetType() == pb.MsgSnap:
			p.install(m)
		case !p.send(m):
			unreachable(id)
		}
	}
}

// retire stops a peer, which may be nil; close waits for it.
func (ps *peers) retire(p *peer) {
	if p != nil {
		p.stop()
		ps.retired = append(ps.retired, p)
	}
}

func (ps *peers) close() {
	for _, p := range ps.byID {
		p.stop() // all at once: each may have to give a dial up
	}
	for _, p := range ps.byID {
		p.done.Wait()
	}
	for _, p := range ps.retired {
		p.done.Wait()
	}
}
