package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write puts a file into a fresh directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, path string, set ...string) (*Config, []string) {
	t.Helper()
	c, warnings, err := Load(path, set)
	if err != nil {
		t.Fatalf("a file that starts a node of Kafka is refused: %v", err)
	}
	return c, warnings
}

func TestAFileOfAStaticQuorumLoads(t *testing.T) {
	c, warnings := mustLoad(t, "testdata/combined.properties")
	type facts struct {
		ID                 int32
		Broker, Controller bool
		Broker1, Control   string
		Voters             []Voter
		Dir, Metadata      string
		Inter              string
		Heartbeat, Session time.Duration
		Copies             int16
		MinISR             int
		Probe              bool
		HTTP               string
	}
	got := facts{
		int32(c.NodeID), c.Broker, c.Controller, c.Listeners[0].String(), c.ControllerListeners[0].String(), c.QuorumVoters,
		c.LogDir, c.MetadataDir(), c.InterBrokerListener, c.BrokerHeartbeatInterval, c.BrokerSessionTimeout,
		c.DefaultReplicationFactor, c.MinISR, c.LivenessProbe, c.HTTPListen,
	}
	want := facts{
		2, true, true, "PLAINTEXT://127.0.0.1:19093", "CONTROLLER://127.0.0.1:19193",
		[]Voter{{1, "127.0.0.1", 19192}, {2, "127.0.0.1", 19193}, {3, "127.0.0.1", 19194}},
		"/var/lib/kafka/2", "/var/lib/kafka/2/__cluster_metadata-0", "PLAINTEXT",
		2 * time.Second, 9 * time.Second, 3, 2, true, "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differently (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "change nothing here: share.coordinator.state.topic.min.isr, share.coordinator") {
		t.Errorf("warnings %q, want one that lists the keys without a meaning", warnings)
	}
}

func TestTheReleasesSampleFileLoads(t *testing.T) {
	c, _ := mustLoad(t, "testdata/single.properties")
	if c.Listeners[0].Address() != ":9092" || c.Advertised[0].Address() != "localhost:9092" || c.ControllerAdvertised[0].Port != 9093 {
		t.Errorf("listeners %v, advertised %v and %v", c.Listeners, c.Advertised, c.ControllerAdvertised)
	}
	if len(c.QuorumVoters) != 0 || len(c.QuorumBootstrap) != 1 {
		t.Errorf("voters %v, bootstrap %v: want a changeable quorum", c.QuorumVoters, c.QuorumBootstrap)
	}
	if got := TopicConfig(c.BrokerDefaults(Dynamic{}), nil); got.Retention != 7*24*time.Hour {
		t.Errorf("retention %v, want a week", got.Retention)
	}
}

func TestAFileWithoutRolesIsASingleNode(t *testing.T) {
	c, warnings := mustLoad(t, write(t, "node.yaml", "log.dirs: /data\n"))
	if !c.Broker || !c.Controller || c.NodeID != 1 || c.Listeners[0].Port != 9092 || c.ControllerListeners[0].String() != "CONTROLLER://127.0.0.1:9093" {
		t.Errorf("got node %d, %v and %v", c.NodeID, c.Listeners, c.ControllerListeners)
	}
	if len(c.QuorumBootstrap) != 1 || len(warnings) != 0 {
		t.Errorf("bootstrap %v, warnings %v", c.QuorumBootstrap, warnings)
	}
}

func TestYAMLAndPropertiesSayTheSame(t *testing.T) {
	props, _ := mustLoad(t, "testdata/combined.properties")
	nested := `
process.roles: [broker, controller]
node.id: 2
controller:
  quorum.voters:
    - 1@127.0.0.1:19192
    - 2@127.0.0.1:19193
    - 3@127.0.0.1:19194
  listener.names: CONTROLLER
listeners: ["PLAINTEXT://127.0.0.1:19093", "CONTROLLER://127.0.0.1:19193"]
advertised: {listeners: "PLAINTEXT://127.0.0.1:19093"}
listener.security.protocol.map: CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs: /var/lib/kafka/2
offsets.topic.replication.factor: 3
transaction.state.log: {replication.factor: 3, min.isr: 2}
share.coordinator.state.topic: {replication.factor: 3, min.isr: 2}
default.replication.factor: 3
min.insync.replicas: 2
`
	yaml, _ := mustLoad(t, write(t, "server.yml", nested))
	if diff := cmp.Diff(props.static, yaml.static); diff != "" {
		t.Errorf("the keys differ (-properties +yaml):\n%s", diff)
	}
}

