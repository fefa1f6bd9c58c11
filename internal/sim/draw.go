package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Faults are the families that a plan may draw from, by the names that a command
// line gives.
func Faults() []string { return slices.Sorted(maps.Keys(families)) }

// general are the families that a plan draws from when nobody names any.
func general() []string {
	return slices.DeleteFunc(Faults(), func(f string) bool { return shapes[f] != nil })
}

// families draw one fault and what mends it.
var families = map[string]func(d *drawing){
	"kill":   func(d *drawing) { d.down(Kill, d.node()) },
	"power":  func(d *drawing) { d.power() },
	"stop":   func(d *drawing) { d.down(Stop, d.node()) },
	"pause":  func(d *drawing) { n := d.node(); d.do(0, Pause, n, 0, 0); d.do(d.span(3*time.Second), Resume, n, 0, 0) },
	"cut":    func(d *drawing) { d.cut() },
	"loss":   func(d *drawing) { d.way(Loss, 10+d.r.Int64N(300)) },
	"delay":  func(d *drawing) { d.way(Delay, 1000+d.r.Int64N(400_000)) },
	"narrow": func(d *drawing) { d.way(Narrow, 2_000+d.r.Int64N(200_000)) },
	"clock":  func(d *drawing) { d.clock() },
	"disk":   func(d *drawing) { d.disk() },
	"wipe":   func(d *drawing) { d.wipe() },
	"rot":    func(d *drawing) { d.rot() },
	"storm":  func(d *drawing) { d.storm() },
	"swarm":  func(d *drawing) { d.swarm() },
	"lag":    func(d *drawing) { d.lag() },
	"late":   func(d *drawing) { d.late() },
	"ghost":  func(d *drawing) { d.ghost() },
	"zombie": func(d *drawing) { d.zombie() },

	"bounce":  func(d *drawing) { d.bounce() },
	"deaf":    func(d *drawing) { d.deaf() },
	"duel":    func(d *drawing) { d.duel() },
	"rejoin":  func(d *drawing) { d.rejoin() },
	"relapse": func(d *drawing) { d.relapse() },
	"racks":   func(d *drawing) { d.racks() },
	"roll":    func(d *drawing) { d.roll() },
	"tail":    func(d *drawing) { d.tail() },
	"trim":    func(d *drawing) { d.trim() },

	"haunt":  func(d *drawing) { d.haunt() },
	"lone":   func(d *drawing) { d.lone() },
	"ballot": func(d *drawing) { d.ballot() },
	"mute":   func(d *drawing) { d.mute() },
	"lull":   func(d *drawing) { d.lull() },
}

// drawing is a plan that is being drawn.
type drawing struct {
	r    *rand.Rand
	p    *Plan
	at   time.Duration // of the fault that is drawn now
	busy map[int]time.Duration
}

// Draw makes a plan from a seed. Faults, if not nil, names the families it may
// use; an error names one that does not exist.
func Draw(seed uint64, faults []string) (*Plan, error) {
	anything := faults == nil
	if anything {
		faults = general()
	}
	for _, f := range faults {
		if families[f] == nil {
			return nil, fmt.Errorf("there is no fault %q: the faults are %v", f, Faults())
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	p := drawCluster(r)
	p.Seed = seed
	if seed%4 == 3 { // not drawn, so that the other seeds stay what they were
		p.Fetchers = 2 + int(seed/4%2)
	}
	p.Workloads = drawWorkloads(r, p)
	d := &drawing{r: r, p: p, busy: map[int]time.Duration{}}
	some := choose(r, faults, anything)
	if len(some) == 0 {
		return p, nil
	}
	paced := r.IntN(2) == 0
	for _, f := range some {
		if shape := shapes[f]; shape != nil {
			shape(p)
			paced = true
		}
	}
	if paced && p.Pace == 0 {
		p.Pace = (p.Length / 60).Round(time.Millisecond) // the records last as long as the plan
	}
	pace := 200*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))
	for d.at = d.span(2 * time.Second); d.at < p.Length; d.at += d.span(pace) {
		families[some[r.IntN(len(some))]](d)
	}
	slices.SortStableFunc(p.Actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	return p, nil
}

// choose takes some of the families for a seed, so that each is also seen alone;
// one that aims for a quarter of the seeds that may use anything.
func choose(r *rand.Rand, faults []string, anything bool) []string {
	some := slices.Clone(faults)
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:min(len(some), 1+r.IntN(5))]
	if anything && r.IntN(4) == 0 {
		all := aimed()
		some = append(some[:r.IntN(min(3, len(some)+1))], all[r.IntN(len(all))])
	}
	return some
}

// drawCluster draws the nodes and their topics.
func drawCluster(r *rand.Rand) *Plan {
	p := &Plan{Brokers: 3, Combined: r.IntN(3) > 0, Controllers: 3}
	switch r.IntN(8) {
	case 0:
		p.Brokers = 1
	case 1:
		p.Brokers = 2
	case 2:
		p.Brokers = 4
	}
	if !p.Combined && r.IntN(4) == 0 {
		p.Controllers = 1
	}
	p.Partitions = 1 + r.IntN(3)
	p.Replication = min(p.Brokers, 2+r.IntN(2))
	p.MinISR = max(1, min(p.Replication, 1+r.IntN(p.Replication)))
	if p.Replication == 3 && r.IntN(2) == 0 {
		p.MinISR = 2
	}
	p.Unclean = r.IntN(10) == 0
	p.Length = 4*time.Second + time.Duration(r.Int64N(int64(12*time.Second)))
	p.Length = p.Length.Round(time.Millisecond)
	return p
}

func (d *drawing) node() int { return 1 + d.r.IntN(d.p.Nodes()) }

