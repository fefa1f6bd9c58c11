package controller

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// MaxBatch is the largest number of records that one batch of the metadata log
// may carry, Kafka's limit of an atomic change.
const MaxBatch = 10_000

// Rand is where chance comes from: topic ids and the start of the placement.
// *rand.Rand of math/rand/v2 is one.
type Rand interface {
	// IntN returns a number in [0, n). It is never called with n < 1.
	IntN(n int) int
	Uint64() uint64
}

// Call is what every decision is handed besides its request.
type Call struct {
	// Now is a monotonic reading, the only clock of the core.
	Now model.Time
	// NextOffset is the offset that the first record of this decision will take
	// in the metadata log. A new broker's epoch is the offset of its record.
	NextOffset model.Offset
	// Rand is used by topic creation and CreatePartitions only.
	Rand Rand
}

// Result is a decision. Nothing of it is in force until its records are
// replayed; the response leaves once everything that the decision saw, and its
// own records, are committed.
type Result struct {
	// Records are what the decision writes, in order; none for a pure answer.
	// They are atomic: what does not fit one batch carries its own Begin and
	// EndTransaction records.
	Records []metalog.Record
	// Response answers the request; nil where there was none.
	Response kmsg.Response
	// Reasons say in words why the decision was taken (R13.2).
	Reasons []Reason
	// Probes are brokers whose registered listener is to be dialled (R13.6).
	Probes []Probe
}

// Batches cuts the records into batches of at most MaxBatch, each of which the
// log must take whole. All of them are written, and replayed, before the next
// decision.
func (r *Result) Batches() [][]metalog.Record {
	var out [][]metalog.Record
	for rest := r.Records; len(rest) > 0; {
		n := min(len(rest), MaxBatch)
		out = append(out, rest[:n:n])
		rest = rest[n:]
	}
	return out
}

// Probe asks the shell to dial a broker. If, and only if, the dial is refused
// the shell calls ProbeRefused with the same broker and epoch.
type Probe struct {
	Broker    model.BrokerID
	Epoch     model.BrokerEpoch
	Endpoints []image.Endpoint
}

// FeatureRange is a span of levels of one feature, both ends included.
type FeatureRange struct{ Min, Max int16 }

// ResourceType says what a configuration belongs to, by Kafka's numbers.
type ResourceType int8

// The resources that carry configurations in the metadata log.
const (
	ResourceTopic         ResourceType = 2
	ResourceBroker        ResourceType = 4
	ResourceClientMetrics ResourceType = 16
	ResourceGroup         ResourceType = 32
)

// TopicConfig is one effective configuration of a topic, for the answer to
// CreateTopics 5 and later.
type TopicConfig struct {
	Name      string
	Value     *string // null when sensitive
	ReadOnly  bool
	Source    int8 // Kafka's ConfigSource: 1 topic, 2 broker, 3 all brokers, 4 static, 5 default
	Sensitive bool
}

// Configs is what the controller asks the table of configurations.
type Configs interface {
	// Validate says why value may not be stored under key, or nil.
	Validate(resource ResourceType, name, key, value string) error
	// IsList says whether key holds a list, which APPEND and SUBTRACT need, and
	// what a resource without an override has there.
	IsList(resource ResourceType, key string) (list bool, fallback string)
	// Topic lists the effective configurations of a topic with these overrides,
	// where node and all are the dynamic configurations of this controller's node
	// and of all brokers.
	Topic(overrides, node, all map[string]string) []TopicConfig
	// Static returns this controller's value of a broker-wide key, from its file
	// or Kafka's default: min.insync.replicas, unclean.leader.election.enable.
	Static(key string) string
}

// Config is what a controller is started with. Zero durations and counts take
// Kafka's defaults.
type Config struct {
	NodeID    model.BrokerID // this controller
	ClusterID string

	SessionTimeout time.Duration // broker.session.timeout.ms, 9 s
	ProbeAfter     time.Duration // silence towards a new controller before a probe, 500 ms
	LivenessProbe  bool          // broker.liveness.probe (R13.6)

	RebalanceInterval time.Duration // leader.imbalance.check.interval.seconds, 300 s
	AutoRebalance     bool          // auto.leader.rebalance.enable
	UncleanInterval   time.Duration // unclean.leader.election.interval.ms, 5 min

	NumPartitions     int32 // num.partitions, 1
	ReplicationFactor int16 // default.replication.factor, 1
	DeleteTopics      bool  // delete.topic.enable

	// Features are what this controller supports, metadata.version included.
	Features map[string]FeatureRange
	Configs  Configs
	// Bootstrap is what an empty log starts with, as the function Bootstrap makes
	// it.
	Bootstrap []metalog.Record
}
