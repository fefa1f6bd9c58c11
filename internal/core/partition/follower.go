package partition

import (
	"math"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// followerState is what only a follower has.
type followerState struct {
	// hw and logStart are the leader's, from the answer whose records are in
	// flight: they count once these are written (R4.8).
	hw, logStart model.Offset
	// asking is set from Ready.AskLeader to LeaderOffsets.
	asking bool
	// fenced is set when the leader is past our epoch: only metadata helps.
	fenced bool
	// restart is set when the log being cut starts anew at cutTo.
	restart bool
	cutTo   model.Offset
}

// fetched takes the leader's answer. It counts only for the very fetch that this
// replica would send now: same offset, same leader epoch (R4.7), no truncation
// since. A late answer "diverging" to a log that was cut and filled again would
// cut committed records.
func (p *Partition) fetched(in *FetchResponse) {
	f := &p.follow
	if p.role != Follower || in.LeaderEpoch != p.epoch || in.Offset != p.leo || p.InFlight() || f.asking || f.fenced ||
		in.Generation != 0 && in.Generation != p.generation {
		p.out.because(Reason{Code: ResponseStale, Broker: p.leader, Offset: in.Offset, Epoch: in.LeaderEpoch})
		return
	}
	switch {
	case in.Err != model.None:
		p.fetchFailed(in)
	case in.Diverging.Epoch != model.NoEpoch:
		p.diverged(in.Diverging)
	case len(in.Batches) > 0:
		p.copyBatches(in)
	default:
		p.adopt(in.HW, in.LogStart)
	}
}

// fetchFailed reacts to an error of the leader (R4.13, R4.14).
func (p *Partition) fetchFailed(in *FetchResponse) {
	switch in.Err {
	case model.ErrOffsetOutOfRange:
		p.follow.asking = true
		p.out.AskLeader = true
		p.out.because(Reason{Code: LeaderAsked, Broker: p.leader, Offset: in.Offset})
	case model.ErrFencedLeaderEpoch:
		p.follow.fenced = true
		p.fetchFrom(model.NoBroker)
		p.out.because(Reason{Code: FencedByLeader, Broker: p.leader, Epoch: p.epoch})
	default:
		p.delay(in.Err)
	}
}

func (p *Partition) delay(err model.Error) {
	p.out.Backoff = true
	p.out.because(Reason{Code: FetchDelayed, Broker: p.leader, Err: err})
}

// diverged cuts where the logs part. d says where the leader's greatest epoch
// not newer than ours ended; our own end of that epoch may be earlier. Several
// rounds may be needed. HW and log start of the answer are ignored (R4.11).
func (p *Partition) diverged(d model.EpochEnd) {
	if d.End < 0 {
		p.delay(model.ErrUnknownServerError)
		return
	}
	to := min(d.End, p.leo)
	switch own := p.epochs.EndOf(d.Epoch, p.leo); {
	case own == model.UndefinedEpochEnd:
	case own.Epoch == d.Epoch:
		to = min(to, own.End)
	default: // we lack that epoch: cut to the end of an older one, ask again
		to = min(p.leo, own.End)
	}
	p.cut(to, Reason{Code: CutDiverging, Broker: p.leader, Offset: to, Bound: p.leo, Epoch: d.Epoch}, "R4.11")
}

// cut has the log truncated to to, which may be the LEO: epoch entries without
// records must go too (KAFKA-10706). Nothing is in flight.
func (p *Partition) cut(to model.Offset, why Reason, rule string) {
	p.account(to, rule)
	p.epochs.TruncateFromEnd(to)
	p.follow.restart, p.follow.cutTo = false, to
	p.startCut(why)
}

// restart has the log dropped and started anew, empty, at at.
func (p *Partition) restart(at model.Offset, why Reason, rule string) {
	p.account(p.logStart, rule)
	p.epochs.Clear()
	p.follow.restart, p.follow.cutTo = true, at
	p.startCut(why)
}

func (p *Partition) startCut(why Reason) {
	p.truncating = true
	p.generation++
	p.out.truncate = Truncate{To: p.follow.cutTo, Restart: p.follow.restart, Epochs: p.epochs.Entries()}
	p.out.Truncate = &p.out.truncate
	p.out.because(why)
}

// account says what a cut to to removes (R13.3).
func (p *Partition) account(to model.Offset, rule string) {
	if to >= p.leo {
		return
	}
	p.out.cut = Cut{
		From: to, To: p.leo, BelowHW: to < p.hw, HWBefore: p.hw,
		Epochs: p.epochs.Within(to, p.leo), LeaderEpoch: p.epoch, Rule: rule,
	}
	p.out.Cut = &p.out.cut
}

// truncated takes the log as storage left it. The producers are replaced before
// the HW moves, for the LSO depends on both (KAFKA-12153). With records in
// flight behind a restart, their producers are known already (R4.10).
func (p *Partition) truncated(in *Truncated) {
	f := &p.follow
	if !p.truncating || in.LEO > f.cutTo || in.LogStart > in.LEO {
		bug("truncated to [%d,%d), asked for %d", in.LogStart, in.LEO, f.cutTo)
	}
	p.truncating = false
	behind := p.next > p.leo
	p.leo, p.leoPos, p.logStart = in.LEO, in.Pos, in.LogStart
	if !behind {
		p.next = in.LEO
		p.epochs.TruncateFromEnd(in.LEO)
		if in.Producers != nil {
			p.producers = in.Producers
		}
	}
	hw := max(min(p.hw, in.LEO), in.LogStart)
	if f.restart {
		hw = in.LEO
	}
	p.setHW(hw)
	p.out.Wake |= WakeFetch
	p.settle()
}

// copyBatches hands the leader's batches to storage as they are: offsets and
// epochs stay. Gaps are legal, steps back are not (R4.9).
func (p *Partition) copyBatches(in *FetchResponse) {
	first, last := in.Batches[0], in.Batches[len(in.Batches)-1]
	if p.logStart < p.leo && p.leo <= in.LogStart && first.Epoch > p.epochs.Latest() {
		// The leader has deleted all that we hold, and its epochs with it, so it
		// could not compare: what comes may follow other records than ours.
		p.restart(in.LogStart, Reason{Code: CutRestart, Broker: p.leader, Offset: in.LogStart, Bound: p.leo}, "R4.13")
		return
	}
	straddles := first.Base < p.leo && first.Last >= p.leo && p.leo == p.logStart
	if !p.plausible(in.Batches, straddles) {
		p.out.Backoff = true
		p.out.because(Reason{Code: RecordsRefused, Broker: p.leader, Offset: first.Base, Bound: p.leo})
		return
	}
	if straddles {
		p.restart(first.Base, Reason{Code: CutInsideBatch, Broker: p.leader, Offset: first.Base, Bound: p.leo}, "R4.10")
		p.producers = producers.New()
	}
	changed := straddles
	for i := range in.Batches {
		b := &in.Batches[i]
		if b.Epoch > p.epochs.Latest() {
			p.epochs.Assign(b.Epoch, b.Base)
			changed = true
		}
		p.producers.Apply(b.Producer)
	}
	p.next = last.Last + 1
	p.follow.hw, p.follow.logStart = in.HW, in.LogStart
	p.out.append = Append{Base: first.Base, End: p.next, Epoch: last.Epoch}
	if changed {
		p.out.append.Epochs = p.epochs.Entries()
	}
	p.out.Append = &p.out.append
}

// plausible reports whether the batches follow our log and each other, in
// offsets and in epochs, and are from no later epoch than the leader's.
func (p *Partition) plausible(batches []FetchedBatch, straddles bool) bool {
	end, epoch := p.leo, p.epochs.Latest()
	if straddles {
		end, epoch = batches[0].Base, model.NoEpoch
	}
	for i := range batches {
		b := &batches[i]
		if b.Base < 0 || b.Base < end || b.Last < b.Base || b.Last == math.MaxInt64 || b.Epoch < epoch || b.Epoch > p.epoch {
			return false
		}
		end, epoch = b.Last+1, b.Epoch
	}
	return true
}

// adopt takes over the leader's HW as far as our log reaches, then its log start
// (R4.8). The HW may go down. The log start counts at once: what the leader has
// deleted was never compared with our records there, so nobody may read them
// while storage is still about to drop them.
func (p *Partition) adopt(hw, logStart model.Offset) {
	if hw < 0 {
		return
	}
	before := p.hw
	p.setHW(max(min(hw, p.leo), p.logStart))
	if p.hw != before { // who waits past a HW that fell has nothing to wait for
		p.out.Wake |= WakeFetch
	}
	if start := min(logStart, p.hw); start > p.logStart {
		p.raiseStart(start)
		p.out.raise = start
		p.out.RaiseLogStart = &p.out.raise
	}
}

// setHW is the follower's way to move the HW, up or down.
func (p *Partition) setHW(hw model.Offset) {
	if hw != p.hw {
		p.hwPos = model.UnknownPosition
	}
	if hw == p.leo {
		p.hwPos = p.leoPos
	}
	p.hw = hw
	p.producers.SetHW(hw)
}

// leaderOffsets decides what to do about an offset that the leader does not
// have: a shorter leader is followed down, a start beyond our end starts us
// anew, and otherwise the next fetch may succeed (R4.13).
func (p *Partition) leaderOffsets(in *LeaderOffsets) {
	f := &p.follow
	if p.role != Follower || !f.asking || in.LeaderEpoch != p.epoch {
		p.out.because(Reason{Code: ResponseStale, Broker: p.leader, Offset: p.leo, Epoch: in.LeaderEpoch})
		return
	}
	f.asking = false
	switch {
	case in.Err != model.None:
		p.delay(in.Err)
	case in.LEO < 0 || in.LogStart < 0 || in.LogStart > in.LEO:
		p.delay(model.ErrUnknownServerError)
	case in.LEO < p.leo:
		p.cut(in.LEO, Reason{Code: CutLeaderShort, Broker: p.leader, Offset: in.LEO, Bound: p.leo}, "R4.13")
	case in.LogStart > p.leo:
		p.restart(in.LogStart, Reason{Code: CutRestart, Broker: p.leader, Offset: in.LogStart, Bound: p.leo}, "R4.13")
	default:
		p.delay(model.ErrOffsetOutOfRange)
	}
}
