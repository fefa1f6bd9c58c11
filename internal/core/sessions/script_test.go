package sessions

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		e := &env{turns: map[string]*Turn{}, marks: map[string]Result{}}
		datadriven.RunTest(t, path, e.run)
	})
}

// env is a broker whose partitions have a high watermark and a log start.
type env struct {
	c     *Cache
	now   model.Time
	turns map[string]*Turn
	marks map[string]Result
	ended []string // what was kept with sessions that are no more
}

func (e *env) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "cache":
		var slots int
		d.ScanArgs(t, "slots", &slots)
		var last int32
		e.c = New(Config{Slots: slots, EvictAfter: 2 * time.Minute, NextID: func() int32 { last++; return last },
			Ended: func(data any) { e.ended = append(e.ended, data.(string)) }})
		return ""
	case "wait":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		e.now = e.now.Add(by)
		return ""
	case "begin":
		return e.begin(t, d)
	case "answer":
		return e.answer(t, d)
	case "abort":
		e.c.Abort(e.turns[d.CmdArgs[0].Key])
		return ""
	case "sessions":
		return fmt.Sprintln(e.c.Len())
	case "ended":
		return fmt.Sprintln(e.ended)
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

// begin TURN id= epoch= want=(a@0,b@5) forget=(c) [leader-epoch=] [ids] [follower]
func (e *env) begin(t *testing.T, d *datadriven.TestData) string {
	req := Request{UsesIDs: d.HasArg("ids"), Privileged: d.HasArg("follower")}
	d.MaybeScanArgs(t, "id", &req.ID)
	d.MaybeScanArgs(t, "epoch", &req.Epoch)
	var leaderEpoch int
	d.MaybeScanArgs(t, "leader-epoch", &leaderEpoch)
	if arg, ok := d.Arg("want"); ok {
		for _, v := range arg.Vals {
			name, at, _ := strings.Cut(v, "@")
			offset, _ := strconv.Atoi(at)
			req.Wishes = append(req.Wishes, Partition{Key: Key{Topic: name}, Wish: Wish{Offset: model.Offset(offset), LeaderEpoch: model.Epoch(leaderEpoch)}})
		}
	}
	if arg, ok := d.Arg("forget"); ok {
		for _, v := range arg.Vals {
			req.Forget = append(req.Forget, Key{Topic: v})
		}
	}
	turn, err := e.c.Begin(e.now, req)
	if err != model.None {
		return err.Error() + "\n"
	}
	e.turns[d.CmdArgs[0].Key] = turn
	if data := turn.Data(); data != nil && *data == nil {
		*data = d.CmdArgs[0].Key
	}
	return fmt.Sprintf("fetch %s\nchanged %s\n", show(turn.Partitions()), show(turn.Changed()))
}

func show(list []*Partition) string {
	if len(list) == 0 {
		return "nothing"
	}
	var names []string
	for _, p := range list {
		names = append(names, fmt.Sprintf("%s@%d", p.Key.Topic, p.Wish.Offset))
	}
	return strings.Join(names, " ")
}

// answer TURN, with lines such as "a hw=3 start=0 records err=6 diverging".
// Marks stay until changed.
func (e *env) answer(t *testing.T, d *datadriven.TestData) string {
	turn := e.turns[d.CmdArgs[0].Key]
	if arg, ok := d.Arg("join"); ok {
		for _, name := range arg.Vals {
			turn.Join(turn.session.byKey[Key{Topic: name}])
		}
	}
	now := map[string]Result{}
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			now[f[0]] = e.result(t, f[0], f[1:])
		}
	}
	var results []Result
	for _, p := range turn.Partitions() {
		r, ok := now[p.Key.Topic]
		if !ok {
			r = e.marks[p.Key.Topic]
		}
		results = append(results, r)
	}
	var included []*Partition
	id, err := e.c.Answer(e.now, turn, results, func(i int) { included = append(included, turn.Partitions()[i]) })
	if err != model.None {
		return fmt.Sprintf("session %d: %s\n", id, err)
	}
	return fmt.Sprintf("session %d: %s\n", id, show(included))
}

func (e *env) result(t *testing.T, name string, args []string) Result {
	r := e.marks[name]
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "hw":
			r.HW = model.Offset(n)
		case "start":
			r.LogStart = model.Offset(n)
		}
	}
	e.marks[name] = r
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "hw", "start":
		case "records":
			r.Records = true
		case "diverging":
			r.Diverging = true
		case "preferred":
			r.Preferred = true
		case "quiet":
			r.Quiet = true
		case "err":
			r.Err = model.Error(n)
		default:
			t.Fatalf("unknown result %q", a)
		}
	}
	return r
}
