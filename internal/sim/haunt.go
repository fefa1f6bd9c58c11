package sim

import "time"

// haunt has what a follower sent arrive when its next life is registered, which
// lost some of what it tells of and has not got it again (B9).
func (d *drawing) haunt() {
	a, b := d.brokers()
	if a == 0 || d.lost() > 0 {
		d.at += d.span(time.Second)
		return
	}
	if d.r.IntN(2) == 0 {
		d.hauntUnheard(a, b)
	} else {
		d.hauntHeard(a, b)
	}
}

// within is a time between two bounds, any as likely as the next.
func (d *drawing) within(low, high time.Duration) time.Duration {
	return low + time.Duration(d.r.Int64N(int64(high-low)))
}

// hauntHeard lets the leader know of the next life: what the former one sent is
// not to be counted.
func (d *drawing) hauntHeard(a, b int) {
	late := d.within(1400*time.Millisecond, 2500*time.Millisecond)
	d.do(0, Delay, a, b, late.Microseconds())
	d.at += d.within(50*time.Millisecond, 500*time.Millisecond)
	d.vanish(a, b)
	d.do(0, Delay, b, a, d.within(50*time.Millisecond, 1200*time.Millisecond).Microseconds())
	until := late + d.within(time.Second, 2*time.Second)
	d.do(until, Delay, b, a, 0)
	d.at += until + d.span(2*time.Second)
}

// vanish takes a follower's power and lets it start again, with a fast way to its
// leader.
func (d *drawing) vanish(a, b int) {
	d.do(0, Power, a, 0, 0)
	d.do(0, Delay, a, b, 0)
	d.do(d.span(100*time.Millisecond), Start, a, 0, 0)
	d.busy[a] = d.at + 2*recovery
}

// hauntUnheard lets nobody but the controllers know of the next life. The follower
// is out of the ISR by then: it was killed, and its first fetch since, which is to
// bring it in again, is under way when its power goes.
func (d *drawing) hauntUnheard(a, b int) {
	answer := d.within(600*time.Millisecond, 1200*time.Millisecond)
	d.do(0, Delay, b, a, answer.Microseconds())
	d.do(0, Kill, a, 0, 0)
	d.do(20*time.Millisecond, Start, a, 0, 0)
	late := d.within(1300*time.Millisecond, 2500*time.Millisecond)
	d.do(answer/2, Delay, a, b, late.Microseconds()) // it has asked for a connection
	d.at += answer + d.within(50*time.Millisecond, 300*time.Millisecond)
	for _, c := range d.controllers(b) {
		d.do(0, Delay, c, b, d.within(400*time.Millisecond, 800*time.Millisecond).Microseconds())
		d.do(late+time.Second, Delay, c, b, 0)
	}
	d.vanish(a, b)
	until := late + d.within(time.Second, 2*time.Second)
	d.do(until, Delay, b, a, 0)
	d.at += until + d.span(2*time.Second)
}