// span is a while of at most top, mostly short.
func (d *drawing) span(top time.Duration) time.Duration {
	t := time.Duration(d.r.Int64N(int64(top))) + time.Millisecond
	if d.r.IntN(2) == 0 {
		t = time.Duration(d.r.Int64N(int64(t)))
	}
	return t.Round(10 * time.Microsecond)
}

// do adds an action, a while after the fault began.
func (d *drawing) do(after time.Duration, v Verb, node, to int, n int64) {
	at := (d.at + after).Round(10 * time.Microsecond)
	d.p.Actions = append(d.p.Actions, Action{At: at, Verb: v, Node: node, To: to, N: n})
}

// down ends a process and starts the next one.
func (d *drawing) down(v Verb, n int) time.Duration {
	until := d.span(5 * time.Second)
	if d.r.IntN(3) == 0 {
		until = d.span(100 * time.Millisecond)
	}
	d.do(0, v, n, 0, 0)
	if v == Stop {
		d.do(until+2*time.Second, Kill, n, 0, 0) // it may never be let go
		until += 2*time.Second + time.Millisecond
	}
	d.do(until, Start, n, 0, 0)
	return until
}

// recovery is how long after a loss the ISR is taken to be whole again.
const recovery = 3 * time.Second

// power cuts the power of a machine; of several only where the plan allows for
// losses, or where there are followers enough to keep what was acknowledged.
func (d *drawing) power() {
	n := d.node()
	if !d.p.Unclean && (d.p.MinISR < 2 || d.lost() >= d.p.MinISR-1) && n <= d.p.Brokers {
		d.down(Kill, n)
		return
	}
	d.busy[n] = d.at + d.down(Power, n) + recovery
}

// lost is how many machines may still lack what they lost.
func (d *drawing) lost() int {
	n := 0
	for _, until := range d.busy {
		if until > d.at {
			n++
		}
	}
	return n
}

// wipe replaces a broker's disk, which is a loss as a power cut is.
func (d *drawing) wipe() {
	n := 1 + d.r.IntN(d.p.Brokers)
	if d.p.Combined || !d.p.Unclean && (d.p.MinISR < 2 || d.lost() >= d.p.MinISR-1) {
		d.down(Kill, n) // a voter's memory is not to be lost
		return
	}
	until := d.down(Kill, n)
	d.do(until/2, Wipe, n, 0, 0)
	d.busy[n] = d.at + until + recovery
}

// rot has a bit flip in what a broker wrote last, while it is down.
func (d *drawing) rot() {
	n := 1 + d.r.IntN(d.p.Brokers)
	until := d.down(Kill, n)
	if d.p.Unclean || d.p.MinISR > 1 {
		d.do(until/2, Rot, n, 0, d.r.Int64N(1<<40))
	}
}

// pair draws a way between two machines.
func (d *drawing) pair() (int, int) {
	if d.p.Nodes() < 2 {
		return 0, 0
	}
	a, b := d.node(), 1+d.r.IntN(d.p.Nodes()-1)
	if b >= a {
		b++
	}
	return a, b
}

func (d *drawing) way(v Verb, n int64) {
	a, b := d.pair()
	if a == 0 {
		return
	}
	until := d.span(6 * time.Second)
	for _, w := range d.both(a, b) {
		d.do(0, v, w[0], w[1], n)
		d.do(until, v, w[0], w[1], 0)
	}
}

// both is one direction, or both of them.
func (d *drawing) both(a, b int) [][2]int {
	if d.r.IntN(3) == 0 {
		return [][2]int{{a, b}}
	}
	return [][2]int{{a, b}, {b, a}}
}

// cut cuts one way, or isolates a machine, or splits the machines in two.
func (d *drawing) cut() {
	a, b := d.pair()
	if a == 0 {
		return
	}
	until := d.span(6 * time.Second)
	side := d.r.IntN(1<<d.p.Nodes()-2) + 1 // who is on one side
	kind := d.r.IntN(3)
	for x := 1; x <= d.p.Nodes(); x++ {
		for y := 1; y <= d.p.Nodes(); y++ {
			one, other := side>>(x-1)&1, side>>(y-1)&1
			between := kind == 0 && x == a && y == b || kind == 1 && (x == a || y == a) || kind == 2 && one != other
			if x != y && between {
				d.do(0, Cut, x, y, 0)
				d.do(until, Heal, x, y, 0)
			}
		}
	}
}

func (d *drawing) clock() {
	n := d.node()
	if d.r.IntN(2) == 0 {
		d.do(0, Jump, n, 0, d.r.Int64N(20_000)-10_000)
		return
	}
	d.do(0, Skew, n, 0, d.r.Int64N(100_000)-50_000)
}

func (d *drawing) disk() {
	n := d.node()
	until := d.span(4 * time.Second)
	switch d.r.IntN(4) {
	case 0:
		d.do(0, Slow, n, 0, 1000+d.r.Int64N(100_000))
	case 1:
		d.do(0, Full, n, 0, 0)
	case 2:
		d.do(0, Unsync, n, 0, 0)
	case 3:
		d.do(0, Unread, n, 0, 1+d.r.Int64N(3))
	}
	d.do(until, Mend, n, 0, 0)
	d.do(until, Start, n, 0, 0) // who failed has ended
}

// storm kills machines one after the other in short order.
func (d *drawing) storm() {
	for range 2 + d.r.IntN(4) {
		d.down(Kill, d.node())
		d.at += d.span(300 * time.Millisecond)
	}
}

// swarm kills every broker at once.
func (d *drawing) swarm() {
	until := d.span(2 * time.Second)
	for n := 1; n <= d.p.Brokers; n++ {
		d.do(0, Kill, n, 0, 0)
		d.do(until+d.span(500*time.Millisecond), Start, n, 0, 0)
	}
}
