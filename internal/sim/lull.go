package sim

import "time"

// lull lets partitions rest for longer than a follower may lag, then has something
// written while the follower's answers are slow: it was caught up until then, and
// may not be taken out for what it could not know (R3.10).
func (d *drawing) lull() {
	a, b := d.brokers()
	if a == 0 {
		return
	}
	until := 3*time.Second + d.span(3*time.Second)
	late := d.within(150*time.Millisecond, 350*time.Millisecond).Microseconds()
	for _, w := range [][2]int{{a, b}, {b, a}} {
		d.do(0, Delay, w[0], w[1], late)
		d.do(until, Delay, w[0], w[1], 0)
	}
	d.at += until
}
