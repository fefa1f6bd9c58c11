package apache

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const propertiesFile = "server.properties"

// line is one of a properties file.
type line struct{ key, value string }

// properties returns the server.properties of a node, which are the same for either
// system: a broker that is a controller too. What the cluster keeps has three replicas,
// two of them in sync, as far as there are nodes. A setting takes the place of the line
// with its key.
func (p plan) properties(id int) string {
	var voters []string
	for n := range p.nodes {
		voters = append(voters, fmt.Sprintf("%d@%s", n+1, p.controller(n+1)))
	}
	lines := []line{
		{"node.id", strconv.Itoa(id)},
		{"process.roles", "broker,controller"},
		{"log.dirs", p.cluster.at(id).file("data")},
		{"listeners", "PLAINTEXT://" + p.client(id) + ",CONTROLLER://" + p.controller(id)},
		{"advertised.listeners", "PLAINTEXT://" + p.client(id)},
		{"listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"},
		{"controller.listener.names", "CONTROLLER"},
		{"controller.quorum.voters", strings.Join(voters, ",")},
	}
	replicas, inSync := strconv.Itoa(min(p.nodes, 3)), strconv.Itoa(min(p.nodes, 2))
	lines = append(lines,
		line{"default.replication.factor", replicas}, line{"min.insync.replicas", inSync},
		line{"offsets.topic.replication.factor", replicas},
		line{"transaction.state.log.replication.factor", replicas}, line{"transaction.state.log.min.isr", inSync},
		line{"share.coordinator.state.topic.replication.factor", replicas}, line{"share.coordinator.state.topic.min.isr", inSync},
	)
	var text strings.Builder
	for _, l := range with(lines, p.settings) {
		fmt.Fprintf(&text, "%s=%s\n", l.key, l.value)
	}
	return text.String()
}

// with puts settings over lines. The last of a key counts.
func with(lines []line, settings []string) []line {
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		at := slices.IndexFunc(lines, func(l line) bool { return l.key == key })
		if at < 0 {
			at, lines = len(lines), append(lines, line{key: key})
		}
		lines[at].value = value
	}
	return lines
}
