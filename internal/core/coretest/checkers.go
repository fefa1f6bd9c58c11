package coretest

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// ghost is what an observer of the whole cluster knows. No broker reads it.
type ghost struct {
	// commits is every batch that was below the HW of a replica that presumed to
	// lead, in offset order; commitEnd is where it ends.
	commits   []batch
	commitEnd model.Offset
	acked     []batch
	writers   map[model.Epoch]writer
	latest    model.Offset // the greatest "latest" told by a leader that was not stale
	// unclean is set once more replicas lost records than min.insync.Replicas
	// protects from, or once a replica without all committed records was elected
	// by decree. Loss is allowed then; only the local rules still hold.
	unclean bool
}

// writer is one life of a broker.
type writer struct {
	id   model.BrokerID
	life model.BrokerEpoch
}

// noteHW extends the committed records when a leader raised its HW, and checks
// the step (I11).
func (w *World) noteHW(b *broker, before marksBefore) {
	hw, leads := b.p.Marks().HW, b.p.Role() == partition.Leader
	if !leads && before.role != partition.Leader || hw <= w.ghost.commitEnd && hw <= before.HW {
		return // a leader may commit with its last append and follow at once
	}
	if _, epoch := b.p.Leader(); leads && epoch == before.epoch && hw > before.HW {
		w.checkHWStep(b, hw)
	}
	for _, x := range b.log.batches {
		if x.base >= w.ghost.commitEnd && x.last < hw {
			w.ghost.commits = append(w.ghost.commits, x)
			w.ghost.commitEnd = x.last + 1
		}
	}
}

// checkHWStep: the HW rises only with a full ISR, and only over what every
// member of the maximal ISR has.
func (w *World) checkHWStep(b *broker, hw model.Offset) {
	v := b.p.View()
	if len(v.ISR) < v.MinISR {
		w.fail("HWStep: b%d raises its HW to %d with ISR %s below the minimum %d", b.id, hw, set(v.ISR), v.MinISR)
	}
	for _, r := range v.Remotes {
		if !slices.Contains(v.MaximalISR, r.ID) {
			continue
		}
		q := w.broker(r.ID)
		if r.LEO < hw || q.log.end() < hw && !q.lossy && !w.ghost.unclean {
			w.fail("HWStep: b%d raises its HW to %d, b%d is known at %d and ends at %d", b.id, hw, r.ID, r.LEO, q.log.end())
		}
	}
}

// noteWriter checks that one life of one broker writes in an epoch (I19).
func (w *World) noteWriter(b *broker, x batch) {
	me := writer{b.id, b.epoch}
	if was, ok := w.ghost.writers[x.epoch]; ok && was != me && !w.ghost.unclean {
		w.fail("OneWriterPerEpoch: b%d and b%d both write in epoch %d", was.id, b.id, x.epoch)
	}
	w.ghost.writers[x.epoch] = me
}

func (w *World) noteAcked(b *broker, t *waiter) {
	for _, x := range t.written {
		w.ghost.acked = append(w.ghost.acked, x)
		if hw := b.p.Marks().HW; hw <= x.last {
			w.fail("AckedCommitted: b%d answers for offset %d with HW %d", b.id, x.last, hw)
		}
	}
}

// checkReply: one answer is one consistent cut (I8).
func (w *World) checkReply(b *broker, rq request, rp *partition.Reply) {
	if rp.Err != model.None {
		return
	}
	if !(rp.LogStart <= rp.LSO && rp.LSO <= rp.HW && rp.HW <= b.p.Marks().LEO) && b.p.Role() == partition.Leader && b.p.Serving() {
		w.fail("ResponseCut: b%d answers log start %d, LSO %d, HW %d", b.id, rp.LogStart, rp.LSO, rp.HW)
	}
	if rq.in.Replica < 0 && rp.Limit > max(rp.HW, rp.From) {
		w.fail("ResponseCut: b%d shows a consumer records up to %d, HW %d", b.id, rp.Limit, rp.HW)
	}
}

// check runs every checker; a command has just ended.
func (w *World) check() {
	for _, b := range w.brokers {
		w.checkLog(b)
		if b.live() {
			w.checkLocal(b)
			w.checkWakeups(b)
		}
	}
	w.checkLogMatching()
	for _, b := range w.brokers {
		if b.live() && b.p.Role() == partition.Leader {
			w.checkLeader(b)
		}
	}
	if !w.ghost.unclean {
		w.checkCommitted()
	}
}

// checkLog: batch offsets ascend and batch epochs never go back (I2).
func (w *World) checkLog(b *broker) {
	for i := 1; i < len(b.log.batches); i++ {
		x, y := &b.log.batches[i-1], &b.log.batches[i]
		if y.base <= x.last || y.epoch < x.epoch {
			w.fail("LogOrder: b%d holds [%d,%d]@%d before [%d,%d]@%d", b.id, x.base, x.last, x.epoch, y.base, y.last, y.epoch)
		}
	}
}

