package controller

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// driver plays a cluster at random: brokers that register, serve, stop and
// crash, leaders that propose and forget, messages that are late, doubled and
// lost, and operators who change their minds.
type driver struct {
	w      *world
	rng    *rand.Rand
	procs  map[model.BrokerID]*process
	ghosts map[model.TopicIDPartition]*ghost
	mail   []*message
	loss   bool // crashes may lose data: only ELR can tell
	topics int
	trace  strings.Builder
}

const driverBrokers = 4

func TestRandomClustersKeepTheInvariants(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runDriver(t, seed, 300) })
	}
}

func TestSameSeedSameTrace(t *testing.T) {
	if a, b := runDriver(t, 7, 300), runDriver(t, 7, 300); a != b {
		t.Fatal("one seed made two different traces")
	}
}

// runDriver plays one seed and returns its trace.
func runDriver(t *testing.T, seed uint64, steps int) string {
	d := &driver{
		w: newWorld(t, seed), rng: rand.New(rand.NewPCG(seed, 2)),
		procs: map[model.BrokerID]*process{}, ghosts: map[model.TopicIDPartition]*ghost{},
	}
	features := defaultFeatures()
	if d.loss = d.rng.IntN(4) > 0; !d.loss {
		features[featureELR] = 0
	}
	minISR := 1 + d.rng.IntN(2)
	d.w.cfg.Configs = table{configMinISR: strconv.Itoa(minISR), configUnclean: "false"}
	d.w.cfg.Bootstrap = Bootstrap(features, minISR)
	d.w.takeOver()
	for id := range model.BrokerID(driverBrokers) {
		d.procs[id+1] = &process{id: id + 1, epoch: -1, clean: -1, leads: map[model.TopicIDPartition]*leadership{}}
	}
	t.Cleanup(func() {
		if t.Failed() {
			lines := strings.Split(d.trace.String(), "\n")
			t.Logf("seed %d, the last steps:\n%s", seed, strings.Join(lines[max(0, len(lines)-80):], "\n"))
		}
	})
	for range steps {
		d.step()
	}
	return d.trace.String()
}

func (d *driver) say(format string, args ...any) { fmt.Fprintf(&d.trace, format+"\n", args...) }

// do handles a request and keeps the ghosts in step.
func (d *driver) do(req kmsg.Request) kmsg.Response {
	old := d.w.s.Image()
	resp := d.w.do(req)
	d.after(d.w.last)
	if now := d.w.s.Image(); now != old {
		for t := range now.Topics() {
			for id, p := range t.Partitions {
				if old.Partition(t.ID, int32(id)) != p {
					d.say("      %s-%d %s", t.Name, id, show(p))
				}
			}
		}
	}
	return resp
}

func (d *driver) after(r Result) {
	for _, reason := range r.Reasons {
		d.say("      %v", reason)
	}
	d.follow(r)
}

// pick returns a random partition that some process believes to lead.
func (d *driver) pick() (*process, model.TopicIDPartition, bool) {
	p := d.anyone()
	var led []model.TopicIDPartition
	for _, tp := range d.sorted() {
		if p.up && p.leads[tp] != nil {
			led = append(led, tp)
		}
	}
	if len(led) == 0 {
		return nil, model.TopicIDPartition{}, false
	}
	return p, led[d.rng.IntN(len(led))], true
}

func (d *driver) anyone() *process { return d.procs[model.BrokerID(1+d.rng.IntN(driverBrokers))] }

// step does one random thing.
func (d *driver) step() {
	switch k := d.rng.IntN(100); {
	case k < 16:
		d.life(d.anyone())
	case k < 28:
		if p := d.anyone(); p.up && p.epoch >= 0 {
			d.say("broker %d applies metadata", p.id)
			d.apply(p, d.w.s.Image())
		}
	case k < 66:
		if leader, tp, ok := d.pick(); ok {
			d.lead(leader, tp)
		}
	case k < 82:
		d.post()
	case k < 86:
		d.say("time passes")
		d.w.pass(time.Duration(d.rng.IntN(3000))*time.Millisecond, d.after)
	case k < 87:
		d.say("another controller takes over")
		d.w.takeOver()
		d.after(d.w.last)
	default:
		d.operate()
	}
}

