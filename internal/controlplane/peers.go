package controlplane

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/task"
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
	rt        *task.Runtime
	id        model.BrokerID
	addr      string
	clusterID string
	self      model.BrokerID
	dial      Dial
	post      func(any) bool // hands an event to the loop

	queue *task.Queue[*pb.Message]
	stop  context.CancelFunc
	tasks *task.Group
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
	rt := o.Runtime
	ctx, cancel := rt.WithCancel(context.Background())
	p := &peer{
		rt: rt, id: id, addr: addr, clusterID: o.ClusterID, self: o.NodeID, dial: o.Dial, post: post,
		queue: task.NewQueue[*pb.Message](rt), stop: cancel, tasks: rt.NewGroup(),
	}
	p.tasks.Go("controller peer", func() { p.run(ctx) })
	return p
}

// send queues a message; false says that it was dropped. Only the loop sends.
func (p *peer) send(m *pb.Message) bool {
	return p.queue.Len() < maxQueued && p.queue.Post(m)
}

func (p *peer) connect(ctx context.Context) (*transport.Client, error) {
	return transport.Dial(ctx, p.addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: p.dial, Runtime: p.rt})
}

// run dials, sends until the connection ends, and dials again.
func (p *peer) run(ctx context.Context) {
	delay := redialMin
	for ctx.Err() == nil {
		client, err := p.connect(ctx)
		if err != nil {
			p.queue.Take(nil) // stale by the time that the peer is back
			p.post(peerDown{p.id, transport.Refused(err)})
			if !p.rt.Sleep(ctx, delay) {
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

// serve sends what is queued, one request at a time, until the connection ends.
func (p *peer) serve(ctx context.Context, client *transport.Client) {
	w, closed := p.rt.NewWaiter(), client.ClosedSignal()
	var ms []*pb.Message
	for ctx.Err() == nil {
		if ms = p.queue.Take(ms); len(ms) > 0 {
			if !p.deliver(ctx, client, ms) {
				p.post(peerDown{p.id, false})
				return
			}
			continue
		}
		if w.Wait(ctx, task.Forever, p.queue.Wake, closed); closed.Closed() {
			p.post(peerDown{p.id, false})
			return
		}
	}
}

// deliver sends messages in requests of bounded size.
func (p *peer) deliver(ctx context.Context, client *transport.Client, ms []*pb.Message) bool {
	ctx, cancel := p.rt.WithTimeout(ctx, peerTimeout)
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
	ctx, cancel := p.rt.WithTimeout(context.Background(), installTimeout)
	stop := p.stop
	p.stop = func() { cancel(); stop() }
	p.tasks.Go("checkpoint offer", func() {
		defer cancel()
		p.post(snapshotSent{p.id, p.offer(ctx, m)})
	})
}

func (p *peer) offer(ctx context.Context, m *pb.Message) bool {
	client, err := p.connect(ctx)
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
	for _, id := range slices.Sorted(maps.Keys(ps.byID)) {
		ps.retire(ps.byID[id]) // all at once: each may have to give a dial up
	}
	for _, p := range ps.retired {
		p.tasks.Wait()
	}
}
