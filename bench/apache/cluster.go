package apache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cluster is the folder of one, by its absolute path.
type cluster struct{ dir string }

// named returns the cluster of a folder, which need not be there.
func named(dir string) (cluster, error) {
	if dir == "" {
		return cluster{}, errors.New("no folder is named: say where the cluster is kept with -d DIR")
	}
	dir, err := filepath.Abs(dir)
	return cluster{dir}, err
}

func (c cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c cluster) at(id int) node { return node{id, c.file(strconv.Itoa(id))} }

// there reports whether the folder holds a cluster, be it whole or not.
func (c cluster) there() bool {
	_, err := os.Stat(c.file("cluster"))
	return err == nil
}

// nodes are those of the cluster in the order of their ids.
func (c cluster) nodes() ([]node, error) {
	if !c.there() {
		return nil, fmt.Errorf("%s holds no cluster: name the folder of one that was started with -d", c.dir)
	}
	folders, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var out []node
	for _, f := range folders {
		if id, err := strconv.Atoi(f.Name()); err == nil && f.IsDir() {
			out = append(out, c.at(id))
		}
	}
	slices.SortFunc(out, func(a, b node) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

// node returns the one that the word names.
func (c cluster) node(word string) (node, error) {
	all, err := c.nodes()
	if err != nil {
		return node{}, err
	}
	var ids []string
	for _, n := range all {
		id := strconv.Itoa(n.id)
		if id == word {
			return n, nil
		}
		ids = append(ids, id)
	}
	return node{}, fmt.Errorf("there is no node %s in %s: say one of %s", word, c.dir, strings.Join(ids, ", "))
}

// pids lists the nodes that run, one a line: id, process, address.
func (c cluster) pids() (string, error) {
	all, err := c.nodes()
	if err != nil {
		return "", err
	}
	var list strings.Builder
	for _, n := range all {
		pid, err := n.process()
		if err != nil {
			return "", err
		}
		if pid == 0 {
			continue
		}
		at, err := n.address()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&list, n.id, pid, at)
	}
	return list.String(), nil
}

// kill signals a node. It returns from a KILL when nothing of the process is left.
func (c cluster) kill(ctx context.Context, word, name string) error {
	sig, err := signalOf(name)
	if err != nil {
		return err
	}
	n, err := c.node(word)
	if err != nil {
		return err
	}
	running, err := n.signal(sig)
	switch {
	case err != nil:
		return err
	case !running:
		return fmt.Errorf("node %d does not run: restart starts it", n.id)
	case sig == syscall.SIGKILL:
		ctx, cancel := context.WithTimeout(ctx, endLimit)
		defer cancel()
		return n.ended(ctx)
	}
	return nil
}

// signalOf reads a signal's number, or its name with or without SIG.
func signalOf(word string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(word); err == nil && n > 0 {
		return syscall.Signal(n), nil
	}
	if sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(word), "SIG")); sig != 0 {
		return sig, nil
	}
	return 0, fmt.Errorf("%q is no signal: say KILL, TERM, STOP, CONT or another one", word)
}

// restart starts a node that ended and returns when it listens. One that takes too long
// goes on.
func (c cluster) restart(ctx context.Context, word string) error {
	n, err := c.node(word)
	if err != nil {
		return err
	}
	if err := n.dead(ctx); err != nil {
		return err
	}
	binary, err := os.ReadFile(c.file("binary"))
	if err != nil {
		return err
	}
	system, err := programOf(strings.TrimSpace(string(binary)), c.dir)
	if err != nil {
		return err
	}
	at, err := n.address()
	if err != nil {
		return err
	}
	if err := free(at); err != nil {
		return fmt.Errorf("%w: stop what listens there", err)
	}
	if err := n.launch(system); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return n.listening(ctx)
}

// stop asks all nodes to stop, and kills those that run when the limit is over. What is
// not there is stopped.
func (c cluster) stop(ctx context.Context, limit time.Duration) error {
	if !c.there() {
		return nil
	}
	all, err := c.nodes()
	if err != nil {
		return err
	}
	for _, n := range all {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} { // a node may be paused
			if _, err := n.signal(sig); err != nil {
				return err
			}
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, n := range all {
		if err := n.ended(limited); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return c.end()
}

// end ends all nodes at once.
func (c cluster) end() error {
	all, err := c.nodes()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	for _, n := range all {
		if _, err := n.signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	for _, n := range all {
		if err := n.ended(ctx); err != nil {
			return err
		}
	}
	return nil
}
