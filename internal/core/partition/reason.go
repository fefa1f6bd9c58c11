package partition

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// ReasonCode names one decision of the core (R13.2).
type ReasonCode uint8

// Reason says why the core decided as it did. It is a plain value, so that it
// costs nothing when nobody reads it; String puts it into words. Which fields
// count is said at the code.
type Reason struct {
	Code   ReasonCode
	Broker model.BrokerID // whom it is about; NoBroker when nobody
	Offset model.Offset
	Bound  model.Offset // what Offset was compared with
	Epoch  model.Epoch
	Err    model.Error
}

// The reasons. The comment names the fields that count besides Code.
const (
	NoReason ReasonCode = iota

	// Roles (R4.1-R4.5).
	BecameLeader   // Epoch, Offset: its start
	BecameFollower // Broker: the leader, Epoch
	LostLeader     // Epoch: there is no leader
	AssignStale    // Epoch
	AssignInvalid  // Epoch
	RoleWaits      // Epoch, Offset: LEO, Bound: end of what is in flight
	EpochWaits     // Epoch: not yet safe on disk
	ReplicaStopped //

	// Why a fetch waits or is refused (R3.3, R3.16, R9.2).
	FetchAtLogEnd       // Offset
	FetchAtHW           // Offset
	FetchAtLSO          // Offset, Bound: HW
	FetchPastBound      // Offset, Bound
	FetchHWNews         // Broker, Offset: HW, Bound: HW told before
	FetchHasRecords     // Offset, Bound
	FetchDiverges       // Broker, Offset: end of Epoch
	FetchOutOfRange     // Broker, Offset, Bound
	FetchEpochAhead     // Broker, Epoch: of its last record
	FetchEpochFenced    // Broker, Epoch: sent
	FetchEpochUnknown   // Broker, Epoch: sent
	FetchNotLeader      // Broker: leader known
	FetchNoReplica      // Broker
	FetchOldIncarnation // Broker
	FetchTruncating     //
	FetchRedirected     // Broker: preferred replica

	// What holds the HW (R3.20, R3.21, R1.11).
	HWFree        // every record is committed
	HWHeldBy      // Broker, Offset: its RemoteLEO, Bound: LEO
	HWUnheard     // Broker: has not fetched in this leadership
	HWWaitsFor    // Broker, Offset: its RemoteLEO; about to join
	HWUnderMinISR // Offset: ISR size, Bound: min ISR
	HWFollows     // Broker: the leader, Offset: HW, Bound: LEO

	// The ISR (R5.2-R5.10).
	JoinProposed       // Broker, Offset
	JoinBehindHW       // Broker, Offset, Bound: HW
	JoinBehindEpoch    // Broker, Offset, Bound: epoch start
	JoinFenced         // Broker
	JoinShuttingDown   // Broker
	JoinUnregistered   // Broker
	JoinUnheard        // Broker
	JoinOldIncarnation // Broker
	JoinWaitsForISR    // Broker: another change is pending
	JoinAtNextFetch    // Broker, Offset
	LeftByLag          // Broker, Offset: its RemoteLEO, Bound: LEO
	LeftUnheard        // Broker, Bound: LEO
	ISRCommitted       // Offset: size
	ISRRolledBack      // Err
	ISRWaitsMetadata   // Err
	ISRSentAgain       // Err
	ISRAnswerStale     //
	ISRSuperseded      // by metadata

	// The follower (R4.7-R4.14).
	ResponseStale  // Offset, Epoch
	CutDiverging   // Offset: new end, Bound: old LEO, Epoch: of the divergence
	CutLeaderShort // Offset, Bound
	CutNoEpochs    // Offset, Bound
	CutRestart     // Offset: new start, Bound: old LEO
	CutInsideBatch // Offset: new start, Bound: old LEO
	LeaderAsked    // Offset
	FetchDelayed   // Err
	FencedByLeader // Epoch
	RecordsRefused // Offset, Bound

	// Producers and deletes.
	ProduceUnderMinISR // Offset: ISR size, Bound: min ISR
	ProduceNotLeader   // Broker: leader known
	ProduceRefused     // Err
	DeleteBeyondHW     // Offset, Bound: HW
)

