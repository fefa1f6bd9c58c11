package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// leaderState is what only a leader has.
type leaderState struct {
	start model.Offset // LESO, our LEO when this epoch began; UnknownOffset on a follower
	// persisting is set until the start of the epoch is safe on disk.
	persisting bool
	// isr is what the controller last committed, maximal the largest ISR that it
	// may hold now: pending adds the members of an open expansion and keeps those
	// of an open shrink (R1.4). They are never changed in place.
	isr, maximal []model.BrokerID
	pending      bool
	proposal     AlterISR // the open one
	proposals    uint64
	remotes      []remote // of AR without us, in AR order
	lowWatermark model.Offset
}

// remote is what a leader remembers of one follower (R1.10).
type remote struct {
	id            model.BrokerID
	leo, logStart model.Offset // RemoteLEO; UnknownOffset before its first fetch
	pos           model.Position
	epoch         model.BrokerEpoch // of its last fetch
	heard         bool              // whether it fetched at all
	leaderLEO     model.Offset      // our LEO at its last fetch
	lastFetch     model.Time
	caughtUp      model.Time // when it last had all that we had
	toldHW        model.Offset
	// waits marks a fetch that came before the epoch was safe on disk: it counts
	// when it comes back out of the purgatory.
	waits bool
	why   ReasonCode // why it may not join the ISR, as last told
}

func indexRemote(list []remote, id model.BrokerID) int {
	return slices.IndexFunc(list, func(r remote) bool { return r.id == id })
}

func (p *Partition) remote(id model.BrokerID) *remote {
	for i := range p.lead.remotes {
		if r := &p.lead.remotes[i]; r.id == id {
			return r
		}
	}
	return nil
}

// produce assigns the offsets of one batch and hands it to storage. A refusal
// leaves the log and the state of the producers as they were (R2.3, R2.6, R2.7).
func (p *Partition) produce(in *Produce) {
	l := &p.lead
	switch {
	case !p.Serving():
		p.out.Err = model.ErrNotLeaderOrFollower
		p.out.because(Reason{Code: ProduceNotLeader, Broker: p.leader, Epoch: p.epoch})
		return
	case in.Acks == -1 && len(l.isr) < p.minISR():
		p.out.Err = model.ErrNotEnoughReplicas
		p.out.because(p.underMinISR(ProduceUnderMinISR))
		return
	case in.Batch.Records <= 0:
		p.refuseProduce(model.ErrInvalidRecord)
		return
	}
	v := p.producers.Check(in.Batch, !in.Batch.Control)
	if v.Err != model.None {
		p.refuseProduce(v.Err)
		return
	}
	if v.Duplicate {
		p.out.append = Append{Base: v.Base, End: v.Last + 1, Epoch: p.epochs.At(v.Base), Timestamp: v.Timestamp}
		p.out.Duplicate = &p.out.append
		return
	}
	b := in.Batch
	b.Base = p.next
	p.producers.Apply(b)
	p.next = b.Last() + 1
	p.out.append = Append{Base: b.Base, End: p.next, Epoch: p.epoch}
	p.out.Append = &p.out.append
}

func (p *Partition) refuseProduce(err model.Error) {
	p.out.Err = err
	p.out.because(Reason{Code: ProduceRefused, Broker: model.NoBroker, Err: err})
}

func (p *Partition) underMinISR(code ReasonCode) Reason {
	return Reason{Code: code, Broker: model.NoBroker, Offset: model.Offset(len(p.lead.isr)), Bound: model.Offset(p.minISR())}
}

// appended moves the LEO, on a leader and on a follower.
func (p *Partition) appended(in *Appended) {
	if in.End <= p.leo || in.End > p.next {
		bug("appended to %d, in flight is [%d,%d)", in.End, p.leo, p.next)
	}
	p.leo, p.leoPos = in.End, in.Pos
	p.out.Wake |= WakeFetch
	switch {
	case p.role == Leader:
		p.tryHW()
	case p.leo == p.next:
		p.adopt(p.follow.hw, p.follow.logStart)
	}
	p.settle()
}

// epochPersisted lets a new leader serve (R4.2a).
func (p *Partition) epochPersisted(in *EpochPersisted) {
	l := &p.lead
	if p.role != Leader || in.Epoch != p.epoch || !l.persisting {
		return
	}
	l.persisting = false
	p.tryHW()
	p.out.Wake |= WakeFetch | WakeProduce
}

