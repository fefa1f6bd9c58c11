package coretest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// message is a fetch or its answer, held up by the network.
type message struct {
	request  *request
	response *response
}

// request is a follower's fetch under way.
type request struct {
	from, to model.BrokerID
	in       partition.FetchRequest
	max      int    // batches, 0 for all
	at       uint64 // generation of the sender's log
	life     model.BrokerEpoch
	minBytes int64
	wait     time.Duration
	lose     bool // the answer will get lost
	hold     bool // the answer will be held up
}

// response is the answer to a request.
type response struct {
	request
	out partition.FetchResponse
	// payload are the batches that travel, whole.
	payload []batch
	err     partition.Reason
}

// parkedFetch waits in the purgatory of a leader.
type parkedFetch struct {
	request
	deadline model.Time
}

// waiter is a producer that waits for its answer.
type waiter struct {
	wait     partition.ProduceWait
	acks     int8
	base     model.Offset
	written  []batch
	deadline model.Time
	refused  bool
	asleep   bool // nobody looks at it until wake
	done     func(model.Error)
}

// produceTimeout is what a producer grants a request.
const produceTimeout = time.Minute

// fetch sends the fetch that follower b would send now.
func (w *World) fetch(b *broker, opt request, loseRequest, holdRequest bool) {
	at, ok := b.p.NextFetch()
	leader, _ := b.p.Leader()
	if !ok {
		w.tell(b, "does not fetch now")
		return
	}
	to := w.broker(leader)
	if slices.ContainsFunc(to.parked, func(p *parkedFetch) bool { return p.from == b.id }) {
		w.tell(b, "has a fetch in the purgatory of b%d already", leader)
		return
	}
	opt.from, opt.to, opt.life, opt.at = b.id, leader, b.epoch, at.Generation
	opt.in = partition.FetchRequest{
		Replica: b.id, ReplicaEpoch: b.epoch, LeaderEpoch: at.LeaderEpoch, Offset: at.Offset,
		LastEpoch: at.LastEpoch, LogStart: at.LogStart, MaxBytes: 1 << 20,
	}
	if opt.max > 0 {
		opt.in.MaxBytes = int32(opt.max * batchBytes)
	}
	w.say("b%d -> b%d  Fetch offset=%d lastEpoch=%s", b.id, leader, at.Offset, offset(model.Offset(at.LastEpoch)))
	switch {
	case loseRequest:
		w.say("b%d -x b%d  request lost", b.id, leader)
	case holdRequest:
		w.say("b%d .. b%d  request held up", b.id, leader)
		w.net = append(w.net, &message{request: &opt})
	default:
		w.serve(opt)
	}
}

// serve lets the leader answer or park a fetch.
func (w *World) serve(rq request) {
	to := w.broker(rq.to)
	if !to.live() {
		w.say("b%d -x b%d  no connection", rq.from, rq.to)
		return
	}
	rq.in.Pos = to.log.locate(rq.in.Offset)
	rq.in.Answering = rq.wait <= 0
	rd := w.step(to, &rq.in, nil)
	w.answerProducers(to)
	if w.mustAnswer(rq, rd.Reply) || rq.wait <= 0 {
		w.answer(to, rq, rd.Reply)
		return
	}
	deadline := w.now.Add(rq.wait)
	w.tell(to, "purgatory: fetch of b%d waits until %v", rq.from, time.Duration(deadline))
	to.parked = append(to.parked, &parkedFetch{request: rq, deadline: deadline})
}

func (w *World) mustAnswer(rq request, rp *partition.Reply) bool {
	return rp.Now || rp.News || rp.Bytes >= max(rq.minBytes, 1)
}

