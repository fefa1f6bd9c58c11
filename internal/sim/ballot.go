package sim

import (
	"slices"
	"time"
)

// The families here play what goes wrong with who decides. Seeds draw from them
// only by name, so that what others draw stays as it was.

// byName are the families that a seed draws from only where somebody names them.
var byName = []string{"haunt", "lone", "roll"}

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
