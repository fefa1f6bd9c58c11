package mutants

const (
	core  = "internal/core/partition/"
	cache = "internal/core/epochs/epochs.go"
)

// replicated are the tests of the replication core. rapid must not save what
// kills a mutant: the shipped core passes.
var replicated = []string{"./internal/core/partition", "./internal/core/epochs", "-rapid.nofailfile"}

// part is a mutant of one edit in the replication core.
func part(rule, name, file, old, new string) mutant {
	return mutant{rule, name, []edit{{core + file, old, new}}, replicated}
}

// replication are the rules that the replication core holds.
var replication = []mutant{
	part("R1.18", "a new leader does not note its epoch", "roles.go",
		"	p.epochs.Assign(p.epoch, p.leo)\n", ""),
	part("R2.3", "acks=all is accepted below the minimum", "leader.go",
		"in.Acks == -1 && len(l.isr) < p.minISR()", "in.Acks == -2 && len(l.isr) < p.minISR()"),
	part("R2.20", "a waiter may outlive its leadership", "status.go",
		"p.role != Leader || w.Leadership != p.leadership", "p.role != Leader"),
	part("R3.3", "an older leader epoch is not fenced", "fetch.go",
		"case in.LeaderEpoch != model.NoEpoch && in.LeaderEpoch < p.epoch:", "case false:"),
	part("R3.3", "a newer leader epoch is served", "fetch.go",
		"case in.LeaderEpoch > p.epoch:", "case false:"),
	{"R3.5", "a diverging fetch counts", []edit{
		{core + "fetch.go", "	if !ok || p.holdBack(r, in) || !p.compare(in) {\n", "	if ok && r != nil && !in.Retry {\n		p.record(r, in)\n	}\n	if !ok || p.holdBack(r, in) || !p.compare(in) {\n"},
		{core + "fetch.go", "	moved, startMoved := ", "	in.Offset = min(in.Offset, p.leo)\n	moved, startMoved := "},
	}, replicated},
	part("R3.8", "a fetch of an earlier life counts", "fetch.go",
		"in.ReplicaEpoch < peer.Epoch {", "in.ReplicaEpoch < peer.Epoch-1000 {"),
	part("R3.9", "RemoteLEO takes the smaller offset, as some texts say", "fetch.go",
		"	r.leo, r.pos, r.logStart = in.Offset, in.Pos, in.LogStart\n",
		"	if r.leo < 0 || in.Offset < r.leo {\n		r.leo = in.Offset\n	}\n	r.pos, r.logStart = in.Pos, in.LogStart\n"),
	part("R3.9", "RemoteLEO takes the greater offset", "fetch.go",
		"	r.leo, r.pos, r.logStart = in.Offset, in.Pos, in.LogStart\n",
		"	r.leo, r.pos, r.logStart = max(r.leo, in.Offset), in.Pos, in.LogStart\n"),
	part("R3.10", "no credit for the fetch before", "fetch.go",
		"		r.caughtUp = max(r.caughtUp, r.lastFetch)\n", ""),
	part("R3.12", "time alone does not free the HW", "leader.go",
		"	p.tryHW()\n	p.noteLowWatermark()\n	p.shrinkISR()\n", "	p.noteLowWatermark()\n	p.shrinkISR()\n"),
	part("R3.17", "an older segment is not answered at once", "fetch.go",
		"		rp.Bytes, rp.Now = max(1, int64(in.MaxBytes)), true\n", ""),
	part("R3.18", "news of the HW is no reason to answer", "fetch.go",
		"	if min(hw, in.Offset) > r.toldHW {", "	if false {"),
	part("R3.20", "the HW moves below the minimum", "leader.go",
		"p.lead.persisting || len(p.lead.isr) < p.minISR()", "p.lead.persisting"),
	part("R3.21", "the HW does not wait for who is about to join", "leader.go",
		"!member && !p.waitsFor(r)", "!member"),
	part("R3.27", "the low watermark forgets the followers", "leader.go",
		"			low = min(low, r.logStart)\n", ""),
	{"R4.3", "followers are remembered across a leadership of others", []edit{
		{core + "roles.go", "	p.lead = leaderState{start: model.UnknownOffset, proposals: p.lead.proposals}\n",
			"	p.lead = leaderState{start: model.UnknownOffset, proposals: p.lead.proposals, remotes: p.lead.remotes}\n"},
		{core + "roles.go", "	p.trackReplicas(stayed)\n", "	p.trackReplicas(true)\n"},
		{core + "check.go", "len(p.lead.remotes) > 0 || p.lead.pending", "p.lead.pending"},
	}, replicated},
	part("R4.3", "followers are remembered across a missed epoch", "roles.go",
		"wasLeader && in.LeaderEpoch == p.epoch+1", "wasLeader"),
	part("R4.4", "a new epoch of the same leader changes nothing", "roles.go",
		"	case in.LeaderEpoch == p.epoch:\n", "	case in.LeaderEpoch == p.epoch, p.role == Follower && in.Leader == p.leader:\n"),
	part("R4.5", "a follower cuts its log to the HW", "roles.go",
		"p.epochs.Len() == 0 && p.leo > p.hw", "p.leo > p.hw"),
	part("R4.7", "an answer of another epoch counts", "follower.go",
		" || in.LeaderEpoch != p.epoch || in.Offset != p.leo", " || in.Offset != p.leo"),
	{"R4.7", "an answer for another offset counts", []edit{
		{core + "follower.go", " || in.LeaderEpoch != p.epoch || in.Offset != p.leo", " || in.LeaderEpoch != p.epoch"},
		{core + "follower.go", "in.Generation != 0 && in.Generation != p.generation", "false"},
	}, replicated},
	part("R4.7", "an answer from before a truncation counts", "follower.go",
		"in.Generation != 0 && in.Generation != p.generation", "false"),
	part("R4.2a", "a role does not wait for appends in flight", "roles.go",
		"	case p.InFlight():\n", "	case p.truncating:\n"),
	part("R4.2a", "a leader serves before its epoch is safe", "roles.go",
		"	l.persisting = true\n", ""),
	part("R4.8", "a follower takes the leader's HW before the records", "follower.go",
		"	p.next = last.Last + 1\n", "	p.next = last.Last + 1\n	p.setHW(max(p.hw, min(in.HW, p.next)))\n"),
	part("R4.11", "the follower does not look into its own epochs", "follower.go",
		"	switch own := p.epochs.EndOf(d.Epoch, p.leo); {\n	case own == model.UndefinedEpochEnd:\n",
		"	switch own := p.epochs.EndOf(d.Epoch, p.leo); {\n	case own != model.UndefinedEpochEnd:\n"),
	part("R4.11", "the HW of a diverging answer counts", "follower.go",
		"		p.diverged(in.Diverging)\n", "		p.adopt(in.HW, in.LogStart)\n		p.diverged(in.Diverging)\n"),
	part("R4.12", "an entry without records is not cut", "follower.go",
		"	p.epochs.TruncateFromEnd(to)\n	p.follow.restart, p.follow.cutTo = false, to\n",
		"	if to >= p.leo {\n		return\n	}\n	p.epochs.TruncateFromEnd(to)\n	p.follow.restart, p.follow.cutTo = false, to\n"),
	part("R4.12", "the producers are not rebuilt after a cut", "follower.go",
		"			p.producers = in.Producers\n", ""),
	part("R4.13", "a leader that is ahead is not followed anew", "follower.go",
		"	case in.LogStart > p.leo:\n", "	case false:\n"),
	part("R4.13", "what comes is appended to what was never compared", "follower.go",
		"p.logStart < p.leo && p.leo <= in.LogStart && first.Epoch > p.epochs.Latest()", "false"),
	part("R5.2", "whoever is at our end may lag", "isr.go",
		"r == nil || r.leo != p.leo && ", "r == nil || "),
	part("R5.2", "nobody ever lags", "isr.go",
		"p.now.Sub(r.caughtUp) > p.cfg.LagMax", "false"),
	part("R5.3", "a second change while one is pending", "isr.go",
		"	case l.pending:\n		why.Code = JoinWaitsForISR\n", ""),
	part("R5.4", "joining is judged from memory", "leader.go",
		"	p.shrinkISR()\n}", "	for i := range p.lead.remotes {\n		p.expandISR(&p.lead.remotes[i])\n	}\n	p.shrinkISR()\n}"),
	part("R5.4", "who joins may be below the HW", "isr.go",
		"	case r.leo < p.hw:\n		why.Code, why.Bound = JoinBehindHW, p.hw\n", ""),
	part("R5.4", "who joins may be below the epoch start", "isr.go",
		"	case r.leo < l.start:\n		why.Code, why.Bound = JoinBehindEpoch, l.start\n", ""),
	part("R5.4", "who joins may hold what was never compared", "isr.go",
		"	case r.logStart < p.logStart:\n		why.Code, why.Offset, why.Bound = JoinBelowStart, r.logStart, p.logStart\n", ""),
	part("R5.5", "a stopping broker may join", "isr.go",
		"	case peer.ShuttingDown:\n		return JoinShuttingDown\n", ""),
	part("R5.7", "who is proposed does not count yet", "isr.go",
		"		l.maximal = isr\n", ""),
	{"R5.7", "who is to leave does not count any more", []edit{
		{core + "isr.go", "	p.propose(stay)\n", "	l.maximal = stay\n	p.propose(stay)\n"},
		{core + "check.go", "!subset(l.isr, l.maximal) || ", ""},
	}, replicated},
	part("R5.10", "a refusal for an old version proves that nothing changed", "isr.go",
		"	case model.None:\n		p.commitISR(in)\n		return\n", "	case model.None:\n		p.commitISR(in)\n		return\n	case model.ErrInvalidUpdateVersion + 0*model.Error(p.generation):\n		l.maximal, l.pending = l.isr, false\n"),
	part("R5.10", "a lost proposal is not sent again", "isr.go",
		"		why.Code = ISRSentAgain\n		p.out.AlterISR = &l.proposal\n", "		why.Code = ISRSentAgain\n"),
	part("R5.10", "an answer to an earlier proposal counts", "isr.go",
		"!l.pending || in.Proposal != l.proposal.Proposal", "!l.pending"),
	part("R5.11", "the controller's answer does not try the HW", "isr.go",
		"	p.tryHW()\n	p.out.Wake |= WakeFetch", "	p.out.Wake |= WakeFetch"),
	part("R7.6", "a lost leadership wakes nobody", "roles.go",
		"		p.becomeFollower(wasLeader)\n	}\n	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete\n", "		p.becomeFollower(wasLeader)\n	}\n"),
	part("R8.12", "a follower's new epochs are not persisted", "follower.go",
		"	if changed {\n", "	if changed && straddles {\n"),
	part("R9.2", "a reader past the HW is out of range", "fetch.go",
		"		rp.Now = true // the reader is ahead of a HW that lags\n", ""),
	part("R9.4", "a preferred replica may lack the offset", "fetch.go",
		"in.Offset < r.logStart || in.Offset > r.leo || ", ""),
	part("R9.6", "the end is told before it is known", "status.go",
		"	if p.lead.start > p.hw {\n", "	if false {\n"),
	part("I10", "metadata that is known already ends an open proposal", "roles.go",
		"	newer := in.PartitionEpoch > p.partitionEpoch\n", "	newer := in.PartitionEpoch >= p.partitionEpoch\n"),
	{"R4.20", "an epoch that starts where another did does not replace it", []edit{
		{cache, "s.Epoch >= e || s.Start >= start", "s.Epoch >= e"},
	}, replicated},
	{"R4.22", "an older epoch ends nowhere", []edit{
		{cache, "	if next == 0 {\n", "	if next == 0 {\n		return model.UndefinedEpochEnd\n	}\n	if next == 0 {\n"},
	}, replicated},
}

