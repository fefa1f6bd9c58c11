package crash

import (
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/raftlog"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const walDir = "/data/__cluster_metadata-0/wal"

// walStory drives a raft log: votes, entries, entries in the place of others,
// snapshots, a roll.
type walStory struct {
	t    testing.TB
	tell func(s *walStory)
	l    *raftlog.Log

	promised, written votes
	ever              map[string]bool // every entry that was ever written
}

// votes is what a controller has promised.
type votes struct {
	state   *pb.HardState
	snap    quorum.Point
	entries []*pb.Entry // behind the snapshot
}

func newWalStory(tell func(s *walStory)) func(t testing.TB) story {
	return func(t testing.TB) story {
		return &walStory{t: t, tell: tell, promised: noVotes(), written: noVotes(), ever: map[string]bool{}}
	}
}

func noVotes() votes { return votes{state: hardState(0, 0, 0)} }

func hardState(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: new(term), Vote: new(vote), Commit: new(commit)}
}

func (v votes) last() uint64 { return v.snap.Index + uint64(len(v.entries)) }

// with are the votes after entries were saved, which may replace others.
func (v votes) with(state *pb.HardState, entries []*pb.Entry) votes {
	out := votes{state: state, snap: v.snap, entries: slices.Clip(v.entries)}
	if len(entries) > 0 {
		out.entries = append(slices.Clip(v.entries[:entries[0].GetIndex()-v.snap.Index-1]), entries...)
	}
	return out
}

func (s *walStory) play(fs vfs.FS) error {
	if err := vfs.MakeDurably(fs, "/data/__cluster_metadata-0"); err != nil {
		return err
	}
	var err error
	if s.l, _, err = raftlog.Open(fs, walDir); err == nil {
		s.tell(s)
	}
	return err
}

func (s *walStory) fork() story {
	f := *s
	f.ever = map[string]bool{}
	for k := range s.ever {
		f.ever[k] = true
	}
	return &f
}

// save appends n entries from an index on in a term.
func (s *walStory) save(from, term uint64, n int, size int, sync bool) {
	var list []*pb.Entry
	for i := range uint64(n) {
		data := make([]byte, size)
		copy(data, fmt.Sprint("entry ", from+i, " of ", term))
		e := &pb.Entry{Index: new(from + i), Term: new(term), Type: pb.EntryNormal.Enum(), Data: data}
		list = append(list, e)
		s.ever[nameOf(e)] = true
	}
	state := hardState(term, voteIn(term), s.written.state.GetCommit())
	next := s.written.with(state, list)
	must(s.t, s.l.Save(state, list, sync))
	if s.written = next; sync {
		s.promised = next
	}
}

// add appends at the end.
func (s *walStory) add(n int) {
	s.save(s.written.last()+1, max(s.written.state.GetTerm(), 1), n, 20, true)
}

// voteIn is whom the node votes for in a term: it does so once.
func voteIn(term uint64) uint64 { return 1 + term%3 }

// vote is a hard state alone.
func (s *walStory) vote(term uint64) {
	state := hardState(term, voteIn(term), s.written.state.GetCommit())
	must(s.t, s.l.Save(state, nil, true))
	s.written.state, s.promised.state = state, state
}

func (s *walStory) compact(at uint64) {
	snap := quorum.Snapshot{Point: quorum.Point{Index: at, Term: s.written.state.GetTerm(), End: 1, Epoch: 1}, Conf: &pb.ConfState{Voters: []uint64{1}}}
	var rest []*pb.Entry
	if at < s.written.last() {
		rest = s.written.entries[at-s.written.snap.Index:]
	}
	next := votes{state: s.written.state, snap: snap.Point, entries: rest}
	must(s.t, s.l.Compact(snap, s.written.state, rest))
	s.written, s.promised = next, next
}

func nameOf(e *pb.Entry) string {
	return fmt.Sprintf("%d/%d/%.30s/%d", e.GetIndex(), e.GetTerm(), e.GetData(), len(e.GetData()))
}

func (s *walStory) goOn(fs vfs.FS) error {
	l, rec, err := raftlog.Open(fs, walDir)
	if err != nil {
		return err
	}
	s.l = l
	// What the node finds it answers for: it may have sent it before.
	s.written = votes{state: hardState(rec.State.GetTerm(), rec.State.GetVote(), rec.State.GetCommit()), snap: rec.Snapshot.Point, entries: rec.Entries}
	s.promised = s.written
	s.vote(s.written.state.GetTerm() + 1)
	s.add(2)
	s.compact(s.written.last())
	s.add(1)
	s.compact(s.written.last() - 1)
	s.add(1)
	return nil
}

func (s *walStory) check(fs vfs.FS, killed bool) (string, error) {
	l, rec, err := raftlog.Open(fs, walDir)
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w", err)
	}
	defer l.Close()
	want := s.promised
	if killed {
		want = s.written
	}
	if err := s.holds(&rec, want); err != nil {
		return "", err
	}
	out := fmt.Sprint(rec.State, rec.Snapshot.Point)
	for _, e := range rec.Entries {
		out += " " + nameOf(e)
	}
	return out, nil
}

func (s *walStory) holds(rec *raftlog.Recovered, want votes) error {
	term, vote := rec.State.GetTerm(), rec.State.GetVote()
	switch {
	case term < want.state.GetTerm() || term == want.state.GetTerm() && vote != want.state.GetVote():
		return fmt.Errorf("voted for %d in term %d, not %d in %d", vote, term, want.state.GetVote(), want.state.GetTerm())
	case rec.Snapshot.Index < want.snap.Index:
		return fmt.Errorf("snapshot at %d, not %d", rec.Snapshot.Index, want.snap.Index)
	}
	for _, e := range rec.Entries {
		if !s.ever[nameOf(e)] {
			return fmt.Errorf("entry %s was never written", nameOf(e))
		}
	}
	for _, e := range want.entries {
		if e.GetIndex() <= rec.Snapshot.Index {
			continue
		}
		at := e.GetIndex() - rec.Snapshot.Index - 1
		if at >= uint64(len(rec.Entries)) {
			return fmt.Errorf("entry %d is lost", e.GetIndex())
		}
		got := rec.Entries[at]
		if got.GetTerm() > e.GetTerm() {
			return nil // what was to replace it got through
		}
		if nameOf(got) != nameOf(e) {
			return fmt.Errorf("entry %s, not %s", nameOf(got), nameOf(e))
		}
	}
	return nil
}

// The raft log holds votes and entries, replaces some, and compacts.
func raftLogTale(s *walStory) {
	s.vote(1)
	s.add(3)
	s.add(2)
	s.save(4, 2, 2, 30, true) // replaces 4 and 5
	s.save(6, 2, 3, 40, false)
	s.vote(3)
	s.add(1)
	s.compact(5)
	s.add(2)
	s.save(9, 4, 1, 5000, true)
	s.compact(s.written.last())
	s.add(1)
	must(s.t, s.l.Close())
}

// A segment is full, and the next one begins.
func raftLogRollTale(s *walStory) {
	s.vote(1)
	s.save(1, 1, 1, 16<<20, true)
	s.add(1)
	s.add(1)
}
