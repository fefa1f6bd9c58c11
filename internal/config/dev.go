package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Cluster describes the nodes of a development cluster.
type Cluster struct {
	Dir         string   // node i keeps its data in Dir/i
	Brokers     []string // HOST:PORT of each node's broker listener; port 0 lets the kernel choose
	Controllers []string // HOST:PORT of each node's controller listener, as many as Brokers
}

// Values returns the keys of each node, ids from 1: combined nodes with a fixed
// quorum and timers short enough to watch, such as a heartbeat every 100 ms and
// a session of 2 s.
func (c Cluster) Values() []map[string]string {
	voters := make([]string, len(c.Controllers))
	for i, address := range c.Controllers {
		voters[i] = fmt.Sprintf("%d@%s", i+1, address)
	}
	copies := fmt.Sprint(min(len(c.Brokers), 3))
	inSync := fmt.Sprint(min(len(c.Brokers), 2))
	nodes := make([]map[string]string, len(c.Brokers))
	for i := range nodes {
		nodes[i] = map[string]string{
			keyRoles:           "broker,controller",
			keyNodeID:          fmt.Sprint(i + 1),
			keyVoters:          strings.Join(voters, ","),
			keyControllerNames: "CONTROLLER",
			keyListeners:       "PLAINTEXT://" + c.Brokers[i] + ",CONTROLLER://" + c.Controllers[i],
			keyAdvertised:      "PLAINTEXT://" + c.Brokers[i],
			keySecurityMap:     "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
			keyLogDirs:         filepath.Join(c.Dir, fmt.Sprint(i+1)),

			keyHeartbeat:                            "100",
			keySession:                              "2000",
			"controller.quorum.election.timeout.ms": "500",
			"controller.quorum.fetch.timeout.ms":    "1000",
			"replica.fetch.backoff.ms":              "100",
			"group.initial.rebalance.delay.ms":      "0",
			"offsets.topic.num.partitions":          "10",

			keyMinISR:                    inSync,
			"default.replication.factor": copies,
			keyOffsetsCopies:             copies,
		}
	}
	return nodes
}
