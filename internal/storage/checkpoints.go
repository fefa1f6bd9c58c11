package storage

import (
	"maps"
	"path"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// checkpointed is what the directory's files say of its logs.
type checkpointed struct {
	hw, recovery, start map[model.TopicPartition]model.Offset
}

// CheckpointHW writes replication-offset-checkpoint (R8.16). A log that was cut or
// deleted since its high watermark was taken gets no more than it holds. Starts
// that moved are written first: a follower takes its leader's start over without
// comparing what it held below, and must not come back to that as committed.
func (d *Dir) CheckpointHW(hw map[model.TopicPartition]model.Offset) error {
	if err := d.usable(); err != nil {
		return err
	}
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if err := d.saveStarts(func(m map[model.TopicPartition]model.Offset) bool { return !maps.Equal(m, d.saved.start) }); err != nil {
		return err
	}
	m := make(map[model.TopicPartition]model.Offset, len(hw))
	for tp, o := range hw {
		if l := d.Log(tp); l != nil {
			m[tp] = min(o, l.LEO())
		}
	}
	return d.writeOffsets(hwFile, &d.saved.hw, m)
}

// CheckpointRecovery writes recovery-point-offset-checkpoint.
func (d *Dir) CheckpointRecovery() error {
	return d.checkpointRecovery(func() bool { return true })
}

// checkpointRecovery writes the file if `when` says so, which is asked under the
// checkpoint lock.
func (d *Dir) checkpointRecovery(when func() bool) error {
	if err := d.usable(); err != nil {
		return err
	}
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if !when() {
		return nil
	}
	m := map[model.TopicPartition]model.Offset{}
	for _, l := range d.Logs() {
		m[l.tp] = l.RecoveryPoint()
	}
	return d.writeOffsets(recoveryFile, &d.saved.recovery, m)
}

// CheckpointLogStart writes log-start-offset-checkpoint: the logs whose start
// lies above their first segment's base (R8.8).
func (d *Dir) CheckpointLogStart() error {
	return d.checkpointStart(func() bool { return true })
}

func (d *Dir) checkpointStart(when func() bool) error {
	if err := d.usable(); err != nil {
		return err
	}
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	return d.saveStarts(func(map[model.TopicPartition]model.Offset) bool { return when() })
}

// saveStarts writes the file if `when` says so of what it would hold. Its caller
// holds the checkpoint lock.
func (d *Dir) saveStarts(when func(map[model.TopicPartition]model.Offset) bool) error {
	m := map[model.TopicPartition]model.Offset{}
	for _, l := range d.Logs() {
		if v := l.view(); v.start > v.segs[0].base || v.fading {
			m[l.tp] = v.start
		}
	}
	if !when(m) {
		return nil
	}
	return d.writeOffsets(logStartFile, &d.saved.start, m)
}

// writeOffsets writes one checkpoint file. Its caller holds the checkpoint lock.
func (d *Dir) writeOffsets(name string, saved *map[model.TopicPartition]model.Offset, m map[model.TopicPartition]model.Offset) error {
	if err := writeFile(d.fs, path.Join(d.path, name), format.Offsets(m)); err != nil {
		return d.fail("checkpoint", name, err)
	}
	*saved = m
	return nil
}

// lowerHW makes the HW checkpoint say no more than an offset for a log: it would
// count what is written there later.
func (d *Dir) lowerHW(tp model.TopicPartition, to model.Offset) error {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if d.saved.hw[tp] <= to {
		return nil
	}
	m := maps.Clone(d.saved.hw)
	m[tp] = to
	return d.writeOffsets(hwFile, &d.saved.hw, m)
}

// forget drops what the checkpoints say of logs that are not here, if there is
// one of that name: its successor has other offsets.
func (d *Dir) forget(tp model.TopicPartition) error {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	for _, c := range []struct {
		name  string
		saved *map[model.TopicPartition]model.Offset
	}{{hwFile, &d.saved.hw}, {recoveryFile, &d.saved.recovery}, {logStartFile, &d.saved.start}} {
		if _, ok := (*c.saved)[tp]; !ok {
			continue
		}
		m := maps.Clone(*c.saved)
		maps.DeleteFunc(m, func(tp model.TopicPartition, _ model.Offset) bool { return d.Log(tp) == nil })
		if err := d.writeOffsets(c.name, c.saved, m); err != nil {
			return err
		}
	}
	return nil
}

// settleCheckpoints makes the checkpoints say no more than what was loaded: what
// a log lost may be written again, and is not durable then.
func (d *Dir) settleCheckpoints() error {
	hw, high, over := maps.Clone(d.saved.hw), false, false
	for tp, l := range d.logs {
		over = over || d.saved.recovery[tp] > l.leo
		if hw[tp] > l.leo {
			hw[tp], high = l.leo, true
		}
	}
	if high {
		if err := d.writeOffsets(hwFile, &d.saved.hw, hw); err != nil {
			return err
		}
	}
	return d.checkpointRecovery(func() bool { return over })
}
