package coretest

import (
	"fmt"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// cmdProduce sends one request with one batch per word:
//
//	produce m0 m1 [acks=all|1|0] [to=2] [pid=1 pepoch=0 seq=0 [txn]] [asleep]
//
// asleep leaves the waiting producer unattended until wake.
func (w *World) cmdProduce(a *args) error {
	b, err := w.presumed(a, "to")
	if err != nil {
		return err
	}
	acks := a.text("acks", "all")
	in := partition.Produce{Acks: map[string]int8{"all": -1, "1": 1, "0": 0}[acks]}
	var list []producers.Batch
	var values [][]string
	words := a.words()
	seq := int32(a.num("seq", -1))
	for _, word := range words {
		if word == "txn" || word == "asleep" {
			continue
		}
		v := strings.Split(word, "+")
		pb := producers.Batch{
			ID: model.ProducerID(a.num("pid", -1)), Epoch: int16(a.num("pepoch", 0)), BaseSequence: seq,
			Records: int32(len(v)), MaxTimestamp: wall(w.now), Transactional: a.flag("txn"), Verified: true,
		}
		if seq >= 0 {
			seq = int32((int64(seq) + int64(len(v))) & 0x7fffffff)
		}
		list, values = append(list, pb), append(values, v)
	}
	extra := ""
	if pid := a.num("pid", -1); pid >= 0 {
		extra = fmt.Sprintf(" producer=%d epoch=%d seq=%d", pid, a.num("pepoch", 0), a.num("seq", -1))
	}
	w.say("producer -> b%d  Produce %s acks=%s%s", b.id, strings.Join(flatten(values), " "), acks, extra)
	t := &waiter{done: w.onAnswer, asleep: a.flag("asleep")}
	if t.done == nil {
		t.done = func(model.Error) {}
	}
	w.produce(b, in, list, values, t)
	return nil
}

func flatten(values [][]string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.Join(v, "+")
	}
	return out
}

// cmdWake lets somebody look at the producers that sleep: wake 1
func (w *World) cmdWake(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	for _, t := range b.waits {
		t.asleep = false
	}
	w.answerProducers(b)
	return nil
}

// cmdMarker ends a transaction: marker abort|commit pid=1
func (w *World) cmdMarker(a *args) error {
	b, err := w.presumed(a, "to")
	if err != nil {
		return err
	}
	word := "abort"
	if a.flag("commit") {
		word = "commit"
	}
	pb := producers.Batch{
		ID: model.ProducerID(a.num("pid", -1)), Epoch: int16(a.num("pepoch", 0)), BaseSequence: -1, Records: 1,
		MaxTimestamp: wall(w.now), Transactional: true, Control: true, Commit: word == "commit",
	}
	w.say("coordinator -> b%d  %s producer=%d", b.id, word, pb.ID)
	w.produce(b, partition.Produce{Acks: -1}, []producers.Batch{pb}, [][]string{{"<" + word + ">"}}, &waiter{done: func(model.Error) {}})
	return nil
}

// cmdConsume reads as a client:
//
//	consume offset=0 [from=2] [committed] [epoch=] [last-epoch=] [rack=] [old]
func (w *World) cmdConsume(a *args) error {
	b, err := w.presumed(a, "from")
	if err != nil {
		return err
	}
	rack := a.text("rack", "")
	rq := request{from: model.NoBroker, to: b.id, in: partition.FetchRequest{
		Replica: model.NoBroker, ReplicaEpoch: model.UnknownBrokerEpoch, LeaderEpoch: model.Epoch(a.num("epoch", -1)),
		Offset: a.offset("offset", 0), LastEpoch: model.Epoch(a.num("last-epoch", -1)), MaxBytes: 1 << 20,
		Committed: a.flag("committed"), FollowerOK: !a.flag("old"), RackAware: rack != "", Rack: rack,
	}}
	rq.in.Pos = b.log.locate(rq.in.Offset)
	rp := w.step(b, &rq.in, nil).Reply
	w.checkReply(b, rq, rp)
	w.sayConsumed(b, rq, rp)
	if !w.ghost.unclean && rp.Err == model.None {
		w.checkSeen(b.log.read(rp.From, rp.Limit, len(b.log.batches)), rp.Limit)
	}
	return nil
}

// checkSeen: a consumer is shown committed records only, whoever serves it
// (I28).
func (w *World) checkSeen(list []batch, limit model.Offset) {
	committed := disk{batches: w.ghost.commits}
	for _, x := range list {
		if y, ok := committed.at(x.base); x.last < limit && (!ok || !y.same(x)) {
			w.fail("RepeatableRead: a consumer saw %v at %d, which was not committed", x.values, x.base)
		}
	}
}

