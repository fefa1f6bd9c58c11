package group

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// request is "KIND WHO key=value ...": WHO is the client id and who the reply
// goes to. v= is the version; g= the group, "g" if not said.
func (e *env) request(t *testing.T, d *datadriven.TestData) {
	who := d.CmdArgs[0].Key
	a := args{t, d}
	key, ok := map[string]kmsg.Key{
		"join": kmsg.JoinGroup, "sync": kmsg.SyncGroup, "heartbeat": kmsg.Heartbeat, "leave": kmsg.LeaveGroup,
		"put": kmsg.OffsetCommit, "get": kmsg.OffsetFetch, "drop": kmsg.OffsetDelete,
		"describe": kmsg.DescribeGroups, "list": kmsg.ListGroups, "delete": kmsg.DeleteGroups,
	}[d.Cmd]
	if !ok {
		t.Fatalf("unknown command %q", d.Cmd)
	}
	req := kmsg.RequestForKey(key.Int16())
	req.SetVersion(int16(a.int("v", int(req.MaxVersion()))))
	a.fill(req)
	// As a client's bytes, so that fields which a version lacks are lost.
	sent := req.AppendTo(nil)
	got := kmsg.RequestForKey(req.Key())
	got.SetVersion(req.GetVersion())
	if err := got.ReadFrom(sent); err != nil {
		t.Fatalf("read back %s: %v", d.Cmd, err)
	}
	e.act(e.s.Handle(e.now, e.wall(), Request{Req: got, ClientID: who, Host: "/10.0.0.1", To: who}))
}

// fill writes what the script says into the request.
func (a args) fill(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		a.join(r)
	case *kmsg.SyncGroupRequest:
		a.sync(r)
	case *kmsg.HeartbeatRequest:
		r.Group, r.MemberID, r.InstanceID, r.Generation = a.str("g", "g"), a.str("id", ""), a.ptr("instance"), int32(a.int("gen", -1))
	case *kmsg.LeaveGroupRequest:
		a.leave(r)
	case *kmsg.OffsetCommitRequest:
		a.put(r)
	case *kmsg.OffsetFetchRequest:
		a.get(r)
	case *kmsg.OffsetDeleteRequest:
		a.drop(r)
	case *kmsg.DescribeGroupsRequest:
		r.Groups = a.list("groups")
	case *kmsg.ListGroupsRequest:
		r.StatesFilter, r.TypesFilter = a.list("states"), a.list("types")
	case *kmsg.DeleteGroupsRequest:
		r.Groups = a.list("groups")
	}
}

func (a args) drop(r *kmsg.OffsetDeleteRequest) {
	r.Group = a.str("g", "g")
	for topic, parts := range a.partitions("of") {
		e := kmsg.NewOffsetDeleteRequestTopic()
		e.Topic = topic
		for _, p := range parts {
			e.Partitions = append(e.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
		}
		r.Topics = append(r.Topics, e)
	}
}

type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) list(key string) []string {
	if arg, ok := a.d.Arg(key); ok {
		for i, v := range arg.Vals {
			if v == "''" {
				arg.Vals[i] = ""
			}
		}
		return arg.Vals
	}
	return nil
}

func (a args) str(key, def string) string {
	if l := a.list(key); len(l) > 0 {
		return l[0]
	}
	return def
}

func (a args) ptr(key string) *string {
	if l := a.list(key); len(l) > 0 {
		return &l[0]
	}
	return nil
}

func (a args) int(key string, def int) int {
	if s := a.ptr(key); s != nil {
		n, err := strconv.Atoi(*s)
		if err != nil {
			a.t.Fatal(err)
		}
		return n
	}
	return def
}

// pairs reads key=(x:1,y:2); a value without colon stands for both.
func (a args) pairs(key string, fn func(k, v string)) {
	for _, p := range a.list(key) {
		k, v, ok := strings.Cut(p, ":")
		if !ok {
			v = ""
		}
		fn(k, v)
	}
}

