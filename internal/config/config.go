// Package config turns Kafka's own server.properties, or the same keys as YAML,
// into the typed settings of one node.
package config

import (
	"path/filepath"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Listener is one address of a node under a listener name.
type Listener struct {
	Name string // upper case, as Kafka compares it
	Host string // empty means every interface
	Port uint16 // 0 means a port that the kernel chooses
}

// Voter is one entry of controller.quorum.voters.
type Voter struct {
	ID   model.BrokerID
	Host string
	Port uint16
}

// Endpoint is one entry of controller.quorum.bootstrap.servers.
type Endpoint struct {
	Host string
	Port uint16
}

// Config is what one node runs with. Load, New and With make it; nobody changes
// it afterwards. Durations and byte counts carry no unit of the file any more.
type Config struct {
	// Who this node is.
	NodeID     model.BrokerID
	Broker     bool // process.roles names broker
	Controller bool // process.roles names controller
	Rack       string

	// Where it listens. Listeners are those of the broker, ControllerListeners
	// those of the controller; a node has only those of its roles.
	Listeners               []Listener
	ControllerListeners     []Listener
	Advertised              []Listener // of the broker, some or all of Listeners by name; port 0 where the kernel chooses
	ControllerAdvertised    []Listener // of the controller
	ControllerListenerNames []string
	InterBrokerListener     string // name of the listener that brokers use among themselves
	HTTPListen              string // tidemark.http.listen: HOST:PORT of /metrics, /healthz and /debug/pprof; empty is off

	// Where the controllers are.
	QuorumVoters          []Voter    // static voters; empty with a dynamic quorum
	QuorumBootstrap       []Endpoint // controller.quorum.bootstrap.servers
	QuorumElectionTimeout time.Duration
	QuorumFetchTimeout    time.Duration

	// Where it writes.
	LogDir             string
	MetadataLogDir     string // metadata.log.dir, or LogDir; see MetadataDir
	RecoveryThreads    int    // num.recovery.threads.per.data.dir
	RetentionCheck     time.Duration
	RecoveryCheckpoint time.Duration // log.flush.offset.checkpoint.interval.ms
	LogStartCheckpoint time.Duration // log.flush.start.offset.checkpoint.interval.ms
	HWCheckpoint       time.Duration // replica.high.watermark.checkpoint.interval.ms

	// The metadata log.
	MetadataSnapshotBytes int64 // metadata.log.max.record.bytes.between.snapshots

	// The broker's life.
	BrokerHeartbeatInterval time.Duration
	BrokerSessionTimeout    time.Duration
	ControlledShutdown      bool
	LivenessProbe           bool // broker.liveness.probe, R13.6

	// Replication.
	ReplicaLagTimeMax            time.Duration
	ReplicaFetchers              int // connections to each leader
	ReplicaFetchWaitMax          time.Duration
	ReplicaFetchMinBytes         int32
	ReplicaFetchMaxBytes         int32
	ReplicaFetchResponseMaxBytes int32
	ReplicaFetchBackoff          time.Duration
	ReplicaSocketTimeout         time.Duration
	RackAwareReads               bool // replica.selector.class is Kafka's rack-aware selector, R9.4
	AutoLeaderRebalance          bool
	LeaderImbalanceCheck         time.Duration

	// Topics.
	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopics             bool
	MinISR                   int // min.insync.replicas of the cluster when formatting
	ProducerIDExpiration     time.Duration

	// Consumer groups and their offsets.
	OffsetsTopicPartitions        int32
	OffsetsTopicReplicationFactor int16
	OffsetsTopicSegmentBytes      int32
	OffsetsCommitTimeout          time.Duration
	OffsetsRetention              time.Duration
	OffsetsRetentionCheck         time.Duration
	OffsetMetadataMaxBytes        int
	GroupMinSession               time.Duration
	GroupMaxSession               time.Duration
	GroupMaxSize                  int
	GroupInitialRebalanceDelay    time.Duration

	// Connections and requests.
	SocketRequestMaxBytes  int32
	SocketSendBuffer       int // bytes; 0 leaves the system's default
	SocketReceiveBuffer    int // bytes; 0 leaves the system's default
	ConnectionsMaxIdle     time.Duration
	MaxConnections         int
	MaxConnectionsPerIP    int
	QueuedMaxBytes         int64 // queued.max.request.bytes; 0 means no bound of its own
	FetchMaxBytes          int32
	FetchSessionSlots      int
	MaxRequestPartitions   int // max.request.partition.size.limit
	ConnectionSetupTimeout time.Duration

	static map[string]string // what the file and --set said
}

// MetadataDir is the folder of the metadata log, its snapshots and the raft WAL.
func (c *Config) MetadataDir() string {
	return filepath.Join(c.MetadataLogDir, "__cluster_metadata-0")
}

// Voter returns the entry of controller.quorum.voters with this id.
func (c *Config) Voter(id model.BrokerID) (Voter, bool) {
	for _, v := range c.QuorumVoters {
		if v.ID == id {
			return v, true
		}
	}
	return Voter{}, false
}

// Static returns the keys that the file and --set gave, as they were written.
// The caller must not change the map.
func (c *Config) Static() map[string]string { return c.static }
