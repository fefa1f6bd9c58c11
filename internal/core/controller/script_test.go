package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "/fuzz/") {
			return // inputs of the fuzz target
		}
		var sc *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "cluster" {
				sc = newScript(t, d)
			}
			sc.w.t, sc.w.check.t, sc.d = t, t, d // each command is a test of its own
			return sc.run()
		})
	})
}

// script is the environment of the scripts: one command is one event, and its
// output is what the controller answered, why, and what changed.
type script struct {
	w   *world
	d   *datadriven.TestData
	out strings.Builder
	// incarnation numbers the processes of each broker.
	incarnation map[model.BrokerID]int
}

// newScript reads "cluster": brokers=N lets brokers 1 to N serve; elr=off,
// min-isr=, unclean=, node=, probe=off, rebalance=off change what a new cluster
// starts with.
func newScript(t *testing.T, d *datadriven.TestData) *script {
	sc := &script{w: newWorld(t, 1), d: d, incarnation: map[model.BrokerID]int{}}
	features, minISR := defaultFeatures(), sc.number("min-isr", 1)
	if sc.text("elr", "on") == "off" {
		features[featureELR] = 0
	}
	sc.w.cfg.Configs = table{configMinISR: strconv.Itoa(minISR), configUnclean: sc.text("unclean", "false")}
	sc.w.cfg.NodeID = model.BrokerID(sc.number("node", 3000))
	sc.w.cfg.LivenessProbe = sc.text("probe", "on") == "on"
	sc.w.cfg.AutoRebalance = sc.text("rebalance", "on") == "on"
	sc.w.cfg.Bootstrap = Bootstrap(features, minISR)
	sc.w.takeOver()
	return sc
}

func (sc *script) text(key, otherwise string) string {
	for _, a := range sc.d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return otherwise
}

func (sc *script) has(key string) bool {
	return slices.ContainsFunc(sc.d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == key })
}

