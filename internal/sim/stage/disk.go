package stage

import (
	"errors"
	"time"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Disk is the disk of a machine: files in memory, of which a power cut leaves what
// was synced.
type Disk struct {
	// Latency is what a sync takes, at most ten times as much.
	Latency time.Duration
	// Fault, if set, is asked ahead of every operation of a process; its error
	// is returned in the operation's place.
	Fault func(op vfs.Op) error

	machine *Machine
	mem     *vfs.Mem
}

// Files is the disk itself, without faults, for who looks from outside.
func (d *Disk) Files() *vfs.Mem { return d.mem }

var errEnded = errors.New("the process has ended")

// FS is the disk as a process sees it. Nothing that it does after its end counts.
func (d *Disk) FS(p *Process) vfs.FS {
	return vfs.Faulty(d.mem, func(op vfs.Op) error {
		if d.machine.stage.watched {
			return nil
		}
		if p.dead {
			return errEnded
		}
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
			d.wait(p)
		}
		if d.Fault != nil {
			return d.Fault(op)
		}
		return nil
	})
}

// wait lets a sync take its time: mostly short, sometimes long.
func (d *Disk) wait(p *Process) {
	if d.Latency <= 0 {
		return
	}
	r := d.machine.stage.Rand
	took := d.Latency/2 + time.Duration(r.Int64N(int64(d.Latency)))
	if r.IntN(20) == 0 {
		took *= 10
	}
	p.Runtime.Sleep(nil, took)
}
