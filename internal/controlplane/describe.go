package controlplane

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

const (
	featureMetadata = "metadata.version"
	featureKRaft    = "kraft.version"
)

// apiVersions answers with what the listener serves and with the features.
func (c *Controller) apiVersions(req *kmsg.ApiVersionsRequest) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(req.GetVersion())
	c.listKeys(resp)
	img := c.pub.img.Load()
	for _, name := range sortedKeys(c.o.Core.Features) {
		f := c.o.Core.Features[name]
		if f.Min == 0 && req.GetVersion() < 4 {
			continue // older clients cannot read a minimum of 0 (KIP-1022)
		}
		resp.SupportedFeatures = append(resp.SupportedFeatures, kmsg.ApiVersionsResponseSupportedFeature{Name: name, MinVersion: f.Min, MaxVersion: f.Max})
	}
	for _, f := range img.Features() {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, kmsg.ApiVersionsResponseFinalizedFeature{Name: f.Name, MinVersionLevel: f.Level, MaxVersionLevel: f.Level})
	}
	if v := img.KRaftVersion(); v > 0 {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, kmsg.ApiVersionsResponseFinalizedFeature{Name: featureKRaft, MinVersionLevel: v, MaxVersionLevel: v})
	}
	resp.FinalizedFeaturesEpoch = int64(img.End()) - 1
	return resp
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c *Controller) listKeys(resp *kmsg.ApiVersionsResponse) {
	for _, r := range c.served.Advertised() {
		resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: r.Key, MinVersion: r.Min, MaxVersion: r.Max})
	}
}

// replyUnknownApiVersions answers an ApiVersions that is too new in version 0,
// so that the client can try again (case B1).
func (c *Controller) replyUnknownApiVersions(r *transport.Request) {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(0)
	resp.ErrorCode = int16(model.ErrUnsupportedVersion)
	c.listKeys(resp)
	r.Reply(transport.Message(resp))
}

// endpointController is the endpoint type of controllers in DescribeCluster.
const endpointController = 2

// describeCluster lists the controllers (KIP-919). Brokers are not told here.
func (c *Controller) describeCluster(req *kmsg.DescribeClusterRequest) *kmsg.DescribeClusterResponse {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.SetVersion(req.GetVersion())
	resp.ClusterID, resp.ControllerID = c.o.ClusterID, int32(model.NoBroker)
	resp.ClusterAuthorizedOperations = math.MinInt32
	resp.EndpointType = endpointController
	if req.GetVersion() < 1 || req.EndpointType != endpointController {
		resp.ErrorCode = int16(model.ErrMismatchedEndpointType)
		resp.ErrorMessage = kmsg.StringPtr("the request was sent to a controller and asks for brokers")
		return resp
	}
	s := c.readers.state.Load()
	resp.ControllerID = int32(s.lead.leader)
	for _, v := range s.voters {
		resp.Brokers = append(resp.Brokers, kmsg.DescribeClusterResponseBroker{NodeID: int32(v.ID), Host: v.Host, Port: int32(v.Port)})
	}
	return resp
}

// quorumStatus is the state of the quorum, as the leader's loop knows it.
type quorumStatus struct {
	lead    leadership
	hw      model.Offset
	members []member
	voters  []Voter
	name    string // of the controller listener
}

type member struct {
	id            model.BrokerID
	directory     model.UUID
	end           model.Offset
	seen, current int64 // ms since the Unix epoch; -1 never
	learner       bool
}

// status is taken by the loop.
func (l *loop) status() *quorumStatus {
	st := &quorumStatus{lead: *l.pub.lead.Load(), hw: l.node.Applied().End, voters: l.voters.list, name: l.voters.name}
	now := int64(l.wall())
	for _, p := range l.node.Progress() {
		m := member{id: p.ID, end: p.End, learner: p.Learner, seen: -1, current: -1}
		if at, ok := l.seen[p.ID]; ok {
			m.seen = int64(at)
		}
		if p.ID == l.o.NodeID {
			m.seen, m.end = now, l.node.Next()
		}
		if m.end >= st.hw {
			m.current = m.seen
		}
		for _, v := range l.voters.list {
			if v.ID == p.ID {
				m.directory = v.DirectoryID
			}
		}
		st.members = append(st.members, m)
	}
	return st
}