// phrases has the words of each code. The verbs take, by index: 1 broker, 2
// offset, 3 bound, 4 epoch, 5 error.
var phrases = [...]string{
	NoReason:       "no reason",
	BecameLeader:   "leads epoch %[4]d from offset %[2]d on",
	BecameFollower: "follows b%[1]d in epoch %[4]d",
	LostLeader:     "has no leader in epoch %[4]d",
	AssignStale:    "the news about epoch %[4]d is older than what is known",
	AssignInvalid:  "the news about epoch %[4]d contradicts itself",
	RoleWaits:      "the role in epoch %[4]d waits for the appends in [%[2]d,%[3]d)",
	EpochWaits:     "waits until the start of epoch %[4]d is safe on disk",
	ReplicaStopped: "the replica is gone",

	FetchAtLogEnd:       "nothing at the log end %[2]d",
	FetchAtHW:           "nothing committed at %[2]d",
	FetchAtLSO:          "an open transaction starts at %[2]d, HW %[3]d",
	FetchPastBound:      "%[2]d is past the visible end %[3]d",
	FetchHWNews:         "b%[1]d has not heard of HW %[2]d, only of %[3]d",
	FetchHasRecords:     "records in [%[2]d,%[3]d)",
	FetchDiverges:       "the log of b%[1]d differs: epoch %[4]d ends at %[2]d",
	FetchOutOfRange:     "offset %[2]d is outside the log, bound %[3]d",
	FetchEpochAhead:     "its last record is of epoch %[4]d, newer than every epoch here",
	FetchEpochFenced:    "the sender still lives in epoch %[4]d",
	FetchEpochUnknown:   "epoch %[4]d is not known here yet",
	FetchNotLeader:      "not the leader, that is b%[1]d",
	FetchNoReplica:      "b%[1]d is no replica as far as known here",
	FetchOldIncarnation: "the request is from an earlier life of b%[1]d",
	FetchTruncating:     "the log is being cut",
	FetchRedirected:     "b%[1]d is nearer",

	HWFree:        "every record is committed",
	HWHeldBy:      "b%[1]d holds the HW: its end is known as %[2]d, the leader's is %[3]d",
	HWUnheard:     "b%[1]d holds the HW: it has not fetched in this leadership",
	HWWaitsFor:    "the HW waits for b%[1]d, which is about to join: its end is known as %[2]d, the leader's is %[3]d",
	HWUnderMinISR: "the HW is frozen: %[2]d in sync, min.insync.replicas is %[3]d",
	HWFollows:     "the HW is what b%[1]d told",

	JoinProposed:       "b%[1]d has caught up at %[2]d",
	JoinBehindHW:       "b%[1]d may not join: its end %[2]d is below the HW %[3]d",
	JoinBehindEpoch:    "b%[1]d may not join: its end %[2]d is below the epoch start %[3]d",
	JoinFenced:         "b%[1]d may not join: it is fenced",
	JoinShuttingDown:   "b%[1]d may not join: it is shutting down",
	JoinUnregistered:   "b%[1]d may not join: it is not registered",
	JoinUnheard:        "b%[1]d may not join: it has not fetched yet",
	JoinOldIncarnation: "b%[1]d may not join: its last fetch is not from the life of it that metadata knows",
	JoinWaitsForISR:    "b%[1]d may not join yet: another change of the ISR is pending",
	JoinAtNextFetch:    "b%[1]d may join with its next fetch",
	LeftByLag:          "b%[1]d is out of sync: at %[2]d of %[3]d for too long",
	LeftUnheard:        "b%[1]d is out of sync: it has not fetched in this leadership",
	ISRCommitted:       "the controller committed an ISR of %[2]d",
	ISRRolledBack:      "the controller refused the ISR: %[5]v",
	ISRWaitsMetadata:   "the ISR stays open until metadata tells: %[5]v",
	ISRSentAgain:       "the ISR is proposed again: %[5]v",
	ISRAnswerStale:     "the answer is for an ISR that is no longer proposed",
	ISRSuperseded:      "metadata has overtaken the proposed ISR",

	ResponseStale:  "the answer is for offset %[2]d in epoch %[4]d, which is over",
	CutDiverging:   "cuts to %[2]d: the leader's epoch %[4]d has other records",
	CutLeaderShort: "cuts to %[2]d: the leader's log ends there",
	CutNoEpochs:    "cuts to the HW %[2]d: the log knows no epochs",
	CutRestart:     "starts anew at %[2]d: the leader no longer has what came before",
	CutInsideBatch: "starts anew at %[2]d: the leader's log starts inside the batch that begins there",
	LeaderAsked:    "offset %[2]d is out of the leader's range: asks for its bounds",
	FetchDelayed:   "tries again later: %[5]v",
	FencedByLeader: "the leader is past epoch %[4]d: waits for metadata",
	RecordsRefused: "refuses records at %[2]d, expected %[3]d: the batches do not fit",

	ProduceUnderMinISR: "%[2]d in sync, min.insync.replicas is %[3]d",
	ProduceNotLeader:   "not the leader, that is b%[1]d",
	ProduceRefused:     "%[5]v",
	DeleteBeyondHW:     "offset %[2]d is beyond the HW %[3]d",
}

// String says it in words. Brokers are written b1, b2.
func (r Reason) String() string {
	if int(r.Code) >= len(phrases) {
		return fmt.Sprintf("reason %d", r.Code)
	}
	// The empty last verb keeps fmt from complaining about arguments unused.
	return fmt.Sprintf(phrases[r.Code]+"%.0[6]s", r.Broker, r.Offset, r.Bound, r.Epoch, r.Err, "")
}
