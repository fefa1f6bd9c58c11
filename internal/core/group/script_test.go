package group

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "/fuzz/") {
			return // inputs of the fuzz target
		}
		e := newEnv()
		datadriven.RunTest(t, path, e.run)
	})
}

// env is a shard and its log. Writes are committed at once unless the script
// says hold.
type env struct {
	s    *Shard
	cfg  Config
	now  model.Time
	ids  int
	log  []Record // committed
	held []Write
	hold bool

	out strings.Builder
}

type fakeTopics map[string]int32

func (f fakeTopics) Partitions(topic string) int32 { return f[topic] }
func (f fakeTopics) Name(id model.UUID) (string, bool) {
	name := string(id[:1])
	return name, f[name] > 0
}
func (f fakeTopics) ID(topic string) (model.UUID, bool) {
	return model.UUID{topic[0]}, f[topic] > 0
}

// origin is the wall clock at the start of a script.
const origin = 1_000_000

func newEnv() *env {
	e := &env{}
	e.cfg = Config{
		MinSession: time.Second, MaxSession: 5 * time.Minute, MaxSize: 100, MetadataMax: 16,
		Retention: time.Minute, CheckInterval: 10 * time.Second, WriteTimeout: 5 * time.Second,
		NewID:  func() string { e.ids++; return strconv.Itoa(e.ids) },
		Topics: fakeTopics{"t": 4, "u": 1},
	}
	e.s = New(e.cfg, 0, origin)
	e.s.Loaded(0, origin)
	return e
}

func (e *env) wall() model.Millis {
	return origin + model.Millis(time.Duration(e.now).Milliseconds())
}

func (e *env) run(t *testing.T, d *datadriven.TestData) string {
	e.out.Reset()
	switch d.Cmd {
	case "config":
		e.configure(t, d)
	case "hold":
		e.hold = true
	case "commit":
		e.settle(e.commit)
	case "fail":
		var code int
		d.ScanArgs(t, "err", &code)
		e.settle(func(w Write) { e.act(e.s.Failed(e.now, e.wall(), w.ID, model.Error(code))) })
	case "tick":
		e.tick(t, d.CmdArgs[0].Key)
	case "close":
		e.act(e.s.Close(e.now, e.wall()))
	case "reload":
		e.s = e.reloaded()
		e.act(e.s.Loaded(e.now, e.wall()))
	case "log":
		for _, r := range e.log {
			fmt.Fprintln(&e.out, describe(r))
		}
	case "deleted":
		e.act(e.s.TopicsDeleted(e.now, e.wall(), map[string]bool{d.CmdArgs[0].Key: true}))
	default:
		e.request(t, d)
	}
	e.check(t)
	return e.out.String()
}

// settle does with the held writes as fate says.
func (e *env) settle(fate func(Write)) {
	e.hold = false
	held := e.held
	e.held = nil
	for _, w := range held {
		fate(w)
	}
}

func (e *env) configure(t *testing.T, d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "delay":
			e.cfg.InitialDelay = duration(t, a.Vals[0])
		case "size":
			e.cfg.MaxSize, _ = strconv.Atoi(a.Vals[0])
		case "retention":
			e.cfg.Retention = duration(t, a.Vals[0])
		default:
			t.Fatalf("unknown config %q", a.Key)
		}
	}
	e.s = e.reloaded()
	e.s.Loaded(e.now, e.wall())
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tick moves the clock from deadline to deadline, as a loop does.
func (e *env) tick(t *testing.T, by string) {
	end := e.now.Add(duration(t, by))
	for {
		next, ok := e.s.NextDeadline()
		if !ok || next > end {
			break
		}
		e.now = max(next, e.now)

		ready := e.s.Tick(e.now, e.wall())
		if len(ready.Replies)+len(ready.Writes)+len(ready.Reasons) > 0 {
			fmt.Fprintf(&e.out, "at %v\n", time.Duration(e.now))
		}
		e.act(ready)

	}
	e.now = end
}

func (e *env) act(r Ready) {
	for _, w := range r.Writes {
		for _, rec := range w.Records {
			fmt.Fprintf(&e.out, "write %s\n", describe(rec))
		}
	}
	for _, reason := range r.Reasons {
		fmt.Fprintf(&e.out, "%s\n", reason)
	}
	for _, reply := range r.Replies {
		fmt.Fprintf(&e.out, "%s <- %s\n", reply.To, show(reply.Resp))
	}
	for _, w := range r.Writes {
		if e.hold {
			e.held = append(e.held, w)
		} else {
			e.commit(w)
		}
	}
}

func (e *env) commit(w Write) {
	e.log = append(e.log, w.Records...)
	e.act(e.s.Committed(e.now, e.wall(), w.ID))
}

func (e *env) reloaded() *Shard {
	s := New(e.cfg, e.now, e.wall())
	for _, r := range e.log {
		if err := s.Replay(r, model.NoProducerID); err != nil {
			fmt.Fprintln(&e.out, err)
		}
	}
	return s
}

// check holds that a coordinator which takes over now would know the same: all
// offsets, and of groups at rest the generation, members and assignments.
func (e *env) check(t *testing.T) {
	if len(e.held) > 0 {
		return
	}
	heir := e.reloaded()
	for id, g := range e.s.groups {
		h := heir.ensure(id)
		if want, got := fmt.Sprint(g.offsets), fmt.Sprint(h.offsets); want != got {
			t.Fatalf("group %s: offsets %s, after a reload %s\n%s", id, want, got, e.out.String())
		}
		if g.state != Stable && !(g.state == Empty && len(g.pending) == 0) {
			continue
		}
		if want, got := facts(g), facts(h); want != got {
			t.Fatalf("group %s: %s\nafter a reload %s\n%s", id, want, got, e.out.String())
		}
	}
	checkCounts(t, e.s)
}

func facts(g *group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s type %q generation %d protocol %q leader %q", g.state, g.protocolType, g.generation, g.protocol, g.leader)
	for _, m := range g.members {
		fmt.Fprintf(&b, " %s=%q/%q/%v/%v", m.id, m.metadata(g.protocol), m.assignment, m.sessionTimeout, m.rebalanceTimeout)
	}
	return b.String()
}

func describe(r Record) string {
	if int(r.Key[1]) < groupKeyVersion {
		var k kmsg.OffsetCommitKey
		var v kmsg.OffsetCommitValue
		if k.ReadFrom(r.Key) != nil || r.Value != nil && v.ReadFrom(r.Value) != nil {
			return "garbage"
		}
		if r.Value == nil {
			return fmt.Sprintf("%s %s-%d: nothing", k.Group, k.Topic, k.Partition)
		}
		return fmt.Sprintf("%s %s-%d: v%d offset %d epoch %d %q", k.Group, k.Topic, k.Partition, v.Version, v.Offset, v.LeaderEpoch, v.Metadata)
	}
	var k kmsg.GroupMetadataKey
	var v kmsg.GroupMetadataValue
	if k.ReadFrom(r.Key) != nil || r.Value != nil && v.ReadFrom(r.Value) != nil {
		return "garbage"
	}
	if r.Value == nil {
		return fmt.Sprintf("%s: nothing", k.Group)
	}
	s := fmt.Sprintf("%s: v%d generation %d %s", k.Group, v.Version, v.Generation, v.ProtocolType)
	for _, m := range v.Members {
		s += fmt.Sprintf(" %s=%q", m.MemberID, m.Assignment)
	}
	return s
}
