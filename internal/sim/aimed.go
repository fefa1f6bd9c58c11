package sim

import (
	"slices"
	"time"
)

// The families here play classes of bugs that Kafka had: each needs a cluster of a
// certain shape, certain clients, and things to go wrong in a certain order.

// shapes make a plan fit for a family, before its faults are drawn.
var shapes = map[string]func(p *Plan){
	"bounce":  func(p *Plan) { p.split(3, 3); p.use("producer-acks-all", "admin-bounce") },
	"deaf":    func(p *Plan) { p.split(3, 3); p.MinISR = max(p.MinISR, 2+int(p.Seed%2)); p.use("producer-acks-1") },
	"duel":    func(p *Plan) { p.split(2, 2); p.Replication, p.MinISR = 2, 2; p.use("producer-acks-1") },
	"rejoin":  func(p *Plan) { p.split(3, 3); p.MinISR = min(p.MinISR, 2); p.use("producer-acks-all") },
	"relapse": func(p *Plan) { p.split(2, 2); p.Replication, p.MinISR = 2, 2; p.use("producer-acks-all") },
	"racks": func(p *Plan) {
		p.split(3, 3)
		p.Racks = 2
		p.use("producer-acks-1", "consumer-followers", "admin-tune")
	},
	"roll": func(p *Plan) {
		p.split(3, 3)
		p.MinISR = min(p.MinISR, 2)
		p.use("producer-acks-1", "consumer-patient")
	},
	"tail": func(p *Plan) { p.split(3, 3); p.use("producer-idempotent-again", "member-a") },
	"trim": func(p *Plan) { p.split(2, 2); p.use("producer-acks-1", "admin-trim-kept", "consumer-followers") },

	"haunt": func(p *Plan) {
		p.split(2, 2)
		p.Replication, p.MinISR = 2, 2
		p.use("producer-acks-all", "producer-acks-1")
	},
	"ballot": func(p *Plan) { p.split(2, 2); p.Controllers = 3 },
	"mute": func(p *Plan) {
		p.split(3, 3)
		p.MinISR = min(p.MinISR, 2)
		p.Length += unheard
		p.use("producer-acks-all")
	},
	"lull": func(p *Plan) {
		p.split(3, 3)
		p.Workloads, p.Pace = []string{"producer-acks-1"}, lagMax
	},
	"lone": func(p *Plan) { p.split(3, 3); p.NoELR, p.Unclean = true, p.Seed%2 == 0 },
}

// split gives the plan controllers of their own, and at least so many brokers and
// replicas.
func (p *Plan) split(brokers, replicas int) {
	if p.Combined {
		p.Combined, p.Controllers = false, 1+2*int(p.Seed/2%2)
	}
	p.Brokers, p.Replication = max(p.Brokers, brokers), max(p.Replication, replicas)
}

// use adds workloads that are not there yet.
func (p *Plan) use(names ...string) {
	for _, name := range names {
		if !slices.Contains(p.Workloads, name) {
			p.Workloads = append(p.Workloads, name)
		}
	}
}

// controllers yields the controllers that are on other machines than n.
func (d *drawing) controllers(n int) []int {
	var out []int
	for c := 1; c <= d.p.Nodes(); c++ {
		if c != n && (d.p.Combined || c > d.p.Brokers) {
			out = append(out, c)
		}
	}
	return out
}

// shut cuts both ways between two machines, for a while.
func (d *drawing) shut(a, b int, until time.Duration) {
	for _, w := range [][2]int{{a, b}, {b, a}} {
		d.do(0, Cut, w[0], w[1], 0)
		d.do(until, Heal, w[0], w[1], 0)
	}
}

// island parts a broker from the other brokers, not from controllers and clients.
func (d *drawing) island(a int, until time.Duration) {
	for b := 1; b <= d.p.Brokers; b++ {
		if b != a {
			d.shut(a, b, until)
		}
	}
}

// duel moves leaderships from one broker to another and back while neither hears
// what the other wrote (B3).
func (d *drawing) duel() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	first := 100*time.Millisecond + d.span(900*time.Millisecond)
	second := first + 300*time.Millisecond + d.span(700*time.Millisecond)
	until := second + d.span(400*time.Millisecond)
	d.shut(a, b, until)
	d.do(first, Kill, a, 0, 0)
	d.do(first+d.span(200*time.Millisecond), Start, a, 0, 0)
	d.do(second, Kill, b, 0, 0)
	d.do(second+100*time.Millisecond+d.span(800*time.Millisecond), Start, b, 0, 0)
	d.at += until + d.span(500*time.Millisecond)
}

// tail lets a leader write what no follower gets, and has it come back when
// another leads and has committed more (B2, B12, B30).
func (d *drawing) tail() {
	a, _ := d.brokers()
	if a == 0 {
		return
	}
	until := 100*time.Millisecond + d.span(900*time.Millisecond)
	d.island(a, until)
	if d.r.IntN(3) == 0 { // it goes on without knowing that it leads no more
		deaf := 1200*time.Millisecond + d.span(1500*time.Millisecond)
		for _, c := range d.controllers(a) {
			d.shut(a, c, deaf)
		}
		d.island(a, deaf-d.span(time.Second))
		d.at += deaf
		return
	}
	d.do(until-time.Millisecond, Kill, a, 0, 0)
	d.do(until+200*time.Millisecond+d.span(1500*time.Millisecond), Start, a, 0, 0)
	d.at += until
}

