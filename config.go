package tidemark

import "log/slog"

// Config says how a broker runs. The zero value is a throwaway broker on a port
// that the kernel chooses.
type Config struct {
	// Dir holds the broker's state over restarts. Empty means a throwaway
	// directory that Close removes.
	Dir string
	// Port is where clients connect, on the loopback address. 0 lets the kernel
	// choose.
	Port int
	// Properties are Kafka's own broker keys, such as "num.partitions": "3". They
	// go over Tidemark's defaults for a small cluster.
	Properties map[string]string
	// Log receives what an operator should know; nil drops it.
	Log *slog.Logger
}
