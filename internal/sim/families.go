package sim

import "time"

// The families here aim at moments that faults drawn one by one seldom meet.

// brokers draws two brokers; 0 says that there is only one.
func (d *drawing) brokers() (int, int) {
	if d.p.Brokers < 2 {
		return 0, 0
	}
	a, b := 1+d.r.IntN(d.p.Brokers), 1+d.r.IntN(d.p.Brokers-1)
	if b >= a {
		b++
	}
	return a, b
}

// lag parts two brokers for longer than a follower may lag, while the controllers
// hear of both: the leader has to take the other out of the ISR, and in again. One
// of the two may die just then, or all do and know less of what is committed.
func (d *drawing) lag() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	until := 1600*time.Millisecond + d.span(2*time.Second)
	for _, w := range d.both(a, b) {
		d.do(0, Cut, w[0], w[1], 0)
		d.do(until, Heal, w[0], w[1], 0)
	}
	d.at += until + d.span(300*time.Millisecond)
	switch d.r.IntN(3) {
	case 0:
		d.down(Kill, a)
	case 1:
		d.at -= d.span(600 * time.Millisecond)
		d.swarm()
	}
}

// late lets a broker hear of the controllers' decisions after the others do, while
// leaders come and go.
func (d *drawing) late() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	first := 1 // controller
	if !d.p.Combined {
		first = d.p.Brokers + 1
	}
	until, late := 500*time.Millisecond+d.span(2*time.Second), 100*time.Millisecond+d.span(900*time.Millisecond)
	for c := first; c <= d.p.Nodes(); c++ {
		if c != a {
			d.do(0, Delay, c, a, late.Microseconds())
			d.do(until, Delay, c, a, 0)
		}
	}
	for range 1 + d.r.IntN(3) {
		d.at += d.span(400 * time.Millisecond)
		d.do(0, Kill, b, 0, 0)
		d.do(d.span(200*time.Millisecond), Start, b, 0, 0)
		if b = 1 + d.r.IntN(d.p.Brokers); d.r.IntN(3) == 0 {
			d.do(0, Pause, b, 0, 0)
			d.do(1100*time.Millisecond, Resume, b, 0, 0)
		}
	}
}

// ghost lets a machine die while what it sent is still under way, and be back
// before that arrives.
func (d *drawing) ghost() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	late := 200*time.Millisecond + d.span(2*time.Second)
	d.do(0, Delay, a, b, late.Microseconds())
	d.at += d.span(400 * time.Millisecond)
	if d.p.Unclean || d.p.MinISR > 1 && d.lost() < d.p.MinISR-1 {
		d.do(0, Power, a, 0, 0)
		d.busy[a] = d.at + late + recovery
	} else {
		d.do(0, Kill, a, 0, 0)
	}
	d.do(d.span(100*time.Millisecond), Start, a, 0, 0)
	d.do(late, Delay, a, b, 0)
}

// zombie stops a broker for longer than its session and lets it go on as if
// nothing had been; who took over may die just then.
func (d *drawing) zombie() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	d.do(0, Pause, a, 0, 0)
	d.at += 800*time.Millisecond + d.span(2*time.Second)
	d.do(0, Resume, a, 0, 0)
	if d.r.IntN(2) == 0 {
		d.at += d.span(200 * time.Millisecond)
		d.down(Kill, b)
	}
}
