package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// newReply starts the answer to in: no records, no marks.
func (p *Partition) newReply(in *FetchRequest) {
	p.out.reply = Reply{
		From: in.Offset, Limit: in.Offset, LimitPos: model.UnknownPosition,
		HW: model.UnknownOffset, LSO: model.UnknownOffset, LogStart: model.UnknownOffset, LEO: p.leo,
		Diverging: model.UndefinedEpochEnd, Preferred: model.NoBroker,
		Leader: p.leader, LeaderEpoch: p.epoch, Generation: p.generation,
	}
	p.out.Reply = &p.out.reply
}

// refuse turns the reply into an error. Follower state is left alone (R3.7).
func (p *Partition) refuse(err model.Error, why Reason) {
	rp := &p.out.reply
	rp.Err, rp.Now, rp.Why = err, true, why
	p.out.Err = err
}

// fetch serves a follower or a consumer. in.Offset is the next offset wanted,
// hence a follower's LEO: it is the only acknowledgement there is. A follower's
// fetch is recorded only after all checks passed (R3.3-R3.11). Errors:
// FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
// OFFSET_OUT_OF_RANGE.
func (p *Partition) fetch(in *FetchRequest) {
	p.newReply(in)
	r, ok := p.admit(in)
	if !ok || p.holdBack(r, in) || !p.compare(in) {
		return
	}
	hw := p.hw
	if r != nil && (!in.Retry || r.waits) {
		if !p.record(r, in) {
			return
		}
	}
	if p.cfg.HWMode == Seed || in.Retry {
		hw = p.hw
	}
	if r != nil {
		p.answerFollower(r, in, hw)
	} else {
		p.answerConsumer(in)
	}
}

// admit is the gate in Kafka's order of precedence (R3.3).
func (p *Partition) admit(in *FetchRequest) (*remote, bool) {
	follower := in.Replica >= 0
	switch {
	case in.LeaderEpoch != model.NoEpoch && in.LeaderEpoch < p.epoch:
		p.refuse(model.ErrFencedLeaderEpoch, Reason{Code: FetchEpochFenced, Broker: in.Replica, Epoch: in.LeaderEpoch})
		return nil, false
	case in.LeaderEpoch > p.epoch:
		p.refuse(model.ErrUnknownLeaderEpoch, Reason{Code: FetchEpochUnknown, Broker: in.Replica, Epoch: in.LeaderEpoch})
		return nil, false
	case p.role != Leader && (follower || !in.FollowerOK || p.role != Follower):
		p.refuse(model.ErrNotLeaderOrFollower, Reason{Code: FetchNotLeader, Broker: p.leader, Epoch: p.epoch})
		return nil, false
	case !follower:
		return nil, true
	}
	r := p.remote(in.Replica)
	if r == nil {
		err := model.ErrUnknownLeaderEpoch
		if in.LeaderEpoch == model.NoEpoch {
			err = model.ErrNotLeaderOrFollower
		}
		p.refuse(err, Reason{Code: FetchNoReplica, Broker: in.Replica})
		return nil, false
	}
	return r, true
}

// holdBack parks a fetch that cannot be judged yet: the epoch of a new leader is
// not safe on disk, or the log of a follower is being cut. A wait for the disk
// that ends too early ends with an error: a HW must not be told to a follower
// whose log was not compared.
func (p *Partition) holdBack(r *remote, in *FetchRequest) bool {
	rp := &p.out.reply
	switch {
	case p.lead.persisting:
		rp.Why = Reason{Code: EpochWaits, Broker: in.Replica, Epoch: p.epoch}
		if in.Answering {
			p.refuse(model.ErrNotLeaderOrFollower, rp.Why)
		}
		if r != nil && !in.Retry {
			r.waits = true
		}
		return true
	case p.truncating: // only consumers ask here
		rp.HW = min(p.hw, p.follow.cutTo)
		rp.LogStart = min(p.logStart, rp.HW)
		rp.LSO = max(min(p.lso(), rp.HW), rp.LogStart)
		rp.Why = Reason{Code: FetchTruncating, Broker: in.Replica}
		return true
	}
	return false
}