func TestSetWinsOverTheFile(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties", "broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=100",
		"broker.session.timeout.ms=2000", "tidemark.http.listen=127.0.0.1:0", "broker.liveness.probe=FALSE")
	if c.BrokerSessionTimeout != 2*time.Second || c.BrokerHeartbeatInterval != 100*time.Millisecond || c.HTTPListen != "127.0.0.1:0" || c.LivenessProbe {
		t.Errorf("session %v, heartbeat %v, http %q, probe %v", c.BrokerSessionTimeout, c.BrokerHeartbeatInterval, c.HTTPListen, c.LivenessProbe)
	}
}

// Kafka's default size of a receive buffer is nobody's choice, whoever wrote it; that
// of a send buffer is right.
func TestReceiveBuffersThatNobodyChoseAreTheKernels(t *testing.T) {
	for name, want := range map[string]struct{ send, receive int }{"": {102400, 0}, "102400": {102400, 0}, "-1": {0, 0},
		"65536": {65536, 65536}, "1048576": {1048576, 1048576}} {
		var set []string
		if name != "" {
			set = []string{"socket.send.buffer.bytes=" + name, "socket.receive.buffer.bytes=" + name}
		}
		for _, file := range []string{"testdata/single.properties", "testdata/combined.properties"} {
			c, _ := mustLoad(t, file, set...)
			if c.SocketSendBuffer != want.send || c.SocketReceiveBuffer != want.receive {
				t.Errorf("%s, size %q: %d to send, %d to receive, want %+v", file, name, c.SocketSendBuffer, c.SocketReceiveBuffer, want)
			}
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	base, err := os.ReadFile("testdata/combined.properties")
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "server.properties", string(base)+
		"num.io.thread=4\nacme.plugin=x\nsuper.users=User:admin\nlistener.name.plaintext.max.connections=5\nnode.id=2\n")
	_, warnings := mustLoad(t, path)
	for i, part := range []string{
		"change nothing here: listener.name.plaintext.max.connections, share.",
		"unknown and were read past, as Kafka does: acme.plugin, num.io.thread (did you mean num.io.threads?)",
		"more than once and the last one counts: node.id",
	} {
		if i >= len(warnings) || !strings.Contains(warnings[i], part) {
			t.Errorf("warnings %q: want one with %q", warnings, part)
		}
	}
	for _, set := range []string{"num.io.thread=4", "tidemark.htp.listen=:1"} {
		if _, _, err := Load("testdata/combined.properties", []string{set}); err == nil || !strings.Contains(err.Error(), "did you mean ") || !strings.HasPrefix(err.Error(), "--set: ") {
			t.Errorf("--set %s: %v, want a refusal that names --set and the near name", set, err)
		}
	}
	if _, _, err := Load(write(t, "a.yaml", "acme.plugin: x"), nil); err == nil || !strings.Contains(err.Error(), "there is no key acme.plugin") {
		t.Errorf("an unknown key in YAML: %v, want a refusal", err)
	}
}

func TestPrintedKeysLoadAgain(t *testing.T) {
	c, _ := mustLoad(t, "testdata/combined.properties")
	again, _ := mustLoad(t, write(t, "server.properties", string(Properties(c.Static()))))
	fresh, err := New(c.Static())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("the printed file differs (-file +printed):\n%s", diff)
	}
	if diff := cmp.Diff(c, fresh, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("the keys alone differ (-file +keys):\n%s", diff)
	}
}
