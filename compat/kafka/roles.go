package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// rolesApart runs three controllers and three brokers in six processes, kills the
// active controller and a broker, and asks Kafka's tools and a client meanwhile.
func rolesApart(ctx context.Context, s settings) error {
	port, err := freePorts(s.port, 10)
	if err != nil {
		return err
	}
	c := &cluster{s: s, dir: filepath.Join(s.dir, "apart"), tmp: filepath.Join(s.dir, "apart-files")}
	var voters, controllers []string
	for id := 101; id <= 103; id++ {
		controllers = append(controllers, fmt.Sprintf("127.0.0.1:%d", port+id))
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", id, port+id))
	}
	nodes := map[int]*exec.Cmd{}
	defer func() {
		for _, cmd := range nodes {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	for _, id := range []int{101, 102, 103, 1, 2, 3} {
		if id < 100 {
			c.addresses = append(c.addresses, fmt.Sprintf("127.0.0.1:%d", port+id))
		}
		if err := c.formatRole(ctx, id, port+id, strings.Join(voters, ",")); err != nil {
			return err
		}
		if nodes[id], err = c.serve(ctx, id); err != nil {
			return err
		}
	}
	if err := waitOpen(c.addresses...); err != nil {
		return err
	}
	c.names = strings.NewReplacer("127.0.0.1", "HOST")
	c.vars = strings.NewReplacer("$B", c.bootstrap(), "$C", strings.Join(controllers, ","))
	if err := c.expectRoles(ctx); err != nil {
		return err
	}
	return c.surviveRoles(ctx, nodes)
}

// formatRole writes the configuration of a controller, if the id is over 100, or
// of a broker, and formats its directory.
func (c *cluster) formatRole(ctx context.Context, id, port int, voters string) error {
	home := filepath.Join(c.dir, strconv.Itoa(id))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	role, listener := "broker", "PLAINTEXT"
	if id > 100 {
		role, listener = "controller", "CONTROLLER"
	}
	text := strings.Join([]string{
		"process.roles=" + role, "node.id=" + strconv.Itoa(id), "controller.quorum.voters=" + voters, "controller.listener.names=CONTROLLER",
		fmt.Sprintf("listeners=%s://127.0.0.1:%d", listener, port), "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + filepath.Join(home, "data"), "default.replication.factor=3", "min.insync.replicas=2", "",
	}, "\n")
	file := filepath.Join(home, "server.properties")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, c.s.binary, "format", "--cluster-id", "CompatKafkaCluster001w", "--config", file).CombinedOutput(); err != nil {
		return fmt.Errorf("format node %d: %w: %s", id, err, out)
	}
	return nil
}

func waitOpen(addresses ...string) error {
	deadline := time.Now().Add(time.Minute)
	for _, a := range addresses {
		for {
			nc, err := net.DialTimeout("tcp", a, time.Second)
			if err == nil {
				nc.Close()
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("broker at %s did not open its port within a minute", a)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// apart is what Kafka's tools say of a cluster whose roles are apart.
const apart = `
# The voters are the controllers, the observers are the brokers.
$ metadata-quorum --bootstrap-server $B describe --replication
| mask '^(\d+).*(Leader|Follower|Observer)' '$1 $2'
| mask Follower|Leader Voter
| drop NodeId
| sort
| retry
1 Observer
101 Voter
102 Voter
103 Voter
2 Observer
3 Observer

$ metadata-quorum --bootstrap-controller $C describe --status
| only Current
| mask ':\d{5}' ''
CurrentVoters:          [{"id": 101, "endpoints": ["CONTROLLER://HOST"]}, {"id": 102, "endpoints": ["CONTROLLER://HOST"]}, {"id": 103, "endpoints": ["CONTROLLER://HOST"]}]
CurrentObservers:       [{"id": 1, "directoryId": "ID"}, {"id": 2, "directoryId": "ID"}, {"id": 3, "directoryId": "ID"}]

$ cluster list-endpoints --bootstrap-server $B
| mask '\s+' ' '
| mask ' \d{5} ' ' PORT '
ID HOST PORT RACK STATE ENDPOINT_TYPE
1 HOST PORT null unfenced broker
2 HOST PORT null unfenced broker
3 HOST PORT null unfenced broker

$ cluster list-endpoints --bootstrap-controller $C
| mask '\s+' ' '
| mask ' \d{5} ' ' PORT '
ID HOST PORT RACK ENDPOINT_TYPE
101 HOST PORT null controller
102 HOST PORT null controller
103 HOST PORT null controller

$ topics --bootstrap-server $B --create --topic apart --replica-assignment 1:2:3,2:3:1
Created topic apart.

$ configs --bootstrap-controller $C --alter --entity-type topics --entity-name apart --add-config retention.ms=3600000
Completed updating config for topic apart.

$ configs --bootstrap-server $B --describe --entity-type topics --entity-name apart
Dynamic configs for topic apart are:
  retention.ms=3600000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=3600000}
`

func (c *cluster) expectRoles(ctx context.Context) error {
	sc, err := parseScript("apart", apart)
	if err != nil {
		return err
	}
	for _, ch := range sc.checks {
		if err := c.check(ctx, ch); err != nil {
			return err
		}
	}
	return nil
}

// surviveRoles kills each controller, then each broker, between writes; then it
// ends them all in order.
func (c *cluster) surviveRoles(ctx context.Context, nodes map[int]*exec.Cmd) error {
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	n := 0
	for _, id := range []int{101, 102, 103, 1, 2, 3} {
		if err := k.produce(ctx, "apart", n, 500); err != nil {
			return err
		}
		n += 500
		nodes[id].Process.Kill()
		nodes[id].Wait()
		if err := k.produce(ctx, "apart", n, 500); err != nil {
			return fmt.Errorf("node %d is down: %w", id, err)
		}
		n += 500
		if nodes[id], err = c.serve(ctx, id); err != nil {
			return err
		}
		if err := k.waitISR(ctx, "apart", 3, time.Minute); err != nil {
			return fmt.Errorf("node %d came back: %w", id, err)
		}
	}
	if err := k.expect(ctx, "apart", n); err != nil {
		return err
	}
	for _, id := range []int{1, 2, 3, 101, 102, 103} {
		if err := terminate(nodes[id]); err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
		delete(nodes, id)
	}
	return nil
}