func (w *World) sayConsumed(b *broker, rq request, rp *partition.Reply) {
	if w.quiet {
		return
	}
	list := b.log.read(rp.From, rp.Limit, len(b.log.batches))
	switch {
	case rp.Err != model.None:
		w.say("%v", rp.Err)
	case rp.Diverging.Epoch != model.NoEpoch:
		w.say("diverging epoch=%d end=%d", rp.Diverging.Epoch, rp.Diverging.End)
	case rp.Preferred != model.NoBroker:
		w.say("read from b%d: %v", rp.Preferred, rp.Why)
	case len(list) > 0:
		w.say("offsets %d..%d: %s", max(list[0].base, rp.From), min(list[len(list)-1].last, rp.Limit-1), valuesOf(list))
	case rp.Now:
		w.say("nothing at offset %d, answered at once: %v", rq.in.Offset, rp.Why)
	case rq.in.Committed && rp.LSO < rp.HW:
		w.say("nothing visible at offset %d (LSO %d, HW %d)", rq.in.Offset, rp.LSO, rp.HW)
	default:
		w.say("nothing visible at offset %d (HW %d)", rq.in.Offset, rp.HW)
	}
}

// cmdList asks for offsets: list latest|committed|end|earliest [from=] [epoch=]
func (w *World) cmdList(a *args) error {
	b, err := w.presumed(a, "from")
	if err != nil {
		return err
	}
	epoch := model.Epoch(a.num("epoch", -1))
	iso := partition.ReadUncommitted
	switch {
	case a.flag("committed"):
		iso = partition.ReadCommitted
	case a.flag("end"):
		iso = partition.ReadLogEnd
	}
	o, e, code := b.p.ListBound(epoch, iso)
	if a.flag("earliest") && (code == model.None || code == model.ErrOffsetNotAvailable) {
		o = b.p.Marks().LogStart
		e, code = b.p.EpochAt(o), model.None
	}
	if code != model.None {
		w.say("%v", code)
		return nil
	}
	w.say("offset %d, leader epoch %d", o, e)
	return nil
}

// cmdEpochEnd asks where an epoch ended: epoch-end 2 [from=] [current=]
func (w *World) cmdEpochEnd(a *args) error {
	b, err := w.presumed(a, "from")
	if err != nil {
		return err
	}
	for _, word := range a.words() {
		end, code := b.p.EndOfEpoch(model.Epoch(a.num("current", -1)), model.Epoch(a.parse(word)))
		switch {
		case code != model.None:
			w.say("%s: %v", word, code)
		case end == model.UndefinedEpochEnd:
			w.say("%s: undefined", word)
		default:
			w.say("%s: epoch %d ends at %d", word, end.Epoch, end.End)
		}
	}
	return nil
}

// cmdDelete deletes records: delete offset=6|-1
func (w *World) cmdDelete(a *args) error {
	b, err := w.presumed(a, "to")
	if err != nil {
		return err
	}
	rd := w.step(b, &partition.DeleteRecords{Offset: a.offset("offset", -1)}, nil)
	if rd.Err != model.None {
		w.say("%v", rd.Err)
		return nil
	}
	w.say("low watermark %s", offset(b.p.LowWatermark()))
	return nil
}

// cmdRetain lets retention on one broker raise its log start: retain 1 to=3
func (w *World) cmdRetain(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	to := min(a.offset("to", 0), b.p.Marks().HW) // R8.17
	if to > b.log.start && len(b.jobs) == 0 {
		b.log.raiseStart(to)
		w.step(b, &partition.LogStartMoved{To: to}, nil)
	}
	return nil
}

// cmdRoll starts a new segment at the log end: roll 1. The next append finds it.
func (w *World) cmdRoll(a *args) error {
	b, err := w.running(a)
	if err == nil {
		b.log.segments = append(b.log.segments, b.log.end())
		w.tell(b, "new segment at %d", b.log.end())
	}
	return err
}

// cmdDisk holds or frees the log writer of a broker: disk 1 hold|release|one
func (w *World) cmdDisk(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	switch {
	case a.flag("hold"):
		b.hold = true
		w.tell(b, "the log writer stands still")
	case a.flag("one") && len(b.jobs) > 0:
		w.runJob(b)
	case a.flag("release"):
		b.hold = false
		w.runJobs(b)
	}
	return nil
}