// describeQuorum answers from the loop, which knows the voters, and the readers,
// who know the observers; false says that they have ended.
func (c *Controller) describeQuorum(req *kmsg.DescribeQuorumRequest, reply func(kmsg.Response)) bool {
	return c.loop.post(describe{func(st *quorumStatus) {
		// The loop must not wait for the readers, who never wait for the loop.
		if !c.readers.post(&read{ask: func() { reply(c.readers.quorumResponse(req, st)) }}) {
			reply(refusal(req, model.ErrNotController))
		}
	}})
}

func (r *readers) quorumResponse(req *kmsg.DescribeQuorumRequest, st *quorumStatus) *kmsg.DescribeQuorumResponse {
	resp := kmsg.NewPtrDescribeQuorumResponse()
	resp.SetVersion(req.GetVersion())
	if len(req.Topics) != 1 || req.Topics[0].Topic != metadataTopic ||
		len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Partition != 0 {
		return refuseDescribeQuorum(req, resp)
	}
	p := kmsg.NewDescribeQuorumResponseTopicPartition()
	p.LeaderID, p.LeaderEpoch, p.HighWatermark = int32(st.lead.leader), int32(st.lead.epoch), int64(st.hw)
	if !st.lead.active {
		p.ErrorCode, p.HighWatermark = int16(model.ErrNotLeaderOrFollower), -1
	} else {
		r.fillReplicas(&p, st)
	}
	t := kmsg.NewDescribeQuorumResponseTopic()
	t.Topic = metadataTopic
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	for _, v := range st.voters {
		resp.Nodes = append(resp.Nodes, kmsg.DescribeQuorumResponseNode{
			NodeID:    int32(v.ID),
			Listeners: []kmsg.DescribeQuorumResponseNodeListener{{Name: st.name, Host: v.Host, Port: v.Port}},
		})
	}
	return resp
}

func refuseDescribeQuorum(req *kmsg.DescribeQuorumRequest, resp *kmsg.DescribeQuorumResponse) *kmsg.DescribeQuorumResponse {
	for _, t := range req.Topics {
		out := kmsg.NewDescribeQuorumResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewDescribeQuorumResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, int16(model.ErrUnknownTopicOrPartition)
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (r *readers) fillReplicas(p *kmsg.DescribeQuorumResponseTopicPartition, st *quorumStatus) {
	add := func(to *[]kmsg.DescribeQuorumResponseTopicPartitionReplicaState, m member) {
		*to = append(*to, kmsg.DescribeQuorumResponseTopicPartitionReplicaState{
			ReplicaID: int32(m.id), ReplicaDirectoryID: m.directory, LogEndOffset: int64(m.end),
			LastFetchTimestamp: m.seen, LastCaughtUpTimestamp: m.current,
		})
	}
	voter := map[model.BrokerID]bool{}
	for _, m := range st.members {
		if m.learner {
			add(&p.Observers, m)
			continue
		}
		voter[m.id] = true
		add(&p.CurrentVoters, m)
	}
	for k, o := range r.observers {
		if !voter[k.id] && r.rt.Since(o.at) < observerForgotten {
			add(&p.Observers, member{id: k.id, directory: k.directory, end: o.end, seen: o.seen, current: o.caughtUp})
		}
	}
	slices.SortStableFunc(p.Observers, func(a, b kmsg.DescribeQuorumResponseTopicPartitionReplicaState) int {
		return observerKey{model.BrokerID(a.ReplicaID), a.ReplicaDirectoryID}.compare(observerKey{model.BrokerID(b.ReplicaID), b.ReplicaDirectoryID})
	})
}

// observerForgotten is how long an observer that does not fetch is still listed.
const observerForgotten = 5 * time.Minute
