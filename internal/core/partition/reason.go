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
	JoinBelowStart     // Broker, Offset: its log start, Bound: ours
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

// phrases has the name and the words of each code. The verbs take, by index: 1
// broker, 2 offset, 3 bound, 4 epoch, 5 error.
var phrases = [...]struct{ name, words string }{
	NoReason:       {"none", "no reason"},
	BecameLeader:   {"became-leader", "leads epoch %[4]d from offset %[2]d on"},
	BecameFollower: {"became-follower", "follows b%[1]d in epoch %[4]d"},
	LostLeader:     {"lost-leader", "has no leader in epoch %[4]d"},
	AssignStale:    {"assign-stale", "the news about epoch %[4]d is older than what is known"},
	AssignInvalid:  {"assign-invalid", "the news about epoch %[4]d contradicts itself"},
	RoleWaits:      {"role-waits", "the role in epoch %[4]d waits for the appends in [%[2]d,%[3]d)"},
	EpochWaits:     {"epoch-waits", "waits until the start of epoch %[4]d is safe on disk"},
	ReplicaStopped: {"replica-stopped", "the replica is gone"},

	FetchAtLogEnd:       {"fetch-at-log-end", "nothing at the log end %[2]d"},
	FetchAtHW:           {"fetch-at-hw", "nothing committed at %[2]d"},
	FetchAtLSO:          {"fetch-at-lso", "an open transaction starts at %[2]d, HW %[3]d"},
	FetchPastBound:      {"fetch-past-bound", "%[2]d is past the visible end %[3]d"},
	FetchHWNews:         {"fetch-hw-news", "b%[1]d has not heard of HW %[2]d, only of %[3]d"},
	FetchHasRecords:     {"fetch-has-records", "records in [%[2]d,%[3]d)"},
	FetchDiverges:       {"fetch-diverges", "the log of b%[1]d differs: epoch %[4]d ends at %[2]d"},
	FetchOutOfRange:     {"fetch-out-of-range", "offset %[2]d is outside the log, bound %[3]d"},
	FetchEpochAhead:     {"fetch-epoch-ahead", "its last record is of epoch %[4]d, newer than every epoch here"},
	FetchEpochFenced:    {"fetch-epoch-fenced", "the sender still lives in epoch %[4]d"},
	FetchEpochUnknown:   {"fetch-epoch-unknown", "epoch %[4]d is not known here yet"},
	FetchNotLeader:      {"fetch-not-leader", "not the leader, that is b%[1]d"},
	FetchNoReplica:      {"fetch-no-replica", "b%[1]d is no replica as far as known here"},
	FetchOldIncarnation: {"fetch-old-incarnation", "the request is from an earlier life of b%[1]d"},
	FetchTruncating:     {"fetch-truncating", "the log is being cut"},
	FetchRedirected:     {"fetch-redirected", "b%[1]d is nearer"},

	HWFree:        {"hw-free", "every record is committed"},
	HWHeldBy:      {"hw-held-by", "b%[1]d holds the HW: its end is known as %[2]d, the leader's is %[3]d"},
	HWUnheard:     {"hw-unheard", "b%[1]d holds the HW: it has not fetched in this leadership"},
	HWWaitsFor:    {"hw-waits-for", "the HW waits for b%[1]d, which is about to join: its end is known as %[2]d, the leader's is %[3]d"},
	HWUnderMinISR: {"hw-under-min-isr", "the HW is frozen: %[2]d in sync, min.insync.replicas is %[3]d"},
	HWFollows:     {"hw-follows", "the HW is what b%[1]d told"},

	JoinProposed:       {"join-proposed", "b%[1]d has caught up at %[2]d"},
	JoinBehindHW:       {"join-behind-hw", "b%[1]d may not join: its end %[2]d is below the HW %[3]d"},
	JoinBehindEpoch:    {"join-behind-epoch", "b%[1]d may not join: its end %[2]d is below the epoch start %[3]d"},
	JoinBelowStart:     {"join-below-start", "b%[1]d may not join yet: it holds records from %[2]d on, which below %[3]d nobody can compare"},
	JoinFenced:         {"join-fenced", "b%[1]d may not join: it is fenced"},
	JoinShuttingDown:   {"join-shutting-down", "b%[1]d may not join: it is shutting down"},
	JoinUnregistered:   {"join-unregistered", "b%[1]d may not join: it is not registered"},
	JoinUnheard:        {"join-unheard", "b%[1]d may not join: it has not fetched yet"},
	JoinOldIncarnation: {"join-old-incarnation", "b%[1]d may not join: its last fetch is not from the life of it that metadata knows"},
	JoinWaitsForISR:    {"join-waits-for-isr", "b%[1]d may not join yet: another change of the ISR is pending"},
	JoinAtNextFetch:    {"join-at-next-fetch", "b%[1]d may join with its next fetch"},
	LeftByLag:          {"left-by-lag", "b%[1]d is out of sync: at %[2]d of %[3]d for too long"},
	LeftUnheard:        {"left-unheard", "b%[1]d is out of sync: it has not fetched in this leadership"},
	ISRCommitted:       {"isr-committed", "the controller committed an ISR of %[2]d"},
	ISRRolledBack:      {"isr-rolled-back", "the controller refused the ISR: %[5]v"},
	ISRWaitsMetadata:   {"isr-waits-metadata", "the ISR stays open until metadata tells: %[5]v"},
	ISRSentAgain:       {"isr-sent-again", "the ISR is proposed again: %[5]v"},
	ISRAnswerStale:     {"isr-answer-stale", "the answer is for an ISR that is no longer proposed"},
	ISRSuperseded:      {"isr-superseded", "metadata has overtaken the proposed ISR"},

	ResponseStale:  {"response-stale", "the answer is for offset %[2]d in epoch %[4]d, which is over"},
	CutDiverging:   {"cut-diverging", "cuts to %[2]d: the leader's epoch %[4]d has other records"},
	CutLeaderShort: {"cut-leader-short", "cuts to %[2]d: the leader's log ends there"},
	CutNoEpochs:    {"cut-no-epochs", "cuts to the HW %[2]d: the log knows no epochs"},
	CutRestart:     {"cut-restart", "starts anew at %[2]d: the leader no longer has what came before"},
	CutInsideBatch: {"cut-inside-batch", "starts anew at %[2]d: the leader's log starts inside the batch that begins there"},
	LeaderAsked:    {"leader-asked", "offset %[2]d is out of the leader's range: asks for its bounds"},
	FetchDelayed:   {"fetch-delayed", "tries again later: %[5]v"},
	FencedByLeader: {"fenced-by-leader", "the leader is past epoch %[4]d: waits for metadata"},
	RecordsRefused: {"records-refused", "refuses records at %[2]d, expected %[3]d: the batches do not fit"},

	ProduceUnderMinISR: {"produce-under-min-isr", "%[2]d in sync, min.insync.replicas is %[3]d"},
	ProduceNotLeader:   {"produce-not-leader", "not the leader, that is b%[1]d"},
	ProduceRefused:     {"produce-refused", "%[5]v"},
	DeleteBeyondHW:     {"delete-beyond-hw", "offset %[2]d is beyond the HW %[3]d"},
}

// String is the name of the code, such as "hw-held-by": for metrics and for
// machines.
func (c ReasonCode) String() string {
	if int(c) >= len(phrases) {
		return fmt.Sprintf("reason-%d", uint8(c))
	}
	return phrases[c].name
}

// String says it in words. Brokers are written b1, b2.
func (r Reason) String() string {
	if int(r.Code) >= len(phrases) {
		return r.Code.String()
	}
	// The empty last verb keeps fmt from complaining about arguments unused.
	return fmt.Sprintf(phrases[r.Code].words+"%.0[6]s", r.Broker, r.Offset, r.Bound, r.Epoch, r.Err, "")
}
