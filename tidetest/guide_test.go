package tidetest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/internal/cli"
	"github.com/tidemark-log/tidemark/tidetest"
)

// The functions that docs/guide/simulation.md shows stand here word for word; the
// test at the end sees to it.

func TestOrdersSurviveAKill(t *testing.T) {
	tidetest.Simulate(t, `
		seed 42
		nodes 3 combined
		topics partitions=1 replication=3 min.isr=2 unclean=false
		workloads producer-acks-all consumer
		at 1s kill 1
		at 2s start 1
		end 4s
	`)
}

func TestOneBrokerLeadsInAnEpoch(t *testing.T) {
	tidetest.SimulateSeeds(t, 1, 2, tidetest.SimSetup(oneLeader))
}

// oneLeader brings an invariant: in one leader epoch of a partition, one broker
// takes requests.
func oneLeader(r *tidetest.SimRun) {
	type reign struct {
		topicID   string
		partition int
		epoch     int32
	}
	leaders := map[reign]int{} // in this run so far
	r.Invariant("OneLeader", func(s *tidetest.SimState) error {
		for _, p := range s.Partitions() {
			for _, m := range p.Marks {
				at := reign{p.TopicID, p.Partition, m.Epoch}
				if !m.Leader || leaders[at] == m.Broker {
					continue
				}
				if other := leaders[at]; other != 0 {
					return fmt.Errorf("%s-%d: brokers %d and %d lead in epoch %d", p.Topic, p.Partition, other, m.Broker, m.Epoch)
				}
				leaders[at] = m.Broker
			}
		}
		return nil
	})
}

func TestTheLedgerKeepsWhatItAcknowledged(t *testing.T) {
	tidetest.SimulateSeeds(t, 1, 2, tidetest.SimSetup(ledger), tidetest.SimSetup(oneLeader))
}

// ledger brings a client that writes numbered entries while things go wrong, and
// reads them all when that is over.
func ledger(r *tidetest.SimRun) {
	acked := map[int64]string{} // by offset
	r.Workload("ledger", func(ctx context.Context, c *tidetest.SimClient) error {
		if err := c.CreateTopic(ctx, "ledger", 1, -1, nil); err != nil {
			return err
		}
		for n := 1; c.Sleep(ctx, time.Duration(c.Rand().IntN(100))*time.Millisecond); n++ {
			entry := fmt.Sprint("entry ", n)
			offset, err := c.Produce(ctx, "ledger", 0, entry)
			if err != nil {
				c.Note("%v", err) // refused or in doubt: it is the next one's turn
				continue
			}
			acked[offset] = entry
		}

		found, err := readLedger(context.Background(), c) // the plan is over, all is mended
		if err != nil {
			return err
		}
		for offset, entry := range acked {
			if c.Clean() && found[offset] != entry {
				return fmt.Errorf("%q was acknowledged at %d, where there is %q", entry, offset, found[offset])
			}
		}
		return nil
	})
	r.AtEnd("LedgerWritten", func(s *tidetest.SimState) error {
		if p, _ := s.Partition("ledger", 0); s.Clean() && p.Marks[0].HW < int64(len(acked)) {
			return fmt.Errorf("%d entries were acknowledged, the HW is %d", len(acked), p.Marks[0].HW)
		}
		return nil
	})
}

func readLedger(ctx context.Context, c *tidetest.SimClient) (map[int64]string, error) {
	end, err := c.End(ctx, "ledger", 0)
	found := map[int64]string{}
	for at := int64(0); at < end && err == nil; {
		var records []tidetest.SimRecord
		records, err = c.Read(ctx, "ledger", 0, at)
		for _, r := range records {
			found[r.Offset], at = r.Value, r.Offset+1
		}
	}
	return found, err
}

// preferred brings an invariant that is wrong.
func preferred(r *tidetest.SimRun) {
	r.Invariant("PreferredLeads", func(s *tidetest.SimState) error {
		for _, p := range s.Partitions() {
			if p.Leader != p.Replicas[0] {
				return fmt.Errorf("%s-%d is led by %d, not by %d", p.Topic, p.Partition, p.Leader, p.Replicas[0])
			}
		}
		return nil
	})
}

func TestKeptPlansHold(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no plans: %v", err)
	}
	for _, name := range files {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			tidetest.Simulate(t, string(script), tidetest.SimSetup(ledger), tidetest.SimSetup(oneLeader))
		})
	}
}

func TestATraceIsWritten(t *testing.T) {
	trace, err := os.Create(filepath.Join(t.TempDir(), "trace.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	tidetest.SimulateSeeds(t, 7, 1, tidetest.SimTrace(trace), tidetest.SimFaults("kill", "pause"))
}

func TestFranzGoLivesThroughAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tidetest.New(t, 3, tidetest.InMemory())
		c.CreateTopic("orders", 1, 3, nil)
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.Dialer(c.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		c.Kill(c.Leader("orders", 0))
		r := &kgo.Record{Topic: "orders", Value: []byte("a")}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	})
}

var block = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

func TestTheGuideShowsWhatRuns(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, m := range block.FindAllStringSubmatch(string(guide), -1) {
		kind, text := m[1], m[2]
		ran[kind]++
		switch kind {
		case "go":
			if !bytes.Contains(here, []byte(text)) {
				t.Errorf("guide_test.go has no such text:\n%s", text)
			}
		case "plan":
			tidetest.Simulate(t, text)
		case "sh":
			for line := range strings.Lines(text) {
				runLine(t, strings.TrimSpace(line))
			}
		case "failure":
			got := failing(t, func(t testing.TB) {
				script, _ := os.ReadFile("testdata/plans/each-killed.txt")
				tidetest.Simulate(t, string(script), tidetest.SimSetup(preferred))
			})
			want, _, _ := strings.Cut(text, "\nat ") // from there on it is the code's business
			if number := regexp.MustCompile(`\d+`); !strings.HasPrefix(number.ReplaceAllString(got, "N"), number.ReplaceAllString(want, "N")) {
				t.Errorf("it fails otherwise:\n%s", got)
			}
		}
	}
	if ran["go"] < 6 || ran["plan"] < 2 || ran["sh"] < 2 || ran["failure"] != 1 {
		t.Errorf("the guide shows %v", ran)
	}
}

// runLine runs one command of the guide. Those that run many seeds start processes
// and are tested where the command is.
func runLine(t *testing.T, line string) {
	args, ok := strings.CutPrefix(line, "tidemark ")
	if !ok || strings.Contains(line, "--seeds") {
		return
	}
	args = strings.Replace(args, "failure.txt", filepath.Join(t.TempDir(), "failure.txt"), 1)
	args = strings.Replace(args, "plan.txt", "testdata/plans/each-killed.txt", 1)
	var out bytes.Buffer
	app := cli.App{Version: "test", In: strings.NewReader(""), Out: &out, Err: &out}
	if code := app.Run(t.Context(), strings.Fields(args)); code != 0 {
		t.Errorf("%s: exit code %d\n%s", line, code, out.String())
	}
}
