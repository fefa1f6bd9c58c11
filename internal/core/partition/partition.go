// Package partition is the replication state machine of one partition on one
// broker. It knows offsets and epochs, never record bytes: inputs go in through
// Step, what must be done about them comes out as a Ready.
package partition

import (
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// HWMode says which high watermark an immediate fetch answer carries (R3.15).
type HWMode uint8

const (
	// Seed records a follower's fetch first and reads after: the answer carries
	// the high watermark that this very fetch produced, and news of a higher one
	// completes a follower's parked fetch. Deviation 1 (R13.1), the default.
	Seed HWMode = iota
	// Kafka reads first, as Apache Kafka does: the answer carries the high
	// watermark from before the fetch (R3.14).
	Kafka
)

// Role is what a replica is for its partition.
//
//	None -> Leader, Follower        first Assign
//	Leader <-> Follower             Assign with a greater leader epoch
//	any -> Stopped                  Stop; final
type Role uint8

// The roles.
const (
	None Role = iota
	Follower
	Leader
	Stopped
)

// String returns the role in lower case.
func (r Role) String() string { return [...]string{"none", "follower", "leader", "stopped"}[r] }

// Never is the time of what has not happened.
const Never = model.Time(-1 << 62)

// Config is what a replica starts with: the broker's settings and what its log
// was found to hold.
type Config struct {
	ID     model.BrokerID
	LagMax time.Duration // replica.lag.time.max.ms
	HWMode HWMode
	MinISR int // min.insync.replicas
	// ProducerExpiry drops idle producer ids (R2.16); 0 keeps them.
	ProducerExpiry time.Duration
	// Peers is the broker view of the metadata image. Its owner replaces what it
	// points to between Steps.
	Peers *Peers

	LEO, HW, LogStart model.Offset
	LEOPos            model.Position // where LEO lies; UnknownPosition when not known
	Epochs            []model.EpochStart
	Producers         *producers.State // of the log up to LEO; kept; nil for an empty one
}

// Partition is one replica of a partition. It has one owner, a loop.
//
// The offsets always stand in the order of R1.9: log start <= LSO <= HW <= LEO.
// next >= LEO is where the next append goes: [LEO, next) is in flight to storage.
type Partition struct {
	cfg Config
	now model.Time

	role           Role
	leader         model.BrokerID
	epoch          model.Epoch
	partitionEpoch model.PartitionEpoch
	replicas       []model.BrokerID // AR
	stopErr        model.Error
	// leadership names the current leadership; it changes each time this replica
	// stops being leader (R2.20). generation changes with each truncation.
	leadership, generation uint64
	steps                  uint64

	epochs       epochs.Cache
	producers    *producers.State
	lastExpiry   model.Millis
	logStart, hw model.Offset
	leo, next    model.Offset
	leoPos       model.Position
	hwPos        model.Position

	// deferred is an Assign that waits until nothing is in flight (R4.2a).
	deferred    Assign
	hasDeferred bool
	// truncating is set from Ready.Truncate to Truncated.
	truncating bool

	lead   leaderState
	follow followerState
	out    scratch
}

// scratch is what a Ready points to, kept so that a Step does not allocate.
type scratch struct {
	Ready
	reply     Reply
	append    Append
	truncate  Truncate
	persist   PersistEpochs
	raise     model.Offset
	fetchFrom model.BrokerID
	cut       Cut
	reasons   []Reason
}

func (s *scratch) reset() {
	s.reasons = s.reasons[:0]
	s.Ready = Ready{}
}

// because adds a reason to the Ready.
func (s *scratch) because(r Reason) {
	s.reasons = append(s.reasons, r)
	s.Reasons = s.reasons
}

// New returns the replica of a log as it was found. It has no role before its
// first Assign. HW is clamped into [LogStart, LEO] (R8.16).
func New(cfg Config) *Partition {
	p := &Partition{
		cfg: cfg, generation: 1, leader: model.NoBroker, epoch: model.NoEpoch, partitionEpoch: model.NoPartitionEpoch,
		epochs: epochs.New(cfg.Epochs), producers: cfg.Producers,
		logStart: cfg.LogStart, hw: min(max(cfg.HW, cfg.LogStart), cfg.LEO),
		leo: cfg.LEO, next: cfg.LEO, leoPos: cfg.LEOPos, hwPos: model.UnknownPosition,
	}
	if p.producers == nil {
		p.producers = producers.New()
	}
	if p.cfg.Peers == nil {
		p.cfg.Peers = &Peers{}
	}
	if p.hw == p.leo {
		p.hwPos = p.leoPos
	}
	p.lead.start = model.UnknownOffset
	p.producers.SetHW(p.hw)
	p.check(p.Marks(), model.NoEpoch)
	return p
}

// Step applies one input at time now; wall is the time of day. The caller
// carries out the Ready before the next Step and reports back what the fields
// ask for. Step panics when an invariant breaks: a corrupt replica must stop.
func (p *Partition) Step(now model.Time, wall model.Millis, in Input) Ready {
	p.now = now
	p.steps++
	p.out.reset()
	before, epoch := p.Marks(), p.epoch
	if p.role == Stopped {
		p.refuseStopped(in)
		return p.out.Ready
	}
	p.take(in, wall)
	p.check(before, epoch)
	return p.out.Ready
}

// Steps counts the inputs that were applied: while it stays, nothing here changes.
func (p *Partition) Steps() uint64 { return p.steps }

// take hands the input to its method.
func (p *Partition) take(in Input, wall model.Millis) {
	switch in := in.(type) {
	case *Assign:
		p.assign(in)
	case *Configure:
		p.configure(in)
	case *Produce:
		p.produce(in)
	case *Appended:
		p.appended(in)
	case *EpochPersisted:
		p.epochPersisted(in)
	case *Truncated:
		p.truncated(in)
	case *LogStartMoved:
		p.logStartMoved(in)
	case *FetchRequest:
		p.fetch(in)
	case *Heard:
		p.hear(in)
	case *FetchResponse:
		p.fetched(in)
	case *LeaderOffsets:
		p.leaderOffsets(in)
	case *ISRAnswer:
		p.isrAnswer(in)
	case *DeleteRecords:
		p.deleteRecords(in)
	case *Tick:
		p.tick(wall)
	case *Stop:
		p.stop(in)
	default:
		panic(fmt.Sprintf("partition: unknown input %T", in))
	}
}

// refuseStopped answers an input to a replica that is gone.
func (p *Partition) refuseStopped(in Input) {
	p.out.Err = p.stopErr
	if in, ok := in.(*FetchRequest); ok {
		p.newReply(in)
		p.refuse(p.stopErr, Reason{Code: ReplicaStopped, Broker: model.NoBroker})
	}
}
