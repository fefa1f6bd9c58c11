package workload

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// session is a fetch session with one broker (KIP-227): after the first request
// only what changed is named.
type session struct {
	broker int32
	id     int32
	epoch  int32
	told   []wish // what the broker knows
}

// session returns the reader's session with a broker.
func (r *reader) session(broker int32) *session {
	for _, s := range r.sessions {
		if s.broker == broker {
			return s
		}
	}
	s := &session{broker: broker}
	r.sessions = append(r.sessions, s)
	return s
}

// same says whether two wishes are about one partition.
func (w wish) same(o wish) bool { return w.id == o.id && w.partition == o.partition }

// open fills a request with what is new to the broker.
func (s *session) open(req *kmsg.FetchRequest, ps []*position) {
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	var all []wish
	for _, p := range ps {
		w := p.wish()
		all = append(all, w)
		if s.epoch == 0 || !slices.Contains(s.told, w) {
			addWish(req, w)
		}
	}
	for _, old := range s.told {
		if s.epoch == 0 || slices.ContainsFunc(all, old.same) {
			continue
		}
		at := slices.IndexFunc(req.ForgottenTopics, func(t kmsg.FetchRequestForgottenTopic) bool { return t.TopicID == old.id })
		if at < 0 {
			t := kmsg.NewFetchRequestForgottenTopic()
			t.TopicID = old.id
			at, req.ForgottenTopics = len(req.ForgottenTopics), append(req.ForgottenTopics, t)
		}
		req.ForgottenTopics[at].Partitions = append(req.ForgottenTopics[at].Partitions, old.partition)
	}
	s.told = all
}

// took goes on to the next epoch. The broker may have made no session.
func (s *session) took(resp *kmsg.FetchResponse) {
	if resp.SessionID == 0 {
		*s = session{broker: s.broker}
		return
	}
	s.id = resp.SessionID
	s.epoch++
}