const world = "internal/core/coretest/controltest/controller.go"

// worldController are the controller's rules that replication rests on, in the
// small controller of the script environment: they show that the checkers see
// what the replication core alone cannot prevent.
var worldController = []mutant{
	{"R5.8", "no compare-and-swap on the partition epoch", []edit{
		{world, "	case p.PartitionEpoch < c.PartitionEpoch:\n		return model.ErrInvalidUpdateVersion\n", ""},
	}, replicated},
	{"R5.8", "the broker epoch of a member is not compared", []edit{
		{world, "m.Epoch != model.UnknownBrokerEpoch && m.Epoch != c.Registered[m.ID].Epoch || ", ""},
	}, replicated},
	{"R6.10", "a full ISR does not clear the ELR", []edit{
		{world, "	if len(c.ISR) >= c.EffectiveMinISR() {\n		return\n	}\n", ""},
	}, replicated},
	{"R6.12", "an unclean restart keeps its claim", []edit{
		{world, "!slices.Contains(c.ISR, id) && id != unclean", "!slices.Contains(c.ISR, id)"},
	}, replicated},
	{"R6.8", "a replica that leaves costs no leader epoch", []edit{
		{world, "c.Leader != leader || shrunk", "c.Leader != leader || shrunk && c.Leader < 0"},
	}, replicated},
}