// answer sends a reply. In seed mode the step that says so may refresh it.
func (w *World) answer(to *broker, rq request, rp *partition.Reply) {
	if w.cfg.HWMode == partition.Seed && !rp.Now && !rq.in.Answering {
		rq.in.Retry, rq.in.Answering = true, true
		rp = w.step(to, &rq.in, nil).Reply
	}
	w.checkReply(to, rq, rp)
	rs := response{request: rq, err: rp.Why}
	rs.out = partition.FetchResponse{
		LeaderEpoch: rq.in.LeaderEpoch, Offset: rq.in.Offset, Generation: rq.at, Err: rp.Err,
		Diverging: rp.Diverging, HW: rp.HW, LogStart: rp.LogStart,
	}
	if rp.From < rp.Limit {
		n := len(to.log.batches)
		if rq.max > 0 {
			n = rq.max
		}
		rs.payload = to.log.read(rp.From, rp.Limit, n)
	}
	switch {
	case rq.lose:
		w.say("b%d -x b%d  response lost", to.id, rq.from)
	case rq.hold:
		w.say("b%d .. b%d  response held up", to.id, rq.from)
		w.net = append(w.net, &message{response: &rs})
	default:
		w.receive(&rs)
	}
}

// receive hands an answer to the follower, if the connection that it asked on
// still exists.
func (w *World) receive(rs *response) {
	b := w.broker(rs.from)
	w.sayResponse(rs)
	if !b.live() || b.epoch != rs.life {
		w.say("b%d -x b%d  no connection", rs.to, rs.from)
		return
	}
	for i := range rs.payload {
		x := &rs.payload[i]
		rs.out.Batches = append(rs.out.Batches, partition.FetchedBatch{
			Base: x.base, Last: x.last, Epoch: x.epoch, Bytes: batchBytes, Producer: x.producer,
		})
	}
	if rd := w.step(b, &rs.out, rs.payload); rd.Backoff {
		w.tell(b, "waits before it fetches again")
	}
}

func (w *World) sayResponse(rs *response) {
	if w.quiet {
		return
	}
	line := fmt.Sprintf("b%d -> b%d  ", rs.to, rs.from)
	switch {
	case rs.out.Err != model.None:
		w.say("%s%v (%v)", line, rs.out.Err, rs.err)
	case rs.out.Diverging.Epoch != model.NoEpoch:
		w.say("%sdiverging epoch=%d end=%d", line, rs.out.Diverging.Epoch, rs.out.Diverging.End)
	case len(rs.payload) == 0:
		w.say("%sno records, HW=%d", line, rs.out.HW)
	default:
		w.say("%srecords [%d,%d), HW=%d", line, rs.payload[0].base, rs.payload[len(rs.payload)-1].last+1, rs.out.HW)
	}
}

// completeFetches looks again at what is parked on b (R3.17).
func (w *World) completeFetches(b *broker) {
	for _, p := range slices.Clone(b.parked) {
		if rp, done := w.reread(b, p); done {
			w.unpark(b, p)
			w.answer(b, p.request, rp)
			w.answerProducers(b)
		}
	}
}

func (w *World) reread(b *broker, p *parkedFetch) (*partition.Reply, bool) {
	in := p.in
	in.Retry = true
	in.Pos = b.log.locate(in.Offset)
	rp := w.step(b, &in, nil).Reply
	return rp, w.mustAnswer(p.request, rp)
}

func (w *World) unpark(b *broker, p *parkedFetch) {
	b.parked = slices.DeleteFunc(b.parked, func(q *parkedFetch) bool { return q == p })
}

// forgetParked drops what waited on a broker that is gone.
func (w *World) forgetParked(b *broker) {
	b.parked, b.waits = nil, nil
}

// expire answers what has waited for long enough.
func (w *World) expire(b *broker) {
	for _, p := range slices.Clone(b.parked) {
		if p.deadline > w.now {
			continue
		}
		w.unpark(b, p)
		w.tell(b, "purgatory: fetch of b%d times out", p.from)
		p.in.Retry, p.in.Answering = true, true
		w.answer(b, p.request, w.step(b, &p.in, nil).Reply)
	}
	for _, t := range slices.Clone(b.waits) {
		if t.deadline <= w.now {
			w.answerProducer(b, t, model.ErrRequestTimedOut)
		}
	}
}

