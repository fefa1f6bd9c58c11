package mutants

const (
	replicasDir = "internal/replicas/"
	storageDir  = "internal/storage/"
	producerDir = "internal/core/producers/"
	nodeDir     = "internal/node/"
	planeDir    = "internal/controlplane/"
)

// shell is a mutant of one edit that is left to the simulator.
func shell(rule, name, file, old, new string) mutant {
	return mutant{rule: rule, name: name, edits: []edit{{file, old, new}}}
}

// around are the mutants that need more than one core to be seen: rules of the
// shells, of the disk, and rules of the cores that back each other up.
var around = []mutant{
	shell("R1.11", "who was never heard of does not hold the HW", core+"leader.go",
		"if r.leo >= to || !member", "if r.leo == model.UnknownOffset || r.leo >= to || !member"),
	{"R2.7", "a refused append changes what is known of the producer", []edit{
		{core + "leader.go", "	v := p.producers.Check(in.Batch, !in.Batch.Control)\n	if v.Err != model.None {\n",
			"	v := p.producers.Check(in.Batch, !in.Batch.Control)\n	if v.Err != model.None {\n		in.Batch.Base = p.next\n		p.producers.Apply(in.Batch)\n"},
	}, nil},
	shell("R2.11", "a retry is appended again", producerDir+"state.go",
		"	if w, ok := p.find(b); ok {", "	if w, ok := p.find(b); ok && b.Records < 0 {"),
	{"R2.13", "sequences are not looked at", []edit{
		{producerDir + "state.go", "case p.epoch != noEpoch && b.BaseSequence != p.nextSequence(b.Epoch):", "case false:"},
		{producerDir + "state.go", "	if w, ok := p.find(b); ok {", "	if w, ok := p.find(b); ok && b.Records < 0 {"},
	}, nil},
	{"R2.20", "a waiter outlives its leadership, since nothing wakes it", []edit{
		{core + "status.go", "p.role != Leader || w.Leadership != p.leadership", "p.role == Stopped"},
		{core + "roles.go", "		p.becomeFollower(wasLeader)\n	}\n	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete\n",
			"		p.becomeFollower(wasLeader)\n	}\n	p.out.Wake |= WakeFetch\n"},
	}, nil},
	shell("R2.21", "a coordinator takes what is appended for committed", replicasDir+"own.go",
		"	l.produces.Park(l.now, op, l.now+noDeadline, op.r)\n", "	op.done(model.None)\n"),
	shell("R3.4", "an answer mixes an old HW with a new log start", replicasDir+"fetch.go",
		"		p.Reply = *rd.Reply\n", "		was := p.Reply.HW\n		if p.Reply = *rd.Reply; p.Request.Retry {\n			p.Reply.HW, p.Reply.LSO = was, was\n		}\n"),
	shell("R3.5", "a fetch is not held against our epochs", core+"fetch.go",
		"case end.Epoch < in.LastEpoch || end.End < in.Offset:", "case false:"),
	{"R3.7", "a refused fetch empties what is known of the follower", []edit{
		{core + "fetch.go", "	if !ok || p.holdBack(r, in) || !p.compare(in) {\n",
			"	if !ok || p.holdBack(r, in) || !p.compare(in) {\n		if r != nil && p.out.Err != model.None {\n			r.leo, r.logStart = model.UnknownOffset, model.UnknownOffset\n		}\n"},
	}, nil},
	shell("R3.10", "a session that ends takes with it when it last asked", replicasDir+"standing.go",
		"		l.hear(q) // the follower may come back in another session\n", ""),
	shell("R3.10", "what a quiet follower asked is forgotten", replicasDir+"standing.go",
		"	l.step(q.r, &l.in.heard)\n", "	_ = q\n"),
	shell("R7.6", "nothing rouses what is quiet", replicasDir+"standing.go",
		"for w.what&partition.WakeFetch != 0 && len(w.r.quiet) > 0 {", "for false {"),
	shell("R3.17", "the HW comes to a new segment and wakes nobody", core+"leader.go",
		"		p.hwPos = pos\n		p.out.Wake |= WakeFetch\n", "		p.hwPos = pos\n"),
	shell("R1.17", "a lower minimum counts before a leadership is lost that was lost first", replicasDir+"assign.go",
		"; k.MinISR < k.Hosted.Owner.(*replica).p.MinISR() {", "; false {"),
	shell("R3.18", "news that come while a fetch waits are told with records or never", replicasDir+"fetch.go",
		"		op.l.timers.Add(op.newsAt.Add(newsWait), op.tellNews)\n", ""),
	shell("R3.18", "news that a fetch brings about are told with records or never", replicasDir+"fetch.go",
		"		wait = min(wait, newsWait)\n", ""),
	shell("R3.20", "the HW keeps its place on an old segment", core+"leader.go",
		"case to == p.hw && pos.Segment > p.hwPos.Segment:", "case false:"),
	{"R4.3", "followers are remembered whoever led since", []edit{
		{core + "roles.go", "	p.lead = leaderState{start: model.UnknownOffset, proposals: p.lead.proposals}\n",
			"	p.lead = leaderState{start: model.UnknownOffset, proposals: p.lead.proposals, remotes: p.lead.remotes}\n"},
		{core + "roles.go", "	p.trackReplicas(stayed)\n", "	p.trackReplicas(true)\n"},
		{core + "roles.go", "		r.toldHW, r.waits, r.why = 0, false, NoReason\n", "		r.toldHW, r.waits, r.why, r.heard = 0, false, NoReason, r.leo >= 0\n"},
		{core + "check.go", "len(p.lead.remotes) > 0 || p.lead.pending", "p.lead.pending"},
	}, nil},
	shell("R4.10", "a log that starts inside a batch cannot begin", core+"follower.go",
		"	straddles := first.Base < p.leo && first.Last >= p.leo && p.leo == p.logStart\n", "	straddles := p.leo < 0\n"),
	shell("R4.11", "a follower does not cut below its own HW", core+"follower.go",
		"	p.cut(to, Reason{Code: CutDiverging,", "	to = max(to, p.hw)\n	p.cut(to, Reason{Code: CutDiverging,"),
	{"R4.16", "an answer for a partition that left its source counts", []edit{
		{replicasDir + "source.go", "		if r := l.all[p.id]; r != nil && r.source == f.s && r.inSet {\n", "		if r := l.all[p.id]; r != nil {\n"},
	}, nil},
	{"R5.4", "who joins may never have fetched", []edit{
		{core + "leader.go", "	p.shrinkISR()\n}", "	for i := range p.lead.remotes {\n		p.expandISR(&p.lead.remotes[i])\n	}\n	p.shrinkISR()\n}"},
		{core + "isr.go", "	case !r.heard:\n		return JoinUnheard\n", ""},
		{core + "isr.go", "	case r.leo < p.hw:\n", "	case r.leo >= 0 && r.leo < p.hw:\n"},
		{core + "isr.go", "	case r.leo < l.start:\n", "	case r.leo >= 0 && r.leo < l.start:\n"},
		{core + "isr.go", "	case r.logStart < p.logStart:\n", "	case r.leo >= 0 && r.logStart < p.logStart:\n"},
	}, nil},
	{"R5.8", "a controller of the past takes what it cannot know, and is believed before a commit", []edit{
		{controllerDir + "isr.go", "case pr.leader > p.LeaderEpoch || pr.partition > p.PartitionEpoch:", "case false:"},
		{planeDir + "active.go", "		if at := l.node.Applied(); at.End < end || at.Epoch != a.epoch {\n", "		if at := l.node.Applied(); at.End < 0 {\n"},
		{planeDir + "active.go", "n < len(a.pending) && a.pending[n].end <= end {", "n < len(a.pending) && (a.pending[n].end <= end || end >= 0) {"},
		{replicasDir + "isr.go", "if a.Err == model.None && a.PartitionEpoch > r.epoch {", "if false {"},
	}, nil},
	{"R3.8", "former lives count everywhere", []edit{
		{core + "fetch.go", "in.ReplicaEpoch < peer.Epoch {", "in.ReplicaEpoch < peer.Epoch-1000 {"},
		{core + "isr.go", "	case r.epoch != model.UnknownBrokerEpoch && r.epoch != peer.Epoch:\n		return JoinOldIncarnation\n", ""},
		{controllerDir + "isr.go", "case epoch != model.UnknownBrokerEpoch && epoch != br.Epoch:", "case false:"},
	}, nil},
	{"R4.7", "any answer counts, whoever leads by now", []edit{
		{replicasDir + "source.go", "		if r := l.all[p.id]; r != nil && r.source == f.s && r.inSet {\n", "		if r := l.all[p.id]; r != nil && r.source == f.s {\n"},
		{replicasDir + "source.go", "	r.sent = partition.FetchPosition{}\n", ""},
		{core + "follower.go", " || in.LeaderEpoch != p.epoch || in.Offset != p.leo", ""},
		{core + "follower.go", "in.Generation != 0 && in.Generation != p.generation", "false"},
	}, nil},
	{"R5.5", "nobody minds that who joins is stopping", []edit{
		{core + "isr.go", "	case peer.ShuttingDown:\n		return JoinShuttingDown\n", ""},
		{controllerDir + "isr.go", "	case br.InControlledShutdown:\n		return \"is shutting down\"\n", ""},
	}, nil},
	{"R5.8", "neither partition epoch nor the members' lives compared", []edit{
		{controllerDir + "isr.go", `case pr.partition < p.PartitionEpoch:`, `case false:`},
		{controllerDir + "isr.go", `case epoch != model.UnknownBrokerEpoch && epoch != br.Epoch:`, `case false:`},
	}, nil},
	{"R5.8", "neither the life of the sender nor the epochs it knows compared", []edit{
		{controllerDir + "isr.go", `case int64(b.Epoch) != epoch:`, `case false:`},
		{controllerDir + "isr.go", `case pr.leader < p.LeaderEpoch:`, `case false:`},
		{controllerDir + "isr.go", `case pr.partition < p.PartitionEpoch:`, `case false:`},
	}, nil},
	{"R6.1", "a controller forgets its vote with its process", []edit{
		{planeDir + "raftlog/raftlog.go", "		rec.State = hs\n", "		hs.Vote = nil\n		rec.State = hs\n"},
	}, []string{"./internal/controlplane/raftlog"}},
	shell("R6.2", "a fenced broker may lead", controllerDir+"election.go",
		"	case br.Fenced:\n		return BarFenced\n", ""),
	shell("R6.14", "a second life is registered while the first is alive", controllerDir+"register.go",
		"if old != nil && old.Incarnation != r.IncarnationID && s.alive(old, c.Now) {", "if false {"),
	shell("R13.9", "a log that is found at a start has the defaults of the broker", nodeDir+"metadata.go",
		"	log.SetConfig(logConfig(cfg))\n", ""),
	{"R6.15", "a broker asks to serve before it has read its registration, and may", []edit{
		{controllerDir + "heartbeat.go", "!r.WantFence && r.CurrentMetadataOffset >= int64(b.Epoch) &&", "!r.WantFence &&"},
		{nodeDir + "lifecycle.go", "	req.WantFence = int64(end)-1 < int64(lc.Epoch())\n", "	req.WantFence = false\n"},
	}, nil},
	shell("R7.3", "a deadline is forgotten", "internal/core/purgatory/purgatory.go",
		"	case deadline <= now || !p.wheel.Add(&w.timer, deadline):\n", "	case deadline <= now:\n"),
	shell("R7.6", "an append wakes no fetch", core+"leader.go",
		"	p.leo, p.leoPos = in.End, in.Pos\n	p.out.Wake |= WakeFetch\n", "	p.leo, p.leoPos = in.End, in.Pos\n"),
	shell("R8.7", "small files are renamed without fsync", storageDir+"smallfiles.go",
		"	if err == nil {\n		err = f.Sync()\n	}\n	if err = errors.Join(err, f.Close()); err != nil {\n		return fmt.Errorf(\"write %s: %w\", tmp, err)\n	}\n	if err := fsys.Rename",
		"	if err = errors.Join(err, f.Close()); err != nil {\n		return fmt.Errorf(\"write %s: %w\", tmp, err)\n	}\n	if err := fsys.Rename"),
	shell("R8.12", "epochs are never made durable", storageDir+"roll.go",
		"path.Join(l.dir, epochsFile)", "path.Join(l.dir, epochsFile+tmpSuffix)"),
	{"R8.12", "epochs are made durable after the bytes", []edit{
		{storageDir + "append.go", "			return l.WriteEpochs(batches[i].Epochs)\n", "			return nil\n"},
		{storageDir + "append.go", "	return l.appended(now), nil\n",
			"	for i := len(batches) - 1; i >= 0; i-- {\n		if batches[i].Epochs != nil {\n			if err := l.WriteEpochs(batches[i].Epochs); err != nil {\n				return Appended{}, err\n			}\n			break\n		}\n	}\n	return l.appended(now), nil\n"},
	}, nil},
	shell("R8.12", "a checkpoint that does not fit stays when records come", storageDir+"append.go",
		"	return l.rightEpochs()\n", "	return nil\n"),
	shell("R8.14", "a truncation does not lower the checkpoints", storageDir+"cut.go",
		"	if err := l.lower(leo, min(l.start, leo)); err != nil {\n		return err\n	}\n", ""),
	shell("R8.17", "retention goes past the HW", storageDir+"retention.go",
		"if v.endOf(i) > hw || i == len(v.segs)-1 && size == 0 {", "if i == len(v.segs)-1 && size == 0 {"),
	shell("R8.19", "the sign of a clean stop stays", storageDir+"load.go",
		"	if err := d.fs.Remove(name); err != nil {\n		return false, err\n	}\n", ""),
	shell("R8.21", "recovery trusts every segment", storageDir+"recover.go",
		"	if !r.clean {\n", "	if false {\n"),
	{"I10", "metadata that is known ends an open proposal, and answers do not wait for it", []edit{
		{core + "roles.go", "	newer := in.PartitionEpoch > p.partitionEpoch\n", "	newer := in.PartitionEpoch >= p.partitionEpoch\n"},
		{replicasDir + "isr.go", "if a.Err == model.None && a.PartitionEpoch > r.epoch {", "if false {"},
	}, nil},
	{"R5.11", "no change of the ISR tries the HW", []edit{
		{core + "isr.go", "	p.tryHW()\n	p.out.Wake |= WakeFetch", "	p.out.Wake |= WakeFetch"},
		{core + "roles.go", "	p.tryHW()\n	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete\n}\n\n// settle", "	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete\n}\n\n// settle"},
	}, nil},
	shell("R9.1", "consumers read to the log end", core+"fetch.go",
		"	bound, pos := p.hw, p.hwPos\n", "	bound, pos := p.leo, p.leoPos\n"),
}
