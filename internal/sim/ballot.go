package sim

import (
	"slices"
	"time"
)

// The families here play what goes wrong with who decides. Seeds draw from them
// only by name, so that what others draw stays as it was.

// byName are the families that a seed draws from only where somebody names them.
var byName = []string{"ballot", "haunt", "lone", "lull", "mute", "racks", "roll"}

// aimed are the families with a shape that a seed may draw from without a name.
func aimed() []string {
	return slices.DeleteFunc(Faults(), func(f string) bool { return shapes[f] == nil || slices.Contains(byName, f) })
}

// lone ends the members of an ISR one after the other, and starts the last one
// last (B26). Its clusters keep no ELR.
func (d *drawing) lone() {
	last, _ := d.brokers()
	if last == 0 {
		return
	}
	for b := 1; b <= d.p.Brokers; b++ {
		if b != last {
			d.do(d.span(300*time.Millisecond), Kill, b, 0, 0)
			d.do(900*time.Millisecond+d.span(time.Second), Start, b, 0, 0)
		}
	}
	d.do(400*time.Millisecond+d.span(300*time.Millisecond), Kill, last, 0, 0)
	d.do(time.Second+d.span(2*time.Second), Start, last, 0, 0)
	d.at += time.Second + d.span(3*time.Second)
}

// ballot has two controllers stand for the same epoch, and the third one, who votes
// for the first of them, end and come back before the second asks for its vote. A
// voter answers on a connection of its own: while that is late it stands for
// nothing itself.
func (d *drawing) ballot() {
	all := d.controllers(0)
	d.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if len(all) != 3 {
		return
	}
	a, b, c := all[0], all[1], all[2]
	late := 80*time.Millisecond + d.span(60*time.Millisecond)
	voted := 7*late/2 + time.Duration(d.r.Int64N(int64(200*time.Millisecond)))
	elected := voted + 200*time.Millisecond + d.span(150*time.Millisecond)
	for _, x := range all {
		d.do(0, Kill, x, 0, 0)
	}
	d.shut(a, c, elected+time.Second)
	d.do(0, Delay, a, b, late.Microseconds())
	d.do(0, Start, a, 0, 0)
	d.do(d.span(10*time.Millisecond), Start, b, 0, 0)
	d.silent(b, a, 0, late-5*time.Millisecond)
	d.do(voted, Kill, b, 0, 0)
	d.do(voted, Cut, a, b, 0) // b is not to hear who won
	d.do(voted, Start, b, 0, 0)
	d.do(voted+d.span(10*time.Millisecond), Start, c, 0, 0)
	d.silent(b, c, voted, voted+10*time.Millisecond)
	d.do(elected, Delay, a, b, 0)
	d.do(elected, Heal, a, b, 0)
	d.at += elected + time.Second
}

// silent cuts one way between two machines.
func (d *drawing) silent(from, to int, since, until time.Duration) {
	d.do(since, Cut, from, to, 0)
	d.do(until, Heal, from, to, 0)
}

// unheard is how long a leader waits at least for an answer about its ISR: Kafka's
// controller.socket.timeout.ms.
const unheard = 30 * time.Second

// mute takes all controllers away while a leader wants its followers out of the
// ISR, or in again, for longer than it waits for an answer (B23).
func (d *drawing) mute() {
	a, _ := d.brokers()
	if a == 0 {
		return
	}
	d.island(a, 1600*time.Millisecond+d.span(1500*time.Millisecond))
	gone := 1300*time.Millisecond + d.span(2*time.Second)
	back := gone + unheard + 500*time.Millisecond + d.span(2*time.Second)
	for _, c := range d.controllers(a) {
		d.do(gone, Kill, c, 0, 0)
		d.do(back+d.span(100*time.Millisecond), Start, c, 0, 0)
	}
	d.at += back
}
