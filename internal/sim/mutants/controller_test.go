package mutants

// controllerDir is where the rules of the real controller stand.
const controllerDir = "internal/core/controller/"

// deciding are the mutants of the controller core: its scripts and its random
// driver must notice each.
var deciding = []mutant{
	inController("R5.8", "partition epoch not compared", "isr.go",
		`case pr.partition < p.PartitionEpoch:`, `case false:`),
	inController("R5.8", "broker epoch of an ISR member not compared", "isr.go",
		`case epoch != model.UnknownBrokerEpoch && epoch != br.Epoch:`, `case false:`),
	inController("R5.8", "broker epoch of the sender not compared", "isr.go",
		`case int64(b.Epoch) != epoch:`, `case false:`),
	inController("R5.8", "a controller of the past takes what it cannot know", "isr.go",
		"case pr.leader > p.LeaderEpoch || pr.partition > p.PartitionEpoch:", "case false:"),
	inController("R6.7", "an unclean election keeps the ISR", "change.go",
		`c.isr, c.elr, c.recovering = []model.BrokerID{e.Leader}, nil, true`,
		`c.isr, c.elr, c.recovering = append(c.isr, e.Leader), nil, true`),
	inController("R6.8", "no leader epoch for replicas that leave", "change.go",
		`if c.election.Leader != c.p.Leader || !containsAll(c.replicas, c.p.Replicas) {`,
		`if c.election.Leader != c.p.Leader {`),
	inController("R6.9", "without ELR the ISR may become empty", "change.go",
		`if !c.d.elr && len(c.isr) == 0 {`, `if false {`),
	inController("R6.10", "ELR never cleared", "change.go",
		`if !c.d.elr || len(isr) >= c.minISR() {`, `if !c.d.elr {`),
	inController("R6.10", "an unclean broker stays in the ELR", "change.go",
		`slices.Contains(isr, b) || c.lost && b == c.leaving || !slices`, `slices.Contains(isr, b) || !slices`),
	inController("R6.12", "an unclean restart loses nothing", "register.go",
		`lost := d.elr && (old == nil`, `lost := false && (old == nil`),
	inController("R6.12", "every restart is unclean", "register.go",
		`lost := d.elr && (old == nil || old.Epoch != previous)`, `lost := d.elr`),
	inController("R6.13", "a last known leader need not be acceptable", "election.go",
		`return b, slices.Contains(c.replicas, b) && c.bar(b) == BarNone`, `return b, slices.Contains(c.replicas, b)`),
	inController("R6.15", "a broker is unfenced before it has read its registration", "heartbeat.go",
		"!r.WantFence && r.CurrentMetadataOffset >= int64(b.Epoch) &&", "!r.WantFence &&"),
	inController("R6.16", "a reassignment waits for the added replicas alone", "change.go",
		`!containsAll(isr, target) {`, `!containsAll(isr, c.adding) {`),
}

func inController(rule, name, file, old, new string) mutant {
	return mutant{rule: rule, name: name, edits: []edit{{controllerDir + file, old, new}},
		kills: []string{"./internal/core/controller"}}
}
