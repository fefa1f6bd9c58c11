package cases

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B249: a group that has committed all it read lags by nothing, and by less than
// nothing never, also through elections.
func TestLagIsNeverNegativeAndReachesZero(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		l := w.startLoad("t", "p", 2, 5*time.Millisecond)
		lag := func() int64 {
			committed := w.committedOffset("g", "t")
			latest := w.list(w.WaitLeader("t", 0), "t", -1)
			if latest.ErrorCode != 0 {
				return 0 // the leader has just changed
			}
			return latest.Offset - committed
		}
		w.commitAlone("g", "t", 0)
		for i := range 200 {
			pass(50 * time.Millisecond)
			if i%20 == 19 {
				w.electOther("t")
			}
			if p := w.list(w.WaitLeader("t", 0), "t", -1); p.ErrorCode == 0 {
				w.commitAlone("g", "t", p.Offset)
			}
			if n := lag(); n < 0 {
				t.Errorf("the lag is %d", n)
			}
		}
		l.stop(t)
		hw := w.settle("t", 1, 2, 3)
		w.commitAlone("g", "t", hw)
		if n := lag(); n != 0 || hw == 0 {
			t.Errorf("in the end the lag is %d of %d", n, hw)
		}
		w.deleteRecords(w.Leader("t", 0), "t", -1)
		if n := lag(); n != 0 {
			t.Errorf("when all records are gone the lag is %d", n)
		}
	}, distant())
}

// B250: counts of partitions in trouble follow the metadata, on leaders alone.
func TestCountsOfPartitionsInTroubleFollowTheMetadata(t *testing.T) {
	w, m := measured(t, tidetest.Set("replica.lag.time.max.ms", "1000"))
	w.CreateTopic("t", 6, 3, minISR(2))
	counts := func(leaders, under, belowMin, offline float64) {
		t.Helper()
		want := fmt.Sprint(leaders, under, belowMin, offline)
		w.WaitFor("the counts are right", func() bool {
			s := m.scrape()
			return fmt.Sprint(s.sum["tidemark_leaders"], s.sum["tidemark_under_replicated_partitions"],
				s.sum["tidemark_under_min_isr_partitions"], s.most["tidemark_offline_partitions"]) == want
		})
	}
	counts(6, 0, 0, 0)
	var far int
	for far = 1; far == w.Controller(); far++ {
	}
	w.Kill(far)
	counts(6, 6, 0, 0)
	w.Restart(far)
	counts(6, 0, 0, 0)
	w.Pause(far)
	counts(6, 6, 0, 0)
	w.Resume(far)
	counts(6, 0, 0, 0)
}

// B251: what is deleted leaves no series, and counters do not go back.
func TestDeletedTopicsLeaveNoSeries(t *testing.T) {
	w, m := measured(t)
	w.CreateTopic("stays", 1, 3, nil)
	w.hundreds("stays", 1)
	w.WaitHW("stays", 0, 100)
	base := m.scrape()
	for i := range 10 {
		w.CreateTopic(fmt.Sprint("gone", i), 3, 3, nil)
	}
	if n := m.scrape().series; n < base.series+10*3*3*5 {
		t.Fatalf("%d series with thirty more partitions, %d before", n, base.series)
	}
	for i := range 10 {
		code(t, "delete", w.deleteTopic(1, fmt.Sprint("gone", i)), model.None)
	}
	w.electOther("stays")
	w.WaitFor("no series of deleted topics are left", func() bool { return !m.scrape().has(`topic="gone`) })
	after := m.scrape()
	if before, now := base.sum["tidemark_requests_total"], after.sum["tidemark_requests_total"]; now <= before || before == 0 {
		t.Errorf("requests went from %v to %v", before, now)
	}
	if n := after.count["tidemark_partition_in_sync_replicas"]; n != 1 {
		t.Errorf("%d brokers tell of the ISR of one partition", n)
	}
}