// tryHW raises the HW to what the leader knows to be on every replica that
// counts (R3.20). It never lowers it.
func (p *Partition) tryHW() {
	if p.lead.persisting || len(p.lead.isr) < p.minISR() {
		return
	}
	to, pos, _ := p.slowest()
	switch {
	case to > p.hw:
		p.hw, p.hwPos = to, pos
		p.producers.SetHW(to)
		p.out.Wake |= WakeFetch | WakeProduce | WakeDelete
	case to == p.hw && pos.Segment > p.hwPos.Segment:
		// The same offset, now at the start of a new segment: whoever waits for
		// more of the old one has all of it (R3.17).
		p.hwPos = pos
		p.out.Wake |= WakeFetch
	}
}

// slowest is the smallest end, as the leader has heard, among the replicas that
// count: the leader, the maximal ISR, and who is about to join. The reason names
// who holds it.
func (p *Partition) slowest() (model.Offset, model.Position, Reason) {
	to, pos := p.leo, p.leoPos
	held := Reason{Code: HWFree, Broker: model.NoBroker}
	for i := range p.lead.remotes {
		r := &p.lead.remotes[i]
		member := slices.Contains(p.lead.maximal, r.id)
		if r.leo >= to || !member && !p.waitsFor(r) {
			continue
		}
		to, pos = r.leo, r.pos
		held = Reason{Code: HWHeldBy, Broker: r.id, Offset: r.leo, Bound: p.leo}
		switch {
		case r.leo == model.UnknownOffset:
			held.Code = HWUnheard
		case !member:
			held.Code = HWWaitsFor
		}
	}
	return to, pos, held
}

// waitsFor reports whether the HW does not run away from r although it is
// outside the ISR: it is caught up and may join (R3.21).
func (p *Partition) waitsFor(r *remote) bool {
	return (r.leo == p.leo || p.now.Sub(r.caughtUp) <= p.cfg.LagMax) && p.mayJoin(r) == NoReason
}

// deleteRecords raises the log start by request (R3.27).
func (p *Partition) deleteRecords(in *DeleteRecords) {
	to := in.Offset
	if to == -1 {
		to = p.hw
	}
	switch {
	case !p.Serving():
		p.out.Err = model.ErrNotLeaderOrFollower
	case to < 0 || to > p.hw:
		p.out.Err = model.ErrOffsetOutOfRange
		p.out.because(Reason{Code: DeleteBeyondHW, Broker: model.NoBroker, Offset: to, Bound: p.hw})
	default:
		p.out.raise = to
		p.out.RaiseLogStart = &p.out.raise
	}
}

// logStartMoved follows storage, on a leader and on a follower.
func (p *Partition) logStartMoved(in *LogStartMoved) {
	if in.To > p.leo {
		bug("log start moved to %d, LEO is %d", in.To, p.leo)
	}
	p.epochs.TruncateFromStart(in.To)
	p.raiseStart(in.To)
	p.noteLowWatermark()
}

// raiseStart counts the records below to as gone. They were committed, so a HW
// that lags is raised with it.
func (p *Partition) raiseStart(to model.Offset) {
	if to <= p.logStart {
		return
	}
	p.logStart = to
	if p.hw < to {
		p.hw, p.hwPos = to, model.UnknownPosition
		p.producers.SetHW(to)
	}
	p.out.Wake |= WakeFetch | WakeDelete
}

// LowWatermark is the smallest log start of this leader and of its followers
// that are alive: DeleteRecords is done when it reaches the offset (R3.27).
func (p *Partition) LowWatermark() model.Offset {
	low := p.logStart
	for i := range p.lead.remotes {
		r := &p.lead.remotes[i]
		if peer, ok := (*p.cfg.Peers)[r.id]; ok && !peer.Fenced {
			low = min(low, r.logStart)
		}
	}
	return low
}

func (p *Partition) noteLowWatermark() {
	if p.role != Leader {
		return
	}
	low := p.LowWatermark()
	if low > p.lead.lowWatermark {
		p.out.Wake |= WakeFetch | WakeProduce | WakeDelete
	}
	p.lead.lowWatermark = low
}

// tick lets time act: idle producers are forgotten, the HW is tried again since
// a replica it waited for may be out of grace (R3.12), laggards leave the ISR.
func (p *Partition) tick(wall model.Millis) {
	if ttl := p.cfg.ProducerExpiry; ttl > 0 && wall-p.lastExpiry >= expiryPeriod {
		p.producers.Expire(wall, ttl)
		p.lastExpiry = wall
	}
	if p.role != Leader || p.lead.persisting {
		return
	}
	p.tryHW()
	p.noteLowWatermark()
	p.shrinkISR()
}

// expiryPeriod is how often idle producers are looked for, ten minutes (R2.16).
const expiryPeriod model.Millis = 600_000
