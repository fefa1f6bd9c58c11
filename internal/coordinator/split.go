package coordinator

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// request is a client's request. Those that name several groups are split by
// shard and the answers put together again.
type request struct {
	req            kmsg.Request
	clientID, host string
	reply          func(kmsg.Response)
}

func (e *request) turn(c *Coordinator) {
	switch req := e.req.(type) {
	case *kmsg.JoinGroupRequest:
		c.forMember(e, req.Group)
	case *kmsg.SyncGroupRequest:
		c.forMember(e, req.Group)
	case *kmsg.HeartbeatRequest:
		c.forMember(e, req.Group)
	case *kmsg.LeaveGroupRequest:
		c.forMember(e, req.Group)
	case *kmsg.OffsetCommitRequest:
		c.forGroup(e, req.Group)
	case *kmsg.OffsetDeleteRequest:
		c.forGroup(e, req.Group)
	case *kmsg.OffsetFetchRequest:
		c.offsetFetch(e, req)
	case *kmsg.DescribeGroupsRequest:
		c.describeGroups(e, req)
	case *kmsg.DeleteGroupsRequest:
		c.deleteGroups(e, req)
	case *kmsg.ListGroupsRequest:
		c.listGroups(e, req)
	default:
		panic("no group request: the API registered a key that the coordinator does not serve")
	}
}

// shardOf is the shard of a group, and its refusal.
func (c *Coordinator) shardOf(id string) (*shard, model.Error) {
	count := c.cfg.Topics.Partitions(Topic)
	if count == 0 {
		return nil, model.ErrNotCoordinator
	}
	sh := c.shards[group.Partition(id, count)]
	return sh, sh.refusal()
}

// forMember is forGroup for the requests of members. No group of theirs has an
// empty id, whoever is asked.
func (c *Coordinator) forMember(e *request, id string) {
	if id == "" {
		e.reply(group.Refuse(e.req, model.ErrInvalidGroupID))
		return
	}
	c.forGroup(e, id)
}

// forGroup has the shard of one group decide.
func (c *Coordinator) forGroup(e *request, id string) {
	sh, err := c.shardOf(id)
	if err != model.None {
		e.reply(group.Refuse(e.req, err))
		return
	}
	c.post(sh, e, e.req, e.reply)
}

func (c *Coordinator) post(sh *shard, e *request, req kmsg.Request, to func(kmsg.Response)) {
	c.act(sh, sh.core.Handle(c.now, c.wall, group.Request{Req: req, ClientID: e.clientID, Host: e.host, To: to}))
}

// each asks every group's shard for its part: part makes the request for one
// group, put takes its answer. reply follows the last answer.
func (c *Coordinator) each(e *request, ids []string, part func(i int) kmsg.Request, put func(i int, r kmsg.Response), whole kmsg.Response) {
	waiting := 1 // this very loop
	answered := func() {
		if waiting--; waiting == 0 {
			e.reply(whole)
		}
	}
	for i, id := range ids {
		req := part(i)
		sh, err := c.shardOf(id)
		if err != model.None {
			put(i, group.Refuse(req, err))
			continue
		}
		waiting++
		c.post(sh, e, req, func(r kmsg.Response) {
			put(i, r)
			answered()
		})
	}
	answered()
}

func (c *Coordinator) offsetFetch(e *request, req *kmsg.OffsetFetchRequest) {
	if len(req.Groups) == 0 {
		c.forGroup(e, req.Group)
		return
	}
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(req.Groups))
	ids := make([]string, len(req.Groups))
	for i := range req.Groups {
		ids[i] = req.Groups[i].Group
	}
	c.each(e, ids, func(i int) kmsg.Request {
		one := *req
		one.Groups = req.Groups[i : i+1]
		return &one
	}, func(i int, r kmsg.Response) { resp.Groups[i] = r.(*kmsg.OffsetFetchResponse).Groups[0] }, resp)
}

func (c *Coordinator) describeGroups(e *request, req *kmsg.DescribeGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(req.Groups))
	c.each(e, req.Groups, func(i int) kmsg.Request {
		one := *req
		one.Groups = req.Groups[i : i+1]
		return &one
	}, func(i int, r kmsg.Response) { resp.Groups[i] = r.(*kmsg.DescribeGroupsResponse).Groups[0] }, resp)
}

func (c *Coordinator) deleteGroups(e *request, req *kmsg.DeleteGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	c.each(e, req.Groups, func(i int) kmsg.Request {
		one := *req
		one.Groups = req.Groups[i : i+1]
		return &one
	}, func(i int, r kmsg.Response) { resp.Groups[i] = r.(*kmsg.DeleteGroupsResponse).Groups[0] }, resp)
}

// listGroups lists the groups of all shards here. While one is loading the list
// would not be whole.
func (c *Coordinator) listGroups(e *request, req *kmsg.ListGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	for _, n := range slices.Sorted(maps.Keys(c.shards)) {
		sh := c.shards[n]
		switch err := sh.refusal(); err {
		case model.None:
			c.post(sh, e, req, func(r kmsg.Response) {
				resp.Groups = append(resp.Groups, r.(*kmsg.ListGroupsResponse).Groups...)
			})
		case model.ErrCoordinatorLoadInProgress:
			e.reply(group.Refuse(req, err))
			return
		}
	}
	e.reply(resp)
}
