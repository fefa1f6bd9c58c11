package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/sessions"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// fetchCall is one Fetch request from its frame to its answer. It is also the
// response: its Layout reads the planned ranges when the connection is ready
// to send them, the only place where record bytes leave.
type fetchCall struct {
	d       *DataPath
	r       *transport.Request
	in      kmsg.FetchRequest
	img     *image.Image
	replica model.BrokerID
	turn    *sessions.Turn
	keys    []sessions.Key // parallel to work.Parts
	work    Fetch
	results []sessions.Result
	resp    wire.FetchResponse
	// Reused for the answer.
	parts    []wire.FetchPartition
	included []bool
}

// Fetch serves key 1, versions 4 to 18, for followers and consumers (R3, R9).
func (d *DataPath) Fetch(r *transport.Request) {
	c, _ := d.calls.Get().(*fetchCall)
	if c == nil {
		c = &fetchCall{d: d}
	}
	c.r, c.img = r, d.Image()
	c.in = kmsg.FetchRequest{Version: r.Header.Version}
	c.in.Default()
	if err := c.in.ReadFrom(r.Body); err != nil {
		r.CloseConn(fmt.Errorf("decode fetch request: %w", err))
		return
	}
	c.replica = model.BrokerID(c.in.ReplicaID)
	if c.in.Version >= 15 {
		c.replica = model.BrokerID(c.in.ReplicaState.ID)
	}
	if err := c.begin(); err != model.None {
		c.resp = wire.FetchResponse{Version: c.in.Version, Err: err}
		r.Reply(topLevel{&c.resp})
		return
	}
	maxBytes := int64(c.in.MaxBytes)
	if c.replica < 0 {
		maxBytes = min(maxBytes, int64(d.FetchMaxBytes))
	}
	c.work.Replica, c.work.MaxBytes = c.replica, maxBytes
	c.work.MinBytes = min(int64(c.in.MinBytes), maxBytes)
	c.work.MaxWait = time.Duration(c.in.MaxWaitMillis) * time.Millisecond
	c.work.Done = c.done
	if c.work.MinBytes > 1 {
		c.locate()
	}
	d.Replicas.Fetch(&c.work)
}

// topLevel is an answer without partitions.
type topLevel struct{ resp *wire.FetchResponse }

func (t topLevel) Layout(l *transport.Layout) error { t.resp.Layout(l); return nil }

// begin opens the turn of the fetch session and makes a part of each of its
// partitions (R3.23).
func (c *fetchCall) begin() model.Error {
	req := sessions.Request{ID: c.in.SessionID, Epoch: c.in.SessionEpoch, UsesIDs: c.in.Version >= 13,
		Privileged: c.replica >= 0, Wishes: c.wishes()}
	if c.in.Version < 7 {
		req.ID, req.Epoch = 0, sessions.FinalEpoch
	}
	for i := range c.in.ForgottenTopics {
		t := &c.in.ForgottenTopics[i]
		for _, p := range t.Partitions {
			req.Forget = append(req.Forget, c.key(t.Topic, t.TopicID, p))
		}
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	turn, err := c.d.sessions.Begin(c.d.Now(), req)
	if err != model.None {
		return err
	}
	c.turn = turn
	c.work.Parts, c.keys = c.work.Parts[:0], c.keys[:0]
	c.stand()
	for _, p := range turn.Partitions() {
		c.keys = append(c.keys, p.Key)
		c.work.Parts = append(c.work.Parts, FetchPart{})
		c.part(p, &c.work.Parts[len(c.work.Parts)-1])
	}
	return model.None
}

// stand tells the loop which session of a follower this is, so that it watches
// what is idle.
func (c *fetchCall) stand() {
	c.work.Standing, c.work.Left = nil, c.work.Left[:0]
	data := c.turn.Data()
	if c.replica < 0 || data == nil {
		return
	}
	if *data == nil {
		*data = &Standing{}
	}
	c.work.Standing = (*data).(*Standing)
	c.work.Epoch = c.replicaEpoch()
	for _, p := range c.turn.Forgotten() {
		if seat, ok := p.Data.(*Seat); ok {
			c.work.Left = append(c.work.Left, seat)
		}
	}
}

func (c *fetchCall) replicaEpoch() model.BrokerEpoch {
	if c.in.Version >= 15 {
		return model.BrokerEpoch(c.in.ReplicaState.Epoch)
	}
	return model.UnknownBrokerEpoch
}

// key names a partition as the version of the request does.
func (c *fetchCall) key(topic string, id model.UUID, partition int32) sessions.Key {
	if c.in.Version >= 13 {
		return sessions.Key{TopicID: id, Partition: partition}
	}
	return sessions.Key{Topic: topic, Partition: partition}
}

func (c *fetchCall) wishes() []sessions.Partition {
	n := 0
	for i := range c.in.Topics {
		n += len(c.in.Topics[i].Partitions)
	}
	out := make([]sessions.Partition, 0, n)
	for i := range c.in.Topics {
		t := &c.in.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			out = append(out, sessions.Partition{Key: c.key(t.Topic, t.TopicID, p.Partition), Wish: sessions.Wish{
				Offset: model.Offset(p.FetchOffset), LastEpoch: model.Epoch(p.LastFetchedEpoch),
				LeaderEpoch: model.Epoch(p.CurrentLeaderEpoch), LogStart: model.Offset(p.LogStartOffset),
				MaxBytes: p.PartitionMaxBytes,
			}})
		}
	}
	return out
}

