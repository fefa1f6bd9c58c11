package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is a Runner that writes down what it was asked for.
type told struct{ fail error }

func (r told) Dev(_ context.Context, out io.Writer, opts DevOptions) error {
	fmt.Fprintf(out, "dev %+v\n", opts)
	return r.fail
}

func (r told) Format(_ context.Context, out io.Writer, clusterID string, cfg *config.Config) error {
	fmt.Fprintf(out, "format %s node %d\n", clusterID, cfg.NodeID)
	return r.fail
}

func (r told) Serve(_ context.Context, out io.Writer, cfg *config.Config) error {
	fmt.Fprintf(out, "serve node %d session %v\n", cfg.NodeID, cfg.BrokerSessionTimeout)
	return r.fail
}

// run executes a command line with the words of line.
func run(t *testing.T, runner Runner, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	app := App{
		Runner: runner, Version: "v1.2.3 go1.26", In: strings.NewReader(in), Out: &out, Err: &err,
	}
	code = app.Run(context.Background(), args)
	return code, out.String(), err.String()
}

// nodeFile writes the configuration of a node that gives no warning.
func nodeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.properties")
	text := "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:2\ncontroller.listener.names=CONTROLLER\n" +
		"listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2\nlog.dirs=data\n" +
		"broker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=100\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNodesAreStartedWithWhatTheCommandLineSays(t *testing.T) {
	file := nodeFile(t)
	for line, want := range map[string]string{
		"dev": "dev {Nodes:1 Port:9092 Dir: Processes:false}\n",
		"dev -n 3 --port 19092 --dir /d --processes":                      "dev {Nodes:3 Port:19092 Dir:/d Processes:true}\n",
		"format --cluster-id abc --config " + file:                        "format abc node 1\n",
		"serve --config " + file:                                          "serve node 1 session 2s\n",
		"serve --config " + file + " --set broker.session.timeout.ms=999": "serve node 1 session 999ms\n",
		"version": "tidemark v1.2.3 go1.26\n",
	} {
		code, stdout, stderr := run(t, told{}, "", strings.Fields(line)...)
		if code != exitOK || stdout != want {
			t.Errorf("%s: exit %d, output %q, errors %q, want %q", line, code, stdout, stderr, want)
		}
	}
}

func TestWarningsOfTheFileGoToTheErrorStream(t *testing.T) {
	_, _, stderr := run(t, told{}, "", "serve", "--config", nodeFile(t), "--set", "share.coordinator.threads=2")
	if !strings.HasPrefix(stderr, "tidemark: warning: ") || !strings.Contains(stderr, "share.coordinator.threads") {
		t.Errorf("errors %q, want a warning that lists the key", stderr)
	}
}

