package config

import (
	"strings"
	"testing"
)

// Each line changes the file of a static quorum: KEY=VALUE sets, -KEY drops; after
// the arrow stands what the refusal must say.
var refusedFiles = `
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer -> access control is not available yet
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:SSL -> the listener PLAINTEXT has the security protocol SSL
listener.security.protocol.map=CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT -> the listener CONTROLLER has the security protocol SASL_SSL
listener.security.protocol.map=CONTROLLER:PLAINTEXT -> the listener PLAINTEXT has no security protocol: add PLAINTEXT:PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT -> "PLAINTEXT" is not NAME:PROTOCOL
security.inter.broker.protocol=SSL -> PLAINTEXT is the only security protocol available
log.dirs=/a,/b -> only one data directory is available: name one directory
log.dirs= -> log.dirs is empty: name the data directory
remote.log.storage.system.enable=true -> tiered storage is not available
create.topic.policy.class.name=com.example.Policy -> the policy would not be enforced
principal.builder.class=com.example.Builder -> Java classes cannot be loaded
delegation.token.secret.key=hunter2 -> delegation.token.secret.key=(hidden) is refused
config.providers=file -> ${...} would be taken literally
node.id=-1 -> node.id=-1 is not valid: give 0 or more
node.id=two -> node.id=two is not valid: give a whole number
node.id=4 -> does not list node 4, which is a controller: add 4@HOST:PORT
broker.id=3 -> node.id=2 and broker.id=3 differ
-node.id -> node.id is missing
-process.roles -> process.roles is missing
process.roles=broker,worker -> give one of broker, controller
process.roles=broker -> has the controllers' listener CONTROLLER
process.roles=controller -> has the listener PLAINTEXT, which is not in controller.listener.names
-controller.listener.names -> controller.listener.names is missing
controller.listener.names=CTRL -> the listener CTRL has no security protocol: add CTRL:PLAINTEXT
controller.listener.names=CTRL listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CTRL:PLAINTEXT -> has no listener for the controller: add CTRL://HOST:PORT
-controller.quorum.voters -> controller.quorum.voters is missing
controller.quorum.voters=2@127.0.0.1 -> "2@127.0.0.1" is not ID@HOST:PORT
controller.quorum.voters=2@h:1,2@h:2 -> the id 2 is there twice
-controller.quorum.voters controller.quorum.bootstrap.servers=a:1,b:1 -> names several controllers, which cannot join each other's quorum yet
controller.quorum.bootstrap.servers=localhost -> "localhost" is not HOST:PORT
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:1 -> 127.0.0.1:1 is there twice
listeners=PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:3 -> give the name PLAINTEXT to one listener only
listeners=PLAINTEXT:9092 -> "PLAINTEXT:9092" is not NAME://HOST:PORT
listeners=PLAINTEXT://h:99999 -> is not NAME://HOST:PORT
listeners=CONTROLLER://127.0.0.1:19193 -> has no listener for the broker
advertised.listeners=PLAINTEXT://0.0.0.0:9092 -> nobody can connect to PLAINTEXT://0.0.0.0:9092
advertised.listeners=EXTERNAL://h:9092 -> names EXTERNAL, which is not in listeners
inter.broker.listener.name=CONTROLLER -> is a controllers' listener
inter.broker.listener.name=REPLICATION -> is not among the advertised listeners
zookeeper.connect=localhost:2181 -process.roles -> there is no ZooKeeper mode
replica.fetch.wait.max.ms=30001 -> more than replica.lag.time.max.ms, 30s
replica.lag.time.max.ms=90000 replica.fetch.wait.max.ms=31000 -> more than replica.socket.timeout.ms, 30s
queued.max.request.bytes=1000 -> a large request could never be read
compression.type=brotli -> give one of uncompressed, zstd, lz4, snappy, gzip, producer
log.segment.bytes=1000 -> log.segment.bytes=1000 is not valid: give 1048576 or more
compression.gzip.level=0 -> give a value from 1 to 9, or -1
num.partitions=many -> give a whole number of at most 2147483647, 1 or more
auto.create.topics.enable=yes -> give true or false
log.cleanup.policy=compact,shred -> give one of compact, delete
log.cleaner.min.cleanable.ratio=1.5 -> give a value from 0 to 1
tidemark.nothing=1 -> there is no key tidemark.nothing
`

func TestWhatCannotBeHonouredRefusesToStart(t *testing.T) {
	base, _ := mustLoad(t, "testdata/combined.properties")
	for line := range strings.Lines(strings.TrimSpace(refusedFiles)) {
		change, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		values := map[string]string{}
		for k, v := range base.static {
			values[k] = v
		}
		for _, c := range strings.Fields(change) {
			if key, ok := strings.CutPrefix(c, "-"); ok {
				delete(values, key)
				continue
			}
			k, v, _ := strings.Cut(c, "=")
			values[k] = v
		}
		_, _, err := Load(write(t, "server.properties", string(Properties(values))), nil)
		switch {
		case err == nil:
			t.Errorf("%s: starts, want a refusal", change)
		case !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v\nwant a sentence with %q", change, err, want)
		}
	}
}

func TestAnIntervalThatFencesIsAWarning(t *testing.T) {
	_, warnings := mustLoad(t, "testdata/combined.properties", "broker.heartbeat.interval.ms=5000")
	if last := warnings[len(warnings)-1]; !strings.Contains(last, "is 5s, which is more than half of broker.session.timeout.ms, 9s") {
		t.Errorf("the last warning is %q", last)
	}
}

func TestWhatIsOffOrUnusedDoesNotRefuse(t *testing.T) {
	for _, set := range []string{
		"authorizer.class.name=", "security.inter.broker.protocol=PLAINTEXT", "remote.log.storage.system.enable=false",
		"ssl.keystore.location=/k.jks", "sasl.enabled.mechanisms=PLAIN", "log.dir=/unused", "early.start.listeners=CONTROLLER",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:SSL", "queued.max.request.bytes=-1",
		"socket.send.buffer.bytes=-1", "metadata.log.dir=/m", "unclean.leader.election.enable=true",
	} {
		if _, _, err := Load("testdata/combined.properties", []string{set}); err != nil {
			t.Errorf("--set %s: %v", set, err)
		}
	}
}

func TestUnreadableFilesAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/absent.properties": "there is no file testdata/absent.properties",
		"testdata":                   "is a directory",
		write(t, "big.yaml", strings.Repeat("#", 2<<20)):                           "a configuration file has at most",
		write(t, "a.yaml", "- x\n"):                                                "line 1: the file must be a mapping",
		write(t, "b.yaml", "node.id: {a: [{}]}\n"):                                 "line 1: node.id.a is a list of plain values",
		write(t, "c.yaml", "node.id: 1\nnode: {id: 2}\n"):                          "line 2: node.id is given on line 1 already",
		write(t, "d.yaml", "a: &x 1\nb: *x\n"):                                     "line 1: anchors and aliases are not read",
		write(t, "e.yaml", "a: b: c\n"):                                            "mapping values are not allowed",
		write(t, "f.yaml", "node.id:\n"):                                           "line 1: node.id has no value",
		write(t, "g.properties", "a=1\nb=\\u12\n"):                                 `line 2: \u needs four hexadecimal digits`,
		write(t, "h.yaml", strings.Repeat("{a: ", 40)+"1"+strings.Repeat("}", 40)): "nested more than 32 levels deep",
	} {
		if _, _, err := Load(path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a sentence with %q", path, err, want)
		}
	}
}
