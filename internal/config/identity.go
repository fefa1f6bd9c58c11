package config

import (
	"fmt"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// singleNode fills in what a file without any word about roles and quorum means:
// one node that is broker and controller at once.
func singleNode(values map[string]string) error {
	if v, ok := values[keyZooKeeper]; ok && values[keyRoles] == "" {
		return fmt.Errorf("%s=%s is refused, because there is no ZooKeeper mode: set %s, %s and %s instead", keyZooKeeper, v, keyRoles, keyNodeID, keyVoters)
	}
	for _, key := range []string{keyRoles, keyNodeID, keyBrokerID, keyVoters, keyBootstrap, keyControllerNames} {
		if _, ok := values[key]; ok {
			return nil
		}
	}
	broker := "PLAINTEXT://:9092"
	if v, ok := values[keyListeners]; ok {
		broker = v
	}
	values[keyListeners] = broker + ",CONTROLLER://127.0.0.1:9093"
	values[keyRoles], values[keyNodeID] = "broker,controller", "1"
	values[keyControllerNames], values[keyBootstrap] = "CONTROLLER", "127.0.0.1:9093"
	if v, ok := values[keySecurityMap]; ok && !strings.Contains(strings.ToUpper(v), "CONTROLLER:") {
		values[keySecurityMap] = v + ",CONTROLLER:PLAINTEXT"
	}
	if _, ok := values[keyOffsetsCopies]; !ok {
		values[keyOffsetsCopies] = "1"
	}
	return nil
}

// setIdentity reads roles and node id.
func (c *Config) setIdentity(values map[string]string) error {
	for _, role := range splitList(values[keyRoles]) {
		c.Broker = c.Broker || role == "broker"
		c.Controller = c.Controller || role == "controller"
	}
	if !c.Broker && !c.Controller {
		return fmt.Errorf("%s is missing: set it to broker,controller, to broker or to controller", keyRoles)
	}
	node, isNode := values[keyNodeID]
	old, isOld := values[keyBrokerID]
	switch {
	case !isNode && !isOld:
		return fmt.Errorf("%s is missing: give each node its own number of 0 or more", keyNodeID)
	case isNode && isOld && readInt(node) != readInt(old):
		return fmt.Errorf("%s=%s and %s=%s differ: drop %s", keyNodeID, node, keyBrokerID, old, keyBrokerID)
	case !isNode:
		node = old
	}
	if readInt(node) < 0 {
		return fmt.Errorf("%s=%s is not valid: give 0 or more", keyNodeID, node)
	}
	c.NodeID = model.BrokerID(readInt(node))
	return nil
}

// setDirs reads the directories and what else takes more than one key.
func (c *Config) setDirs(values map[string]string) error {
	dir, ok := values[keyLogDirs]
	key := keyLogDirs
	if !ok {
		dir, key = value(values, keyLogDir), keyLogDir
	}
	if c.LogDir = strings.TrimSpace(dir); c.LogDir == "" {
		return fmt.Errorf("%s is empty: name the data directory", key)
	}
	if c.MetadataLogDir = strings.TrimSpace(values[keyMetadataDir]); c.MetadataLogDir == "" {
		c.MetadataLogDir = c.LogDir
	}
	c.RackAwareReads = strings.TrimSpace(values[keySelector]) == rackAwareSelector
	return nil
}

// setQuorum reads where the controllers are.
func (c *Config) setQuorum(values map[string]string) error {
	for _, item := range splitList(values[keyVoters]) {
		id, address, ok := strings.Cut(item, "@")
		host, port, err := splitAddress(address)
		if !ok || err != nil || !isID(id) || host == "" {
			return fmt.Errorf("%s=%s is not valid: %q is not ID@HOST:PORT", keyVoters, values[keyVoters], item)
		}
		v := Voter{ID: model.BrokerID(readInt(id)), Host: host, Port: port}
		if _, twice := c.Voter(v.ID); twice {
			return fmt.Errorf("%s=%s is not valid: the id %d is there twice", keyVoters, values[keyVoters], v.ID)
		}
		c.QuorumVoters = append(c.QuorumVoters, v)
	}
	for _, item := range splitList(values[keyBootstrap]) {
		host, port, err := splitAddress(item)
		if err != nil || host == "" {
			return fmt.Errorf("%s=%s is not valid: %q is not HOST:PORT", keyBootstrap, values[keyBootstrap], item)
		}
		c.QuorumBootstrap = append(c.QuorumBootstrap, Endpoint{Host: host, Port: port})
	}
	_, voter := c.Voter(c.NodeID)
	switch {
	case len(c.QuorumVoters) == 0 && len(c.QuorumBootstrap) == 0:
		return fmt.Errorf("%s is missing: list the controllers as ID@HOST:PORT", keyVoters)
	case len(c.QuorumVoters) == 0 && c.Controller && len(c.QuorumBootstrap) > 1:
		return fmt.Errorf("%s=%s names several controllers, which cannot join each other's quorum yet: list them all in %s as ID@HOST:PORT", keyBootstrap, values[keyBootstrap], keyVoters)
	case len(c.QuorumVoters) > 0 && c.Controller && !voter:
		return fmt.Errorf("%s=%s does not list node %d, which is a controller: add %d@HOST:PORT", keyVoters, values[keyVoters], c.NodeID, c.NodeID)
	case voter && !c.Controller:
		return fmt.Errorf("%s=%s lists node %d, but %s=%s is no controller: drop it there or add the role", keyVoters, values[keyVoters], c.NodeID, keyRoles, values[keyRoles])
	}
	return nil
}

// risks words what Kafka starts with and complains about.
func (c *Config) risks() []string {
	if c.BrokerHeartbeatInterval*2 <= c.BrokerSessionTimeout {
		return nil
	}
	return []string{fmt.Sprintf("%s is %v, which is more than half of %s, %v, so one late heartbeat fences a broker: raise the session timeout or lower the interval",
		keyHeartbeat, c.BrokerHeartbeatInterval, keySession, c.BrokerSessionTimeout)}
}

// checkTogether holds Kafka's rules between keys.
func (c *Config) checkTogether() error {
	switch {
	case c.ReplicaFetchWaitMax > c.ReplicaLagTimeMax:
		return fmt.Errorf("%s is %v, which is more than %s, %v, so idle followers would leave the ISR: raise the lag time or lower the wait",
			keyFetchWait, c.ReplicaFetchWaitMax, keyLagMax, c.ReplicaLagTimeMax)
	case c.ReplicaFetchWaitMax > c.ReplicaSocketTimeout:
		return fmt.Errorf("%s is %v, which is more than %s, %v: raise the socket timeout or lower the wait",
			keyFetchWait, c.ReplicaFetchWaitMax, keyReplicaSocket, c.ReplicaSocketTimeout)
	case c.QueuedMaxBytes > 0 && c.QueuedMaxBytes < int64(c.SocketRequestMaxBytes):
		return fmt.Errorf("%s=%d is less than %s=%d, so a large request could never be read: raise it", keyQueuedBytes, c.QueuedMaxBytes, keyRequestMax, c.SocketRequestMaxBytes)
	}
	return nil
}
