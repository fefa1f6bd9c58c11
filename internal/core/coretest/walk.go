package coretest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// Rand is the chance of a walk, seeded by its caller.
type Rand interface{ IntN(n int) int }

// Walk plays about steps random commands and then lets the cluster heal. It
// returns the trace and the first failure, "" when every invariant held. A quiet
// walk has no trace; the same chance gives the same walk with one.
func Walk(rng Rand, steps int, quiet bool) (trace, failure string) {
	k := &walker{rng: rng, w: New(), idle: []*idempotent{{id: 1}, {id: 2}}}
	k.w.quiet = quiet
	defer func() {
		if r := recover(); r != nil {
			trace, failure = k.trace.String()+k.w.out.String(), fmt.Sprint(r)
		}
	}()
	k.do(k.setup())
	for range steps {
		if len(k.w.failures) > 0 {
			break
		}
		if line := k.next(); line != "" {
			k.do(line)
		}
	}
	if len(k.w.failures) == 0 {
		k.do("heal")
	}
	if len(k.w.failures) > 0 {
		failure = k.w.failures[0]
	}
	return k.trace.String(), failure
}

type walker struct {
	rng   Rand
	w     *World
	trace strings.Builder
	value int
	idle  []*idempotent
	txn   int // the newest transaction; each has a producer of its own
}

// idempotent is a producer that sends again what it has no answer for.
type idempotent struct {
	id          int
	epoch, next int
	value       string // to be sent, or sent again; "" for a new one
	waiting     bool
}

func (k *walker) do(line string) {
	if !k.w.quiet {
		k.trace.WriteString("\n" + line + "\n----\n")
	}
	k.must(k.w.Run(line))
}

func (k *walker) must(err error) {
	if !k.w.quiet {
		k.trace.WriteString(k.w.Output())
		k.w.out.Reset()
	}
	if err != nil {
		k.w.fail("the walk makes no sense: %v", err)
	}
}

func (k *walker) setup() string {
	mode := []string{"seed", "kafka"}[k.rng.IntN(2)]
	return fmt.Sprintf("partition replicas=(1,2,3) spares=(4) leader=1 min-isr=%d hw=%s leo=%d",
		1+k.rng.IntN(3), mode, k.rng.IntN(3))
}

// choices are the commands of a walk by weight; each returns "" when it does not
// apply now.
var choices = []struct {
	weight int
	line   func(*walker) string
}{
	{18, (*walker).produce}, {6, (*walker).idempotentProduce}, {38, (*walker).fetch}, {7, (*walker).deliver},
	{6, (*walker).tick}, {9, (*walker).confirm}, {3, (*walker).answer}, {8, (*walker).hear}, {5, (*walker).disk},
	{2, (*walker).crash}, {6, (*walker).restart}, {3, (*walker).fence}, {5, (*walker).unfence}, {3, (*walker).elect},
	{2, (*walker).assign}, {1, (*walker).retain}, {1, (*walker).delete}, {5, (*walker).consume}, {4, (*walker).transaction},
}

func (k *walker) next() string {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := k.rng.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.line(k)
		}
	}
	return ""
}

func (k *walker) one(of ...string) string { return of[k.rng.IntN(len(of))] }

func (k *walker) chance(percent int) bool { return k.rng.IntN(100) < percent }