// B254: a broker stops in time, whatever waits, and starts without a scan.
func TestABrokerStopsWhateverWaits(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		w.CreateTopic("stuck", 1, 3, minISR(1))
		w.mustProduce("t", "x")
		stopped := w.Leader("t", 0)
		w.Elect("stuck", 0, stopped)
		_, frozen := w.apart("stuck")
		w.Pause(frozen)
		var waiting sync.WaitGroup
		for i := range 50 {
			c := w.dial(stopped)
			waiting.Go(func() {
				f := at("t", 1)
				f.wait = time.Minute
				if i%5 == 0 {
					c.Do(context.Background(), produceRequest("stuck", 0, -1, time.Minute, batch("x")))
				} else {
					c.Do(context.Background(), f.request())
				}
			})
		}
		pass(300 * time.Millisecond)
		start := time.Now()
		w.Stop(stopped)
		waiting.Wait()
		within(t, "the stop", time.Since(start), 10*time.Second)
		marker := filepath.Join(filepath.Dir(w.LogDir(stopped, "t", 0)), ".kafka_cleanshutdown")
		if _, err := os.Stat(marker); err != nil {
			t.Errorf("after an orderly stop: %v", err)
		}
		w.Resume(frozen)
		w.Restart(stopped)
		if _, err := os.Stat(marker); err == nil {
			t.Error("the mark of an orderly stop outlives the start")
		}
		w.settle("t", 1, 2, 3)
		w.identical("t", 1, 2, 3)
	}, tidetest.Set("replica.lag.time.max.ms", "60000"))
}

// B257: nobody is throttled, and every answer says so.
func TestNoAnswerTellsToWait(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.coordinator("g")
		offered := ask[*kmsg.ApiVersionsResponse](w, 1, kmsg.NewPtrApiVersionsRequest())
		seen := 0
		for _, k := range offered.ApiKeys {
			req := kmsg.RequestForKey(k.ApiKey)
			switch req.(type) {
			case *kmsg.ProduceRequest, *kmsg.JoinGroupRequest, *kmsg.FetchRequest, *kmsg.MetadataRequest, *kmsg.ListOffsetsRequest,
				*kmsg.OffsetCommitRequest, *kmsg.OffsetFetchRequest, *kmsg.HeartbeatRequest, *kmsg.FindCoordinatorRequest,
				*kmsg.DescribeGroupsRequest, *kmsg.ListGroupsRequest, *kmsg.DescribeConfigsRequest, *kmsg.CreateTopicsRequest,
				*kmsg.DeleteTopicsRequest, *kmsg.DeleteRecordsRequest, *kmsg.DescribeLogDirsRequest, *kmsg.DescribeClusterRequest:
			default:
				continue
			}
			for version := k.MinVersion; version <= k.MaxVersion; version++ {
				if req.Key() == int16(kmsg.Produce) && version < 3 {
					continue // offered for old clients' tests alone
				}
				req := kmsg.RequestForKey(k.ApiKey)
				req.SetVersion(version)
				if p, ok := req.(*kmsg.ProduceRequest); ok {
					p.Acks = 1
				}
				resp := ask[kmsg.Response](w, 1, req)
				if th, ok := resp.(kmsg.ThrottleResponse); ok {
					seen++
					if ms, _ := th.Throttle(); ms != 0 {
						t.Errorf("%s v%d: throttled for %d ms", kmsg.NameForKey(k.ApiKey), version, ms)
					}
				}
			}
		}
		if seen < 50 {
			t.Errorf("%d answers have a throttle time", seen)
		}
	})
}

// B258: however many bad requests come, the log tells of them and stays small.
func TestBadRequestsDoNotFloodTheLog(t *testing.T) {
	var log notes
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		before := log.size()
		broken := batch("x")
		broken[len(broken)-1] ^= 1
		for range 2000 {
			code(t, "no such topic", w.produce(1, "u", 1, time.Second, batch("x")).ErrorCode, model.ErrUnknownTopicOrPartition)
			code(t, "a bad checksum", w.produce(1, "t", 1, time.Second, broken).ErrorCode, model.ErrCorruptMessage)
			c := w.dial(1)
			req := kmsg.NewPtrMetadataRequest()
			req.Version = 99
			if _, err := c.Do(context.Background(), req); err == nil {
				t.Fatal("version 99 was answered")
			}
			c.Close()
		}
		if n := log.size() - before; n > 1<<20 || n == 0 {
			t.Errorf("%d bytes of log", n)
		}
	}, tidetest.Log(slog.New(slog.NewTextHandler(&log, nil))))
}

// notes is what an operator would read.
type notes struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds a line.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *notes) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Len()
}

// after returns what follows a word in each line that tells of something.
func (n *notes) after(about, word string) (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for line := range strings.Lines(n.buf.String()) {
		if _, rest, ok := strings.Cut(strings.TrimSpace(line), word); ok && strings.Contains(line, about) {
			out = append(out, rest)
		}
	}
	return out
}
