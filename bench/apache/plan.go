package apache

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	mostNodes  = 100
	controller = 100 // how much higher a node's port for controllers is than its port for clients
	mostPort   = 65535
)

// plan is a cluster that is to be started.
type plan struct {
	cluster  cluster
	nodes    int
	port     int      // the first one
	binary   string   // absolute; "" for Apache Kafka
	settings []string // KEY=VALUE
}

// newPlan reads the words behind start.
func newPlan(args []string) (p plan, err error) {
	dir := ""
	p.settings, err = parse("start", args, func(f *flag.FlagSet) {
		f.StringVar(&dir, "d", "", "")
		f.IntVar(&p.nodes, "n", 1, "")
		f.IntVar(&p.port, "p", 19092, "")
		f.StringVar(&p.binary, "x", "", "")
	})
	if err != nil {
		return p, err
	}
	if p.nodes < 1 || p.nodes > mostNodes {
		return p, fmt.Errorf("-n %d is not possible: say a number of nodes from 1 to %d", p.nodes, mostNodes)
	}
	if last := mostPort - controller - p.nodes + 1; p.port < 1 || p.port > last {
		return p, fmt.Errorf("-p %d is not possible: say a first port from 1 to %d", p.port, last)
	}
	for _, s := range p.settings {
		if key, _, ok := strings.Cut(s, "="); !ok || key == "" || strings.HasPrefix(key, "-") {
			return p, fmt.Errorf("%q is no setting: write KEY=VALUE, with the flags before it", s)
		}
	}
	if p.binary != "" {
		if p.binary, err = filepath.Abs(p.binary); err != nil {
			return p, err
		}
	}
	p.cluster, err = named(dir)
	return p, err
}

// start formats and starts the nodes and returns their addresses, separated by commas,
// when all listen. If that fails no node is left, but what they logged.
func (p plan) start(ctx context.Context) (string, error) {
	c := p.cluster
	if c.there() {
		return "", fmt.Errorf("%s holds a cluster already: stop that and remove the folder, or name another one with -d", c.dir)
	}
	system, err := programOf(p.binary, c.dir)
	if err != nil {
		return "", err
	}
	if err := p.free(); err != nil {
		return "", err
	}
	id := newID()
	if err := p.write(id); err != nil {
		return "", err
	}
	var all []string
	for n := range p.nodes {
		if err := c.at(n+1).format(ctx, system, id); err != nil {
			return "", err
		}
		all = append(all, p.client(n+1))
	}
	if err := p.launch(ctx, system); err != nil {
		return "", errors.Join(err, c.end())
	}
	return strings.Join(all, ","), nil
}

// launch starts the nodes side by side, as none serves before there is a quorum.
func (p plan) launch(ctx context.Context, system program) error {
	for n := range p.nodes {
		if err := p.cluster.at(n + 1).launch(system); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for n := range p.nodes {
		if err := p.cluster.at(n + 1).listening(ctx); err != nil {
			return err
		}
	}
	return nil
}

// free fails if a port is taken, which a node would find out much later.
func (p plan) free() error {
	for n := range p.nodes {
		for _, at := range []string{p.client(n + 1), p.controller(n + 1)} {
			if err := free(at); err != nil {
				return fmt.Errorf("%w: stop what listens there, or name another first port with -p", err)
			}
		}
	}
	return nil
}

func free(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	return l.Close()
}

// write makes the cluster's folder. The file that makes it a cluster comes first, so
// that what was begun can be stopped.
func (p plan) write(id string) error {
	type file struct{ name, text string }
	files := []file{{"cluster", id}, {"binary", p.binary}}
	if p.binary == "" {
		files = append(files, file{loggingFile, logging})
	}
	for n := range p.nodes {
		folder := strconv.Itoa(n + 1)
		files = append(files, file{filepath.Join(folder, "address"), p.client(n + 1)},
			file{filepath.Join(folder, propertiesFile), p.properties(n + 1)})
	}
	for _, f := range files {
		name := p.cluster.file(f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(strings.TrimSpace(f.text)+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// newID is a cluster's id: 16 random bytes as Kafka writes them. It does not start with
// a hyphen, which both systems would take for a flag.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (p plan) client(id int) string { return loopback(p.port + id - 1) }

func (p plan) controller(id int) string { return loopback(p.port + id - 1 + controller) }

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
