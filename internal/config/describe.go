package config

// Resource is a kind of thing that has configs, numbered as on the wire.
type Resource int8

// The kinds of resources, as DescribeConfigs numbers them.
const (
	TopicResource         Resource = 2
	BrokerResource        Resource = 4
	ClientMetricsResource Resource = 16
	GroupResource         Resource = 32
)

// Source says where a value came from, numbered as on the wire.
type Source int8

// The sources of a value, as DescribeConfigs numbers them.
const (
	FromTopic          Source = 1
	FromBroker         Source = 2 // dynamic, of one broker
	FromClusterDefault Source = 3 // dynamic, of all brokers
	FromFile           Source = 4
	FromDefault        Source = 5
	FromClientMetrics  Source = 7
	FromGroup          Source = 8
)

// Entry is one key of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil when it has none, or is sensitive
	Type      Type
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Synonyms  []Synonym // best first
	Doc       string    // in our own words; empty where the key means nothing here
}

// Synonym is one place that could have given the value.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Dynamic is what the metadata log holds for brokers: the defaults of the whole
// cluster, and what one broker has of its own.
type Dynamic struct {
	Cluster map[string]string // Config records of broker ""
	Broker  map[string]string // Config records of this broker
}

// BrokerDefaults merges the file's keys with dynamic ones, the broker's own
// last. It is what TopicConfig takes; the caller must not change the map.
func (c *Config) BrokerDefaults(dyn Dynamic) map[string]string { return c.static }

// With returns the configuration as the dynamic keys change it. Keys that only
// a restart can change, or that do not parse, are left as they are.
func (c *Config) With(dyn Dynamic) *Config { return c }

// DescribeTopic lists every config of a topic, sorted by name.
func (c *Config) DescribeTopic(dyn Dynamic, overrides map[string]string) []Entry { return nil }

// DescribeBroker lists every config of this broker, sorted by name.
func (c *Config) DescribeBroker(dyn Dynamic) []Entry { return nil }

// DescribeDefaults lists the dynamic keys of all brokers that are set.
func DescribeDefaults(cluster map[string]string) []Entry { return nil }

// DescribeGroup lists every config of a consumer group, sorted by name.
func (c *Config) DescribeGroup(dyn Dynamic, overrides map[string]string) []Entry { return nil }
