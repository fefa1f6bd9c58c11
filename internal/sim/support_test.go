package sim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

var ctx = context.Background()

func workerCommand(ctx context.Context, from, to uint64) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", worker, from, to))
	cmd.Stderr = os.Stderr
	return cmd
}