// any is a random broker that ok likes, nil when there is none.
func (k *walker) any(ok func(*broker) bool) *broker {
	var list []*broker
	for _, b := range k.w.brokers {
		if ok(b) {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[k.rng.IntN(len(list))]
}

// presumed is a broker that presumes to lead.
func (k *walker) presumed() *broker {
	return k.any(func(b *broker) bool { return b.live() && b.p.Role() == partition.Leader })
}

// hearers is a random part of the brokers.
func (k *walker) hearers() string {
	var list []model.BrokerID
	for _, b := range k.w.brokers {
		if k.chance(60) {
			list = append(list, b.id)
		}
	}
	return "heard-by=(" + strings.Trim(set(list), "{}") + ")"
}

func (k *walker) produce() string {
	b := k.presumed()
	if b == nil {
		return ""
	}
	values := make([]string, 1+k.rng.IntN(2))
	for i := range values {
		k.value++
		values[i] = fmt.Sprintf("v%d", k.value)
	}
	return fmt.Sprintf("produce %s acks=%s to=%d", strings.Join(values, " "), k.one("all", "1"), b.id)
}

// idempotentProduce sends the next record of a producer, or again the one that
// it has no answer for. It runs the command itself, to hear the answer.
func (k *walker) idempotentProduce() string {
	b, p := k.presumed(), k.idle[k.rng.IntN(len(k.idle))]
	if b == nil || p.waiting {
		return ""
	}
	if p.value == "" {
		k.value++
		p.value = fmt.Sprintf("v%d", k.value)
	}
	p.waiting = true
	line := fmt.Sprintf("produce %s acks=all to=%d pid=%d pepoch=%d seq=%d", p.value, b.id, p.id, p.epoch, p.next)
	if !k.w.quiet {
		k.trace.WriteString("\n" + line + "\n----\n")
	}
	k.w.onAnswer = p.answered
	k.must(k.w.Run(line))
	k.w.onAnswer = nil
	return ""
}

func (p *idempotent) answered(err model.Error) {
	p.waiting = false
	switch err {
	case model.None:
		p.value, p.next = "", p.next+1
	case model.ErrOutOfOrderSequenceNumber, model.ErrInvalidProducerEpoch:
		p.epoch, p.next = p.epoch+1, 0
	}
}

func (k *walker) fetch() string {
	b := k.any(func(b *broker) bool {
		if !b.live() {
			return false
		}
		_, ok := b.p.NextFetch()
		return ok
	})
	if b == nil {
		return ""
	}
	line := fmt.Sprintf("fetch %d max=%d", b.id, k.rng.IntN(3))
	switch n := k.rng.IntN(20); {
	case n < 2:
		line += " lose=response"
	case n < 3:
		line += " lose=request"
	case n < 5:
		line += " hold=response"
	case n < 7:
		line += " hold=request"
	}
	return line
}

func (k *walker) deliver() string {
	if len(k.w.net) == 0 {
		return ""
	}
	return fmt.Sprintf("%s n=%d", k.one("deliver", "deliver", "deliver", "drop"), k.rng.IntN(len(k.w.net)))
}

func (k *walker) tick() string { return fmt.Sprintf("tick %dms", 1+k.rng.IntN(20_000)) }

func (k *walker) confirm() string {
	if !slices.ContainsFunc(k.w.ctl.pending, func(p *alteration) bool { return p.answer == nil }) {
		return ""
	}
	return fmt.Sprintf("confirm %s %s", k.one("", "", "", "lose=request", "lose=answer", "hold=answer", "hold=answer"), k.hearers())
}

func (k *walker) answer() string {
	if !slices.ContainsFunc(k.w.ctl.pending, func(p *alteration) bool { return p.answer != nil }) {
		return ""
	}
	return "answer"
}

func (k *walker) hear() string {
	b := k.any(func(b *broker) bool { return !b.down && b.heard < len(k.w.ctl.history) })
	if b == nil {
		return ""
	}
	return fmt.Sprintf("hear %d", b.id)
}

func (k *walker) disk() string {
	b := k.any((*broker).live)
	if b == nil {
		return ""
	}
	if !b.hold {
		return fmt.Sprintf("disk %d %s", b.id, "hold")
	}
	return fmt.Sprintf("disk %d %s", b.id, k.one("one", "release", "release"))
}

// crash ends a process, and in one of three cases its log loses a suffix.
func (k *walker) crash() string {
	b := k.any((*broker).live)
	if b == nil {
		return ""
	}
	line := fmt.Sprintf("crash %d hw=%d", b.id, k.rng.IntN(int(b.p.Marks().HW)+1))
	if n := len(b.log.batches); n > 0 && k.chance(33) {
		line += fmt.Sprintf(" keep=%d", b.log.batches[k.rng.IntN(n)].base)
	}
	return line
}

func (k *walker) restart() string {
	b := k.any(func(b *broker) bool { return b.down })
	if b == nil {
		return ""
	}
	line := fmt.Sprintf("restart %d %s", b.id, k.hearers())
	if k.chance(30) {
		line += " fenced"
	}
	if !b.lossy && k.chance(40) {
		line += " clean"
	}
	return line
}

func (k *walker) fence() string {
	b := k.any(func(b *broker) bool {
		return !k.w.ctl.Registered[b.id].Fenced && (b.down || k.chance(20))
	})
	if b == nil {
		return ""
	}
	return fmt.Sprintf("%s %d %s", k.one("fence", "fence", "fence", "shutdown"), b.id, k.hearers())
}

func (k *walker) unfence() string {
	b := k.any(func(b *broker) bool { return !b.down && k.w.ctl.Registered[b.id].Fenced })
	if b == nil {
		return ""
	}
	return fmt.Sprintf("unfence %d %s", b.id, k.hearers())
}

// elect moves the leadership inside the ISR or, if there is no leader, gives it
// to somebody.
func (k *walker) elect() string {
	c := &k.w.ctl
	b := k.any(func(b *broker) bool {
		return !b.down && !b.lossy && c.Acceptable(b.id) && slices.Contains(c.ISR, b.id)
	})
	if b != nil {
		return fmt.Sprintf("elect %d %s", b.id, k.hearers())
	}
	b = k.any(func(b *broker) bool { return b.live() && slices.Contains(c.Replicas, b.id) && c.Acceptable(b.id) })
	if b == nil || c.Leader != model.NoBroker || k.chance(70) {
		return ""
	}
	return fmt.Sprintf("elect %d isr=(%d) %s", b.id, b.id, k.hearers())
}

// assign moves a replica that is not needed for safety to another broker, or
// takes one back.
func (k *walker) assign() string {
	c := &k.w.ctl
	var replicas []model.BrokerID
	out := k.any(func(b *broker) bool {
		rest := without(c.ISR, b.id)
		return slices.Contains(c.Replicas, b.id) && len(rest) >= min(c.MinISR, len(c.Replicas)-1) &&
			len(rest) > 0 && !slices.Contains(c.ELR, b.id)
	})
	in := k.any(func(b *broker) bool { return !slices.Contains(c.Replicas, b.id) })
	switch {
	case in != nil && (k.chance(50) || out == nil):
		replicas = append(slices.Clone(c.Replicas), in.id)
	case out != nil && len(c.Replicas) > 2:
		replicas = without(c.Replicas, out.id)
	default:
		return ""
	}
	return fmt.Sprintf("assign replicas=(%s) %s", strings.Trim(set(replicas), "{}"), k.hearers())
}

func (k *walker) retain() string {
	b := k.any(func(b *broker) bool { return b.live() && b.p.Role() == partition.Leader && b.p.Marks().HW > 0 })
	if b == nil {
		return ""
	}
	return fmt.Sprintf("retain %d to=%d", b.id, k.rng.IntN(int(b.p.Marks().HW)+1))
}

func (k *walker) delete() string {
	b := k.presumed()
	if b == nil {
		return ""
	}
	return fmt.Sprintf("delete offset=%d to=%d", k.rng.IntN(int(b.p.Marks().LEO)+2)-1, b.id)
}

// transaction begins one, or ends one of the last few, whatever became of it.
func (k *walker) transaction() string {
	b := k.presumed()
	if b == nil {
		return ""
	}
	if k.txn == 0 || k.chance(50) {
		k.txn++
		k.value++
		return fmt.Sprintf("produce v%d acks=all to=%d pid=%d seq=0 txn", k.value, b.id, 100+k.txn)
	}
	return fmt.Sprintf("marker %s to=%d pid=%d", k.one("commit", "abort"), b.id, 100+max(1, k.txn-k.rng.IntN(3)))
}

func (k *walker) consume() string {
	b := k.any((*broker).live)
	if b == nil {
		return ""
	}
	return fmt.Sprintf("consume offset=%d from=%d %s", k.rng.IntN(int(b.p.Marks().LEO)+2), b.id, k.one("", "committed", "old"))
}
