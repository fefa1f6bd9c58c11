package cli

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// maxDevNodes bounds a cluster in one process.
const maxDevNodes = 15

func (a *App) dev() *cobra.Command {
	opts := DevOptions{}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster on this machine until ctrl-C",
		Long: "Run a whole cluster of nodes, each a broker and a controller, on this machine until ctrl-C.\n" +
			"Node i listens on port PORT+i-1. Once a record with acks=all would be accepted, the line\n" +
			"\"ready ADDR,ADDR,…\" is written to standard output.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case opts.Nodes < 1 || opts.Nodes > maxDevNodes:
				return usagef("-n %d is not valid: give 1 to %d nodes", opts.Nodes, maxDevNodes)
			case opts.Port < 1 || opts.Port+opts.Nodes-1 > 65535:
				return usagef("--port %d is not valid: every node needs a port from 1 to 65535", opts.Port)
			}
			return a.Runner.Dev(cmd.Context(), a.Out, opts)
		},
	}
	cmd.Flags().IntVarP(&opts.Nodes, "nodes", "n", 1, "how many nodes")
	cmd.Flags().IntVar(&opts.Port, "port", 9092, "port of the first node")
	cmd.Flags().StringVar(&opts.Dir, "dir", "", "directory of the state; without it, the state is thrown away at the end")
	cmd.Flags().BoolVar(&opts.Processes, "processes", false, "run each node in a process of its own")
	return cmd
}

func (a *App) format() *cobra.Command {
	var clusterID, file string
	cmd := &cobra.Command{
		Use:   "format --cluster-id ID --config FILE",
		Short: "Prepare the directories of a node for a cluster",
		Long: "Prepare the directories of a node for a cluster. FILE is Kafka's server.properties, or the same keys as YAML.\n" +
			"Every node of a cluster is formatted with the same ID; tidemark new-id makes one.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if clusterID == "" {
				return usagef("--cluster-id is missing: give the id of the cluster, or make one with tidemark new-id")
			}
			cfg, err := a.load(file, nil)
			if err != nil {
				return err
			}
			return a.Runner.Format(cmd.Context(), a.Out, clusterID, cfg)
		},
	}
	cmd.Flags().StringVarP(&clusterID, "cluster-id", "t", "", "id of the cluster")
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file of the node")
	return cmd
}

func (a *App) serve() *cobra.Command {
	var file string
	var set []string
	cmd := &cobra.Command{
		Use:   "serve --config FILE [--set KEY=VALUE]",
		Short: "Run one node until ctrl-C",
		Long: "Run one node until ctrl-C. FILE is Kafka's server.properties, or the same keys as YAML; a file that starts\n" +
			"a node of Apache Kafka starts one here, on the same ports and in the same roles. --set lays keys over it.\n" +
			"--set tidemark.http.listen=HOST:PORT opens /metrics, /healthz and /debug/pprof.",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(file, set)
			if err != nil {
				return err
			}
			return a.Runner.Serve(cmd.Context(), a.Out, cfg)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file of the node")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a key over the file's, as KEY=VALUE; may be repeated")
	return cmd
}

// load reads a configuration and tells its warnings.
func (a *App) load(file string, set []string) (*config.Config, error) {
	if file == "" {
		return nil, usagef("--config is missing: name the configuration file of the node")
	}
	cfg, warnings, err := config.Load(file, set)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		fmt.Fprintf(a.Err, "tidemark: warning: %s\n", w)
	}
	return cfg, nil
}

func newID() *cobra.Command {
	return &cobra.Command{
		Use:   "new-id",
		Short: "Make an id for a new cluster",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var id model.UUID
			for text := "-"; text[0] == '-'; text = id.String() { // a dash at the front would read as a flag
				if _, err := rand.Read(id[:]); err != nil {
					return fmt.Errorf("no random bytes for an id: %w", err)
				}
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		},
	}
}