// part finds the replica of one partition and says what is wanted of it. A
// session remembers the replica, so that a turn costs no look-up.
func (c *fetchCall) part(p *sessions.Partition, out *FetchPart) {
	seat, _ := p.Data.(*Seat)
	if seat == nil {
		seat = &Seat{entry: p}
		p.Data = seat
	}
	if c.work.Standing != nil {
		out.Seat = seat
	}
	h := seat.hosted
	if h == nil || h.Gone.Load() || c.in.Version < 13 && c.renamed(p.Key.Topic, h) {
		var err model.Error
		if c.in.Version >= 13 {
			h, err = c.d.placeByID(c.img, p.Key.TopicID, p.Key.Partition)
		} else {
			h, err = c.d.placeByName(c.img, p.Key.Topic, p.Key.Partition)
		}
		if err != model.None {
			seat.hosted = nil
			c.refuse(p.Key, err, out)
			return
		}
		seat.hosted = h
	}
	out.Hosted = h
	out.Request = partition.FetchRequest{
		Replica: c.replica, ReplicaEpoch: model.UnknownBrokerEpoch, LeaderEpoch: p.Wish.LeaderEpoch,
		Offset: p.Wish.Offset, Pos: model.UnknownPosition, LastEpoch: p.Wish.LastEpoch, LogStart: p.Wish.LogStart,
		Committed: c.in.IsolationLevel == 1, MaxBytes: p.Wish.MaxBytes,
		FollowerOK: c.in.Version >= 11, RackAware: c.d.RackAware && c.in.Version >= 11, Rack: c.in.Rack,
	}
	if c.replica < 0 {
		out.Request.Replica = model.NoBroker
	} else {
		out.Request.ReplicaEpoch = c.replicaEpoch()
	}
}

// renamed says that the name of a replica's topic belongs to another one by now.
func (c *fetchCall) renamed(topic string, h *Hosted) bool {
	t := c.img.TopicByName(topic)
	return t == nil || t.ID != h.ID.TopicID
}

// refuse answers a partition that never reaches the loop.
func (c *fetchCall) refuse(key sessions.Key, err model.Error, out *FetchPart) {
	out.Hosted = nil
	out.Refuse(err)
	if err == model.ErrNotLeaderOrFollower {
		t := c.img.TopicByName(key.Topic)
		if c.in.Version >= 13 {
			t = c.img.TopicByID(key.TopicID)
		}
		out.Reply.Leader, out.Reply.LeaderEpoch = leaderOf(t, key.Partition)
	}
}

// locate finds where the wanted offsets lie on disk, so that bytes can be
// counted against min bytes.
func (c *fetchCall) locate() {
	for i := range c.work.Parts {
		if p := &c.work.Parts[i]; p.Hosted != nil {
			if pos, err := p.Hosted.Log.Locate(p.Request.Offset); err == nil {
				p.Request.Pos = pos
			}
		}
	}
}

// done hands the answer to the connection.
func (c *fetchCall) done() { c.r.Reply(c) }

// Layout reads what was planned and encodes the answer.
func (c *fetchCall) Layout(l *transport.Layout) error {
	c.resp.Version, c.resp.Err, c.resp.Nodes = c.in.Version, model.None, c.resp.Nodes[:0]
	c.join()
	parts := c.reuse(len(c.work.Parts))
	c.results = c.results[:0]
	left := c.work.MaxBytes
	first := true
	for i := range c.work.Parts {
		p := &c.work.Parts[i]
		out := &parts[i]
		c.fill(i, p, out)
		if p.Reply.Err == model.None && p.Reply.From < p.Reply.Limit {
			if c.read(p, out, left, first) {
				first = false
				left -= int64(out.Records.Size())
			}
		}
		c.results = append(c.results, sessions.Result{
			Err: out.Err, Records: out.Records.Size() > 0, Diverging: out.Diverging.Epoch >= 0,
			Preferred: out.Preferred >= 0, HW: out.HW, LogStart: out.LogStart, Quiet: p.Quiet,
		})
	}
	c.answer(parts)
	c.resp.Layout(l)
	c.recycle()
	return nil
}

// join makes the parts that the loop added part of the session's turn.
func (c *fetchCall) join() {
	for i := len(c.keys); i < len(c.work.Parts); i++ {
		entry := c.work.Parts[i].Seat.entry
		c.keys = append(c.keys, entry.Key)
		c.turn.Join(entry)
	}
}

// reuse returns room for the answer's partitions.
func (c *fetchCall) reuse(n int) []wire.FetchPartition {
	if cap(c.parts) < n {
		c.parts, c.included = make([]wire.FetchPartition, n), make([]bool, n)
	}
	c.parts, c.included = c.parts[:n], c.included[:n]
	clear(c.included)
	return c.parts
}

