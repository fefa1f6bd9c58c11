package partition

import (
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// Input is one of the pointer types below: everything that can happen to a
// partition. The shell reuses one value of each type, so that a Step does not
// allocate; Step keeps no reference to its input unless the type says so.
type Input interface{ input() }

type (
	// Assign is the state of the partition that the metadata log holds: who
	// leads, who replicates. It makes this replica leader or follower (R4.1,
	// R4.2, R4.4). Slices are kept.
	Assign struct {
		Leader         model.BrokerID // NoBroker when there is none
		LeaderEpoch    model.Epoch
		PartitionEpoch model.PartitionEpoch
		Replicas       []model.BrokerID // AR in assignment order
		ISR            []model.BrokerID
		Recovering     bool // leader recovery state RECOVERING (R1.16)
	}

	// Configure changes what the topic's configs say.
	Configure struct {
		MinISR int // min.insync.replicas
	}

	// Produce asks the leader to append one batch of Batch.Records validated
	// records. Errors: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
	// OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
	Produce struct {
		Acks  int8 // -1 all, 0 none, 1 leader
		Batch producers.Batch
		Bytes int32 // size of the batch, for the byte counts of parked fetches
	}

	// Appended reports that storage wrote every batch below End. Appends may be
	// reported one by one or several at once, always in order.
	Appended struct {
		End model.Offset
		Pos model.Position // where End lies
	}
	// EpochPersisted reports that the epoch cache of Ready.PersistEpochs is
	// safe on disk: a new leader serves from here on (R4.2a).
	EpochPersisted struct{ Epoch model.Epoch }
	// Truncated reports that storage did what Ready.Truncate asked. Producers
	// is the state rebuilt from the log that is left; it is kept.
	Truncated struct {
		LEO       model.Offset
		LogStart  model.Offset
		Pos       model.Position
		Producers *producers.State
	}
	// LogStartMoved reports that retention or DeleteRecords raised the log
	// start offset on this replica.
	LogStartMoved struct{ To model.Offset }

	// FetchRequest is a follower's or a consumer's wish for records from Offset
	// on (R3, R9). A follower's offset is its LEO, hence the acknowledgement.
	FetchRequest struct {
		Replica      model.BrokerID    // NoBroker for a consumer
		ReplicaEpoch model.BrokerEpoch // UnknownBrokerEpoch before v15
		LeaderEpoch  model.Epoch       // current leader epoch of the sender; NoEpoch when it sent none
		Offset       model.Offset
		Pos          model.Position // where Offset lies here, resolved by the shell
		LastEpoch    model.Epoch    // last fetched epoch; NoEpoch when it sent none
		LogStart     model.Offset   // the follower's log start offset
		Committed    bool           // consumer with isolation read_committed
		FollowerOK   bool           // consumer of v11 and up: any replica may serve (KIP-392)
		RackAware    bool           // a rack-aware selector is configured and the consumer sent metadata
		Rack         string
		MaxBytes     int32
		// Retry marks a request that comes back out of the purgatory: it moves
		// no follower state (R3.8).
		Retry bool
		// Answering says that the reply will be sent: the HW in it counts as
		// told to this follower (R3.18). A Reply with Now counts anyhow.
		Answering bool
	}

	// Heard says that a follower asked again at a time, for the same as in its last
	// fetch, and that nothing had happened here between the two (R3.10). It stands
	// for fetches of a follower that is Quiet.
	Heard struct {
		Replica model.BrokerID
		At      model.Time
	}

	// FetchResponse is the leader's answer to this follower's fetch (R4.7-R4.14).
	FetchResponse struct {
		LeaderEpoch model.Epoch  // that the request carried
		Offset      model.Offset // that the request asked for
		// Generation is FetchPosition.Generation of the request. 0 promises that
		// no truncation happened since: offset and epoch alone cannot tell.
		Generation uint64
		Err        model.Error
		Diverging  model.EpochEnd // Epoch is NoEpoch when the logs agree
		HW         model.Offset
		LogStart   model.Offset
		Batches    []FetchedBatch // whole batches, CRC checked; empty when none. Not kept.
	}
	// LeaderOffsets answers Ready.AskLeader: the leader's own log bounds after
	// it called our offset out of range (R4.13). Err says that the leader could
	// not be asked; the next fetch asks again.
	LeaderOffsets struct {
		Err         model.Error
		LeaderEpoch model.Epoch // that the question carried
		LogStart    model.Offset
		LEO         model.Offset
	}

	// ISRAnswer is the controller's answer to Ready.AlterISR (R5.10). Err None
	// carries the new state. A lost connection is ErrNetworkException: the same
	// proposal is sent again.
	ISRAnswer struct {
		Proposal       uint64 // AlterISR.Proposal
		Err            model.Error
		Leader         model.BrokerID
		LeaderEpoch    model.Epoch
		PartitionEpoch model.PartitionEpoch
		ISR            []model.BrokerID // kept
		Recovering     bool
	}

	// DeleteRecords asks the leader to raise the log start to Offset; -1 means
	// the HW (R3.27). Errors: NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE.
	DeleteRecords struct{ Offset model.Offset }

	// Tick lets time act: followers fall out of the ISR, the HW is tried again
	// (R5.1, R3.12).
	Tick struct{}

	// Stop says that this broker no longer hosts the replica, or that its log
	// directory went offline: waiters are answered, the state is dead.
	Stop struct{ Err model.Error }
)

func (*Assign) input()         {}
func (*Configure) input()      {}
func (*Produce) input()        {}
func (*Appended) input()       {}
func (*EpochPersisted) input() {}
func (*Truncated) input()      {}
func (*LogStartMoved) input()  {}
func (*FetchRequest) input()   {}
func (*Heard) input()          {}
func (*FetchResponse) input()  {}
func (*LeaderOffsets) input()  {}
func (*ISRAnswer) input()      {}
func (*DeleteRecords) input()  {}
func (*Tick) input()           {}
func (*Stop) input()           {}

// FetchedBatch is the header of one batch that a follower copies as it is.
type FetchedBatch struct {
	Base     model.Offset
	Last     model.Offset
	Epoch    model.Epoch // partition leader epoch of the batch
	Bytes    int32
	Producer producers.Batch
}

// Ready is what the shell must do after a Step, in the order of the fields.
// Pointers and slices are valid until the next Step of the same partition.
type Ready struct {
	// Err refuses the input that was stepped; the other fields still count. A
	// fetch that is refused has the error in its Reply too.
	Err model.Error

	// Truncate: cut the local log, then Step(Truncated). Never while an append
	// is in flight (R4.2a). A restart may come together with the Append to be
	// written after it (R4.10); Step(Truncated) then comes first.
	Truncate *Truncate
	// PersistEpochs: write the leader-epoch checkpoint with fsync, then
	// Step(EpochPersisted).
	PersistEpochs *PersistEpochs
	// Append: write to the local log, then Step(Appended).
	Append *Append
	// Duplicate: the produced batch was written before; answer with these
	// offsets and wait as for new ones (R2.11).
	Duplicate *Append
	// RaiseLogStart: move the log start offset of the local log up to here, then
	// Step(LogStartMoved). After DeleteRecords it is always set, with the offset
	// to wait for, and may be where the log starts already.
	RaiseLogStart *model.Offset
	// AlterISR: propose to the controller, then Step(ISRAnswer).
	AlterISR *AlterISR
	// Reply answers the stepped FetchRequest. Whether it is sent or parked is
	// decided over all partitions of the request (R3.16).
	Reply *Reply
	// AskLeader: fetch the leader's log start and LEO, then Step(LeaderOffsets).
	AskLeader bool
	// Backoff: do not fetch this partition again before replica.fetch.backoff.ms.
	Backoff bool
	// FetchFrom: (re)start fetching from this leader with NextFetch. NoBroker
	// stops fetching. Set only when it changed.
	FetchFrom *model.BrokerID

	// Wake says which waiters of this partition to look at again (R7.6).
	Wake Wake
	// Reasons tells why, for the log, metrics, the console and explain (R13.2).
	Reasons []Reason
	// Cut accounts a truncation (R13.3).
	Cut *Cut
}

// Wake is a set of waiter kinds.
type Wake uint8

// The kinds of waiters.
const (
	WakeFetch Wake = 1 << iota
	WakeProduce
	WakeDelete
)

type (
	// Truncate asks storage to cut the log to To. Restart asks to drop
	// everything and start an empty log at To (R4.13, R4.10).
	Truncate struct {
		To      model.Offset
		Restart bool
		// Epochs is the epoch cache after the cut, to be persisted.
		Epochs []model.EpochStart
	}
	// PersistEpochs is the whole epoch cache, to be written durably.
	PersistEpochs struct {
		Epoch  model.Epoch
		Epochs []model.EpochStart
	}
	// Append is [Base, End) of the leader's own numbering, or the end of what a
	// follower copies. Epochs, when not nil, is the epoch cache to persist
	// before the bytes (R8.12).
	Append struct {
		Base, End model.Offset
		Epoch     model.Epoch // stamped into the batch on the leader
		Epochs    []model.EpochStart
		// Timestamp is the original's, for a duplicate.
		Timestamp model.Millis
	}
	// AlterISR is a proposal to the controller (R5.6).
	AlterISR struct {
		Proposal       uint64 // names this proposal in ISRAnswer
		LeaderEpoch    model.Epoch
		PartitionEpoch model.PartitionEpoch
		ISR            []ISRMember
	}
	// ISRMember carries the broker epoch of the fetch that made the case (R5.5).
	ISRMember struct {
		ID    model.BrokerID
		Epoch model.BrokerEpoch
	}
	// Reply is one partition's part of a fetch response.
	Reply struct {
		Err model.Error
		// Records [From, Limit) may be sent; LimitPos is where Limit lies, when known.
		From, Limit model.Offset
		LimitPos    model.Position
		// Bytes is how much of it counts towards min bytes (R3.17); 1 at least
		// when there is something and the positions cannot tell.
		Bytes int64
		// Now says that the request must be answered at once: an error, a
		// divergence, a hint or a bound passed (R3.16, R3.17).
		Now bool
		// News says that there is a HW that the follower can use and was not told.
		// That is worth an answer; it may wait a moment for records (R3.18).
		News        bool
		HW, LSO     model.Offset // -1 with an error
		LogStart    model.Offset // -1 with an error
		LEO         model.Offset
		Diverging   model.EpochEnd // Epoch NoEpoch when none
		Preferred   model.BrokerID // preferred read replica; NoBroker when none
		Leader      model.BrokerID // the leader known here
		LeaderEpoch model.Epoch
		// Generation is the truncation generation that the plan was made in: a
		// read after it moved is void.
		Generation uint64
		// Why names the rule that keeps the request waiting.
		Why Reason
	}
	// Cut says exactly what a truncation removed (R13.3).
	Cut struct {
		From, To    model.Offset // removed [From, To)
		BelowHW     bool         // whether it took records below the local HW
		HWBefore    model.Offset
		Epochs      []model.EpochStart // epoch entries that the removed range had
		LeaderEpoch model.Epoch        // of the leader that this replica follows
		Rule        string             // rule number, such as "R4.11"
	}
)

// ProduceWait is what an acks=all answer waits for: HW >= End in the same
// leadership (R2.18, R2.20).
type ProduceWait struct {
	End        model.Offset
	Leadership uint64 // Partition.Leadership at the append
}
