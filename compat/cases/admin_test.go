package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B219: each new topic is judged alone, and is there when that is said.
func TestCreateTopicsJudgesEachTopic(t *testing.T) {
	long := strings.Repeat("x", 249)
	cases := []struct {
		topic kmsg.CreateTopicsRequestTopic
		want  model.Error
	}{
		{newTopic("exists", 1, 1), model.ErrTopicAlreadyExists},
		{newTopic("none", 1, 0), model.ErrInvalidReplicationFactor},
		{newTopic("four", 1, 4), model.ErrInvalidReplicationFactor},
		{newTopic("empty", 0, 1), model.ErrInvalidPartitions},
		{newTopic("bad name!", 1, 1), model.ErrInvalidTopicException},
		{newTopic("..", 1, 1), model.ErrInvalidTopicException},
		{newTopic("", 1, 1), model.ErrInvalidTopicException},
		{newTopic(long+"x", 1, 1), model.ErrInvalidTopicException},
		{newTopic("key", 1, 1, "no.such.key", "1"), model.ErrInvalidConfig},
		{newTopic("value", 1, 1, "retention.ms", "soon"), model.ErrInvalidConfig},
		{newTopic("default", -1, -1, "retention.ms", "77"), model.None},
		{newTopic(long, 1, 3), model.None},
	}
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("exists", 1, 3, nil)
		for _, c := range cases {
			for _, validate := range []bool{true, false} {
				answer := w.createTopics(1, validate, c.topic)[0]
				code(t, fmt.Sprintf("%.20s, validate %v", c.topic.Topic, validate), answer.ErrorCode, c.want)
				made := c.want == model.None && !validate || c.topic.Topic == "exists"
				pass(soon)
				if there := w.known(w.Controller(), c.topic.Topic).ErrorCode == 0; there != made {
					t.Errorf("%.20s, validate %v: it is there: %v", c.topic.Topic, validate, there)
				}
			}
		}
		for broker := 1; broker <= 3; broker++ {
			d := w.known(broker, "default")
			if d.ErrorCode != 0 || len(d.Partitions) != 4 || len(d.Partitions[0].Replicas) != 3 {
				t.Errorf("broker %d: %v, %d partitions", broker, model.Error(d.ErrorCode), len(d.Partitions))
			}
		}
	}, tidetest.Set("num.partitions", "4"))
}

// B219: a name that comes twice in a request is refused once.
func TestATopicIsNotCreatedTwiceInOneRequest(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		twice := w.createTopics(1, false, newTopic("twice", 1, 1), newTopic("once", 2, 3), newTopic("twice", 1, 1))
		if len(twice) != 2 {
			t.Fatalf("%d answers to three topics of two names", len(twice))
		}
		for _, a := range twice {
			if a.Topic == "twice" {
				code(t, "a name that comes twice", a.ErrorCode, model.ErrInvalidRequest)
				continue
			}
			code(t, "beside it", a.ErrorCode, model.None)
			if a.NumPartitions != 2 || a.ReplicationFactor != 3 || len(a.Configs) == 0 {
				t.Errorf("beside it: %d partitions, %d replicas, %d configs", a.NumPartitions, a.ReplicationFactor, len(a.Configs))
			}
		}
	})
}

// B221: a bad number of partitions, or a bad place for them, is refused.
func TestCreatePartitionsJudgesTheNewOnes(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, nil)
		count := func() int { return len(w.known(w.Controller(), "t").Partitions) }
		code(t, "as many", w.grow("t", 2, false), model.ErrInvalidPartitions)
		code(t, "fewer", w.grow("t", 1, false), model.ErrInvalidPartitions)
		code(t, "no topic", w.grow("missing", 5, false), model.ErrUnknownTopicOrPartition)
		code(t, "validate only", w.grow("t", 4, true), model.None)
		code(t, "two assignments for three", w.grow("t", 5, false, []int32{1, 2, 3}, []int32{2, 3, 1}), model.ErrInvalidReplicaAssignment)
		code(t, "one replica twice", w.grow("t", 3, false, []int32{1, 1, 2}), model.ErrInvalidReplicaAssignment)
		code(t, "no such broker", w.grow("t", 3, false, []int32{1, 2, 9}), model.ErrInvalidReplicaAssignment)
		if n := count(); n != 2 {
			t.Fatalf("%d partitions after refusals", n)
		}
	})
}

