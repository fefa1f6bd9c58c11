package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns the page without comments and without the process's own lines.
func scrape(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics answers %d: %s", w.Code, w.Body)
	}
	out := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "tidemark_") {
			out[name] = value
		}
	}
	return out
}

func healthy() error { return nil }

// feed calls every method that counts, each with its own value.
func feed(r *Registry) {
	r.API(0).Done(3 * time.Millisecond)
	r.API(10001).Done(time.Second)
	r.Connections.Opened()
	r.Connections.Opened()
	r.Connections.Closed()
	r.Connections.Refused()
	r.Traffic.Produced(10, 500)
	r.Traffic.Refused(7)
	r.Traffic.Consumed(400)
	r.Traffic.SentToFollower(900)
	r.Traffic.Replicated(30)
	r.Traffic.SetSessions(2)
	r.Traffic.SetParked(3, 4)
	r.Replication.Set(ReplicaCounts{Partitions: 9, Leaders: 5, UnderReplicated: 3, UnderMinISR: 2, AtMinISR: 1, Offline: 4, Reassigning: 6})
	r.Replication.SetMaxLag(12)
	r.Replication.Shrunk()
	r.Replication.Expanded()
	r.Replication.RefusedISR()
	r.Replication.Truncated(8, 2)
	r.Log.Appended(time.Millisecond, 5)
	r.Log.Flushed(time.Millisecond)
	r.Log.SetFailedDirs(1)
	r.Controller.Set(ControllerCounts{Active: true, Brokers: 3, Fenced: 1, Topics: 2, Partitions: 8, Offline: 1, NotPreferred: 4, MetadataEnd: 77})
}

// fed is what a scrape must show after feed.
const fed = `
requests_total{api="Produce"} 1
requests_total{api="Other"} 1
request_seconds_bucket{api="Produce",le="0.0025"} 0
request_seconds_bucket{api="Produce",le="0.005"} 1
connections 1
connections_opened_total 2
connections_refused_total 1
records_in_total 10
bytes_in_total 500
bytes_refused_total 7
bytes_out_total 400
replication_bytes_out_total 900
replication_bytes_in_total 30
fetch_sessions 2
purgatory_produces 3
purgatory_fetches 4
partitions 9
leaders 5
under_replicated_partitions 3
under_min_isr_partitions 2
at_min_isr_partitions 1
offline_replicas 4
reassigning_partitions 6
follower_max_lag_records 12
isr_shrinks_total 1
isr_expands_total 1
isr_updates_failed_total 1
truncations_total 1
truncated_records_total 8
truncated_committed_records_total 2
log_append_seconds_count 1
log_flush_seconds_count 1
log_batches_total 5
log_dirs_failed 1
active_controller 1
active_brokers 3
fenced_brokers 1
cluster_topics 2
cluster_partitions 8
offline_partitions 1
preferred_replica_imbalance 4
metadata_end_offset 77
`

func wantLines(t *testing.T, got map[string]string, lines string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got["tidemark_"+name] != want {
			t.Errorf("%s is %q, want %q", name, got["tidemark_"+name], want)
		}
	}
}

func TestWhatIsFedCanBeScraped(t *testing.T) {
	r := New()
	feed(r)
	wantLines(t, scrape(t, r.Handler(healthy)), fed)
	r.Controller.Set(ControllerCounts{})
	wantLines(t, scrape(t, r.Handler(healthy)), "active_controller 0")
}

func TestEveryReplicaShowsItsMarks(t *testing.T) {
	r := New()
	r.CollectMarks(func() []Marks {
		return []Marks{
			{Topic: "orders", Partition: 1, Leader: true, LogStart: 1, LastStable: 2, HW: 3, LEO: 4, Bytes: 5, InSync: 2},
			{Topic: "orders", Partition: 2, HW: 6, LEO: 7},
		}
	})
	got := scrape(t, r.Handler(healthy))
	wantLines(t, got, `
partition_log_start_offset{partition="1",topic="orders"} 1
partition_last_stable_offset{partition="1",topic="orders"} 2
partition_high_watermark{partition="1",topic="orders"} 3
partition_log_end_offset{partition="1",topic="orders"} 4
partition_log_bytes{partition="1",topic="orders"} 5
partition_in_sync_replicas{partition="1",topic="orders"} 2
partition_leader{partition="1",topic="orders"} 1
partition_leader{partition="2",topic="orders"} 0`)
	if n, ok := got[`tidemark_partition_in_sync_replicas{partition="2",topic="orders"}`]; ok {
		t.Errorf("a follower shows %s in-sync replicas", n)
	}
}

func TestNamesPassPrometheusOwnLint(t *testing.T) {
	r := New()
	r.API(1).Done(time.Millisecond)
	r.CollectMarks(func() []Marks { return []Marks{{Topic: "t", Leader: true}} })
	families, err := r.prom.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCountingARequestAllocatesNothing(t *testing.T) {
	r := New()
	r.API(0)
	if n := testing.AllocsPerRun(100, func() {
		r.API(0).Done(time.Millisecond)
		r.Traffic.Produced(10, 1000)
		r.Log.Appended(time.Millisecond, 3)
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func TestTheListenerAnswersUntilItIsClosed(t *testing.T) {
	var sick error
	s, err := New().Listen("127.0.0.1:0", func() error { return sick })
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		resp, err := client.Get("http://" + s.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	if code, body := get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("a healthy node answers %d %q", code, body)
	}
	sick = errors.New("the broker is fenced")
	if code, body := get("/healthz"); code != 503 || body != "the broker is fenced\n" {
		t.Errorf("a sick node answers %d %q", code, body)
	}
	if code, _ := get("/debug/pprof/goroutine?debug=1"); code != 200 {
		t.Errorf("pprof answers %d", code)
	}
	if code, _ := get("/nothing"); code != 404 {
		t.Errorf("an unknown path answers %d", code)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + s.Addr().String() + "/healthz"); err == nil {
		t.Error("the listener answers after Close")
	}
}

func TestATakenAddressIsNamed(t *testing.T) {
	s, err := New().Listen("127.0.0.1:0", healthy)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if _, err := New().Listen(s.Addr().String(), healthy); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("error %v, want one with the address", err)
	}
}

func BenchmarkRequest(b *testing.B) {
	r := New()
	b.ReportAllocs()
	for b.Loop() {
		r.API(0).Done(time.Millisecond)
	}
}
