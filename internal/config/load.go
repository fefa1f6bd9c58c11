package config

// Load reads a configuration file and lays set, each KEY=VALUE, over it. A name
// that ends in .yaml or .yml is YAML, everything else Java properties. The
// strings are warnings for people, one sentence each. The error is one sentence
// that names key, value and fix.
func Load(path string, set []string) (*Config, []string, error) { return &Config{}, nil, nil }

// New makes the configuration of these keys; a key that it does not know is an
// error.
func New(values map[string]string) (*Config, error) { return &Config{}, nil }

// Cluster describes the nodes of a development cluster.
type Cluster struct {
	Dir         string   // node i keeps its data in Dir/i
	Brokers     []string // HOST:PORT of each node's broker listener; port 0 lets the kernel choose
	Controllers []string // HOST:PORT of each node's controller listener
}

// Values returns the keys of each node, ids from 1: combined nodes with Kafka's
// settings for tests and short timers.
func (c Cluster) Values() []map[string]string { return nil }

// Properties prints keys as a server.properties file, sorted.
func Properties(values map[string]string) []byte { return nil }