// B221: what is added is there on all brokers, and the old partitions go on.
func TestAddedPartitionsAreThere(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, nil)
		for p := range 2 {
			code(t, "produce", produceTo(w, "t", int32(p), batch(fmt.Sprint("of ", p))).ErrorCode, model.None)
		}
		code(t, "four", w.grow("t", 4, false), model.None)
		code(t, "six, assigned", w.grow("t", 6, false, []int32{1, 2, 3}, []int32{2, 3, 1}), model.None)
		pass(soon)
		for broker := 1; broker <= 3; broker++ {
			parts := w.known(broker, "t").Partitions
			for i, p := range parts {
				if p.Partition != int32(i) || p.ErrorCode != 0 || p.Leader <= 0 || len(p.Replicas) != 3 {
					t.Errorf("broker %d: partition %d is %+v", broker, i, p)
				}
			}
			if len(parts) != 6 || !slices.Equal(parts[5].Replicas, []int32{2, 3, 1}) {
				t.Errorf("broker %d knows %d partitions", broker, len(parts))
			}
		}
		for p := range 6 {
			want := int64(0)
			if p < 2 {
				want = 1
			}
			if got := produceTo(w, "t", int32(p), batch("x")); got.ErrorCode != 0 || got.BaseOffset != want {
				t.Errorf("partition %d goes on at %d: %v", p, got.BaseOffset, model.Error(got.ErrorCode))
			}
		}
	})
}

// B222: a description of configs is complete: value, source, type, synonyms.
func TestDescribedConfigsAreComplete(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.CreateTopic("t", 1, 2, with("retention.ms", "77"))
		pass(soon)
		all := w.describeConfigs(1, kmsg.ConfigResourceTypeTopic, "t")
		code(t, "a topic", all.ErrorCode, model.None)
		if len(all.Configs) < 25 {
			t.Errorf("%d keys", len(all.Configs))
		}
		for _, c := range all.Configs {
			want := kmsg.ConfigSourceDefaultConfig
			switch c.Name {
			case "retention.ms":
				want = kmsg.ConfigSourceDynamicTopicConfig
			case "min.insync.replicas": // which the cluster was formatted with
				want = kmsg.ConfigSourceDynamicDefaultBrokerConfig
			}
			if c.Source != want || c.Value == nil || c.ConfigType == 0 || c.ReadOnly {
				t.Errorf("%s: %+v", c.Name, c)
			}
			if c.Name == "retention.ms" && (*c.Value != "77" || len(c.ConfigSynonyms) == 0 || *c.ConfigSynonyms[0].Value != "77") {
				t.Errorf("retention.ms: %+v", c)
			}
		}
	})
}

// B222: a broker describes what is asked for, or says why not.
func TestDescribingWhatIsThereAndWhatIsNot(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.CreateTopic("t", 1, 2, nil)
		pass(soon)
		two := w.describeConfigs(2, kmsg.ConfigResourceTypeTopic, "t", "retention.ms", "cleanup.policy")
		if len(two.Configs) != 2 {
			t.Errorf("%d of two keys", len(two.Configs))
		}
		for _, c := range []struct {
			kind kmsg.ConfigResourceType
			name string
			want model.Error
		}{
			{kmsg.ConfigResourceTypeBroker, "1", model.None},
			{kmsg.ConfigResourceTypeBroker, "", model.None},
			{kmsg.ConfigResourceTypeBroker, "2", model.ErrInvalidRequest},
			{kmsg.ConfigResourceTypeBroker, "one", model.ErrInvalidRequest},
			{kmsg.ConfigResourceTypeTopic, "missing", model.ErrUnknownTopicOrPartition},
			{99, "t", model.ErrInvalidRequest},
		} {
			r := w.describeConfigs(1, c.kind, c.name)
			code(t, fmt.Sprintf("%v %q", c.kind, c.name), r.ErrorCode, c.want)
			if r.ResourceName != c.name || r.ResourceType != c.kind || c.name == "1" && len(r.Configs) < 100 {
				t.Errorf("%v %q: %d keys of %v %q", c.kind, c.name, len(r.Configs), r.ResourceType, r.ResourceName)
			}
		}
	})
}

