package check

import "reflect"

// rule is one invariant.
type rule any

// nameOf is what a rule is called: its type.
func nameOf(r rule) string { return reflect.TypeOf(r).Name() }

// replicaRule looks at one replica that changed.
type replicaRule interface {
	rule
	replica(s *Set, m *mirror) string
}

// batchRule looks at one batch that came to a log.
type batchRule interface {
	rule
	batch(s *Set, a arrival) string
}

// partRule compares the replicas of a partition of which something changed.
type partRule interface {
	rule
	part(s *Set, p *part) string
}

// askRule looks at what a fetch that waits wants of one replica.
type askRule interface {
	rule
	ask(m *mirror, a *Ask) string
}

// settledRule says what a cluster without faults still has to do.
type settledRule interface {
	rule
	settled(s *Set, c *Cluster) (*part, string)
}

// table is every rule with what people are told of it.
var table = []struct {
	rule    rule
	numbers string
	clean   bool
	says    string
}{
	{LogMarks{}, "I1", false, "a replica's marks stand in order and are those of the log on its disk"},
	{KeptOnDisk{}, "I1", false, "a restart finds what was written, a power cut leaves what is below the recovery point"},
	{LogOrder{}, "I2", false, "along a log, offsets rise without overlap and epochs never fall"},
	{EpochCache{}, "I3", false, "a replica's epochs are those of the records in its log"},
	{EpochOnDisk{}, "R8.12, R4.2a", false, "the disk names an epoch for good before the log holds a record of it and before its leader serves"},
	{SequenceContiguous{}, "I4", false, "the sequences of a producer follow each other, whatever was sent again"},
	{ProducerKept{}, "I4", true, "a batch that was acknowledged is told alike when it is sent again, and the next one is in order"},
	{HWStep{}, "I5, I11", false, "the high watermark moves only with enough in-sync replicas, only to what each of them has, and back only on a follower"},
	{EnoughToWrite{}, "R2.3", false, "a leader whose ISR is below the minimum takes nothing that asks for acks=all"},
	{HWTried{}, "R3.12, R3.22", false, "a leader's high watermark stands where the slowest replica stands that counts"},
	{HWPlace{}, "R3.20", false, "a high watermark lies in the segment in which all that count stand"},
	{HWWaits{}, "R3.21", false, "a high watermark does not run away from a follower that is about to join"},
	{RoleState{}, "I6, I7, I9", false, "epochs never go back, only a leader remembers followers, and it counts with itself and at least its ISR"},
	{ResponseCut{}, "I8", false, "one answer to a fetch is one consistent cut of a replica"},
	{QuorumSuperset{}, "I10", false, "the ISR that a leader counts with contains the controller's"},
	{KnowledgeSoundness{}, "I12", false, "a follower holds what its leader believes it holds"},
	{HeardInEpoch{}, "R3.3, R4.3", false, "what a leader knows of a follower was told in the leader's epoch, or in the one before if it led then, too"},
	{KnownByFetch{}, "R3.7, R3.8", false, "what a leader knows of a follower changes only by a fetch that it answered well"},
	{JoinedByFetch{}, "R5.4, R5.5", false, "whom a leader asks to take in has just fetched what a member has to have, and may be one"},
	{LeavesByLag{}, "R3.10, R5.2", false, "whom a leader asks to take out has lagged for longer than it may"},
	{LaggardsLeave{}, "R5.1, R5.2", false, "a leader asks to take out who lags for longer than it may"},
	{ControllerState{}, "I13, I14, I15", false, "leader, ISR, ELR and reassignment of a partition fit each other and the brokers' lives"},
	{ChangeSteps{}, "I16", false, "every change raises the partition epoch, and the leader epoch exactly when it must"},
	{BrokerEpochs{}, "I17", false, "the epochs of a broker rise, and only who is registered joins an ISR"},
	{OneLife{}, "R6.14", false, "a broker is not registered anew while its life before is heard of, on a connection that stands"},
	{UnfencedInformed{}, "R6.15", false, "who is unfenced has read its own registration"},
	{CleanStopKept{}, "R6.12", false, "who stopped in order loses no claim to be elected by its next registration"},
	{ISRNotEmpty{}, "R6.9", false, "without an ELR, an ISR keeps its last member"},
	{MovedWhole{}, "R6.16", false, "a reassignment is complete when all of its target is in the ISR"},
	{OneControllerPerEpoch{}, "R6.1", false, "of each epoch of the quorum, one controller decides"},
	{MetadataViews{}, "I18", false, "whoever knows a partition epoch knows the same state of the partition"},
	{OneWriterPerEpoch{}, "I19", false, "of each leader epoch, at most one life of one broker appended"},
	{LogMatching{}, "I20", false, "two replicas that hold an offset in the same epoch hold the same records up to it"},
	{StablePrefix{}, "I21", true, "below both high watermarks, any two replicas agree"},
	{StrongISR{}, "I22", true, "every replica that may be elected holds everything below the leader's high watermark"},
	{LeaderCompleteness{}, "I23", true, "a leader holds every committed record"},
	{CandidateCompleteness{}, "I24", true, "whoever could become leader holds every committed record"},
	{UncleanExclusion{}, "I25", false, "who stopped without an orderly end may not be elected before it caught up"},
	{NoGlobalLoss{}, "I26", true, "every committed record is on some replica"},
	{AckedCommitted{}, "I27", true, "what acks=all acknowledged was committed, at that offset"},
	{RepeatableRead{}, "I28", true, "what a consumer saw was committed and stays"},
	{DeliveredOnce{}, "I29", false, "a consumer gets ascending offsets, none twice and none left out"},
	{GroupOffsets{}, "I29", true, "a group resumes where it committed last"},
	{LatestMonotone{}, "I30", true, "the end that clients are told never goes back"},
	{LinearizableLog{}, "I31", true, "what was acknowledged before a call began has a lower offset than what it writes"},
	{NoLostWakeup{}, "I32", false, "nothing waits that could be answered, or longer than it may"},
	{DeletedEverywhere{}, "R3.27", false, "a deletion of records is acknowledged when every follower that is alive has done it"},
	{HintFits{}, "R9.4", false, "a reader is sent to a member of the ISR that holds what it asked for"},
	{PastEndAnswered{}, "R9.2", false, "a reader past the end of what it may see is answered soon"},
	{NewsAnswered{}, "R3.18", false, "a follower that can use a higher high watermark is answered at once"},
	{BytesAnswered{}, "R3.17", false, "a fetch is answered when what there is suffices, or lies before the newest segment"},
	{Unfenced{}, "J1", false, "every broker that runs is registered and unfenced in the end"},
	{ISRFull{}, "J2", false, "every replica is in the ISR with the leader's end in the end"},
	{HWReachesLEO{}, "J3", false, "every high watermark reaches the log end once nobody appends"},
	{Answered{}, "J4", false, "every produce request is answered"},
	{ISRSettled{}, "J5", false, "every proposed ISR is decided"},
	{MetadataConverged{}, "J6", false, "everybody has the same picture of the metadata in the end"},
	{ReassignmentDone{}, "J7", false, "every reassignment completes"},
	{DivergenceEnds{}, "J8", false, "a follower cuts its log at most once for each epoch before it follows"},
	{ConfigsObeyed{}, "J9", false, "every log obeys the configs that its topic has in the end"},
	{AckedKept{}, "I26, I27", true, "in the end the log holds every acknowledged record, at its offset"},
	{NoDuplicates{}, "I4", false, "in the end the log holds each record once"},
	{ProducerOrder{}, "I31", false, "in the end the records of a producer lie in the order in which they were sent"},
}

