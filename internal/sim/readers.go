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
