package sim

import (
	"slices"
	"time"
)

// Plan is everything that decides how a run goes, but for the order of tasks,
// which Seed decides.
type Plan struct {
	Seed uint64
	// Brokers and Controllers are how many nodes of each kind there are; with
	// Combined every node is both, and Controllers is not looked at.
	Brokers, Controllers int
	Combined             bool
	// Partitions, Replication and MinISR describe the topics of the workloads.
	Partitions, Replication, MinISR int
	// Unclean allows what may lose acknowledged records: elections of replicas
	// that are out of sync, and power cuts of more machines than MinISR protects
	// from.
	Unclean bool
	// NoELR has the cluster keep no eligible leader replicas (KIP-966), as those
	// that are older than the feature.
	NoELR bool
	// Racks is how many racks the brokers stand in; 0 is none.
	Racks int
	// Fetchers is num.replica.fetchers; 0 is the default, 1.
	Fetchers int
	// Workloads are the names of the clients' workloads; one may stand there twice.
	Workloads []string
	// Pace is about how long a client waits between two things it does; 0 is 20 ms.
	Pace time.Duration
	// Actions are what goes wrong and is mended, in order of time.
	Actions []Action
	// Length is when the faults stop; what is broken then is mended.
	Length time.Duration
}

// Nodes is how many machines run nodes.
func (p *Plan) Nodes() int {
	if p.Combined {
		return p.Brokers
	}
	return p.Brokers + p.Controllers
}

// without returns the plan less some of its actions.
func (p *Plan) without(drop func(i int) bool) *Plan {
	c := *p
	c.Actions = nil
	for i, a := range p.Actions {
		if !drop(i) {
			c.Actions = append(c.Actions, a)
		}
	}
	c.Workloads = slices.Clone(p.Workloads)
	return &c
}

// Action is one thing that is done to the machines at a time.
type Action struct {
	At   time.Duration
	Verb Verb
	Node int // the machine, from 1 on
	To   int // the other machine, of what is done to the way between two
	N    int64
}

// Verb is what an action does.
type Verb string

// The verbs. Each does nothing where it has nothing to do: a machine that does not
// run cannot be killed.
const (
	Kill   Verb = "kill"   // SIGKILL
	Power  Verb = "power"  // the power goes, and what was not synced may go with it
	Stop   Verb = "stop"   // a controlled shutdown
	Start  Verb = "start"  // a new process
	Wipe   Verb = "wipe"   // the disk of a machine that does not run is replaced
	Pause  Verb = "pause"  // SIGSTOP
	Resume Verb = "resume" // SIGCONT
	Cut    Verb = "cut"    // the way from Node to To drops everything
	Heal   Verb = "heal"   // the way from Node to To is whole again
	Loss   Verb = "loss"   // of N in a thousand segments from Node to To
	Delay  Verb = "delay"  // N microseconds more from Node to To
	Narrow Verb = "narrow" // N bytes a second from Node to To; 0 is no bound
	Skew   Verb = "skew"   // the clock of Node runs N millionths faster
	Jump   Verb = "jump"   // the wall clock of Node jumps N milliseconds
	Slow   Verb = "slow"   // a sync of Node's disk takes N microseconds
	Full   Verb = "full"   // writes of Node find no space
	Unsync Verb = "unsync" // the next sync of Node's disk fails
	Unread Verb = "unread" // the next N reads of Node's disk fail
	Mend   Verb = "mend"   // Node's disk works again
	Rot    Verb = "rot"    // a bit of a log file of Node flips; it does not run
)

// verbs says how many numbers follow each verb in a script.
var verbs = map[Verb]int{
	Kill: 1, Power: 1, Stop: 1, Start: 1, Wipe: 1, Pause: 1, Resume: 1, Cut: 2, Heal: 2, Loss: 3, Delay: 3, Narrow: 3,
	Skew: 2, Jump: 2, Slow: 2, Full: 1, Unsync: 1, Unread: 2, Mend: 1, Rot: 2,
}

// between says that the verb is about the way between two machines.
func (v Verb) between() bool { return slices.Contains([]Verb{Cut, Heal, Loss, Delay, Narrow}, v) }
