package controlplane

import (
	"maps"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// voters is who votes and where each one's controller listener is.
type voters struct {
	// static: controller.quorum.voters (kraft.version 0); else the log says it.
	static bool
	list   []Voter // by id; never changed, only replaced
	self   Voter
	name   string          // of the controller listener
	log    []metalog.Voter // what list was made of, with kraft.version 1
}

func (v *voters) address(id model.BrokerID) string {
	if id == v.self.ID {
		return address(v.self.Host, v.self.Port)
	}
	for _, w := range v.list {
		if w.ID == id {
			return address(w.Host, w.Port)
		}
	}
	return ""
}

func (v *voters) ids() []model.BrokerID {
	ids := make([]model.BrokerID, 0, len(v.list))
	for _, w := range v.list {
		ids = append(ids, w.ID)
	}
	return ids
}

// fromLog makes the voters that a KRaftVoters record states.
func fromLog(recs []metalog.Voter, name string) []Voter {
	var out []Voter
	for _, r := range recs {
		w := Voter{ID: r.ID, DirectoryID: r.DirectoryID}
		for i, e := range r.Endpoints {
			if i == 0 || e.Name == name {
				w.Host, w.Port = e.Host, e.Port
			}
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Voter) int { return int(a.ID - b.ID) })
	return out
}

// toLog is the record of a voter.
func toLog(w Voter, name string) metalog.Voter {
	return metalog.Voter{
		ID: w.ID, DirectoryID: w.DirectoryID, MinKRaft: 0, MaxKRaft: 1,
		Endpoints: []metalog.VoterEndpoint{{Name: name, Host: w.Host, Port: w.Port}},
	}
}

// records are what a new leader writes of the voters: all of them into a log
// that does not state them yet, or its own new address. inLog is what the log
// states.
func (v *voters) records(kraft int16, inLog []metalog.Voter) []metalog.Control {
	if v.static {
		return nil
	}
	own := toLog(v.self, v.name)
	if kraft == 0 {
		recs := &metalog.KRaftVoters{}
		for _, w := range v.list {
			if w.ID == v.self.ID {
				recs.Voters = append(recs.Voters, own)
			} else {
				recs.Voters = append(recs.Voters, toLog(w, v.name))
			}
		}
		return []metalog.Control{&metalog.KRaftVersion{Level: 1}, recs}
	}
	for i, r := range inLog {
		if r.ID == own.ID && (r.DirectoryID != own.DirectoryID || !slices.Equal(r.Endpoints, own.Endpoints)) {
			out := slices.Clone(inLog)
			out[i] = own
			return []metalog.Control{&metalog.KRaftVoters{Voters: out}}
		}
	}
	return nil
}

// updateVoters follows the voter set that the log states, and the addresses that
// peers are reached at.
func (l *loop) updateVoters() error {
	v := &l.voters
	if v.static || l.img.KRaftVersion() == 0 {
		return nil
	}
	recs := l.img.Voters()
	if len(recs) == len(v.log) && (len(recs) == 0 || &recs[0] == &v.log[0]) {
		return nil
	}
	v.log, v.list = recs, fromLog(recs, v.name)
	l.connectPeers()
	return nil
}

// connectPeers has one peer for each other voter.
func (l *loop) connectPeers() {
	keep := map[model.BrokerID]bool{}
	for _, w := range l.voters.list {
		if w.ID == l.o.NodeID {
			continue
		}
		keep[w.ID] = true
		addr, old := address(w.Host, w.Port), l.peers.byID[w.ID]
		if old == nil || old.addr != addr {
			l.peers.retire(old)
			l.peers.byID[w.ID] = startPeer(w.ID, addr, l.o, l.post)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.peers.byID)) {
		if !keep[id] {
			l.peers.retire(l.peers.byID[id])
			delete(l.peers.byID, id)
			delete(l.connected, id)
		}
	}
}

// planFirstCampaign makes a voter campaign soon after the start, once it can
// reach a majority: the first voter of a new cluster at once, any other after a
// random while, so that a restarted cluster does not wait for the election
// timeout. A leader that is alive is not disturbed: the pre-vote is refused.
func (l *loop) planFirstCampaign() {
	if l.campaigned || 2*(len(l.connected)+1) <= len(l.voters.list) {
		return
	}
	if id, _ := l.node.Leader(); id != model.NoBroker {
		l.campaigned = true
		return
	}
	l.campaigned = true
	alone := len(l.voters.list) == 1
	if alone || l.fresh && l.voters.list[0].ID == l.o.NodeID {
		l.campaignAt, l.tries = l.now(), 0
		return
	}
	l.planCampaign()
}

// planCampaign plans a campaign after 20 to 100 ms, so that several voters seldom
// meet (R13.7).
func (l *loop) planCampaign() {
	l.tries = 0
	l.campaignAt = l.now().Add(campaignMin + time.Duration(l.rand.Int64N(int64(campaignSpread))))
}

const (
	campaignMin    = 20 * time.Millisecond
	campaignSpread = 80 * time.Millisecond
	// campaignTries bounds the campaigns; then the election timeout decides.
	campaignTries = 4
)

// campaign asks for votes while no leader is known. It tries again soon, for the
// other voters may not have noticed yet that the leader is gone, or may hold a
// shorter log than this one that asked first.
func (l *loop) campaign(now model.Time) {
	l.campaignAt = 0
	if id, _ := l.node.Leader(); id != model.NoBroker {
		return
	}
	if err := l.node.Campaign(); err != nil {
		l.log.Debug("campaign refused", "err", err)
	}
	if l.tries++; l.tries < campaignTries {
		pause := campaignMin + time.Duration(l.rand.Int64N(int64(campaignSpread)))
		l.campaignAt = now.Add(pause << l.tries)
	}
}

// peerDown forgets a leader whose process is gone and campaigns soon (R13.7).
func (l *loop) peerDown(ev peerDown) {
	delete(l.connected, ev.id)
	l.node.Unreachable(ev.id)
	leader, _ := l.node.Leader()
	if !ev.gone || leader != ev.id {
		return
	}
	l.log.Info("the active controller's process is gone", "leader", ev.id)
	if err := l.node.ForgetLeader(); err != nil {
		l.log.Warn("could not forget the leader", "err", err)
		return
	}
	l.planCampaign()
}

func sortedVoters(in []Voter) []Voter {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b Voter) int { return int(a.ID - b.ID) })
	return out
}
