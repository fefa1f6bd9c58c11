package mutants

// bug is a class of bugs of Kafka's history, or a rule that R11.1 lists, with the
// mutants that bring it back.
type bug struct {
	id, what string
	mutants  []string
	why      string // why there is no mutant, or none that the simulator is to see
}

// bugs are R11.1's list, then R10's table.
var bugs = []bug{
	{id: "R11.1", what: "epoch growth restarts the fetcher", mutants: []string{"R4.4 a new epoch of the same leader changes nothing"}},
	{id: "R11.1", what: "a stale answer's offset and epoch", mutants: []string{"R4.7 an answer of another epoch counts", "R4.7 an answer for another offset counts", "R4.7 any answer counts, whoever leads by now", "R4.16 an answer for a partition that left its source counts"}},
	{id: "R11.1", what: "expand needs RLEO known", mutants: []string{"R5.4 who joins may never have fetched", "R5.4 joining is judged from memory"}},
	{id: "R11.1", what: "expand needs RLEO >= HW", mutants: []string{"R5.4 who joins may be below the HW"}},
	{id: "R11.1", what: "expand needs RLEO >= LESO", mutants: []string{"R5.4 who joins may be below the epoch start"}},
	{id: "R11.1", what: "follower state is reset in a new epoch", mutants: []string{"R4.3 followers are remembered across a leadership of others", "R4.3 followers are remembered across a missed epoch", "R4.3 followers are remembered whoever led since"}},
	{id: "R11.1", what: "MISR on expand", mutants: []string{"R5.7 who is proposed does not count yet"}},
	{id: "R11.1", what: "MISR on shrink", mutants: []string{"R5.7 who is to leave does not count any more"}},
	{id: "R11.1", what: "partition-epoch CAS at the controller", mutants: []string{"R5.8 partition epoch not compared"}},
	{id: "R11.1", what: "broker-epoch test at the controller", mutants: []string{"R5.8 broker epoch of an ISR member not compared", "R5.8 broker epoch of the sender not compared", "R5.8 neither partition epoch nor the members' lives compared", "R5.8 neither the life of the sender nor the epochs it knows compared", "R3.8 former lives count everywhere"}},
	{id: "R11.1", what: "min-ISR test for the HW", mutants: []string{"R3.20 the HW moves below the minimum"}},
	{id: "R11.1", what: "ELR clearing", mutants: []string{"R6.10 ELR never cleared"}},
	{id: "R11.1", what: "unclean exclusion", mutants: []string{"R6.12 an unclean restart loses nothing", "R6.10 an unclean broker stays in the ELR"}},
	{id: "R11.1", what: "a diverging fetch changes no state", mutants: []string{"R3.5 a diverging fetch counts"}},
	{id: "R11.1", what: "assign before append", mutants: []string{"R8.12 a follower's new epochs are not persisted", "R8.12 epochs are never made durable"}},
	{id: "R11.1", what: "truncate by epoch, not by HW", mutants: []string{"R4.5 a follower cuts its log to the HW"}},

	{id: "B1", what: "truncation to the HW loses committed records", mutants: []string{"R4.5 a follower cuts its log to the HW"}},
	{id: "B2", what: "divergence after two crashes", mutants: []string{"R3.5 a fetch is not held against our epochs"}},
	{id: "B3", what: "fast leader changes", mutants: []string{"R4.11 the follower does not look into its own epochs"}},
	{id: "B4", what: "unfenced fetch and truncation", mutants: []string{"R3.3 a newer leader epoch is served", "R3.3 an older leader epoch is not fenced"}},
	{id: "B5", what: "joining the ISR before the epoch start", mutants: []string{"R5.4 who joins may be below the epoch start"}},
	{id: "B6", what: "a missed epoch with the same leader", mutants: []string{"R4.4 a new epoch of the same leader changes nothing"}},
	{id: "B7", what: "no maximal ISR", mutants: []string{"R5.7 who is proposed does not count yet", "R5.7 who is to leave does not count any more"}},
	{id: "B8", what: "last replica standing", mutants: []string{"R3.20 the HW moves below the minimum", "R6.12 an unclean restart loses nothing"}},
	{id: "B9", what: "stale fetch of a former life", mutants: []string{"R3.8 a fetch of an earlier life counts", "R5.8 broker epoch of an ISR member not compared", "R3.8 former lives count everywhere"}},
	{id: "B10", what: "offset and broker epoch of two fetches", why: "impossible here: the replicas loop owns what is known of a follower"},
	{id: "B11", what: "a diverging fetch counted", mutants: []string{"R3.5 a diverging fetch counts"}},
	{id: "B12", what: "HW raised before truncation", mutants: []string{"R4.11 the HW of a diverging answer counts"}},
	{id: "B13", what: "reassigned away and back in one delta", mutants: []string{"R5.4 joining is judged from memory", "R6.8 no leader epoch for replicas that leave"}},
	{id: "B14", what: "a stopping or fenced replica", mutants: []string{"R5.5 a stopping broker may join", "R5.5 nobody minds that who joins is stopping"}},
	{id: "B15", what: "a new leader's HW lags", mutants: []string{"R9.6 the end is told before it is known", "R1.11 who was never heard of does not hold the HW"}},
	{id: "B16", what: "a failed read is stored as follower state", mutants: []string{"R3.7 a refused fetch empties what is known of the follower"}},
	{id: "B17", what: "an election leaves no epoch entry", mutants: []string{"R1.18 a new leader does not note its epoch"}},
	{id: "B18", what: "empty terms", mutants: []string{"R4.12 an entry without records is not cut"}},
	{id: "B19", what: "full truncation, initial HW out of range", mutants: []string{"R4.13 a leader that is ahead is not followed anew", "R8.14 a truncation does not lower the checkpoints"}},
	{id: "B20", what: "the log start lies inside a batch", mutants: []string{"R4.10 a log that starts inside a batch cannot begin"}},
	{id: "B21", what: "an answer mixes times", mutants: []string{"R3.4 an answer mixes an old HW with a new log start"}},
	{id: "B22", what: "a shrink confirmed on an idle partition", mutants: []string{"R5.11 the controller's answer does not try the HW", "R5.11 no change of the ISR tries the HW"}},
	{id: "B23", what: "AlterPartition duplicates, retries, zombie controller", mutants: []string{"R5.10 a refusal for an old version proves that nothing changed", "R5.10 a lost proposal is not sent again", "R5.10 an answer to an earlier proposal counts", "R5.8 a controller of the past takes what it cannot know", "R5.8 a controller of the past takes what it cannot know, and is believed before a commit"}},
	{id: "B24", what: "retention past the HW", mutants: []string{"R8.17 retention goes past the HW"}},
	{id: "B25", what: "small files renamed without fsync", mutants: []string{"R8.7 small files are renamed without fsync"}},
	{id: "B26", what: "after an unclean election", mutants: []string{"R6.7 an unclean election keeps the ISR", "R4.11 a follower does not cut below its own HW"}},
	{id: "B27", what: "ELR corner cases", mutants: []string{"R6.12 every restart is unclean", "R6.13 a last known leader need not be acceptable", "R6.2 a fenced broker may lead"}},
	{id: "B28", what: "a waiter outlives its leadership", mutants: []string{"R2.20 a waiter may outlive its leadership", "R2.20 a waiter outlives its leadership, since nothing wakes it"}},
	{id: "B29", what: "the replica map is empty for a moment", why: "impossible here: the replicas loop owns the partition, a step is whole"},
	{id: "B30", what: "LSO from the producers before a truncation", mutants: []string{"R4.12 the producers are not rebuilt after a cut"}},
	{id: "B31", what: "acks=1 is lost with its leader", why: "the contract of acks=1, documented"},
	{id: "B32", what: "producer state after a failed append, retries older than five", mutants: []string{"R2.7 a refused append changes what is known of the producer", "R2.11 a retry is appended again", "R2.13 sequences are not looked at"}},
	{id: "B33", what: "truncation of a partition that left the fetcher", mutants: []string{"R4.16 an answer for a partition that left its source counts"}},
	{id: "B34", what: "lag measured at the wrong time", mutants: []string{"R3.10 no credit for the fetch before", "R5.2 whoever is at our end may lag"}},
	{id: "B35", what: "waiters completed under a lock", why: "impossible here: the replicas loop owns the purgatory, there is no lock"},
	{id: "B36", what: "the HW's place is an old segment", mutants: []string{"R3.20 the HW keeps its place on an old segment", "R3.17 an older segment is not answered at once", "R3.17 the HW comes to a new segment and wakes nobody"}},
	{id: "B37", what: "an ISR member without replica state", why: "impossible here: metadata whose ISR is not part of the assignment is refused as a whole, and each of the assignment has state"},
}

// halves are the mutants that remove one of several guards of a rule, each with its
// whole: the mutant that removes all of them. A half alone changes nothing that
// promises are about; its own room must notice it, and the simulator its whole.
var halves = map[string]string{
	"R2.20 a waiter may outlive its leadership":                      "R2.20 a waiter outlives its leadership, since nothing wakes it",
	"R4.7 an answer of another epoch counts":                         "R4.7 any answer counts, whoever leads by now",
	"R4.7 an answer for another offset counts":                       "R4.7 any answer counts, whoever leads by now",
	"R4.7 an answer from before a truncation counts":                 "R4.7 any answer counts, whoever leads by now",
	"R5.11 the controller's answer does not try the HW":              "R5.11 no change of the ISR tries the HW",
	"R5.8 broker epoch of the sender not compared":                   "R5.8 neither the life of the sender nor the epochs it knows compared",
	"R5.8 a controller of the past takes what it cannot know":        "R5.8 a controller of the past takes what it cannot know, and is believed before a commit",
	"R6.15 a broker is unfenced before it has read its registration": "R6.15 a broker asks to serve before it has read its registration, and may",
}