// compare holds the sender's log against ours: out of range, or a different
// history below its offset (R3.5, R3.6). It is false when the reply is made.
func (p *Partition) compare(in *FetchRequest) bool {
	outOfRange := Reason{Code: FetchOutOfRange, Broker: in.Replica, Offset: in.Offset, Bound: p.leo}
	if in.Offset < p.logStart {
		outOfRange.Bound = p.logStart
		p.refuse(model.ErrOffsetOutOfRange, outOfRange)
		return false
	}
	if in.LastEpoch != model.NoEpoch {
		end := p.epochs.EndOf(in.LastEpoch, p.leo)
		switch {
		case end == model.UndefinedEpochEnd:
			p.refuse(model.ErrOffsetOutOfRange, Reason{Code: FetchEpochAhead, Broker: in.Replica, Epoch: in.LastEpoch})
			return false
		case end.Epoch < in.LastEpoch || end.End < in.Offset:
			p.diverge(in, end)
			return false
		}
	}
	if in.Offset > p.leo {
		p.refuse(model.ErrOffsetOutOfRange, outOfRange)
		return false
	}
	return true
}

// diverge tells the sender where our logs part. No follower state changes, and
// the HW in the answer does not count as told: it is ignored (KAFKA-13141,
// KAFKA-14704).
func (p *Partition) diverge(in *FetchRequest, end model.EpochEnd) {
	rp := &p.out.reply
	rp.Diverging, rp.Now = end, true
	rp.HW, rp.LSO, rp.LogStart = p.hw, p.lso(), p.logStart
	rp.Why = Reason{Code: FetchDiverges, Broker: in.Replica, Offset: end.End, Epoch: end.Epoch}
}

// record notes what a follower's fetch proves, then tries the ISR, then the HW
// (R3.8-R3.12). It is false when the fetch is from an earlier life of the
// broker. RemoteLEO is assigned, up or down.
func (p *Partition) record(r *remote, in *FetchRequest) bool {
	if peer, ok := (*p.cfg.Peers)[r.id]; ok && in.ReplicaEpoch != model.UnknownBrokerEpoch && in.ReplicaEpoch < peer.Epoch {
		p.refuse(model.ErrNotLeaderOrFollower, Reason{Code: FetchOldIncarnation, Broker: r.id})
		return false
	}
	switch {
	case in.Offset >= p.leo:
		r.caughtUp = max(r.caughtUp, p.now)
	case in.Offset >= r.leaderLEO: // it has what we had when it last fetched
		r.caughtUp = max(r.caughtUp, r.lastFetch)
	}
	moved, startMoved := r.leo != in.Offset, r.logStart != in.LogStart
	r.leo, r.pos, r.logStart = in.Offset, in.Pos, in.LogStart
	r.leaderLEO, r.lastFetch = max(r.leaderLEO, p.leo), p.now
	r.epoch, r.heard, r.waits = in.ReplicaEpoch, true, false
	p.expandISR(r)
	if moved {
		p.tryHW()
	}
	if startMoved {
		p.noteLowWatermark()
	}
	return true
}

// hear notes that a follower asked again while nothing happened. What it has is
// what it had, and our LEO then was that of its last fetch.
func (p *Partition) hear(in *Heard) {
	r := p.remote(in.Replica)
	if r == nil || !r.heard || in.At <= r.lastFetch {
		return
	}
	if r.leo >= r.leaderLEO {
		r.caughtUp = max(r.caughtUp, in.At)
	}
	r.lastFetch = in.At
}

// Idle reports whether the reply says nothing: no records, no error, no divergence,
// no hint, and marks that are known.
func (r *Reply) Idle() bool {
	return r.Err == model.None && r.From == r.Limit && r.Diverging.Epoch == model.NoEpoch && r.Preferred == model.NoBroker &&
		r.HW != model.UnknownOffset
}

// Quiet reports whether a follower has all that there is and was told all that
// there is to tell: until this replica wakes its waiters (Ready.Wake), a fetch of
// it for the same offset would say nothing new to either side. It is a member of
// the ISR, for one that is not joins by its next fetch.
func (p *Partition) Quiet(follower model.BrokerID) bool {
	l := &p.lead
	r := p.remote(follower)
	return r != nil && r.heard && !r.waits && !l.persisting && !l.pending && slices.Contains(l.isr, follower) &&
		r.leo == p.leo && r.leaderLEO == p.leo && p.next == p.leo && (p.cfg.HWMode != Seed || p.hw <= r.toldHW)
}

