package controlplane

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// versions is what the controller listener serves.
func (c *Controller) versions() *wire.Versions {
	more := []wire.Range{{Key: keyEnvelope}, {Key: keyRaft}, {Key: keyInstallSnapshot}}
	if c.o.DescribeConfigs != nil {
		more = append(more, wire.Range{Key: keyDescribeConfigs, Min: 1, Max: 4})
	}
	return wire.ControllerVersions.With(more...)
}

const keyDescribeConfigs = 32

// Serve hands a request of the controller listener to who answers it. It is
// called in the task of the connection's reader.
func (c *Controller) Serve(r *transport.Request) {
	switch r.Header.Key {
	case keyRaft:
		c.serveRaft(r)
		return
	case keyInstallSnapshot:
		c.serveInstall(r)
		return
	}
	version := r.Header.Version
	if r.Header.Key == int16(kmsg.ApiVersions) && !c.served.Serves(r.Header.Key, version) {
		c.replyUnknownApiVersions(r)
		return
	}
	req := wire.NewRequest(r.Header.Key, version)
	if req == nil {
		r.CloseConn(fmt.Errorf("api key %d version %d is unknown", r.Header.Key, version))
		return
	}
	if err := req.ReadFrom(r.Body); err != nil {
		r.CloseConn(fmt.Errorf("decode api key %d version %d: %w", r.Header.Key, version, err))
		return
	}
	c.serve(r, req)
}

func (c *Controller) serve(r *transport.Request, req kmsg.Request) {
	reply := func(resp kmsg.Response) { r.Reply(transport.Message(resp)) }
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		if !c.readers.post(&read{req: r, fetch: req}) {
			r.CloseConn(transport.ErrStopping)
		}
	case *kmsg.FetchSnapshotRequest:
		if !c.readers.post(&read{req: r, snapshot: req}) {
			r.CloseConn(transport.ErrStopping)
		}
	case *kmsg.ApiVersionsRequest:
		if req.GetVersion() >= 3 {
			r.Conn.SetClient(transport.ClientSoftware{Name: req.ClientSoftwareName, Version: req.ClientSoftwareVersion})
		}
		reply(c.apiVersions(req))
	case *kmsg.DescribeClusterRequest:
		reply(c.describeCluster(req))
	case *kmsg.DescribeQuorumRequest:
		if !c.describeQuorum(req, reply) {
			r.CloseConn(transport.ErrStopping)
		}
	case *kmsg.EnvelopeRequest:
		c.envelope(r, req)
	case *kmsg.DescribeConfigsRequest:
		reply(c.o.DescribeConfigs(req))
	default:
		if !c.loop.post(call{req: req, reply: reply, conn: r.Conn}) {
			reply(refusal(req, model.ErrNotController))
		}
	}
}

// raftMessages decodes and checks a request of another controller.
func (c *Controller) raftMessages(r *transport.Request) (*raftRequest, model.Error, error) {
	req := &raftRequest{key: r.Header.Key}
	if err := req.ReadFrom(r.Body); err != nil {
		return nil, 0, err
	}
	if req.clusterID != c.o.ClusterID {
		return req, model.ErrInconsistentClusterID, nil
	}
	for _, m := range req.messages {
		if quorum.NodeID(m.GetFrom()) != req.from || quorum.NodeID(m.GetTo()) != c.o.NodeID {
			return req, model.ErrInvalidRequest, nil
		}
	}
	return req, model.None, nil
}

func (c *Controller) serveRaft(r *transport.Request) {
	req, code, err := c.raftMessages(r)
	switch {
	case err != nil:
		r.CloseConn(err)
		return
	case code == model.None && !c.loop.post(step{req.messages}):
		r.CloseConn(transport.ErrStopping)
		return
	}
	r.Reply(transport.Message(&raftResponse{key: keyRaft, code: int16(code)}))
}

func (c *Controller) serveInstall(r *transport.Request) {
	req, code, err := c.raftMessages(r)
	if err != nil || code == model.None && len(req.messages) != 1 {
		r.CloseConn(errors.Join(err, errShortRaft))
		return
	}
	reply := func(code model.Error) {
		r.Reply(transport.Message(&raftResponse{key: keyInstallSnapshot, code: int16(code)}))
	}
	if code != model.None {
		reply(code)
		return
	}
	if !c.loop.post(offer{req.messages[0], reply}) {
		r.CloseConn(transport.ErrStopping)
	}
}
