package quorum

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// A voter may come back without entries that it had acknowledged: its disk was
// replaced, or its files were damaged. Raft has no such case. Its follower panics
// when a heartbeat commits what is not there; its leader goes on believing what
// was acknowledged and never sends it again. A new leader believes nothing, so
// the old one hands over.

// tame keeps a heartbeat from committing more than this log holds. A follower
// that lost nothing acknowledged what is committed here, so its log holds it.
func (n *Node) tame(m *pb.Message) {
	if last, _ := n.log.LastIndex(); m.GetType() == pb.MsgHeartbeat && m.GetCommit() > last {
		m.Commit = new(last)
	}
}

// lost reports whether a follower refuses entries because it lost ones before
// them that it had acknowledged. A refusal that comes late looks the same; then
// leadership moves without need.
func (n *Node) lost(m *pb.Message) bool {
	if n.term == 0 || m.GetType() != pb.MsgAppResp || !m.GetReject() || m.GetTerm() != n.term {
		return false
	}
	lost := false
	n.raw.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		lost = lost || id == m.GetFrom() && m.GetIndex() <= pr.Match && m.GetRejectHint() < pr.Match
	})
	return lost
}

// handOver makes the voter lead that holds most of the log, if there is one
// besides this node and the one that lost its own.
func (n *Node) handOver(without model.BrokerID) {
	heir, most := model.NoBroker, uint64(0)
	n.raw.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		b := NodeID(id)
		if typ == raft.ProgressTypePeer && b != n.cfg.ID && b != without && pr.RecentActive && pr.Match > most {
			heir, most = b, pr.Match
		}
	})
	if heir != model.NoBroker {
		n.Transfer(heir)
	}
}