// answerFollower plans the records up to our LEO. In seed mode, news of the HW
// that the follower can use is worth an answer of its own (R3.18).
func (p *Partition) answerFollower(r *remote, in *FetchRequest, hw model.Offset) {
	rp := &p.out.reply
	rp.HW, rp.LSO, rp.LogStart = hw, min(p.lso(), hw), p.logStart
	rp.Why = Reason{Code: FetchAtLogEnd, Broker: r.id, Offset: in.Offset}
	if in.Offset < p.leo {
		p.plan(in, p.leo, p.leoPos)
	}
	if p.cfg.HWMode != Seed {
		return
	}
	if min(hw, in.Offset) > r.toldHW {
		rp.News = true
		rp.Why = Reason{Code: FetchHWNews, Broker: r.id, Offset: hw, Bound: r.toldHW}
	}
	if rp.Now || in.Answering {
		r.toldHW = hw
	}
}

// answerConsumer plans the records up to the HW, or to the LSO for
// read_committed (R9.1, R9.2).
func (p *Partition) answerConsumer(in *FetchRequest) {
	rp := &p.out.reply
	rp.HW, rp.LSO, rp.LogStart = p.hw, p.lso(), p.logStart
	if near := p.nearest(in); near != p.cfg.ID {
		rp.Preferred, rp.Now = near, true
		rp.Why = Reason{Code: FetchRedirected, Broker: near}
		return
	}
	bound, pos := p.hw, p.hwPos
	rp.Why = Reason{Code: FetchAtHW, Broker: model.NoBroker, Offset: in.Offset}
	if in.Committed && rp.LSO < p.hw {
		bound, pos = rp.LSO, model.UnknownPosition
		rp.Why = Reason{Code: FetchAtLSO, Broker: model.NoBroker, Offset: bound, Bound: p.hw}
	}
	switch {
	case in.Offset < bound:
		p.plan(in, bound, pos)
	case in.Offset > bound:
		rp.Now = true // the reader is ahead of a HW that lags
		rp.Why = Reason{Code: FetchPastBound, Broker: model.NoBroker, Offset: in.Offset, Bound: bound}
	}
}

// plan lets [in.Offset, limit) be sent and counts its bytes as far as the
// positions tell. An offset on an older segment than the limit is answered at
// once (R3.17).
func (p *Partition) plan(in *FetchRequest, limit model.Offset, pos model.Position) {
	rp := &p.out.reply
	rp.Limit, rp.LimitPos = limit, pos
	rp.Bytes = 1
	rp.Why = Reason{Code: FetchHasRecords, Broker: in.Replica, Offset: in.Offset, Bound: limit}
	switch {
	case !in.Pos.Known() || !pos.Known():
	case in.Pos.Segment < pos.Segment:
		rp.Bytes, rp.Now = max(1, int64(in.MaxBytes)), true
	case in.Pos.Segment == pos.Segment:
		rp.Bytes = max(1, min(pos.Byte-in.Pos.Byte, int64(in.MaxBytes)))
	}
}

// nearest is the replica that a rack-aware consumer should read from, ourselves
// when there is no better one. Only a leader knows (KIP-392, R9.4).
func (p *Partition) nearest(in *FetchRequest) model.BrokerID {
	peers := *p.cfg.Peers
	if p.role != Leader || !in.RackAware || in.Rack == "" || peers[p.cfg.ID].Rack == in.Rack {
		return p.cfg.ID
	}
	var best *remote
	for i := range p.lead.remotes {
		r := &p.lead.remotes[i]
		peer, ok := peers[r.id]
		if !ok || peer.Fenced || peer.Rack != in.Rack || !slices.Contains(p.lead.isr, r.id) ||
			in.Offset < r.logStart || in.Offset > r.leo || r.logStart == model.UnknownOffset {
			continue
		}
		if best == nil || nearer(r, best) {
			best = r
		}
	}
	if best == nil {
		return p.cfg.ID
	}
	return best.id
}

// nearer prefers the longer log, then who was caught up last, then the id.
func nearer(a, b *remote) bool {
	switch {
	case a.leo != b.leo:
		return a.leo > b.leo
	case a.caughtUp != b.caughtUp:
		return a.caughtUp > b.caughtUp
	}
	return a.id > b.id
}
