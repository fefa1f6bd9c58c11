package api

import (
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// groupKeys are the requests of consumer groups. The coordinator answers them;
// a JoinGroup may wait for minutes, which holds up only its own connection.
var groupKeys = []kmsg.Key{
	kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.JoinGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.SyncGroup,
	kmsg.DescribeGroups, kmsg.ListGroups, kmsg.DeleteGroups, kmsg.OffsetDelete,
}

func (a *API) group(r *transport.Request) {
	req := wire.NewRequest(r.Header.Key, r.Header.Version)
	if err := req.ReadFrom(r.Body); err != nil {
		r.CloseConn(fmt.Errorf("decode %s version %d: %w", kmsg.NameForKey(r.Header.Key), r.Header.Version, err))
		return
	}
	g := GroupRequest{Req: req, Host: "/" + host(r.Conn.RemoteAddr()), Listener: r.Conn.Listener()}
	if r.Header.ClientID != nil {
		g.ClientID = *r.Header.ClientID
	}
	g.Reply = func(resp kmsg.Response) {
		resp.SetVersion(r.Header.Version)
		r.Reply(transport.Message(resp))
	}
	a.Coordinator.Handle(g)
}

// host is an address without its port.
func host(addr net.Addr) string {
	h, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return h
}
