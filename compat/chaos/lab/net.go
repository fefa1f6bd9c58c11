package lab

import (
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Clients stands for the clients where a node is asked for.
const Clients = 0

// Address is the address of a node, or of the bridge, where the clients are.
func Address(node int) string {
	if node == Clients {
		return "10.77.0.254"
	}
	return fmt.Sprintf("10.77.0.%d", node)
}

// host is the name of a namespace; the bridge's is the own one.
func host(node int) string {
	if node == Clients {
		return ""
	}
	return fmt.Sprintf("n%d", node)
}

// toxicPort is where toxiproxy takes orders; it is never cut off.
const toxicPort = 8474

// behind is how much higher the port is at which a proxy reaches its node.
const behind = 10000

// Net is the network of nodes 1 to n.
type Net struct {
	nodes int
	ports []int // at which nodes listen

	mu      sync.Mutex
	rules   map[int][]*rule // what the firewall of each node does, besides letting through
	proxies map[Link]*Proxy
}

// rule is one line of a node's firewall.
type rule struct{ text string }

// Link is the connections that one node, or the clients, open to another.
type Link struct{ From, To int }

// String is an arrow between the ends.
func (l Link) String() string {
	if l.From == Clients {
		return fmt.Sprintf("clients->%d", l.To)
	}
	return fmt.Sprintf("%d->%d", l.From, l.To)
}

// NewNet builds the network. The links of slow run through toxiproxy, the binary
// of that name, whose output goes to log.
func NewNet(nodes int, ports []int, slow []Link, toxiproxy string, log io.Writer) (*Net, error) {
	n := &Net{nodes: nodes, ports: ports, rules: map[int][]*rule{}, proxies: map[Link]*Proxy{}}
	for _, args := range []string{
		"link add br0 type bridge forward_delay 0", "link set br0 up", "addr add " + Address(Clients) + "/24 dev br0",
	} {
		if err := run("", append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
			return nil, err
		}
	}
	if err := feed(host(Clients), filter()+"}\n", "nft", "-f", "-"); err != nil {
		return nil, err
	}
	for id := 1; id <= nodes; id++ {
		if err := n.plug(id); err != nil {
			return nil, err
		}
	}
	for _, id := range n.proxied(slow) {
		if err := n.proxy(id, slow, toxiproxy, log); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// proxied lists the nodes from which slow links start.
func (n *Net) proxied(slow []Link) []int {
	var out []int
	for _, l := range slow {
		if !slices.Contains(out, l.From) {
			out = append(out, l.From)
		}
	}
	return out
}

// plug makes the namespace of a node and its cable to the bridge.
func (n *Net) plug(id int) error {
	h := host(id)
	for _, args := range []string{
		"netns add " + h,
		"link add p" + h + " type veth peer name eth0 netns " + h,
		"link set p" + h + " master br0 up",
		"-n " + h + " link set lo up",
		"-n " + h + " link set eth0 up",
		"-n " + h + " addr add " + Address(id) + "/24 dev eth0",
	} {
		if err := run("", append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
			return err
		}
	}
	return feed(h, n.base(), "nft", "-f", "-")
}

// filter is a firewall that does what its chain "faults" says; its table is open.
// What only crosses the bridge may pass by the bridge's own firewall, so that one
// must not change anything on the way.
func filter() string {
	return fmt.Sprintf("table inet chaos {\nchain faults { }\n"+
		"chain in { type filter hook input priority 0; tcp dport %d accept; jump faults; }\n", toxicPort)
}

// base is a node's firewall, with the ports for proxies.
func (n *Net) base() string {
	var b strings.Builder
	b.WriteString(filter())
	b.WriteString("chain back { type nat hook prerouting priority -100; ")
	for _, p := range n.ports {
		fmt.Fprintf(&b, "tcp dport %d redirect to :%d; ", p+behind, p)
	}
	b.WriteString("}\nchain detour { type nat hook output priority -100; }\n}\n")
	return b.String()
}

// Command is a program that runs on a node. The process that it starts is the
// program itself.
func (n *Net) Command(node int, name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", host(node), name}, args...)...)
}

// Undo takes a fault back.
type Undo func() error

// Cut lets nothing through from one node, or the clients, to another.
func (n *Net) Cut(from, to int) (Undo, error) {
	return n.impose(to, "ip saddr "+Address(from)+" drop")
}

// Lose drops so many of a thousand packets from one node, or the clients, to
// another.
func (n *Net) Lose(from, to, perMille int) (Undo, error) {
	return n.impose(to, fmt.Sprintf("ip saddr %s numgen random mod 1000 < %d drop", Address(from), perMille))
}

func (n *Net) impose(node int, text string) (Undo, error) {
	r := &rule{text}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules[node] = append(n.rules[node], r)
	return func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.rules[node] = slices.DeleteFunc(n.rules[node], func(o *rule) bool { return o == r })
		return n.load(node)
	}, n.load(node)
}

// load replaces a node's rules, all at once.
func (n *Net) load(node int) error {
	var b strings.Builder
	b.WriteString("flush chain inet chaos faults\n")
	for _, r := range n.rules[node] {
		b.WriteString("add rule inet chaos faults " + r.text + "\n")
	}
	return feed(host(node), b.String(), "nft", "-f", "-")
}

// Narrow lets a node send so many bits in a second, no more.
func (n *Net) Narrow(node, kbit int) (Undo, error) {
	h := host(node)
	err := run(h, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", fmt.Sprintf("%dkbit", kbit), "burst", "16kb", "latency", "400ms")
	return func() error { return run(h, "tc", "qdisc", "del", "dev", "eth0", "root") }, err
}

// Slow makes the answers and the requests of a link late; the link must be one
// that runs through toxiproxy.
func (n *Net) Slow(l Link, delay, jitter time.Duration) (Undo, error) {
	p := n.proxies[l]
	if p == nil {
		return nil, fmt.Errorf("the link %v does not run through toxiproxy", l)
	}
	return p.slow(delay, jitter)
}

// Proxied lists the links that run through toxiproxy.
func (n *Net) Proxied() []Link {
	return slices.SortedFunc(maps.Keys(n.proxies), func(a, b Link) int { return 100*(a.From-b.From) + a.To - b.To })
}

// Detour is where clients find the node: at a proxy, if their link has one.
func (n *Net) Detour(addr string) string {
	for l, p := range n.proxies {
		if l.From != Clients {
			continue
		}
		for i, port := range n.ports {
			if addr == fmt.Sprintf("%s:%d", Address(l.To), port) {
				return fmt.Sprintf("127.0.0.1:%d", p.listen+i)
			}
		}
	}
	return addr
}

// Close ends the processes that the network started.
func (n *Net) Close() {
	for _, p := range n.proxies {
		p.close()
	}
}
