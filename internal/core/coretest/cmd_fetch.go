package coretest

import (
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// cmdFetch lets a follower fetch:
//
//	fetch 2 [max=1] [lose=request|response] [hold=request|response] [min-bytes=1] [wait=500ms]
func (w *World) cmdFetch(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	lose, hold := a.text("lose", ""), a.text("hold", "")
	opt := request{
		max: int(a.num("max", 0)), minBytes: a.num("min-bytes", 1), wait: a.duration("wait", w.fetchWait),
		lose: lose == "response", hold: hold == "response",
	}
	if opt.minBytes == 0 {
		opt.wait = 0
	}
	w.fetch(b, opt, lose == "request", hold == "request")
	return nil
}

// cmdProbe sends a fetch as if from a follower and shows the answer only:
//
//	probe 2 offset=5 [last-epoch=] [epoch=] [broker-epoch=] [start=] [to=]
func (w *World) cmdProbe(a *args) error {
	b, err := w.named(a)
	if err != nil {
		return err
	}
	to, err := w.presumed(a, "to")
	if err != nil {
		return err
	}
	in := partition.FetchRequest{
		Replica: b.id, ReplicaEpoch: model.BrokerEpoch(a.num("broker-epoch", int64(b.epoch))),
		LeaderEpoch: model.Epoch(a.num("epoch", int64(w.ctl.LeaderEpoch))), Offset: a.offset("offset", 0),
		LastEpoch: model.Epoch(a.num("last-epoch", -1)), LogStart: a.offset("start", 0), MaxBytes: 1 << 20, Answering: true,
	}
	in.Pos = to.log.locate(in.Offset)
	rp := w.step(to, &in, nil).Reply
	switch {
	case rp.Err != model.None:
		w.say("%v (%v)", rp.Err, rp.Why)
	case rp.Diverging.Epoch != model.NoEpoch:
		w.say("diverging epoch=%d end=%d", rp.Diverging.Epoch, rp.Diverging.End)
	case rp.From < rp.Limit:
		w.say("records [%d,%d), HW=%d", rp.From, rp.Limit, rp.HW)
	case rp.Now, rp.News:
		w.say("no records, answered at once, HW=%d (%v)", rp.HW, rp.Why)
	default:
		w.say("parked (%v)", rp.Why)
	}
	return nil
}

// cmdAsks shows whether the leader has anything to say to a follower, and lets it
// ask again if not, without a fetch (R3.10):
//
//	asks 2 [at=3s] [to=]
func (w *World) cmdAsks(a *args) error {
	b, err := w.named(a)
	if err != nil {
		return err
	}
	to, err := w.presumed(a, "to")
	if err != nil {
		return err
	}
	if !to.p.Quiet(b.id) {
		w.say("b%d has to fetch", b.id)
	} else {
		w.say("quiet")
	}
	w.step(to, &partition.Heard{Replica: b.id, At: model.Time(a.duration("at", time.Duration(w.now)))}, nil)
	return nil
}

// held takes the first held-up message of the named follower, or with n= that
// one of all.
func (w *World) held(a *args) (*message, error) {
	if n := int(a.num("n", -1)); n >= 0 && n < len(w.net) {
		m := w.net[n]
		w.net = append(w.net[:n:n], w.net[n+1:]...)
		return m, nil
	}
	b, err := w.named(a)
	if err != nil {
		return nil, err
	}
	for i, m := range w.net {
		if m.request != nil && m.request.from == b.id || m.response != nil && m.response.from == b.id {
			w.net = append(w.net[:i:i], w.net[i+1:]...)
			return m, nil
		}
	}
	return nil, fmt.Errorf("no message of b%d is held up", b.id)
}

// cmdDeliver delivers a message that was held up: deliver 2
func (w *World) cmdDeliver(a *args) error {
	m, err := w.held(a)
	if err != nil {
		return err
	}
	if m.response != nil {
		w.receive(m.response)
		return nil
	}
	rq := *m.request
	w.say("b%d -> b%d  Fetch offset=%d epoch=%d, late", rq.from, rq.to, rq.in.Offset, rq.in.LeaderEpoch)
	w.serve(rq)
	return nil
}

// cmdDrop loses a message that was held up: drop 2
func (w *World) cmdDrop(a *args) error {
	_, err := w.held(a)
	return err
}

// cmdTick lets time pass: tick 500ms
func (w *World) cmdTick(a *args) error {
	words := a.words()
	if len(words) != 1 {
		return fmt.Errorf("how long?")
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return err
	}
	w.now = w.now.Add(d)
	for _, b := range w.brokers {
		if !b.live() {
			continue
		}
		w.expire(b)
		w.step(b, &partition.Tick{}, nil)
		b.log.hw = b.p.Marks().HW // the checkpoint
	}
	if w.out.Len() == 0 {
		w.say("now %v", time.Duration(w.now))
	}
	return nil
}
