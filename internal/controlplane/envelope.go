package controlplane

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

const keyEnvelope = 58

// envelope answers a request that an Apache broker forwards for its client
// (KIP-590): the client's request with its header goes in, the response with its
// header comes out. The principal is not looked at, for there are no ACLs. An
// error of the envelope itself makes the broker look for another controller, or
// close the client's connection.
func (c *Controller) envelope(r *transport.Request, req *kmsg.EnvelopeRequest) {
	answer := func(code model.Error, data []byte) {
		resp := kmsg.NewPtrEnvelopeResponse()
		resp.SetVersion(req.GetVersion())
		resp.ErrorCode, resp.ResponseData = int16(code), data
		r.Reply(transport.Message(resp))
	}
	h, body, err := wire.ParseRequest(req.RequestData)
	if err != nil {
		answer(model.ErrInvalidRequest, nil)
		return
	}
	inner := wire.NewRequest(h.Key, h.Version)
	if inner == nil || !c.forwarded(h) {
		answer(model.ErrUnsupportedVersion, nil)
		return
	}
	if err := inner.ReadFrom(body); err != nil {
		answer(model.ErrInvalidRequest, nil)
		return
	}
	reply := func(resp kmsg.Response) {
		if notController(resp) {
			answer(model.ErrNotController, nil)
			return
		}
		answer(model.None, resp.AppendTo(wire.AppendResponseHeader(nil, h.Key, h.Version, h.CorrelationID)))
	}
	if !c.serveAdmin(inner, reply) {
		answer(model.ErrNotController, nil)
	}
}

// forwarded reports whether a request may come in an envelope: those of clients
// that a controller answers.
func (c *Controller) forwarded(h wire.Header) bool {
	switch kmsg.Key(h.Key) {
	case kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.CreatePartitions, kmsg.AlterConfigs, kmsg.IncrementalAlterConfigs,
		kmsg.ElectLeaders, kmsg.AlterPartitionAssignments, kmsg.ListPartitionReassignments, kmsg.UpdateFeatures,
		kmsg.UnregisterBroker, kmsg.DescribeQuorum:
		return c.served.Serves(h.Key, h.Version)
	}
	return false
}

// serveAdmin hands a client's request to who answers it; false says that the
// controller has ended.
func (c *Controller) serveAdmin(req kmsg.Request, reply func(kmsg.Response)) bool {
	if d, ok := req.(*kmsg.DescribeQuorumRequest); ok {
		return c.describeQuorum(d, reply)
	}
	return c.loop.post(call{req: req, reply: reply})
}
