package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemark-log/tidemark/internal/cluster"
)

// startLimit bounds the start and the stop of the cluster of the scripts.
const startLimit = 30 * time.Second

// TestScriptsAgainstACluster runs the command lines of testdata/cluster against
// three brokers. Scripts share the cluster and use topics of their own names.
func TestScriptsAgainstACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 3, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("the cluster does not stop in order: %v", err)
		}
	})
	// Scripts run in subtests that end before the cluster is stopped.
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:  "testdata/cluster",
			Cmds: commands,
			Setup: func(env *testscript.Env) error {
				env.Setenv("BROKERS", strings.Join(c.Addrs(), ","))
				return nil
			},
		})
	})
}