// produce sends batches to b, one request.
func (w *World) produce(b *broker, in partition.Produce, batches []producers.Batch, values [][]string, t *waiter) {
	t.acks, t.base, t.deadline = in.Acks, model.UnknownOffset, w.now.Add(produceTimeout)
	held := b.hold
	b.hold = true // batches of one request are written together
	for i, pb := range batches {
		in.Batch, in.Bytes = pb, batchBytes
		if !w.produceOne(b, &in, values[i], t) {
			break
		}
	}
	b.hold = held
	w.runJobs(b)
	if t.refused {
		return
	}
	b.waits = append(b.waits, t)
	w.answerProducers(b)
	if slices.Contains(b.waits, t) {
		if t.acks == -1 {
			w.tell(b, "purgatory: produce waits for HW >= %d", t.wait.End)
		} else {
			w.tell(b, "produce waits for LEO >= %d", t.wait.End)
		}
	}
}

// produceOne steps one batch, whose write is queued.
func (w *World) produceOne(b *broker, in *partition.Produce, values []string, t *waiter) bool {
	rd := w.step(b, in, nil)
	a := rd.Append
	if rd.Err != model.None {
		w.say("b%d -> producer  %v", b.id, rd.Err)
		t.refused = true
		t.done(rd.Err)
		return false
	}
	if rd.Duplicate != nil {
		a = rd.Duplicate
		w.tell(b, "has these records already, at %d", a.Base)
		t.written = append(t.written, batch{base: a.Base, last: a.End - 1, epoch: a.Epoch, values: values})
	} else {
		x := batch{base: a.Base, last: a.End - 1, epoch: a.Epoch, values: values, producer: in.Batch}
		x.producer.Base = x.base
		b.jobs[len(b.jobs)-1].payload = []batch{x}
		t.written = append(t.written, x)
		w.noteWriter(b, x)
	}
	if t.base < 0 {
		t.base = a.Base
	}
	t.wait = partition.ProduceWait{End: a.End, Leadership: b.p.Leadership()}
	return true
}

// answerProducers answers whoever waits no longer (R2.17, R2.18).
func (w *World) answerProducers(b *broker) {
	for _, t := range slices.Clone(b.waits) {
		if t.asleep {
			continue
		}
		done, err := b.p.ProduceStatus(t.wait)
		if t.acks != -1 {
			done = done && err != model.None && err != model.ErrNotEnoughReplicasAfterAppend
			if !done && b.p.Marks().LEO >= t.wait.End {
				done, err = true, model.None
			}
		}
		if done {
			w.answerProducer(b, t, err)
		}
	}
}

func (w *World) answerProducer(b *broker, t *waiter, err model.Error) {
	b.waits = slices.DeleteFunc(b.waits, func(q *waiter) bool { return q == t })
	if err != model.None {
		w.say("b%d -> producer  %v", b.id, err)
	} else {
		w.say("b%d -> producer  ok base=%d", b.id, t.base)
		if t.acks == -1 {
			w.noteAcked(b, t)
		}
	}
	t.done(err)
}

// askLeader asks the leader of b for its bounds (R4.13).
func (w *World) askLeader(b *broker) {
	leader, epoch := b.p.Leader()
	to := w.broker(leader)
	in := partition.LeaderOffsets{LeaderEpoch: epoch, Err: model.ErrNetworkException}
	if to.live() {
		if in.LEO, _, in.Err = to.p.ListBound(epoch, partition.ReadLogEnd); in.Err == model.None {
			in.LogStart = to.p.Marks().LogStart
		}
	}
	w.say("b%d -> b%d  ListOffsets", b.id, leader)
	if in.Err != model.None {
		w.say("b%d -> b%d  %v", leader, b.id, in.Err)
	} else {
		w.say("b%d -> b%d  log start %d, LEO %d", leader, b.id, in.LogStart, in.LEO)
	}
	if rd := w.step(b, &in, nil); rd.Backoff {
		w.tell(b, "waits before it fetches again")
	}
}