// partitions reads of=(t-0,t-1).
func (a args) partitions(key string) map[string][]int32 {
	out := map[string][]int32{}
	for _, p := range a.list(key) {
		topic, n, _ := strings.Cut(p, "/")
		i, _ := strconv.Atoi(n)
		out[topic] = append(out[topic], int32(i))
	}
	return out
}

func (a args) join(r *kmsg.JoinGroupRequest) {
	r.Group, r.MemberID, r.InstanceID = a.str("g", "g"), a.str("id", ""), a.ptr("instance")
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = int32(a.int("session", 10000)), int32(a.int("rebalance", 30000))
	r.ProtocolType = a.str("type", "consumer")
	if a.d.HasArg("bare") {
		return
	}
	if !a.d.HasArg("with") {
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription("t")}}
	}
	a.pairs("with", func(k, v string) {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: k, Metadata: []byte(v)})
	})
}

func subscription(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, topics
	return m.AppendTo(nil)
}

func (a args) sync(r *kmsg.SyncGroupRequest) {
	r.Group, r.MemberID, r.InstanceID, r.Generation = a.str("g", "g"), a.str("id", ""), a.ptr("instance"), int32(a.int("gen", -1))
	if protocol, kind := a.str("protocol", "range"), a.str("type", "consumer"); !a.d.HasArg("bare") {
		r.Protocol, r.ProtocolType = &protocol, &kind
	}
	a.pairs("give", func(k, v string) {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: k, MemberAssignment: []byte(v)})
	})
}

func (a args) leave(r *kmsg.LeaveGroupRequest) {
	r.Group, r.MemberID = a.str("g", "g"), a.str("id", "")
	if r.Version < 3 {
		return
	}
	for _, id := range a.list("id") {
		r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: id, InstanceID: a.ptr("instance")})
	}
	if len(r.Members) == 0 {
		for _, i := range a.list("instance") {
			r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{InstanceID: &i})
		}
	}
}

func (a args) put(r *kmsg.OffsetCommitRequest) {
	r.Group, r.MemberID, r.InstanceID, r.Generation = a.str("g", "g"), a.str("id", ""), a.ptr("instance"), int32(a.int("gen", -1))
	r.RetentionTimeMillis = int64(a.int("retention", -1))
	a.pairs("at", func(k, v string) {
		topic, p, _ := strings.Cut(k, "/")
		offset, _ := strconv.Atoi(v)
		i, _ := strconv.Atoi(p)
		metadata := strings.Repeat("m", a.int("metadata", 0))
		ep := kmsg.NewOffsetCommitRequestTopicPartition()
		ep.Partition, ep.Offset, ep.LeaderEpoch, ep.Metadata = int32(i), int64(offset), int32(a.int("epoch", -1)), &metadata
		e := kmsg.NewOffsetCommitRequestTopic()
		e.Topic, e.TopicID, e.Partitions = topic, model.UUID{topic[0]}, []kmsg.OffsetCommitRequestTopicPartition{ep}
		r.Topics = append(r.Topics, e)
	})
}

func (a args) get(r *kmsg.OffsetFetchRequest) {
	r.Group = a.str("g", "g")
	r.RequireStable = a.d.HasArg("stable")
	if !a.d.HasArg("all") {
		r.Topics = []kmsg.OffsetFetchRequestTopic{}
	}
	parts := a.partitions("of")
	for _, topic := range []string{"t", "u", "x"} {
		if parts[topic] != nil {
			r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: parts[topic]})
		}
	}
	if r.Version < 8 {
		return
	}
	for _, id := range strings.Fields(strings.Join(a.list("g"), " ") + " ") {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = id
		if r.Topics != nil {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
		}
		for _, rt := range r.Topics {
			g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: rt.Topic, TopicID: model.UUID{rt.Topic[0]}, Partitions: rt.Partitions})
		}
		r.Groups = append(r.Groups, g)
	}
}

func code(n int16) string {
	if n == 0 {
		return "ok"
	}
	return model.Error(n).Error()
}

