package sim

import "time"

// The families here aim at what readers are told: where the HW lies, who is near.

// roll has a follower get its records late, while readers wait for many and the
// segments roll. Another leader finds the HW in the midst of its log (B36).
func (d *drawing) roll() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	late := 100*time.Millisecond + d.span(400*time.Millisecond)
	until := 500*time.Millisecond + d.span(time.Second)
	for x := 1; x <= d.p.Brokers; x++ {
		if x != a {
			d.do(0, Delay, x, a, late.Microseconds())
			d.do(until+late, Delay, x, a, 0)
		}
	}
	if d.r.IntN(3) > 0 {
		d.do(until, Kill, b, 0, 0)
		d.do(until+d.span(time.Second), Start, b, 0, 0)
	}
	d.at += until + d.span(time.Second)
}

// racks has brokers disagree on the time of day, hence on what is too old to be
// kept, while readers are sent to the replica in their rack.
func (d *drawing) racks() {
	a := 1 + d.r.IntN(d.p.Brokers)
	ahead := 500 + d.r.Int64N(6000)
	until := time.Second + d.span(3*time.Second)
	d.do(0, Jump, a, 0, ahead)
	d.do(until, Jump, a, 0, -ahead)
	d.at += until/2 + d.span(time.Second)
}