// B224: topics that come and go leave nothing behind, also on a broker that was
// away.
func TestTopicsThatComeAndGoLeaveNothing(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("stays", 1, 3, nil)
		base := w.entries()
		for i := range loops(30) {
			away := i%3 + 1
			at := away%3 + 1
			var names []string
			for j := range 10 {
				names = append(names, fmt.Sprint("t", j))
				w.CreateTopic(names[j], 6, 3, nil)
				code(t, "produce", produceTo(w, names[j], 3, batch("x")).ErrorCode, model.None)
			}
			w.Kill(away)
			for _, name := range names {
				w.WaitFor("a deletion is accepted", func() bool { return w.deleteTopic(at, name) == 0 })
			}
			w.Restart(away)
			pass(5 * time.Second)
			for broker := 1; broker <= 3; broker++ {
				for _, name := range names {
					code(t, "a deleted topic", w.known(broker, name).ErrorCode, model.ErrUnknownTopicOrPartition)
				}
			}
			w.WaitISR("stays", 0, 1, 2, 3)
			w.WaitFor("directories of deleted topics are gone", func() bool { return w.entries() == base })
			w.WaitFor("no deleted file is open", func() bool { return w.openDeleted() == 0 })
		}
	}, tidetest.Set("log.segment.delete.delay.ms", "500"))
}

// entries counts the directories of partitions on all brokers.
func (w *world) entries() (n int) {
	for b := range w.Addrs() {
		all, err := os.ReadDir(filepath.Dir(w.LogDir(b+1, "x", 0)))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range all {
			if e.IsDir() {
				n++
			}
		}
	}
	return n
}

// B225: the directory of a broker tells how much each of its replicas takes.
func TestLogDirsTellTheSizesOfReplicas(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, nil)
		w.hundreds("t", 10)
		w.settle("t", 1, 2, 3)
		for broker := 1; broker <= 3; broker++ {
			for _, c := range []struct {
				topic string
				want  int
			}{{"", 2}, {"t", 2}, {"missing", 0}} {
				req := kmsg.NewPtrDescribeLogDirsRequest()
				req.Version = 4
				if c.topic != "" {
					rt := kmsg.NewDescribeLogDirsRequestTopic()
					rt.Topic, rt.Partitions = c.topic, []int32{0, 1}
					req.Topics = append(req.Topics, rt)
				}
				resp := ask[*kmsg.DescribeLogDirsResponse](w, broker, req)
				d := resp.Dirs[0]
				code(t, "log dirs", d.ErrorCode, model.None)
				if len(resp.Dirs) != 1 || !filepath.IsAbs(d.Dir) || d.TotalBytes <= 0 || d.UsableBytes <= 0 {
					t.Errorf("directory %+v", d)
				}
				n := 0
				for _, rt := range d.Topics {
					for _, p := range rt.Partitions {
						n++
						if on := w.onDisk(broker, rt.Topic, int(p.Partition)); p.Size != on || p.OffsetLag != 0 || p.IsFuture {
							t.Errorf("broker %d, partition %d: %+v, on disk %d", broker, p.Partition, p, on)
						}
					}
				}
				if n != c.want {
					t.Errorf("asked for %q: %d partitions", c.topic, n)
				}
			}
		}
	})
}

// onDisk is the size of a replica's segments.
func (w *world) onDisk(broker int, topic string, p int) (n int64) {
	logs, _ := filepath.Glob(filepath.Join(w.LogDir(broker, topic, p), "*.log"))
	for _, f := range logs {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}