// ruleSet is the rules by what they look at.
type ruleSet struct {
	replica []replicaRule
	batch   []batchRule
	part    []partRule
	image   []imageRule
	change  []changeRule
	settled []settledRule
	ask     []askRule
	ends    []endRule
	skipped map[string]bool
}

func newRuleSet(skip []string) ruleSet {
	out := ruleSet{skipped: map[string]bool{}}
	for _, name := range skip {
		out.skipped[name] = true
	}
	for i := range table {
		if r := table[i].rule; out.has(r) {
			out.replica = add(out.replica, r)
			out.batch = add(out.batch, r)
			out.part = add(out.part, r)
			out.image = add(out.image, r)
			out.change = add(out.change, r)
			out.settled = add(out.settled, r)
			out.ask = add(out.ask, r)
			out.ends = add(out.ends, r)
		}
	}
	return out
}

// add adds r to the list if it is of that kind.
func add[R rule](list []R, r rule) []R {
	if of, ok := r.(R); ok {
		return append(list, of)
	}
	return list
}

// has says whether a rule is checked.
func (r *ruleSet) has(x rule) bool { return len(r.skipped) == 0 || !r.skipped[nameOf(x)] }

// All lists the invariants, in the order of their numbers.
func All() []About {
	out := make([]About, len(table))
	for i, t := range table {
		out[i] = About{Name: nameOf(t.rule), Numbers: t.numbers, Says: t.says, Clean: t.clean}
	}
	return out
}
