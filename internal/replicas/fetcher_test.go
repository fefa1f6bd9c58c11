package replicas

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/memnet"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// fetching is a fetcher of broker 1 whose leader and loop are the test.
type fetching struct {
	*fetcher
	events  chan event
	asked   []kmsg.Request // what the leader was asked
	at      []time.Time    // and when
	answers func(kmsg.Request) kmsg.Response
	down    bool // dials are refused
}

// fetchFrom starts a fetcher in a bubble; it ends with the test.
func startFetching(t *testing.T) *fetching {
	f := &fetching{events: make(chan event, 100), answers: func(r kmsg.Request) kmsg.Response { return r.ResponseKind() }}
	network := memnet.New()
	l, err := network.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := transport.NewServer(l, transport.Options{})
	go server.Serve(transport.HandlerFunc(func(r *transport.Request) {
		req := wire.NewRequest(r.Header.Key, r.Header.Version)
		if err := req.ReadFrom(r.Body); err != nil {
			r.CloseConn(err)
			return
		}
		f.asked, f.at = append(f.asked, req), append(f.at, time.Now())
		if resp := f.answers(req); resp != nil {
			resp.SetVersion(r.Header.Version)
			r.Reply(transport.Message(resp))
			return
		}
		r.CloseConn(errors.New("no answer"))
	}))
	f.fetcher = &fetcher{id: 1, s: &source{lane: lane{leader: 2}, plans: task.NewQueue[fetchPlan](nil)}, log: slog.New(slog.DiscardHandler),
		epoch: func() model.BrokerEpoch { return 10 }, tell: func(e event) bool { f.events <- e; return true },
		cfg: FetchOptions{Wait: 500 * time.Millisecond, MinBytes: 1, PartitionBytes: 1 << 20, TotalBytes: 10 << 20, Backoff: time.Second, Limit: 30 * time.Second},
		dial: func(ctx context.Context, _ model.BrokerID) (*transport.Client, error) {
			if f.down {
				f.at = append(f.at, time.Now())
				return nil, errors.New("nobody listens")
			}
			return transport.Dial(ctx, l.Addr().String(), transport.ClientOptions{Dial: func(ctx context.Context, addr string) (net.Conn, error) { return network.Dial(ctx, addr) }})
		}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; server.Close(ctx) })
	return f
}

// wants waits until the fetcher is ready for a plan.
func (f *fetching) wants(t *testing.T, full bool) {
	t.Helper()
	for {
		e, ok := (<-f.events).(wantPlan)
		if !ok {
			continue // an answer, that nobody asked for here
		}
		if e.full != full {
			t.Fatalf("the fetcher wants a full plan: %v, not %v", e.full, full)
		}
		return
	}
}

// got is the answer that the fetcher brought last.
func (f *fetching) got(t *testing.T) *fetched {
	t.Helper()
	e, ok := (<-f.events).(*fetched)
	if !ok {
		t.Fatal("no answer comes to the loop")
	}
	return e
}

func TestAConnectionThatEndedWhileNothingWasFetchedCostsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFetching(t)
		f.wants(t, true)
		f.s.plans.Post(planOf(true, 0))
		f.got(t)
		f.wants(t, true)
		time.Sleep(time.Hour) // far beyond what a leader lets a connection idle
		began := time.Now()
		f.s.plans.Post(planOf(true, 0))
		f.got(t)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the fetch waited %v before it dialled", waited)
		}
	})
}

// planOf asks for a partition from an offset on.
func planOf(full bool, offset model.Offset) fetchPlan {
	return fetchPlan{full: full, parts: []planPart{{tp: model.TopicPartition{Topic: "a"}, id: idOf(1), pos: partition.FetchPosition{Offset: offset}}}}
}

func inSession(id int32, err model.Error) func(kmsg.Request) kmsg.Response {
	return func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		resp.SessionID, resp.ErrorCode = id, err.Code()
		return resp
	}
}

func TestAFetchSessionIsKeptUntilTheLeaderLosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFetching(t)
		f.answers = inSession(7, model.None)
		f.wants(t, true)
		f.s.plans.Post(planOf(true, 0))
		f.wants(t, false)
		f.s.plans.Post(planOf(false, 3))
		f.wants(t, false)
		f.answers = inSession(0, model.ErrFetchSessionIDNotFound)
		f.s.plans.Post(fetchPlan{forget: []model.TopicIDPartition{idOf(1), idOf(2)}})
		f.wants(t, true)
		f.s.plans.Post(planOf(true, 3))
		f.wants(t, true)
		var epochs, ids []int32
		for _, r := range f.asked {
			req := r.(*kmsg.FetchRequest)
			ids, epochs = append(ids, req.SessionID), append(epochs, req.SessionEpoch)
		}
		if !slices.Equal(ids, []int32{0, 7, 7, 0}) || !slices.Equal(epochs, []int32{0, 1, 2, 0}) {
			t.Errorf("sessions %v, epochs %v", ids, epochs)
		}
		if req := f.asked[2].(*kmsg.FetchRequest); len(req.Topics) != 0 || len(req.ForgottenTopics) != 2 || req.ReplicaState.ID != 1 || req.ReplicaState.Epoch != 10 {
			t.Errorf("request %+v", req)
		}
	})
}

func TestPausesBetweenDialsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFetching(t)
		f.down = true
		for range 8 {
			f.wants(t, true)
			f.s.plans.Post(planOf(true, 0))
		}
		f.wants(t, true)
		for i, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1000} {
			if got := f.at[i+1].Sub(f.at[i]); got != want*time.Millisecond {
				t.Errorf("pause %d is %v, not %d ms", i, got, want)
			}
		}
		f.down = false
		f.s.plans.Post(planOf(true, 0))
		f.wants(t, true)
		if f.pause != 0 {
			t.Errorf("an answer leaves a pause of %v", f.pause)
		}
	})
}

func TestALostConnectionLosesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFetching(t)
		f.answers = inSession(7, model.None)
		f.wants(t, true)
		f.s.plans.Post(planOf(true, 0))
		f.wants(t, false)
		f.answers = func(kmsg.Request) kmsg.Response { return nil }
		f.s.plans.Post(planOf(false, 1))
		f.wants(t, true)
		f.answers = inSession(8, model.None)
		f.s.plans.Post(planOf(true, 1))
		f.wants(t, false)
		if last := f.asked[2].(*kmsg.FetchRequest); last.SessionID != 0 || last.SessionEpoch != 0 {
			t.Errorf("session %d, epoch %d", last.SessionID, last.SessionEpoch)
		}
	})
}

// withBounds answers that logs lie at [80, 50) at the time of the two questions;
// topics named refused and silent are not told.
func withBounds(r kmsg.Request) kmsg.Response {
	list, ok := r.(*kmsg.ListOffsetsRequest)
	if !ok {
		return inSession(7, model.None)(r)
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, t := range list.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = 50 - 30*(t.Partitions[0].Timestamp+1) // timestamps -2 and -1
		if t.Topic == "refused" {
			p.ErrorCode = model.ErrNotLeaderOrFollower.Code()
		}
		if out.Partitions = append(out.Partitions, p); t.Topic != "silent" {
			resp.Topics = append(resp.Topics, out)
		}
	}
	return resp
}

func TestAQuestionTravelsWithAFetchThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFetching(t)
		f.answers = withBounds
		f.wants(t, true)
		plan := planOf(true, 0)
		for i, topic := range []string{"known", "refused", "silent"} {
			plan.asks = append(plan.asks, planPart{tp: model.TopicPartition{Topic: topic}, id: idOf(byte(i)), pos: partition.FetchPosition{LeaderEpoch: 4}})
		}
		f.s.plans.Post(plan)
		asked := f.got(t).asked
		for i, want := range []partition.LeaderOffsets{{LeaderEpoch: 4, LogStart: 80, LEO: 50},
			{LeaderEpoch: 4, LogStart: 80, LEO: 50, Err: model.ErrNotLeaderOrFollower}, {LeaderEpoch: 4, Err: model.ErrUnknownServerError}} {
			if asked[i].id != idOf(byte(i)) || asked[i].resp != want {
				t.Errorf("answer %d: %+v", i, asked[i])
			}
		}
		if req := f.asked[2].(*kmsg.FetchRequest); req.MaxWaitMillis != 0 {
			t.Errorf("the fetch behind the question waits %d ms", req.MaxWaitMillis)
		}
	})
}

func TestACorruptBatchIsToldAsAnError(t *testing.T) {
	good, bad := batchOf(record.PlainOptions(), 2, 10), batchOf(record.PlainOptions(), 2, 10)
	bad[len(bad)-1]++
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.RecordBatches = 5, append(slices.Clone(good), good[:20]...)
	if got := collectPart(model.UUID{1}, &p); got.resp.Err != model.None || len(got.resp.Batches) != 1 || len(got.data) != len(good) || got.resp.HW != 5 {
		t.Errorf("a batch and a torn one: %+v", got)
	}
	p.RecordBatches = append(slices.Clone(good), bad...)
	if got := collectPart(model.UUID{1}, &p); got.resp.Err != model.ErrCorruptMessage || len(got.resp.Batches) != 0 || len(got.data) != 0 {
		t.Errorf("a batch and a corrupt one: %+v", got)
	}
}
