package sim

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

var (
	errFull = fmt.Errorf("write: %w", syscall.ENOSPC)
	errSync = errors.New("sync: input/output error")
	errRead = errors.New("read: input/output error")
)

// act carries out one action, where there is something to do.
func (w *world) act(a Action) {
	m := w.members[a.Node-1]
	if a.Verb.between() {
		w.faults[a.Verb]++
		w.actBetween(a)
		return
	}
	if !w.actOn(m, a) {
		return
	}
	w.faults[a.Verb]++
	w.stage.Note(m.machine.Name, "%s %d", a.Verb, a.N)
}

// actOn is act for the verbs of one machine; false says that nothing was done.
func (w *world) actOn(m *member, a Action) bool {
	running := m.machine.Running()
	switch a.Verb {
	case Kill:
		w.end(m, killed)
	case Power:
		if !running {
			return false
		}
		w.powerCut(m)
		return true
	case Stop:
		w.shutdown(m)
	case Start:
		if !running {
			w.start(m)
			return true
		}
		return false
	case Wipe:
		if running || !w.spares(m) {
			return false
		}
		m.formatted, m.empty = false, true // the next process makes it anew
		w.down(m, wiped)
		return true
	case Pause:
		m.machine.Process().Pause()
	case Resume:
		w.resume(m)
	default:
		return w.actOnHardware(m, a)
	}
	return running
}

// powerCut takes a node's power, or only kills it where another loss would be one
// too many.
func (w *world) powerCut(m *member) {
	if m.broker && !w.spares(m) {
		w.end(m, killed)
		return
	}
	w.stage.Note(m.machine.Name, cutOff)
	m.machine.PowerCut()
	m.node, m.stopping, m.empty = nil, false, true
	w.down(m, cutOff)
}

// awakening is how long a process that was paused may take to catch up with what
// fell due meanwhile.
const awakening = 50 * time.Millisecond

// resume lets a paused process go on.
func (w *world) resume(m *member) {
	if p := m.machine.Process(); p.Paused() {
		p.Resume()
		m.awake = w.stage.Now() + awakening
	}
}

// actOnHardware is actOn for what happens to a machine, running or not.
func (w *world) actOnHardware(m *member, a Action) bool {
	d := &m.disk
	switch a.Verb {
	case Skew:
		m.machine.Skew(a.N)
	case Jump:
		m.machine.JumpWall(time.Duration(a.N) * time.Millisecond)
	case Slow:
		m.machine.Disk.Latency = time.Duration(a.N) * time.Microsecond
	case Full:
		d.full = true
	case Unsync:
		d.unsync = true
	case Unread:
		d.unread = a.N
	case Mend:
		*d = diskFaults{hit: d.hit}
		m.machine.Disk.Latency = 500 * time.Microsecond
	case Rot:
		if m.machine.Running() || !w.spares(m) || !rot(m.machine.Disk.Files(), "/data", uint64(a.N)) {
			return false
		}
		m.empty = true // as good as: it lacks something until it is whole again
		w.down(m, rotted)
	}
	return true
}

func (w *world) actBetween(a Action) {
	from, to := w.members[a.Node-1].machine, w.members[a.To-1].machine
	l := w.stage.Net.Link(from, to)
	switch a.Verb {
	case Cut:
		l.Cut = true
	case Heal:
		w.stage.Net.Heal(l)
	case Loss:
		l.Loss = int(a.N)
	case Delay:
		l.Delay = time.Duration(a.N) * time.Microsecond
	case Narrow:
		l.BytesPerSecond = a.N
	}
	w.stage.Note(from.Name, "%s to %s %d", a.Verb, to.Name, a.N)
}

// mend ends every fault: what is broken works again, who is down is started.
func (w *world) mend() {
	w.mending = true
	w.stage.Note("world", "all is mended")
	for _, m := range w.members {
		for _, other := range w.members {
			if m != other {
				l := w.stage.Net.Link(m.machine, other.machine)
				w.stage.Net.Heal(l)
				l.Loss, l.Delay, l.BytesPerSecond = 0, 0, 0
			}
		}
		m.disk = diskFaults{hit: m.disk.hit}
		m.machine.Disk.Latency = 500 * time.Microsecond
		m.machine.Skew(0)
		for m.machine.Process() != nil && m.machine.Process().Paused() {
			w.resume(m)
		}
		w.start(m) // whose process is just leaving is started when it has left
	}
}