// wrongLines are command lines with what is said of them.
var wrongLines = map[string]string{
	"fly":                                   `there is no command "tidemark fly": see tidemark --help`,
	"topic fly":                             `there is no command "tidemark topic fly": see tidemark topic --help`,
	"dev --fast":                            "unknown flag: --fast: see tidemark dev --help",
	"dev -n 0":                              "-n 0 is not valid: give 1 to 15 nodes",
	"dev -n 3 --port 65534":                 "--port 65534 is not valid",
	"dev now":                               `the argument "now" is one too many`,
	"format --config x":                     "--cluster-id is missing",
	"format --cluster-id x":                 "--config is missing",
	"serve":                                 "--config is missing",
	"topic create":                          "the argument TOPIC is missing",
	"topic create t --partitions 0":         "--partitions 0 is not valid",
	"topic create t --config a":             "--config a is not KEY=VALUE",
	"topic create t --config retention.m=1": "there is no key retention.m: did you mean retention.ms",
	"topic create t --config segment.ms=0":  "segment.ms=0 is not valid: give 1 or more",
	"topic alter t":                         "nothing to alter",
	"topic alter t --delete-config flush.m": "there is no key flush.m: did you mean flush.ms",
	"topic delete":                          "the argument TOPIC is missing",
	"topic list --bootstrap here":           "--bootstrap here is not HOST:PORT",
	"topic list --timeout 0s":               "--timeout 0s is not valid",
	"produce t --acks two":                  "--acks two is not valid",
	"produce t --acks 1 --idempotent":       "--idempotent needs --acks all",
	"produce t --compression zip":           "--compression zip is not valid",
	"produce t --header x":                  "--header x is not KEY=VALUE",
	"produce t --partition -2":              "--partition -2 is not valid",
	"produce t --partition two":             "\"-p, --partition\" flag: give a whole number",
	"consume t --offset soon":               "--offset soon is not valid: give start, end, an OFFSET, -N or @TIME",
	"consume t --offset @soon":              "--offset @soon is not valid",
	"consume t --group g --partition 1":     "--group and --partition exclude each other",
	"consume t --group g --until-end":       "--group and --until-end exclude each other",
	"consume t --isolation none":            "--isolation none is not valid",
	"consume t --count -1":                  "--count -1 is not valid",
	"dump-log":                              "the argument FILE is missing",
	"dump-log x --offsets-decoder --cluster-metadata-decoder": "the decoders exclude each other",
	"replicas --interval soon":                                "\"--interval\" flag: give a time such as",
	"consume t --keys=7":                                      "\"--keys\" flag: give true or false",
	"replicas --interval 0s":                                  "--interval 0s is not valid",
	"sim --from 5":                                            "without --seeds one seed runs: --from has nothing to do",
	"sim --seeds 3 --trace":                                   "--seeds runs many seeds: --trace has nothing to do",
	"sim --script plan.txt --seed 7":                          "--script runs one plan: --seed has nothing to do",
	"sim --seeds 0":                                           "--seeds 0 runs nothing",
	"sim --seeds 3 --from 18446744073709551615":               "there are no 3 seeds from 18446744073709551615 on",
	"sim --seeds 3 --faults luck":                             "there is no fault \"luck\"",
}

func TestAWrongCommandLineExitsWith2AndNamesTheHelp(t *testing.T) {
	for line, want := range wrongLines {
		code, _, stderr := run(t, told{}, "", strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, errors %q, want 2 and %q", line, code, stderr, want)
		}
	}
}

func TestFailedWorkExitsWith1AndOneSentence(t *testing.T) {
	file := nodeFile(t)
	fail := told{fail: errors.New("port 9092 is taken:\n choose another")}
	for line, want := range map[string]string{
		"dev":                     "tidemark: port 9092 is taken: choose another\n",
		"serve --config " + file:  "tidemark: port 9092 is taken: choose another\n",
		"serve --config /nowhere": "tidemark: there is no file /nowhere: name your server.properties with --config FILE\n",
		"serve --config " + file + " --set authorizer.class.name=X": "access control is not available yet",
		"topic list -b 127.0.0.1:1 --timeout 2s":                    "tidemark: no broker answers at 127.0.0.1:1 (connect: connection refused): start one, or name another with --bootstrap\n",
	} {
		code, _, stderr := run(t, fail, "", strings.Fields(line)...)
		if code != exitError || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, errors %q, want 1 and %q", line, code, stderr, want)
		}
	}
}

func TestWithoutARunnerThereAreNoNodes(t *testing.T) {
	if code, _, stderr := run(t, nil, "", "dev"); code != exitUsage || !strings.Contains(stderr, "there is no command") {
		t.Errorf("exit %d, errors %q", code, stderr)
	}
}

func TestNewIDsDifferAndNeverReadAsAFlag(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		_, id, _ := run(t, nil, "", "new-id")
		if len(id) != 23 || id[0] == '-' || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

func TestKafkasNameOfTheBootstrapFlagIsUnderstood(t *testing.T) {
	for _, flag := range []string{"--bootstrap", "--bootstrap-server"} {
		code, _, stderr := run(t, nil, "", "topic", "list", flag, "nonsense")
		if code != 2 || !strings.Contains(stderr, "nonsense is not HOST:PORT") {
			t.Errorf("%s: code %d, %q", flag, code, stderr)
		}
	}
}