// deaf has a broker lose its leaderships and get them back before it hears of
// either (B4, B6).
func (d *drawing) deaf() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	late := time.Second + d.span(1200*time.Millisecond)
	until := late + time.Second + d.span(2*time.Second)
	for _, c := range d.controllers(a) {
		d.do(0, Delay, c, a, late.Microseconds())
		d.do(until, Delay, c, a, 0)
	}
	d.shut(a, b, 500*time.Millisecond+d.span(time.Second))
	kill := time.Second + d.span(700*time.Millisecond)
	for i := range d.p.Brokers - 1 {
		x := (b+i-1)%d.p.Brokers + 1
		if x == a {
			x = (a+d.p.Brokers-2)%d.p.Brokers + 1
		}
		d.do(kill, Kill, x, 0, 0)
		d.do(kill+300*time.Millisecond+d.span(1500*time.Millisecond), Start, x, 0, 0)
		kill += 100*time.Millisecond + d.span(400*time.Millisecond)
	}
	d.at += until
}

// rejoin has a leader take all followers out of the ISR and in again, while the
// controllers' answers are late or get lost with them (B7, B23).
func (d *drawing) rejoin() {
	a, _ := d.brokers()
	if a == 0 {
		return
	}
	until := 1700*time.Millisecond + d.span(time.Second)
	d.island(a, until)
	all := d.controllers(a)
	from := 1400*time.Millisecond + d.span(500*time.Millisecond)
	switch d.r.IntN(4) {
	case 0: // it does not know what was decided
		for _, c := range all {
			for _, x := range all {
				if x != c {
					d.do(from, Delay, c, x, (20*time.Millisecond + d.span(200*time.Millisecond)).Microseconds())
					d.do(until+time.Second, Delay, c, x, 0)
				}
			}
		}
	case 1:
		for _, c := range all {
			d.do(from, Loss, c, a, 100+d.r.Int64N(500))
			d.do(until+time.Second, Loss, c, a, 0)
		}
	case 2:
		c := all[d.r.IntN(len(all))]
		d.do(from, Delay, c, a, (50*time.Millisecond + d.span(600*time.Millisecond)).Microseconds())
		d.do(until+time.Second, Delay, c, a, 0)
	case 3:
		for _, c := range all {
			d.do(until, Delay, c, a, (20*time.Millisecond + d.span(300*time.Millisecond)).Microseconds())
			d.do(until+time.Second, Delay, c, a, 0)
		}
	}
	d.at += until
	d.succeed(all)
}

// succeed kills controllers one after the other.
func (d *drawing) succeed(all []int) {
	for range d.r.IntN(4) {
		c := all[d.r.IntN(len(all))]
		d.do(0, Kill, c, 0, 0)
		d.do(d.span(300*time.Millisecond), Start, c, 0, 0)
		d.at += d.span(400 * time.Millisecond)
	}
}

// relapse lets a follower lose what it had told its leader, and be back while it
// is still told (B9), after an orderly stop or not.
func (d *drawing) relapse() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	if d.r.IntN(3) == 0 {
		d.do(0, Stop, a, 0, 0)
		d.at += 500*time.Millisecond + d.span(700*time.Millisecond)
		d.do(0, Start, a, 0, 0)
		d.at += 400*time.Millisecond + d.span(time.Second)
	}
	late := time.Duration(0)
	if d.r.IntN(3) > 0 {
		late = 100*time.Millisecond + d.span(900*time.Millisecond)
		d.do(0, Delay, a, b, late.Microseconds())
		d.at += late/2 + d.span(600*time.Millisecond)
		d.do(late, Delay, a, b, 0)
	}
	up := d.span(150 * time.Millisecond)
	if d.p.Unclean || d.p.MinISR > 1 && d.lost() < d.p.MinISR-1 {
		d.do(0, Power, a, 0, 0)
		d.busy[a] = d.at + up + late + recovery
	} else {
		d.do(0, Kill, a, 0, 0)
	}
	d.do(up, Start, a, 0, 0)
	d.at += up + d.span(time.Second)
}

// bounce lets a leader hear late of what an administrator does to its replicas,
// all at once (B13).
func (d *drawing) bounce() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	until := 2*time.Second + d.span(2*time.Second)
	late := 100*time.Millisecond + d.span(600*time.Millisecond)
	for _, c := range d.controllers(a) {
		d.do(0, Delay, c, a, late.Microseconds())
		d.do(until, Delay, c, a, 0)
	}
	if d.r.IntN(3) > 0 {
		d.do(0, Delay, b, a, (200*time.Millisecond + d.span(600*time.Millisecond)).Microseconds())
		d.do(until, Delay, b, a, 0)
	}
	d.at += until
}

// trim keeps a follower away while administrators delete records (B19, B20, B24).
func (d *drawing) trim() {
	a, _ := d.brokers()
	if a == 0 {
		return
	}
	until := 500*time.Millisecond + d.span(4*time.Second)
	switch d.r.IntN(3) {
	case 0:
		d.island(a, until)
	case 1:
		d.do(0, Kill, a, 0, 0)
		d.do(until, Start, a, 0, 0)
	case 2:
		for b := 1; b <= d.p.Brokers; b++ {
			if b != a {
				d.do(0, Narrow, b, a, 500+d.r.Int64N(5000))
				d.do(until, Narrow, b, a, 0)
			}
		}
	}
	d.at += until/2 + d.span(time.Second)
}
