package coretest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/coretest/controltest"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// cmdPartition makes the cluster:
//
//	partition replicas=(1,2,3) leader=1 [isr=] [elr=] [spares=(4)] [min-isr=1] [lag-max=30s] [fetch-wait=500ms]
//	  [hw=seed|kafka] [epoch=0] [leo=3] [racks=(a,b)]
//	b1 m0@0 m1@0 hw=1 start=0 epochs=(0@0,2@5) end=5
//
// leo gives every replica the same committed records; a line per broker says
// what is on its disk instead. A record may be many: m0+m1@0 is one batch of two.
func (w *World) cmdPartition(a *args) error {
	*w = World{quiet: w.quiet, fetchWait: a.duration("fetch-wait", 500*time.Millisecond)}
	w.ghost.writers = map[model.Epoch]writer{}
	minISR := int(a.num("min-isr", 1))
	w.cfg = partition.Config{LagMax: a.duration("lag-max", 30*time.Second), HWMode: hwMode(a), MinISR: minISR}
	c := &w.ctl
	c.Controller = controltest.Controller{
		Replicas: a.ids("replicas"), ISR: a.ids("isr"), ELR: a.ids("elr"), MinISR: minISR,
		Leader: model.BrokerID(a.num("leader", -1)), LeaderEpoch: model.Epoch(a.num("epoch", 0)),
		Registered: map[model.BrokerID]partition.Peer{}, NextEpoch: 100,
	}
	if c.ISR == nil {
		c.ISR = slices.Clone(c.Replicas)
	}
	racks, _ := a.vals("racks")
	for i, id := range append(slices.Clone(c.Replicas), a.ids("spares")...) {
		b := &broker{id: id, peers: partition.Peers{}}
		b.log = uniform(a.offset("leo", 0), c.LeaderEpoch)
		w.brokers = append(w.brokers, b)
		c.NextEpoch++
		b.epoch = c.NextEpoch
		peer := partition.Peer{Epoch: b.epoch}
		if i < len(racks) {
			peer.Rack = racks[i]
		}
		c.Registered[id] = peer
	}
	for line := range strings.Lines(a.input) {
		if err := w.setDisk(a, strings.Fields(line)); err != nil {
			return err
		}
	}
	return w.open()
}

// open starts every replica and publishes the first metadata, without a word.
func (w *World) open() error {
	quiet := w.quiet
	w.quiet = true
	for _, b := range w.brokers {
		if slices.Contains(w.ctl.Replicas, b.id) {
			w.start(b, b.log.hw)
		} else {
			b.log = disk{}
		}
	}
	w.publish(nil)
	w.settle()
	for _, b := range w.brokers { // what any of them calls committed was so
		if b.p != nil && b.log.hw > w.ghost.commitEnd {
			w.ghost.commits, w.ghost.commitEnd = slices.Clone(b.log.read(0, b.log.hw, len(b.log.batches))), b.log.hw
		}
	}
	w.quiet = quiet
	return w.cmdState(&args{})
}

// uniform is a log of n committed records m0, m1, ... of one epoch.
func uniform(n model.Offset, epoch model.Epoch) disk {
	d := disk{hw: n}
	for o := range n {
		d.put(o, epoch, []string{fmt.Sprintf("m%d", o)})
	}
	return d
}

func (d *disk) put(base model.Offset, epoch model.Epoch, values []string) {
	last := base + model.Offset(len(values)) - 1
	if n := len(d.batches); epoch >= 0 && (n == 0 || d.batches[n-1].epoch != epoch) {
		d.epochs = append(d.epochs, model.EpochStart{Epoch: epoch, Start: base})
	}
	d.batches = append(d.batches, batch{
		base: base, last: last, epoch: epoch, values: values,
		producer: producers.Batch{ID: model.NoProducerID, Base: base, Records: int32(len(values))},
	})
}

// setDisk reads one line of the input of partition.
func (w *World) setDisk(a *args, fields []string) error {
	b := w.broker(model.BrokerID(a.parse(strings.TrimPrefix(fields[0], "b"))))
	if b == nil {
		return fmt.Errorf("no broker %s", fields[0])
	}
	d := disk{}
	next := model.Offset(0)
	for _, f := range fields[1:] {
		key, value, found := strings.Cut(f, "=")
		switch {
		case !found:
			values, epoch, ok := strings.Cut(f, "@")
			if !ok {
				return fmt.Errorf("record %q has no epoch", f)
			}
			d.put(next, model.Epoch(a.parse(epoch)), strings.Split(values, "+"))
			next = d.end()
		case key == "hw":
			d.hw = model.Offset(a.parse(value))
		case key == "start":
			d.start = model.Offset(a.parse(value))
			next = max(next, d.start)
			d.empty = next
		case key == "epochs":
			d.epochs = nil
			for _, e := range strings.FieldsFunc(strings.Trim(value, "()"), func(r rune) bool { return r == ',' }) {
				epoch, start, _ := strings.Cut(e, "@")
				d.epochs = append(d.epochs, model.EpochStart{Epoch: model.Epoch(a.parse(epoch)), Start: model.Offset(a.parse(start))})
			}
		default:
			return fmt.Errorf("unknown %q", f)
		}
	}
	b.log = d
	return a.err
}

// cmdConfigure changes topic configs: configure min-isr=2
func (w *World) cmdConfigure(a *args) error {
	w.cfg.MinISR = int(a.num("min-isr", 1))
	w.ctl.MinISR = w.cfg.MinISR
	for _, b := range w.brokers {
		if b.live() {
			w.step(b, &partition.Configure{MinISR: w.cfg.MinISR}, nil)
		}
	}
	return nil
}
