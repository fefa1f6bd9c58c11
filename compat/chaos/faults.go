package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
	"github.com/tidemark-log/tidemark/compat/chaos/lab"
)

// processFaults hit nodes one at a time, but for the blackout.
func processFaults() []kind {
	return []kind{
		{"kill", [2]float64{0, 8}, (*nemesis).killOne},
		{"pause", [2]float64{0.5, 12}, (*nemesis).pauseOne},
		{"restart", [2]float64{0, 4}, (*nemesis).restartOne},
		{"blackout", [2]float64{0, 2}, (*nemesis).blackout},
		{"disk-full", [2]float64{3, 8}, (*nemesis).fillDisk},
	}
}

// networkFaults hit links.
func networkFaults() []kind {
	return []kind{
		{"one-way", [2]float64{3, 12}, (*nemesis).cutOneWay},
		{"two-way", [2]float64{3, 12}, (*nemesis).cutBothWays},
		{"isolate", [2]float64{3, 12}, (*nemesis).isolate},
		{"split", [2]float64{3, 12}, (*nemesis).split},
		{"loss", [2]float64{5, 12}, (*nemesis).lose},
		{"narrow", [2]float64{5, 12}, (*nemesis).narrow},
		{"delay", [2]float64{5, 12}, (*nemesis).delay},
	}
}

func (n *nemesis) any(rng *rand.Rand) *node { return n.c.nodes[rng.IntN(len(n.c.nodes))] }

func (n *nemesis) killOne(rng *rand.Rand) (string, func() error, error) {
	v := n.any(rng)
	return fmt.Sprintf("node %d is dead", v.id), v.launch, v.kill()
}

func (n *nemesis) pauseOne(rng *rand.Rand) (string, func() error, error) {
	v := n.any(rng)
	return fmt.Sprintf("node %d is frozen", v.id), func() error { return v.signal(syscall.SIGCONT) }, v.signal(syscall.SIGSTOP)
}

// leaving is how long a node may take to end in an orderly way.
const leaving = 30 * time.Second

func (n *nemesis) restartOne(rng *rand.Rand) (string, func() error, error) {
	v := n.any(rng)
	start := time.Now()
	clean, err := v.terminate(leaving)
	if err == nil && !clean {
		n.c.h.Verdict.Violate(history.Process, "node %d did not end well after SIGTERM and %v: %s", v.id, time.Since(start).Round(time.Millisecond), v.tail())
	}
	return fmt.Sprintf("node %d ended after %v", v.id, time.Since(start).Round(time.Millisecond)), v.launch, err
}

func (n *nemesis) blackout(*rand.Rand) (string, func() error, error) {
	var errs error
	for _, v := range n.c.nodes {
		errs = errors.Join(errs, v.signal(syscall.SIGKILL))
	}
	return "all nodes are dead", func() error {
		var errs error
		for _, v := range n.c.nodes {
			<-v.ended
			errs = errors.Join(errs, v.launch())
		}
		return errs
	}, errs
}

// fillDisk leaves no room on the small disk. The node may end by itself, and is
// started again when there is room.
func (n *nemesis) fillDisk(*rand.Rand) (string, func() error, error) {
	v := n.c.small
	v.doom(true)
	ballast := filepath.Join(v.data, "ballast")
	size, err := lab.Fill(ballast)
	return fmt.Sprintf("disk of node %d is full (%d MB of ballast)", v.id, size>>20), func() error {
		if err := os.Remove(ballast); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // it may be about to end
		if v.alive() {
			n.count("disk-full survived")
		}
		v.doom(false)
		return v.launch()
	}, err
}

// impose makes one fault of several.
func impose(faults ...func() (lab.Undo, error)) (func() error, error) {
	var undos []lab.Undo
	var errs error
	for _, f := range faults {
		u, err := f()
		errs = errors.Join(errs, err)
		undos = append(undos, u)
	}
	return func() error {
		var errs error
		for _, u := range slices.Backward(undos) {
			errs = errors.Join(errs, u())
		}
		return errs
	}, errs
}