func (sc *script) vals(key string) []string {
	for _, a := range sc.d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (sc *script) number(key string, otherwise int) int {
	n, err := strconv.Atoi(sc.text(key, strconv.Itoa(otherwise)))
	if err != nil {
		sc.d.Fatalf(sc.w.t, "%s: %v", key, err)
	}
	return n
}

// ids reads the brokers of key=(1,2,3).
func (sc *script) ids(key string) []int32 {
	var out []int32
	for _, v := range sc.vals(key) {
		if v == "" {
			break // an empty list
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			sc.d.Fatalf(sc.w.t, "%s: %v", key, err)
		}
		out = append(out, int32(n))
	}
	return out
}

// broker is the first argument, which names a broker.
func (sc *script) broker() model.BrokerID {
	n, err := strconv.Atoi(sc.d.CmdArgs[0].Key)
	if err != nil {
		sc.d.Fatalf(sc.w.t, "broker: %v", err)
	}
	return model.BrokerID(n)
}

// target reads an argument like orders-0.
func (sc *script) target(arg int) (string, int32) {
	word := sc.d.CmdArgs[arg].Key
	at := strings.LastIndexByte(word, '-')
	n, err := strconv.Atoi(word[at+1:])
	if at < 0 || err != nil {
		sc.d.Fatalf(sc.w.t, "%q names no partition", word)
	}
	return word[:at], int32(n)
}

func (sc *script) printf(format string, args ...any) { fmt.Fprintf(&sc.out, format+"\n", args...) }

// run executes one command and prints what followed.
func (sc *script) run() string {
	sc.out.Reset()
	old := sc.w.s.Image()
	sc.w.last = Result{}
	commands := map[string]func(){
		"cluster": sc.cluster, "register": sc.register, "heartbeat": sc.heartbeat, "alter": sc.alter,
		"create": sc.create, "delete": sc.delete, "grow": sc.grow, "tick": sc.tick,
		"disconnect": sc.disconnect, "refused": sc.refused, "failover": sc.failover, "elect": sc.elect,
		"reassign": sc.reassign, "reassignments": sc.reassignments, "configure": sc.configure,
		"replace-configs": sc.replaceConfigs, "feature": sc.feature, "unregister": sc.unregister,
		"producer-ids": sc.producerIDs, "dirs": sc.dirs, "state": sc.state, "builder": sc.builder,
		"controller": sc.controller, "records": sc.records,
	}
	run, ok := commands[sc.d.Cmd]
	if !ok {
		sc.d.Fatalf(sc.w.t, "unknown command %q", sc.d.Cmd)
	}
	run()
	if sc.d.Cmd != "tick" {
		sc.tell(sc.w.last)
	}
	sc.changes(old, sc.w.s.Image())
	if sc.out.Len() == 0 {
		return "nothing happens\n"
	}
	return sc.out.String()
}

// tell prints the reasons and probes of a decision.
func (sc *script) tell(r Result) {
	for _, p := range r.Probes {
		sc.printf("probe     dial broker %d of epoch %d at %s:%d", p.Broker, p.Epoch, p.Endpoints[0].Host, p.Endpoints[0].Port)
	}
	for _, reason := range r.Reasons {
		sc.printf("because   %v", reason)
	}
}

// changes prints what differs between two images.
func (sc *script) changes(old, now *image.Image) {
	for _, b := range now.Brokers() {
		if was := old.Broker(b.ID); was == nil || was.Epoch != b.Epoch || was.Fenced != b.Fenced ||
			was.InControlledShutdown != b.InControlledShutdown || len(was.Directories) != len(b.Directories) {
			sc.printf("broker %d  %s", b.ID, showBroker(b))
		}
	}
	for t := range now.Topics() {
		for id, p := range t.Partitions {
			if old.Partition(t.ID, int32(id)) != p {
				sc.printf("%-9s %s", fmt.Sprintf("%s-%d", t.Name, id), show(p))
			}
		}
	}
	for t := range old.Topics() {
		if now.TopicByID(t.ID) == nil {
			sc.printf("%-9s is gone", t.Name)
		}
	}
}

func showBroker(b *image.Broker) string {
	state := "serves"
	switch {
	case b.Fenced:
		state = "is fenced"
	case b.InControlledShutdown:
		state = "is shutting down"
	}
	text := fmt.Sprintf("%s, epoch %d", state, b.Epoch)
	if len(b.Directories) > 1 {
		text += fmt.Sprintf(", %d directories", len(b.Directories))
	}
	return text
}

// show prints a partition: its replicas in order, sets sorted, epochs as leader
// epoch/partition epoch.
func show(p *image.Partition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "AR %v ISR %s", p.Replicas, set(p.ISR))
	if len(p.ELR) > 0 {
		fmt.Fprintf(&b, " ELR %s", set(p.ELR))
	}
	if len(p.LastKnownELR) > 0 {
		fmt.Fprintf(&b, " last-known %s", set(p.LastKnownELR))
	}
	if len(p.Adding) > 0 {
		fmt.Fprintf(&b, " adding %s", set(p.Adding))
	}
	if len(p.Removing) > 0 {
		fmt.Fprintf(&b, " removing %s", set(p.Removing))
	}
	fmt.Fprintf(&b, " leader %s epochs %d/%d", leaderName(p.Leader), p.LeaderEpoch, p.PartitionEpoch)
	if p.Recovering {
		b.WriteString(" RECOVERING")
	}
	return b.String()
}

func set(ids []model.BrokerID) string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") + "}"
}

// cluster prints nothing of the bootstrap and starts the brokers asked for.
func (sc *script) cluster() {
	for id := range sc.number("brokers", 0) {
		sc.incarnation[model.BrokerID(id+1)] = 1
		sc.w.alive(model.BrokerID(id + 1))
	}
	sc.w.last = Result{}
}

// tick lets time pass: tick 9s. keep=(1,2) names the brokers that go on to send
// heartbeats, one a second.
func (sc *script) tick() {
	d, err := time.ParseDuration(sc.d.CmdArgs[0].Key)
	if err != nil {
		sc.d.Fatalf(sc.w.t, "%v", err)
	}
	for left := d; left > 0; left -= time.Second {
		sc.w.pass(min(left, time.Second), sc.tell)
		for _, id := range sc.ids("keep") {
			sc.w.do(sc.w.beat(model.BrokerID(id)))
		}
	}
}

// failover makes another controller active.
func (sc *script) failover() { sc.w.takeOver() }

// records prints the types of the records that the last log batch holds.
func (sc *script) records() {
	for _, rec := range sc.w.cfg.Bootstrap {
		text, err := metalog.Dump(metalog.Append(nil, rec, metalog.Level))
		if err != nil {
			sc.d.Fatalf(sc.w.t, "%v", err)
		}
		sc.printf("%s", text)
	}
}
