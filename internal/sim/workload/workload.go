// Package workload is the clients of a simulated cluster.
//
// Each is small and does one thing at a time: it sends a request, waits for the
// answer and tells the history of both. It waits for nothing but its Runtime and
// takes every chance from its Rand, so that a seed tells what it will do. With a
// nil Runtime the same clients run against a real cluster.
//
// A new workload is a file with a type that has Name and Run, and a line in All.
package workload

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/task"
)

// Env is the world of one workload.
type Env struct {
	Runtime *task.Runtime // nil: goroutines and the machine's clock
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	// Bootstrap are addresses of brokers, of which some may be down.
	Bootstrap []string
	// Rand is this workload's own: nobody else draws from it.
	Rand *rand.Rand
	// History is told what the clients ask and are told.
	History *check.History
	Options Options
	// Note, if not nil, is told what the workload does, for traces.
	Note func(format string, args ...any)
	// Broken is told what no cluster may answer, whatever was done to it, such as
	// bytes that are no records. Without it that is a panic.
	Broken func(error)
	// Failed is told what a workload that a user brought complains of.
	Failed func(error)
	// Counts, if not nil, is where the workloads count what they achieve.
	Counts *Counts

	// Suffix keeps the names of workloads apart that are started one by one.
	Suffix string

	name string // of the workload, with a number when it runs several times
	tell *teller
}

// Options say what the workloads may do to a cluster. What the zero value forbids
// would excuse a loss, so a seed stays clean unless it says so.
type Options struct {
	// Topics are those that Setup creates and that everybody uses (orders, of three
	// partitions with three replicas). The members of groups read the first.
	Topics []Topic
	// Records bounds what each producer sends (200).
	Records int
	// Pace is about how long a client waits between two things it does (20 ms).
	Pace time.Duration
	// RequestTimeout is how long a client waits for an answer (3 s).
	RequestTimeout time.Duration

	UncleanElections bool // elect a replica that may lack records, and allow brokers to
	DeleteRecords    bool // move log starts
	Retention        bool // set retention.ms and retention.bytes
	DeleteTopics     bool // of Topics; Churn's own come and go in any case
	Kept             bool // nothing of the above is done by anybody, so brokers forget no producer
	NoELR            bool // Setup switches eligible.leader.replicas.version off
	MinInSync        bool // change min.insync.replicas, between 1 and the replication factor
	Lanes            bool // change num.replica.fetchers
	// Racks are those of the brokers, if they have any: a consumer that reads from
	// followers is in one of them.
	Racks []string
}

// Topic is one that Setup creates.
type Topic struct {
	Name       string
	Partitions int32
	Replicas   int16
	// Configs are pairs of a key and its value, in the order in which they are
	// sent.
	Configs [][2]string
}

// Workload is one client's way of using a cluster. Run returns when ctx ends or
// nothing is left to do. Values are shared between runs: they keep no state.
type Workload interface {
	Name() string
	Run(ctx context.Context, env *Env)
}

// Start runs the workloads as tasks of g, each with a Rand of its own.
func Start(ctx context.Context, g *task.Group, env *Env, list []Workload) {
	times := map[string]int{}
	tell := newTeller(env)
	for _, w := range list {
		own := *env
		own.defaults()
		own.tell = tell
		own.Rand = rand.New(rand.NewPCG(env.Rand.Uint64(), env.Rand.Uint64()))
		own.name = w.Name() + env.Suffix
		if times[own.name]++; times[own.name] > 1 {
			own.name = numbered(own.name, times[own.name])
		}
		g.Go(own.name, func() { w.Run(ctx, &own) })
	}
}

const defaultPace = 20 * time.Millisecond

func (e *Env) defaults() {
	if len(e.Options.Topics) == 0 {
		e.Options.Topics = []Topic{{Name: "orders", Partitions: 3, Replicas: 3}}
	}
	if e.Options.Records == 0 {
		e.Options.Records = 200
	}
	if e.Options.Pace == 0 {
		e.Options.Pace = defaultPace
	}
	if e.Options.RequestTimeout == 0 {
		e.Options.RequestTimeout = 3 * time.Second
	}
}

func (e *Env) note(format string, args ...any) {
	if e.Note != nil {
		e.Note(e.name+": "+format, args...)
	}
}

// rest waits about as long as clients do between two things; false says that ctx
// ended.
func (e *Env) rest(ctx context.Context) bool {
	return e.Runtime.Sleep(ctx, time.Duration(e.Rand.Int64N(2*int64(e.Options.Pace)+1)))
}

// chance is true in one of n cases.
func (e *Env) chance(n int) bool { return e.Rand.IntN(n) == 0 }

// pick returns one of list, which is not empty.
func pick[E any](r *rand.Rand, list []E) E { return list[r.IntN(len(list))] }