// show prints what the client would read from the bytes of the response.
func show(resp kmsg.Response) string {
	got := resp.RequestKind().ResponseKind()
	got.SetVersion(resp.GetVersion())
	if err := got.ReadFrom(resp.AppendTo(nil)); err != nil {
		return fmt.Sprintf("unreadable: %v", err)
	}
	var b strings.Builder
	showMembership(&b, got)
	showRest(&b, got)
	return b.String()
}

func showMembership(b *strings.Builder, got kmsg.Response) {
	switch r := got.(type) {
	case *kmsg.JoinGroupResponse:
		fmt.Fprintf(b, "join %s generation=%d id=%s", code(r.ErrorCode), r.Generation, r.MemberID)
		if r.ErrorCode == 0 {
			fmt.Fprintf(b, " leader=%s protocol=%s", r.LeaderID, deref(r.Protocol))
		}
		if r.SkipAssignment {
			b.WriteString(" skip")
		}
		for _, m := range r.Members {
			fmt.Fprintf(b, " %s:%q", m.MemberID, m.ProtocolMetadata)
		}
	case *kmsg.SyncGroupResponse:
		fmt.Fprintf(b, "sync %s %s %s %q", code(r.ErrorCode), deref(r.ProtocolType), deref(r.Protocol), r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		fmt.Fprintf(b, "heartbeat %s", code(r.ErrorCode))
	case *kmsg.LeaveGroupResponse:
		fmt.Fprintf(b, "leave %s", code(r.ErrorCode))
		for _, m := range r.Members {
			fmt.Fprintf(b, " %s%s:%s", m.MemberID, deref(m.InstanceID), code(m.ErrorCode))
		}
	}
}

func showRest(b *strings.Builder, got kmsg.Response) {
	switch r := got.(type) {
	case *kmsg.OffsetCommitResponse:
		b.WriteString("put")
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(b, " %s/%d:%s", topicOf(t.Topic, t.TopicID), p.Partition, code(p.ErrorCode))
			}
		}
	case *kmsg.OffsetFetchResponse:
		showOffsets(b, r)
	case *kmsg.OffsetDeleteResponse:
		fmt.Fprintf(b, "drop %s", code(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(b, " %s/%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
	case *kmsg.DescribeGroupsResponse:
		b.WriteString("describe")
		for _, g := range r.Groups {
			fmt.Fprintf(b, " %s: %s %s type=%s protocol=%s", g.Group, code(g.ErrorCode), g.State, g.ProtocolType, g.Protocol)
			for _, m := range g.Members {
				fmt.Fprintf(b, " %s%s %q", m.MemberID, m.ClientHost, m.MemberAssignment)
			}
		}
	case *kmsg.ListGroupsResponse:
		fmt.Fprintf(b, "list %s", code(r.ErrorCode))
		for _, g := range r.Groups {
			fmt.Fprintf(b, " %s/%s/%s/%s", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
	case *kmsg.DeleteGroupsResponse:
		b.WriteString("delete")
		for _, g := range r.Groups {
			fmt.Fprintf(b, " %q:%s", g.Group, code(g.ErrorCode))
		}
	}
}

func topicOf(name string, id model.UUID) string {
	if name == "" {
		return "id:" + string(id[:1])
	}
	return name
}

func showOffsets(b *strings.Builder, r *kmsg.OffsetFetchResponse) {
	fmt.Fprintf(b, "get %s", code(r.ErrorCode))
	one := func(topic string, p kmsg.OffsetFetchResponseGroupTopicPartition) {
		fmt.Fprintf(b, " %s/%d:%d", topic, p.Partition, p.Offset)
		if p.LeaderEpoch >= 0 {
			fmt.Fprintf(b, "@%d", p.LeaderEpoch)
		}
		if p.ErrorCode != 0 {
			b.WriteString(":" + code(p.ErrorCode))
		}
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			one(t.Topic, kmsg.OffsetFetchResponseGroupTopicPartition(p))
		}
	}
	for _, g := range r.Groups {
		fmt.Fprintf(b, " [%s %s", g.Group, code(g.ErrorCode))
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				one(topicOf(t.Topic, t.TopicID), p)
			}
		}
		b.WriteString("]")
	}
}
