package node

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// committed is a source whose log is ahead of what any replica follows; it keeps
// the last heartbeat.
type committed struct {
	controlplane.Source
	img  *image.Image
	last *kmsg.BrokerHeartbeatRequest
}

func (c *committed) Image() *image.Image { return c.img }

func (c *committed) Forward(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.last = req.(*kmsg.BrokerHeartbeatRequest)
	return req.ResponseKind(), nil
}

func lifecycleConfig(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.New(map[string]string{"node.id": "1", "process.roles": "broker,controller", "listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
		"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@127.0.0.1:2", "log.dirs": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestAHeartbeatClaimsOnlyTheMetadataThatReplicasFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const epoch = 40
		src := &committed{img: image.New().Apply(nil, 50, 1)}
		lc := newLifecycle(nil, lifecycleConfig(t), src, slog.New(slog.NewTextHandler(io.Discard, nil)))
		lc.epoch.Store(epoch)
		for _, followed := range []model.Offset{0, 1, epoch, epoch + 1, 50} {
			lc.applied = func() model.Offset { return followed }
			lc.heartbeat(t.Context())
			if got := src.last.CurrentMetadataOffset; got != int64(followed)-1 {
				t.Errorf("with replicas that follow up to %d, the heartbeat claims %d", followed, got)
			}
			if caughtUp := followed > epoch; src.last.WantFence == caughtUp {
				t.Errorf("with replicas that follow up to %d of epoch %d, the heartbeat asks for a fence: %v", followed, epoch, src.last.WantFence)
			}
		}
	})
}

// unreachable is a source that no controller answers.
type unreachable struct{ controlplane.Source }

func (unreachable) Forward(ctx context.Context, _ kmsg.Request) (kmsg.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAStopDoesNotWaitForAControllerThatNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lc := newLifecycle(nil, lifecycleConfig(t), unreachable{}, slog.New(slog.DiscardHandler))
		lc.listeners = func() []config.Listener { return nil }
		ctx, cancel := context.WithCancel(t.Context())
		go lc.run(ctx)
		synctest.Wait()
		began := time.Now()
		lc.shutdown(ctx)
		if took := time.Since(began); took != 0 {
			t.Errorf("the stop took %v", took)
		}
		cancel()
		<-lc.done.C()
	})
}

// fading answers heartbeats for a while, then nobody is there any more.
type fading struct {
	unreachable
	until time.Time
}

func (f fading) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	if time.Now().After(f.until) {
		return f.unreachable.Forward(ctx, req)
	}
	resp := req.ResponseKind()
	if r, ok := resp.(*kmsg.BrokerRegistrationResponse); ok {
		r.BrokerEpoch = 5
	}
	return resp, nil
}

// A broker that leaves waits as long as the controllers answer, and not much
// longer: when a whole cluster stops, the last broker finds none.
func TestAStopGivesUpOnControllersThatAreGone(t *testing.T) {
	for _, answers := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			lc := newLifecycle(nil, lifecycleConfig(t), fading{until: began.Add(answers)}, slog.New(slog.DiscardHandler))
			lc.applied = func() model.Offset { return 1 }
			lc.listeners = func() []config.Listener { return nil }
			ctx, cancel := context.WithCancel(t.Context())
			go lc.run(ctx)
			synctest.Wait()
			lc.epoch.Store(1)
			lc.shutdown(ctx)
			if took := time.Since(began) - answers; took < unanswered-time.Second || took > unanswered+time.Second {
				t.Errorf("with answers for %v, the stop took %v more", answers, took)
			}
			cancel()
			<-lc.done.C()
		})
	}
}

// taken is a source that refuses a registration some times, then takes it.
type taken struct {
	controlplane.Source
	refusals []model.Error
}

func (s *taken) Forward(context.Context, kmsg.Request) (kmsg.Response, error) {
	resp := kmsg.NewPtrBrokerRegistrationResponse()
	if len(s.refusals) > 0 {
		resp.ErrorCode, s.refusals = s.refusals[0].Code(), s.refusals[1:]
	}
	resp.BrokerEpoch = 7
	return resp, nil
}

func TestARefusedRegistrationIsToldOnceInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twice, foreign := model.ErrDuplicateBrokerRegistration, model.ErrInconsistentClusterID
		src := &taken{refusals: []model.Error{twice, twice, twice, foreign, foreign, twice}}
		var out strings.Builder
		cfg, err := config.New(map[string]string{"node.id": "1", "process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:1",
			"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "9@127.0.0.1:2", "log.dirs": t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		lc := newLifecycle(nil, cfg, src, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
		lc.listeners = func() []config.Listener { return nil }
		if !lc.register(t.Context()) || lc.Epoch() != 7 {
			t.Fatalf("not registered in the end, epoch %d", lc.Epoch())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "another broker with this node.id") || !strings.Contains(lines[1], "another cluster") {
			t.Errorf("three reasons in a row are told as\n%s", out.String())
		}
	})
}