// checkSequence: an idempotent producer's records are in the log once and in
// order, whatever was sent again (I4).
func (w *World) checkSequence(b *broker, x batch) {
	if x.producer.ID < 0 || x.producer.Control {
		return
	}
	for i := len(b.log.batches) - 1; i >= 0; i-- {
		p := b.log.batches[i].producer
		if p.ID != x.producer.ID || p.Control {
			continue
		}
		if p.Epoch == x.producer.Epoch && int32((int64(p.LastSequence())+1)&0x7fffffff) != x.producer.BaseSequence {
			w.fail("SequenceContiguous: b%d writes sequence %d of producer %d at %d after sequence %d",
				b.id, x.producer.BaseSequence, p.ID, x.base, p.LastSequence())
		}
		return
	}
}

// checkLocal: marks and epochs are those of the log on disk (I1, I3).
func (w *World) checkLocal(b *broker) {
	if len(b.jobs) > 0 {
		return
	}
	m := b.p.Marks()
	if m.LEO != b.log.end() || m.LogStart != b.log.start {
		w.fail("LogMarks: b%d believes [%d,%d), its log is [%d,%d)", b.id, m.LogStart, m.LEO, b.log.start, b.log.end())
	}
	for i := range b.log.batches {
		x := &b.log.batches[i]
		if got := b.p.EpochAt(max(x.base, m.LogStart)); got != x.epoch {
			w.fail("EpochCache: b%d holds offset %d of epoch %d, its cache says %d", b.id, x.base, x.epoch, got)
		}
	}
	w.checkLSO(b, m)
}

// checkLSO: read_committed sees nothing from the first transaction on that has
// no end in the log (R1.8, I29).
func (w *World) checkLSO(b *broker, m partition.Marks) {
	open := map[model.ProducerID]model.Offset{}
	for i := range b.log.batches {
		x := &b.log.batches[i]
		switch p := &x.producer; {
		case p.Control:
			delete(open, p.ID)
		case p.Transactional:
			if _, ok := open[p.ID]; !ok {
				open[p.ID] = x.base
			}
		}
	}
	for id, first := range open {
		if m.LSO > max(first, m.LogStart) {
			w.fail("LastStableOffset: b%d shows records up to %d, producer %d has a transaction open from %d on", b.id, m.LSO, id, first)
		}
	}
}

// checkWakeups: nothing is parked that could complete (I32).
func (w *World) checkWakeups(b *broker) {
	for _, p := range b.parked {
		if _, done := w.reread(b, p); done {
			w.fail("NoLostWakeup: the fetch of b%d on b%d could complete", p.from, b.id)
		}
	}
	for _, t := range b.waits {
		if done, _ := b.p.ProduceStatus(t.wait); done && t.acks == -1 && !t.asleep {
			w.fail("NoLostWakeup: the producer of offset %d on b%d could be answered", t.base, b.id)
		}
	}
}

// checkLogMatching: records of one offset and epoch are the same on all
// replicas, and so is all that both have before (I20). It holds whatever was
// lost.
func (w *World) checkLogMatching() {
	for i, a := range w.brokers {
		for _, b := range w.brokers[i+1:] {
			if o, ok := lastShared(&a.log, &b.log); ok {
				if bad, differ := firstDifference(&a.log, &b.log, o+1); differ {
					w.fail("LogMatching: b%d and b%d agree at %d and differ at %d", a.id, b.id, o, bad)
				}
			}
		}
	}
}

// lastShared is the greatest base offset that two logs have with equal epochs.
func lastShared(a, b *disk) (model.Offset, bool) {
	i, j := len(a.batches)-1, len(b.batches)-1
	for i >= 0 && j >= 0 {
		x, y := &a.batches[i], &b.batches[j]
		switch {
		case x.base > y.base:
			i--
		case x.base < y.base:
			j--
		case x.epoch == y.epoch && x.epoch != model.NoEpoch:
			return x.base, true
		default:
			i, j = i-1, j-1
		}
	}
	return 0, false
}

// firstDifference compares what both logs still have below limit.
func firstDifference(a, b *disk, limit model.Offset) (model.Offset, bool) {
	from := max(a.start, b.start)
	i, j := firstAt(a, from), firstAt(b, from)
	for ; i < len(a.batches) && j < len(b.batches); i, j = i+1, j+1 {
		x, y := &a.batches[i], &b.batches[j]
		if x.base >= limit && y.base >= limit {
			return 0, false
		}
		if !x.same(*y) {
			return min(x.base, y.base), true
		}
	}
	return 0, false
}

func firstAt(d *disk, from model.Offset) int {
	for i := range d.batches {
		if d.batches[i].last >= from {
			return i
		}
	}
	return len(d.batches)
}

// readable is the log of b as it serves it: what it is about to delete is gone.
func (b *broker) readable() *disk {
	d := b.log
	if b.live() {
		d.start = max(d.start, b.p.Marks().LogStart)
	}
	return &d
}

