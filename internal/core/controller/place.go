package controller

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// placer stripes the replicas of new partitions over racks and brokers. Each
// partition starts one rack later than the one before, and each rack continues
// with its next broker, so leaders and replicas spread evenly. Brokers without a
// rack form one more rack. Brokers that are shutting down are not used; fenced
// ones are, after all others, but never first. After as many partitions as there
// are unfenced brokers the lists are shuffled, lest the same groups of brokers
// meet again and again.
type placer struct {
	rng      Rand
	racks    []*rack
	brokers  int // usable ones
	unfenced int
	start    int // the rack of the next partition's first replica
	placed   int // partitions since the last shuffle
}

// rack holds the usable brokers of one rack.
type rack struct {
	live, fenced ring
}

// ring is a list of brokers that is read from a start that moves on by one with
// every partition.
type ring struct {
	ids   []model.BrokerID
	start int
	taken int // for the partition being placed
}

func (r *ring) next() (model.BrokerID, bool) {
	if r.taken == len(r.ids) {
		return model.NoBroker, false
	}
	id := r.ids[(r.start+r.taken)%len(r.ids)]
	r.taken++
	return id, true
}

// turn readies the ring for the next partition.
func (r *ring) turn() {
	if r.taken = 0; len(r.ids) > 0 {
		r.start = (r.start + 1) % len(r.ids)
	}
}

// shuffle reorders the list and picks a new start.
func (r *ring) shuffle(rng Rand) {
	for i := len(r.ids) - 1; i > 0; i-- {
		j := rng.IntN(i + 1)
		r.ids[i], r.ids[j] = r.ids[j], r.ids[i]
	}
	if r.start = 0; len(r.ids) > 0 {
		r.start = rng.IntN(len(r.ids))
	}
}

// next returns the next broker of the rack, unfenced ones first.
func (r *rack) next() (model.BrokerID, bool) {
	if id, ok := r.live.next(); ok {
		return id, true
	}
	return r.fenced.next()
}

// newPlacer reads the usable brokers from the image.
func (d *decision) newPlacer() *placer {
	p := &placer{rng: d.call.Rand}
	byRack := map[string]*rack{}
	var names []string
	for _, b := range d.img.Brokers() {
		if b.InControlledShutdown {
			continue
		}
		name := "" // no rack; a rack's name is told apart by a prefix
		if b.Rack != nil {
			name = "r" + *b.Rack
		}
		if byRack[name] == nil {
			byRack[name] = &rack{}
			names = append(names, name)
		}
		p.brokers++
		if b.Fenced {
			byRack[name].fenced.ids = append(byRack[name].fenced.ids, b.ID)
		} else {
			byRack[name].live.ids = append(byRack[name].live.ids, b.ID)
			p.unfenced++
		}
	}
	slices.Sort(names)
	for _, name := range names {
		p.racks = append(p.racks, byRack[name])
	}
	p.shuffle()
	return p
}

// shuffle reorders racks and brokers and picks new starts.
func (p *placer) shuffle() {
	for i := len(p.racks) - 1; i > 0; i-- {
		j := p.rng.IntN(i + 1)
		p.racks[i], p.racks[j] = p.racks[j], p.racks[i]
	}
	for _, r := range p.racks {
		r.live.shuffle(p.rng)
		r.fenced.shuffle(p.rng)
	}
	if len(p.racks) > 0 {
		p.start = p.rng.IntN(len(p.racks))
	}
	p.placed = 0
}

// check says why n replicas cannot be placed.
func (p *placer) check(n int) string {
	switch {
	case p.unfenced == 0:
		return "All brokers are currently fenced or in controlled shutdown."
	case n > p.brokers:
		return fmt.Sprintf("The target replication factor of %d cannot be reached because only %d broker(s) are usable.",
			n, p.brokers)
	}
	return ""
}

// place returns the replicas of the next partition. check(n) must have passed.
func (p *placer) place(n int) []model.BrokerID {
	if p.placed == p.unfenced && p.unfenced > 1 {
		p.shuffle()
	}
	for _, r := range p.racks {
		r.live.turn()
		r.fenced.turn()
	}
	out := make([]model.BrokerID, 0, n)
	at := p.start
	for ; len(out) == 0; at++ {
		if id, ok := p.racks[at%len(p.racks)].live.next(); ok {
			out = append(out, id)
		}
	}
	for ; len(out) < n; at++ {
		if id, ok := p.racks[at%len(p.racks)].next(); ok {
			out = append(out, id)
		}
	}
	p.start = (p.start + 1) % len(p.racks)
	p.placed++
	return out
}