// life lets a broker live or die.
func (d *driver) life(p *process) {
	switch k := d.rng.IntN(10); {
	case !p.up && k < 5:
		p.up, p.incarnation, p.epoch, p.stopping = true, p.incarnation+1, -1, false
		d.register(p)
	case !p.up && k < 8:
		d.gone(p)
	case p.up && p.epoch < 0:
		d.register(p)
	case p.up && k == 0:
		loss := d.loss && d.rng.IntN(2) == 0
		d.say("broker %d crashes, loss=%v", p.id, loss)
		d.crash(p, loss)
	case p.up && k == 1:
		p.stopping = true
		d.heartbeat(p)
	case p.up && k == 3 && p.epoch >= 0:
		d.restart(p)
	case p.up && k == 2:
		d.say("the connection of broker %d breaks", p.id)
		d.w.s.Disconnected(d.w.now, p.id, p.epoch)
	case p.up:
		d.heartbeat(p)
	}
}

// restart: a process dies and is replaced at once, before its messages arrive.
func (d *driver) restart(p *process) {
	loss := d.loss && d.rng.IntN(4) > 0
	d.say("broker %d is restarted, loss=%v", p.id, loss)
	d.crash(p, loss)
	d.gone(p)
	p.up, p.incarnation, p.epoch = true, p.incarnation+1, -1
	if d.register(p); p.epoch >= 0 {
		d.apply(p, d.w.s.Image())
		d.heartbeat(p)
	}
}

func (d *driver) register(p *process) {
	d.say("broker %d registers, incarnation %d, last clean %d", p.id, p.incarnation, p.clean)
	r := d.w.registration(p.id, p.incarnation, p.clean)
	if resp := d.do(r).(*kmsg.BrokerRegistrationResponse); resp.ErrorCode == 0 {
		p.epoch, p.clean = model.BrokerEpoch(resp.BrokerEpoch), -1
		for _, g := range d.ghosts {
			delete(g.lossy, p.id)
		}
		d.complete(d.w.s.Image())
	}
}

// gone: the controller hears that a dead process is dead.
func (d *driver) gone(p *process) {
	b := d.w.s.Image().Broker(p.id)
	if b == nil {
		return
	}
	if _, dial := d.w.s.Disconnected(d.w.now, p.id, b.Epoch); dial {
		d.say("broker %d is found dead", p.id)
		d.after(d.w.commit(d.w.s.ProbeRefused(d.w.call(), p.id, b.Epoch)))
	}
}

func (d *driver) heartbeat(p *process) {
	d.say("broker %d heartbeats, stopping=%v", p.id, p.stopping)
	r := d.w.beat(p.id)
	r.BrokerEpoch, r.WantShutdown, r.CurrentMetadataOffset = int64(p.epoch), p.stopping, -1
	if p.view != nil {
		r.CurrentMetadataOffset = int64(p.view.End() - 1)
	}
	resp := d.do(r).(*kmsg.BrokerHeartbeatResponse)
	if resp.ErrorCode != 0 {
		d.crash(p, false) // it was unregistered
	} else if resp.ShouldShutdown {
		d.crash(p, false)
		p.clean = p.epoch
	}
}

// lead lets a leader do something.
func (d *driver) lead(leader *process, tp model.TopicIDPartition) {
	l := leader.leads[tp]
	switch k := d.rng.IntN(10); {
	case k < 4:
		f := d.anyone()
		d.say("%d fetches %v-%d from %d", f.id, tp.TopicID, tp.Partition, leader.id)
		d.fetch(leader, f, tp)
	case k < 8:
		d.say("%d produces to %v-%d", leader.id, tp.TopicID, tp.Partition)
		d.produce(leader, tp)
	case k < 9 && l.pending == nil && len(l.isr) > 1:
		drop := l.isr[d.rng.IntN(len(l.isr))]
		if drop != leader.id {
			d.say("%d proposes %v-%d without %d", leader.id, tp.TopicID, tp.Partition, drop)
			l.pending, l.sent = without(l.isr, drop), 0
			d.send(leader, l, tp)
		}
	case l.pending != nil:
		d.say("%d sends its proposal for %v-%d again", leader.id, tp.TopicID, tp.Partition)
		d.send(leader, l, tp)
	}
}

// post delivers, doubles or loses a message.
func (d *driver) post() {
	if len(d.mail) == 0 {
		return
	}
	i := d.rng.IntN(len(d.mail))
	m := d.mail[i]
	switch d.rng.IntN(6) {
	case 0: // comes again later
	default:
		d.mail = append(d.mail[:i], d.mail[i+1:]...)
	}
	d.say("proposal %v of %d for %v-%d arrives, epochs %v %d/%d", m.isr, m.from, m.tp.TopicID, m.tp.Partition, m.epochs, m.leaderEpoch, m.pe)
	d.deliver(m, d.rng.IntN(4) == 0)
}