// Discard is called when the connection is gone.
func (c *fetchCall) Discard() {
	c.join()
	c.d.mu.Lock()
	c.d.sessions.Abort(c.turn)
	c.d.mu.Unlock()
	c.recycle()
}

func (c *fetchCall) recycle() {
	clear(c.work.Parts)
	clear(c.work.Left)
	clear(c.parts)
	c.work.Standing = nil
	c.r, c.img, c.turn = nil, nil, nil
	c.in, c.resp = kmsg.FetchRequest{}, wire.FetchResponse{Topics: c.resp.Topics[:0]}
	c.d.calls.Put(c)
}

// fill puts one reply into wire form.
func (c *fetchCall) fill(i int, p *FetchPart, out *wire.FetchPartition) {
	*out = wire.NewFetchPartition(c.keys[i].Partition, p.Reply.Err)
	r := &p.Reply
	if r.Err == model.ErrNotLeaderOrFollower || r.Err == model.ErrFencedLeaderEpoch {
		out.Leader, out.LeaderEpoch = r.Leader, r.LeaderEpoch
		c.addNode(r.Leader)
	}
	if r.Err != model.None {
		return
	}
	out.HW, out.LSO, out.LogStart = r.HW, r.LSO, r.LogStart
	out.Preferred, out.Diverging = r.Preferred, r.Diverging
	if p.Request.Committed {
		out.Aborted = []wire.AbortedTxn{}
	}
}

// read pins the planned range and reports whether it holds records. A
// truncation since the plan makes it void.
func (c *fetchCall) read(p *FetchPart, out *wire.FetchPartition, left int64, first bool) bool {
	size := min(int64(max(p.Request.MaxBytes, 0)), max(left, 0))
	if size == 0 && !first {
		return false
	}
	s, err := p.Hosted.Log.Read(p.Reply.From, int(size), p.Reply.Limit, first)
	code := readError(err)
	if err == nil && p.Hosted.Generation.Load() != p.Reply.Generation {
		s.Release()
		code = model.ErrNotLeaderOrFollower
	}
	if code != model.None {
		*out = wire.NewFetchPartition(out.Partition, code)
		return false
	}
	if s.Len == 0 {
		s.Release()
		return false
	}
	if p.Request.Committed {
		if err := aborted(p, out, s.Next); err != nil {
			s.Release()
			*out = wire.NewFetchPartition(out.Partition, readError(err))
			return false
		}
	}
	c.d.count(p.Request.Replica, s.Len)
	out.Records = wire.Records{File: s.File, Off: s.Pos, Len: s.Len, Release: s.Release}
	return true
}

// readError is what a client is told of a read that failed. A log that moved on
// since the plan is worth another try.
func readError(err error) model.Error {
	switch {
	case err == nil:
		return model.None
	case errors.Is(err, storage.ErrOffsetOutOfRange), errors.Is(err, storage.ErrClosed):
		return model.ErrNotLeaderOrFollower
	case errors.Is(err, storage.ErrCorrupt):
		return model.ErrCorruptMessage
	}
	return model.ErrKafkaStorageError
}

// aborted lists the aborted transactions that overlap what is returned (R9.1). Records
// without it would be taken for committed.
func aborted(p *FetchPart, out *wire.FetchPartition, next model.Offset) error {
	txns, err := p.Hosted.Log.Aborted(p.Reply.From, next)
	for _, t := range txns {
		out.Aborted = append(out.Aborted, wire.AbortedTxn{Producer: t.ID, First: t.First})
	}
	return err
}

// answer ends the session's turn and keeps the partitions that belong into it.
func (c *fetchCall) answer(parts []wire.FetchPartition) {
	c.resp.Topics = c.resp.Topics[:0]
	included := c.included
	c.d.mu.Lock()
	id, err := c.d.sessions.Answer(c.d.Now(), c.turn, c.results, func(i int) {
		included[i] = true
		c.include(c.keys[i], parts[i])
	})
	c.d.mu.Unlock()
	c.resp.SessionID, c.resp.Err = id, err
	if err != model.None {
		c.resp.Topics = nil
	}
	for i := range parts {
		if rec := &parts[i].Records; (!included[i] || err != model.None) && rec.Release != nil {
			rec.Release()
		}
	}
}

func (c *fetchCall) include(k sessions.Key, p wire.FetchPartition) {
	ts := c.resp.Topics
	if n := len(ts); n == 0 || ts[n-1].Name != k.Topic || ts[n-1].ID != k.TopicID {
		ts = append(ts, wire.FetchTopic{Name: k.Topic, ID: k.TopicID})
	}
	t := &ts[len(ts)-1]
	t.Partitions = append(t.Partitions, p)
	c.resp.Topics = ts
}

// addNode says where the leader is (KIP-951, v16 and up).
func (c *fetchCall) addNode(id model.BrokerID) {
	if c.in.Version < 16 {
		return
	}
	for i := range c.resp.Nodes {
		if c.resp.Nodes[i].ID == id {
			return
		}
	}
	if n, ok := c.d.Node(id, c.r.Conn.Listener()); ok {
		c.resp.Nodes = append(c.resp.Nodes, n)
	}
}
