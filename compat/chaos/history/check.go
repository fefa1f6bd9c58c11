package history

import (
	"sort"
	"time"
)

// Tally is what the writers of a partition got.
type Tally struct {
	Partition  *Partition
	Sent       int
	Acked      int
	Unanswered int // refused or still pending
	Kept       int // different records in the log
	Reads      int // by all readers together
	Lost       int // acknowledged, but not in the log
	Again      int // copies in the log beyond the first
	Disorder   int // records in the log after a later one of their writer
	Gap        time.Duration
	GapFrom    time.Duration
}

// log is a partition's records at the end with the lanes that wrote them.
type log struct {
	p      *Partition
	tally  Tally
	lanes  []*Lane
	places [][]int64 // by lane and record: its first offset, or unplaced
}

// check judges a partition that was read whole.
func (p *Partition) check() Tally {
	l := log{p: p, lanes: p.sortedLanes(), tally: Tally{Partition: p, Reads: p.reads}}
	at := map[int]int{}
	for i, lane := range l.lanes {
		at[lane.writer] = i
		places := make([]int64, len(lane.writes))
		for j := range places {
			places[j] = unplaced
		}
		l.places = append(l.places, places)
	}
	l.whole()
	l.place(at)
	for i := range l.lanes {
		l.lane(i)
	}
	l.linear()
	return l.tally
}

func (l *log) violate(pr Property, format string, args ...any) {
	l.p.h.Verdict.Violate(pr, "%s-%d: "+format, append([]any{l.p.Topic, l.p.Number}, args...)...)
}

// whole compares what was read during the run with the log at the end.
func (l *log) whole() {
	for o, k := range l.p.known {
		switch {
		case int64(o) >= l.p.end:
			l.violate(Committed, "record %v was read at offset %d, the log ends at %d", k, o, l.p.end)
		case k == 0:
			l.violate(Contiguous, "nobody could read offset %d, the log ends at %d", o, l.p.end)
		}
	}
	if int64(len(l.p.known)) < l.p.end {
		l.violate(Contiguous, "offsets %d to %d were not read", len(l.p.known), l.p.end)
	}
}

// place finds every record in the log, notes copies and disorder.
func (l *log) place(at map[int]int) {
	newest := make([]int, len(l.lanes))
	for i := range newest {
		newest[i] = -1
	}
	for o, k := range l.p.known {
		if k == 0 {
			continue
		}
		i, ok := at[k.writer()]
		if !ok || k.n() >= len(l.places[i]) {
			l.violate(Authentic, "offset %d holds record %v, which was not sent", o, k)
			continue
		}
		if l.places[i][k.n()] != unplaced {
			l.tally.Again++
			if l.p.Acks == AcksAll {
				l.violate(ExactlyOnce, "record %v is at offset %d and again at %d", k, l.places[i][k.n()], o)
			}
			continue
		}
		l.places[i][k.n()] = int64(o)
		l.tally.Kept++
		if k.n() < newest[i] {
			l.tally.Disorder++
			if l.p.Acks == AcksAll {
				l.violate(ProducerOrder, "record %v is at offset %d, after record %d of the same producer", k, o, newest[i])
			}
		}
		newest[i] = max(newest[i], k.n())
	}
}

// lane holds the acknowledgements of one writer against the log.
func (l *log) lane(i int) {
	lane := l.lanes[i]
	if gap := lane.gap.Duration(); gap > l.tally.Gap {
		l.tally.Gap, l.tally.GapFrom = gap, lane.from.Duration()
	}
	kept := kept{p: l.p}
	for n, w := range lane.writes {
		l.tally.Sent++
		if !w.acked() {
			l.tally.Unanswered++
			continue
		}
		l.tally.Acked++
		place, k := l.places[i][n], keyOf(lane.writer, n)
		switch {
		case place == unplaced:
			l.tally.Lost++
			l.lost(k, w, &kept)
		case l.p.Acks == AcksAll && w.offset != nowhere && w.offset != place:
			l.violate(ExactlyOnce, "record %v was acknowledged at offset %d and is at %d", k, w.offset, place)
		default:
			kept.add(w, place)
		}
	}
}

// lost judges an acknowledged record that is not in the log.
func (l *log) lost(k Key, w write, before *kept) {
	switch l.p.Acks {
	case AcksAll:
		l.violate(ExactlyOnce, "record %v was acknowledged at offset %d after %v and is lost", k, w.offset, w.end.Duration())
	case AcksLeader:
		if w.offset >= 0 && !before.explains(w) {
			l.violate(LossExplained, "record %v was acknowledged at offset %d after %v and is lost, though the leader did not change",
				k, w.offset, w.end.Duration())
		}
	}
}

// kept is the epochs of a writer's acknowledged records that are in the log.
type kept struct {
	p    *Partition
	list []change // epochs rise with the time of the acknowledgement
}

func (s *kept) add(w write, place int64) {
	epoch := s.p.epochs[place]
	if n := len(s.list); n == 0 || s.list[n-1].epoch < epoch {
		s.list = append(s.list, change{w.end, epoch})
	}
}

// A leader may not know for a while that there is another (deposed), and it takes
// a while to see that there is one (unseen).
const (
	deposed = 45 * time.Second
	unseen  = 10 * time.Second
)

// explains reports whether the record that was acknowledged may be lost: its
// offset belongs to a later leader than the records acknowledged before it was
// sent, or there was a change shortly before, of which its leader did not know.
func (s *kept) explains(w write) bool {
	if w.offset >= int64(len(s.p.epochs)) {
		return true // the log is shorter: only a truncation does that
	}
	epoch := s.p.epochs[w.offset]
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].at >= w.begin })
	if i == 0 || s.list[i-1].epoch < epoch {
		return true
	}
	for _, c := range s.p.changes {
		if since := w.end.Duration() - c.at.Duration(); c.epoch > s.p.changes[0].epoch && -unseen < since && since < deposed {
			return true
		}
	}
	return false
}

// linear goes from the end of the log to its start: no record may have been
// sent after one behind it was acknowledged.
func (l *log) linear() {
	if l.p.Acks == AcksNone {
		return
	}
	at := map[int]int{}
	for i, lane := range l.lanes {
		at[lane.writer] = i
	}
	var soonest Stamp
	var which Key
	for o := len(l.p.known) - 1; o >= 0; o-- {
		k := l.p.known[o]
		i, ok := at[k.writer()]
		if k == 0 || !ok || k.n() >= len(l.lanes[i].writes) {
			continue
		}
		w := l.lanes[i].writes[k.n()]
		if !w.acked() || w.offset >= 0 && w.offset != int64(o) {
			continue
		}
		if soonest != 0 && soonest < w.begin {
			l.violate(Linear, "record %v at offset %d was sent after %v, when record %v, which is behind it, was already acknowledged (%v)",
				k, o, w.begin.Duration(), which, soonest.Duration())
		}
		if soonest == 0 || w.end < soonest {
			soonest, which = w.end, k
		}
	}
}
