package config

import (
	"strings"
	"time"
)

// brokerMeanings are the broker's keys that do something here, besides those
// that give a topic's key its default.
var brokerMeanings = withTopicDefaults(map[string]meaning{
	keyRoles:           told("What this node is: broker, controller, or both."),
	keyNodeID:          told("The number of this node, unlike that of every other broker or controller."),
	keyBrokerID:        told("The old name of node.id; both must agree."),
	keyListeners:       told("Where this node accepts connections: NAME://HOST:PORT, comma between them. An empty HOST is every interface."),
	keyAdvertised:      told("What clients are told to connect to; by default the listeners."),
	keyControllerNames: told("Which listener names are the controllers'. The first one is used to reach them."),
	keySecurityMap:     told("The security protocol of each listener name. PLAINTEXT is the only one available."),
	keyInterBroker:     told("The listener over which brokers talk to each other; by default the PLAINTEXT one."),
	keyInterProtocol:   told("The protocol of brokers among themselves. PLAINTEXT is the only one available."),
	keyVoters:          told("The controllers of a fixed quorum: ID@HOST:PORT, comma between them."),
	keyBootstrap:       told("Addresses at which a controller of a changeable quorum is found: HOST:PORT, comma between them."),
	keyLogDir:          told("The data directory when log.dirs is not set."),
	keyLogDirs:         told("The data directory. Only one is available."),
	keyMetadataDir:     told("Where the metadata log lies; by default the data directory."),
	keySelector:        told("Lets consumers read from a replica in their own rack when it is Kafka's RackAwareReplicaSelector."),
	keyHTTPListen:      word("HOST:PORT of an HTTP listener with /metrics, /healthz and /debug/pprof; empty opens none.", func(c *Config) *string { return &c.HTTPListen }),
	"broker.rack":      word("The rack of this broker: replicas are spread over racks.", func(c *Config) *string { return &c.Rack }),
	keyLivenessProbe: boolean("Whether a broker whose heartbeat connection ended is dialled, and fenced if that is refused, instead of waiting for its session.",
		func(c *Config) *bool { return &c.LivenessProbe }),

	"controller.quorum.election.timeout.ms": ms("How long a controller waits for its leader before it stands for election.", func(c *Config) *time.Duration { return &c.QuorumElectionTimeout }),
	"controller.quorum.fetch.timeout.ms":    ms("How long a broker follows a silent controller before it looks for another.", func(c *Config) *time.Duration { return &c.QuorumFetchTimeout }),

	"num.recovery.threads.per.data.dir":             number("How many logs are recovered at the same time at start.", func(c *Config) *int { return &c.RecoveryThreads }),
	"log.retention.check.interval.ms":               ms("How often logs are looked through for segments to drop.", func(c *Config) *time.Duration { return &c.RetentionCheck }),
	"log.flush.offset.checkpoint.interval.ms":       ms("How often the recovery points are written down.", func(c *Config) *time.Duration { return &c.RecoveryCheckpoint }),
	"log.flush.start.offset.checkpoint.interval.ms": ms("How often the log start offsets are written down.", func(c *Config) *time.Duration { return &c.LogStartCheckpoint }),
	"replica.high.watermark.checkpoint.interval.ms": ms("How often the high watermarks are written down.", func(c *Config) *time.Duration { return &c.HWCheckpoint }),

	"metadata.log.max.record.bytes.between.snapshots": number("After how many bytes of new metadata records a snapshot is made.", func(c *Config) *int64 { return &c.MetadataSnapshotBytes }),

	keyHeartbeat:                 ms("How often a broker tells the active controller that it lives.", func(c *Config) *time.Duration { return &c.BrokerHeartbeatInterval }),
	keySession:                   ms("After how long without a heartbeat a broker is fenced.", func(c *Config) *time.Duration { return &c.BrokerSessionTimeout }),
	"controlled.shutdown.enable": boolean("Whether a stopping broker first hands its partitions to other leaders.", func(c *Config) *bool { return &c.ControlledShutdown }),

	keyLagMax:              ms("How long a follower may not have been caught up before it leaves the ISR.", func(c *Config) *time.Duration { return &c.ReplicaLagTimeMax }),
	keyFetchWait:           ms("How long a follower's fetch waits at the leader for new records.", func(c *Config) *time.Duration { return &c.ReplicaFetchWaitMax }),
	keyReplicaSocket:       ms("How long a follower waits for the answer to a fetch.", func(c *Config) *time.Duration { return &c.ReplicaSocketTimeout }),
	"num.replica.fetchers": number("Over how many connections a follower fetches from each leader.", func(c *Config) *int { return &c.ReplicaFetchers }),
	"replica.fetch.min.bytes": number("How many bytes a follower's fetch waits for.",
		func(c *Config) *int32 { return &c.ReplicaFetchMinBytes }),
	"replica.fetch.max.bytes": number("The most bytes of one partition in a follower's fetch; a larger first batch still travels.",
		func(c *Config) *int32 { return &c.ReplicaFetchMaxBytes }),
	"replica.fetch.response.max.bytes": number("The most bytes of all partitions in a follower's fetch; a larger first batch still travels.",
		func(c *Config) *int32 { return &c.ReplicaFetchResponseMaxBytes }),
	"replica.fetch.backoff.ms":                ms("The wait of a follower after an error of its fetch.", func(c *Config) *time.Duration { return &c.ReplicaFetchBackoff }),
	"auto.leader.rebalance.enable":            boolean("Whether leadership goes back to the preferred replicas by itself.", func(c *Config) *bool { return &c.AutoLeaderRebalance }),
	"leader.imbalance.check.interval.seconds": span("How often the controller looks for leaders that are not the preferred replica.", time.Second, func(c *Config) *time.Duration { return &c.LeaderImbalanceCheck }),

	"num.partitions":             number("How many partitions a topic gets when nobody says.", func(c *Config) *int32 { return &c.NumPartitions }),
	"default.replication.factor": number("How many replicas a topic gets when nobody says.", func(c *Config) *int16 { return &c.DefaultReplicationFactor }),
	"auto.create.topics.enable":  boolean("Whether a client that asks for a topic may thereby create it.", func(c *Config) *bool { return &c.AutoCreateTopics }),
	"delete.topic.enable":        boolean("Whether topics may be deleted.", func(c *Config) *bool { return &c.DeleteTopics }),
	keyMinISR:                    number("How many replicas must be in sync before acks=all is accepted.", func(c *Config) *int { return &c.MinISR }),
	"producer.id.expiration.ms":  ms("How long an idle producer is remembered.", func(c *Config) *time.Duration { return &c.ProducerIDExpiration }),

	"offsets.topic.num.partitions":        number("How many partitions __consumer_offsets gets when it is created.", func(c *Config) *int32 { return &c.OffsetsTopicPartitions }),
	keyOffsetsCopies:                      number("How many replicas __consumer_offsets gets when it is created.", func(c *Config) *int16 { return &c.OffsetsTopicReplicationFactor }),
	"offsets.topic.segment.bytes":         number("The segment size of __consumer_offsets.", func(c *Config) *int32 { return &c.OffsetsTopicSegmentBytes }),
	"offsets.commit.timeout.ms":           ms("How long an offset commit waits to be replicated.", func(c *Config) *time.Duration { return &c.OffsetsCommitTimeout }),
	"offsets.retention.minutes":           span("How long the offsets of an empty group are kept.", time.Minute, func(c *Config) *time.Duration { return &c.OffsetsRetention }),
	"offsets.retention.check.interval.ms": ms("How often expired offsets are looked for.", func(c *Config) *time.Duration { return &c.OffsetsRetentionCheck }),
	"offset.metadata.max.bytes":           number("The most bytes of metadata beside a committed offset.", func(c *Config) *int { return &c.OffsetMetadataMaxBytes }),
	"group.min.session.timeout.ms":        ms("The shortest session a group member may ask for.", func(c *Config) *time.Duration { return &c.GroupMinSession }),
	"group.max.session.timeout.ms":        ms("The longest session a group member may ask for.", func(c *Config) *time.Duration { return &c.GroupMaxSession }),
	"group.max.size":                      number("The most members of a group.", func(c *Config) *int { return &c.GroupMaxSize }),
	"group.initial.rebalance.delay.ms":    ms("How long the first rebalance of an empty group waits for more members.", func(c *Config) *time.Duration { return &c.GroupInitialRebalanceDelay }),

	keyRequestMax: number("The largest request that is read.", func(c *Config) *int32 { return &c.SocketRequestMaxBytes }),
	"socket.send.buffer.bytes": {
		doc: "The send buffer of a socket; -1 leaves it to the system.",
		set: func(c *Config, v string) { c.SocketSendBuffer = max(0, fit[int](readInt(v))) },
	},
	"socket.receive.buffer.bytes": {
		doc: "The receive buffer of a socket; -1, and the default, leave it to the system.",
		set: func(c *Config, v string) { c.SocketReceiveBuffer = receiveBuffer(v) },
	},
	"connections.max.idle.ms": ms("How long an idle connection is kept.", func(c *Config) *time.Duration { return &c.ConnectionsMaxIdle }),
	"max.connections":         number("The most connections of this broker.", func(c *Config) *int { return &c.MaxConnections }),
	"max.connections.per.ip":  number("The most connections from one address.", func(c *Config) *int { return &c.MaxConnectionsPerIP }),
	keyQueuedBytes: {
		doc: "The most bytes of requests that wait or are being served; -1 has no bound of its own.",
		set: func(c *Config, v string) { c.QueuedMaxBytes = max(0, readInt(v)) },
	},
	"fetch.max.bytes": number("The most bytes in one answer to a consumer's fetch.", func(c *Config) *int32 { return &c.FetchMaxBytes }),
	"max.incremental.fetch.session.cache.slots": number("How many fetch sessions are remembered.", func(c *Config) *int { return &c.FetchSessionSlots }),
	"max.request.partition.size.limit":          number("The most partitions in one page of DescribeTopicPartitions.", func(c *Config) *int { return &c.MaxRequestPartitions }),
	"socket.connection.setup.timeout.ms":        ms("How long a connection to another node may take to open.", func(c *Config) *time.Duration { return &c.ConnectionSetupTimeout }),
})

// receiveBuffer reads the size of a socket's receive buffer. The default is taken for no choice,
// also where a file spells it out, as those that come with Kafka do (ADR 0020).
func receiveBuffer(v string) int {
	const unchosen = 102400
	if n := fit[int](readInt(v)); n != unchosen {
		return max(0, n)
	}
	return 0
}

// withTopicDefaults adds the broker keys behind each topic key that means
// something here.
func withTopicDefaults(m map[string]meaning) map[string]meaning {
	topics := readTable("topic", topicMeanings)
	for _, d := range topics.shown {
		for _, key := range d.Synonyms {
			if _, ok := m[key]; !ok && d.Doc != "" {
				m[key] = told("The default of a topic's " + d.Name + ". " + strings.TrimSpace(d.Doc))
			}
		}
	}
	return m
}