// holds reports whether d has all of want below limit, as far as its log starts
// early enough; bad is the first offset that it lacks.
func (d *disk) holds(want []batch, limit model.Offset) (bad model.Offset, ok bool) {
	i := 0
	for k := range want {
		x := &want[k]
		if x.last < d.start || x.last >= limit {
			continue
		}
		for i < len(d.batches) && d.batches[i].base < x.base {
			i++
		}
		if i == len(d.batches) || !d.batches[i].same(*x) {
			return x.base, false
		}
	}
	return 0, true
}

func (w *World) holdsCommitted(b *broker) bool {
	_, ok := b.readable().holds(w.ghost.commits, w.ghost.commitEnd)
	return ok
}

// stale reports whether b has not heard of the newest leader epoch.
func (w *World) stale(b *broker) bool {
	leader, epoch := b.p.Leader()
	return epoch != w.ctl.LeaderEpoch || leader != w.ctl.Leader
}

// checkLeader checks what a replica that presumes to lead knows.
func (w *World) checkLeader(b *broker) {
	v := b.p.View()
	if !w.ghost.unclean {
		w.checkStrongISR(b, v)
	}
	if w.stale(b) {
		return
	}
	for _, id := range w.ctl.ISR { // I10
		if !slices.Contains(v.MaximalISR, id) {
			w.fail("QuorumSuperset: b%d may be in the ISR but does not count for leader b%d: %s", id, b.id, set(v.MaximalISR))
		}
	}
	for _, id := range w.ctl.ELR {
		if len(v.ISR) >= v.MinISR && !slices.Contains(v.MaximalISR, id) {
			w.fail("QuorumSuperset: b%d is eligible to lead but does not count for leader b%d", id, b.id)
		}
	}
	w.checkKnowledge(b, v)
	if o, _, err := b.p.ListBound(model.NoEpoch, partition.ReadUncommitted); err == model.None && !w.ghost.unclean {
		if o < w.ghost.latest {
			w.fail("LatestMonotone: leader b%d shows end %d, %d was shown before", b.id, o, w.ghost.latest)
		}
		w.ghost.latest = max(w.ghost.latest, o)
	}
}

// checkStrongISR: what is below the HW of a presumed leader is on every replica
// that may be elected (I22).
func (w *World) checkStrongISR(b *broker, v partition.View) {
	for _, q := range w.brokers {
		if !q.live() || q.lossy || q == b || !w.ctl.Candidate(q.id) {
			continue
		}
		if bad, ok := q.readable().holds(b.log.batches, v.Marks.HW); !ok {
			w.fail("StrongISR: b%d may be elected but differs at %d, below the HW %d of b%d", q.id, bad, v.Marks.HW, b.id)
		}
	}
}

// checkKnowledge: a follower has what the leader believes it has (I12).
func (w *World) checkKnowledge(b *broker, v partition.View) {
	for _, r := range v.Remotes {
		q := w.broker(r.ID)
		if r.LEO < 0 || !q.live() || q.lossy || r.Epoch != q.epoch {
			continue
		}
		if _, epoch := q.p.Leader(); epoch != v.LeaderEpoch {
			continue
		}
		if bad, ok := q.readable().holds(b.log.batches, r.LEO); !ok {
			w.fail("KnowledgeSoundness: b%d believes b%d at %d, they differ at %d", b.id, q.id, r.LEO, bad)
		}
	}
}

// checkCommitted: what was committed is on the leader and on every candidate,
// and what was acknowledged was committed (I21, I23, I24, I26, I27).
func (w *World) checkCommitted() {
	for _, b := range w.brokers {
		if !b.live() {
			continue
		}
		if bad, ok := b.readable().holds(w.ghost.commits, min(b.p.Marks().HW, w.ghost.commitEnd)); !ok && !b.lossy {
			w.fail("StablePrefix: b%d differs at %d from what was committed, its HW is %d", b.id, bad, b.p.Marks().HW)
		}
		leads := b.p.Role() == partition.Leader && !w.stale(b)
		if !leads && (b.lossy || !w.ctl.Candidate(b.id)) {
			continue
		}
		if bad, ok := b.readable().holds(w.ghost.commits, w.ghost.commitEnd); !ok {
			name := "CandidateCompleteness"
			if leads {
				name = "LeaderCompleteness"
			}
			w.fail("%s: b%d lacks the committed record %d", name, b.id, bad)
		}
	}
	for _, x := range w.ghost.acked {
		d := disk{batches: w.ghost.commits}
		if y, ok := d.at(x.base); !ok || y.base != x.base || !slices.Equal(y.values, x.values) {
			w.fail("AckedCommitted: the acknowledged record %d was not committed", x.base)
		}
	}
}

// noteLoss counts a replica that lost records. Once as many of those that might
// be elected lost some as min.insync.Replicas asks for, committed records may be
// gone by right.
func (w *World) noteLoss(b *broker) {
	b.lossy = true
	b.hit = b.hit || w.ctl.Candidate(b.id)
	hits := 0
	for _, q := range w.brokers {
		if q.hit {
			hits++
		}
	}
	if hits >= w.ctl.EffectiveMinISR() {
		w.ghost.unclean = true
	}
}