func (n *nemesis) cut(from, to int) func() (lab.Undo, error) {
	return func() (lab.Undo, error) { return n.c.net.Cut(from, to) }
}

// apart cuts all links between two sides.
func (n *nemesis) apart(left, right []int) (func() error, error) {
	var cuts []func() (lab.Undo, error)
	for _, a := range left {
		for _, b := range right {
			cuts = append(cuts, n.cut(a, b), n.cut(b, a))
		}
	}
	return impose(cuts...)
}

// ends chooses two ends of a link. One may be the clients, twice as often as one
// certain node is.
func (n *nemesis) ends(rng *rand.Rand) (a, b int) {
	a = n.any(rng).id
	rest := append(n.others(a), lab.Clients, lab.Clients)
	b = rest[rng.IntN(len(rest))]
	if rng.IntN(2) == 0 {
		return b, a
	}
	return a, b
}

func place(id int) string {
	if id == lab.Clients {
		return "clients"
	}
	return fmt.Sprint("node ", id)
}

func (n *nemesis) cutOneWay(rng *rand.Rand) (string, func() error, error) {
	a, b := n.ends(rng)
	undo, err := impose(n.cut(a, b))
	return fmt.Sprintf("nothing passes from %s to %s", place(a), place(b)), undo, err
}

func (n *nemesis) cutBothWays(rng *rand.Rand) (string, func() error, error) {
	a, b := n.ends(rng)
	undo, err := n.apart([]int{a}, []int{b})
	return fmt.Sprintf("nothing passes between %s and %s", place(a), place(b)), undo, err
}

// others lists all nodes but those.
func (n *nemesis) others(ids ...int) []int {
	var out []int
	for _, v := range n.c.nodes {
		if !slices.Contains(ids, v.id) {
			out = append(out, v.id)
		}
	}
	return out
}

func (n *nemesis) isolate(rng *rand.Rand) (string, func() error, error) {
	v := n.any(rng).id
	rest, words := n.others(v), "the other nodes"
	if rng.IntN(2) == 0 {
		rest, words = append(rest, lab.Clients), "nodes and clients"
	}
	undo, err := n.apart([]int{v}, rest)
	return fmt.Sprintf("node %d is cut off from %s", v, words), undo, err
}

// split makes two sides; clients see both.
func (n *nemesis) split(rng *rand.Rand) (string, func() error, error) {
	order := rng.Perm(len(n.c.nodes))
	var left []int
	for _, i := range order[:1+rng.IntN(len(order)/2)] {
		left = append(left, n.c.nodes[i].id)
	}
	slices.Sort(left)
	right := n.others(left...)
	undo, err := n.apart(left, right)
	return fmt.Sprintf("%v and %v are apart", left, right), undo, err
}

// lose drops packets that a node sends and gets, those of clients included.
func (n *nemesis) lose(rng *rand.Rand) (string, func() error, error) {
	v, perMille := n.any(rng).id, 10+rng.IntN(240)
	var faults []func() (lab.Undo, error)
	for _, o := range append(n.others(v), lab.Clients) {
		faults = append(faults, func() (lab.Undo, error) { return n.c.net.Lose(o, v, perMille) },
			func() (lab.Undo, error) { return n.c.net.Lose(v, o, perMille) })
	}
	undo, err := impose(faults...)
	return fmt.Sprintf("node %d loses %.1f %% of its packets", v, float64(perMille)/10), undo, err
}

func (n *nemesis) narrow(rng *rand.Rand) (string, func() error, error) {
	v, kbit := n.any(rng).id, 128<<rng.IntN(5)
	undo, err := n.c.net.Narrow(v, kbit)
	return fmt.Sprintf("node %d sends %d kbit/s at most", v, kbit), undo, err
}

// delay makes one of the links slow that run through toxiproxy.
func (n *nemesis) delay(rng *rand.Rand) (string, func() error, error) {
	links := n.c.net.Proxied()
	l, delay := links[rng.IntN(len(links))], time.Duration(20+rng.IntN(600))*time.Millisecond
	undo, err := n.c.net.Slow(l, delay, delay/4)
	return fmt.Sprintf("link %v takes %v each way", l, delay), undo, err
}
