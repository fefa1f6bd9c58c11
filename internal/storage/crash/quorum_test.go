package crash

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/controlplane/raftlog"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const metaDir = "/data/__cluster_metadata-0"

// quorumStory drives the metadata directory of a controller: raft log, segments
// of committed records, checkpoints of its own and of a leader. With wal false it
// is that of a broker, which promises nothing but to read what it wrote.
type quorumStory struct {
	t    testing.TB
	wal  bool
	tell func(s *quorumStory)
	fs   vfs.FS
	n    *member

	term     uint64
	shown    map[model.Offset]string // the image at each end
	promised mark
	written  mark
}

// mark is how far a log and its snapshot go.
type mark struct {
	term, last, snap uint64
	end              model.Offset
}

// member is an open metadata directory as a node's start leaves it.
type member struct {
	dir  *projection.Dir
	wal  *raftlog.Log
	log  *quorum.Log
	img  *image.Image
	last uint64
}

func newQuorumStory(wal bool, tell func(s *quorumStory)) func(t testing.TB) story {
	return func(t testing.TB) story {
		return &quorumStory{t: t, wal: wal, tell: tell, shown: map[model.Offset]string{0: show(image.New())}}
	}
}

// show tells what an image holds.
func show(img *image.Image) string {
	out := fmt.Sprintf("[%d, %d) version %d:", 0, img.End(), img.Feature("metadata.version"))
	for t := range img.Topics() {
		out += " " + t.Name
	}
	return out
}

// metadata is a batch of n records at an offset.
func metadata(base model.Offset, epoch model.Epoch, n int) []byte {
	recs := make([]metalog.Record, n)
	for i := range recs {
		recs[i] = &metalog.Topic{Name: fmt.Sprint("topic-", int(base)+i), TopicID: model.UUID{byte(base), byte(i), 1}}
	}
	if base == 0 {
		recs[0] = &metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: metalog.Level}
	}
	return metalog.AppendBatch(nil, base, epoch, 1, recs, metalog.Level)
}

func fold(img *image.Image, batches []byte) (*image.Image, error) {
	_, err := metalog.DecodeBatches(batches, func(b metalog.Batch) error {
		if b.Base == img.Read() {
			img = projection.Fold(img, b, b.End, b.Epoch)
		}
		return nil
	})
	return img, err
}

// start opens the directory as controllers and observers do.
func (s *quorumStory) start(fs vfs.FS) (*member, error) {
	n := &member{img: image.New()}
	var err error
	if n.dir, err = projection.Open(fs, metaDir); err != nil {
		return nil, err
	}
	if !s.wal {
		return n, n.load(fs)
	}
	var rec raftlog.Recovered
	if n.wal, rec, err = raftlog.Open(fs, walDir); err != nil {
		return nil, err
	}
	if snap := rec.Snapshot; snap.Index > 0 {
		if n.img, _, err = projection.LoadImage(fs, metaDir, projection.ID{End: snap.End, Epoch: snap.Epoch}); err != nil {
			return nil, err
		}
	}
	if rec.Snapshot.Conf == nil {
		rec.Snapshot.Conf = quorum.Conf([]model.BrokerID{1})
	}
	n.log, n.last = quorum.NewLog(rec.State, rec.Snapshot), rec.Snapshot.Index
	if err := n.log.Append(rec.Entries); err != nil {
		return nil, err
	}
	for _, e := range rec.Entries {
		if err := n.apply(e); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *member) apply(e *pb.Entry) (err error) {
	n.last = e.GetIndex()
	if len(e.GetData()) == 0 {
		return nil
	}
	if err = n.dir.Append(e.GetData()); err == nil {
		n.img, err = fold(n.img, e.GetData())
	}
	return err
}

// load builds the image from the directory alone.
func (n *member) load(fs vfs.FS) (err error) {
	n.img = image.New()
	if id, ok := n.dir.Newest(); ok {
		if n.img, _, err = projection.LoadImage(fs, metaDir, id); err != nil {
			return err
		}
	}
	for view := n.dir.View(); n.img.Read() < view.End(); {
		b, err := view.Read(n.img.Read(), 300)
		if err != nil {
			return err
		}
		at := n.img.Read()
		if n.img, err = fold(n.img, b); err != nil || n.img.Read() == at {
			return errors.Join(fmt.Errorf("nothing follows %d", at), err)
		}
	}
	return nil
}

func (n *member) close() error {
	if n.wal == nil {
		return n.dir.Close()
	}
	return errors.Join(n.wal.Close(), n.dir.Close())
}

func (s *quorumStory) play(fs vfs.FS) (err error) {
	s.fs = fs
	if s.n, err = s.start(fs); err == nil {
		s.tell(s)
	}
	return err
}

func (s *quorumStory) fork() story {
	f := *s
	f.shown = maps.Clone(s.shown)
	return &f
}

func (s *quorumStory) state() *pb.HardState { return hardState(s.term, voteIn(s.term), s.n.last) }

// elect begins a term, and an epoch.
func (s *quorumStory) elect() {
	s.term++
	if s.wal {
		must(s.t, s.n.wal.Save(s.state(), nil, true))
		s.n.log.SetState(s.state())
		s.promised.term, s.written.term = s.term, s.term
	}
	must(s.t, s.n.dir.WriteQuorumState(projection.QuorumState{Leader: 1, Epoch: model.Epoch(s.term), Voted: -1, Voters: []model.BrokerID{1}}))
}

// commit adds n records.
func (s *quorumStory) commit(n int) {
	data := metadata(s.n.img.Read(), model.Epoch(s.term), n)
	next, err := fold(s.n.img, data)
	must(s.t, err)
	s.shown[next.End()] = show(next)
	e := &pb.Entry{Index: new(s.n.last + 1), Term: new(s.term), Type: pb.EntryNormal.Enum(), Data: data}
	if s.wal {
		must(s.t, s.n.wal.Save(s.state(), []*pb.Entry{e}, true))
		must(s.t, s.n.log.Append([]*pb.Entry{e}))
		s.written = mark{s.term, e.GetIndex(), s.written.snap, next.End()}
		s.promised = s.written
	}
	must(s.t, s.n.apply(e))
}

func (s *quorumStory) commits(times int) {
	for i := range times {
		s.commit(2 + i%3)
	}
}

// checkpoint writes the image and begins the logs there.
func (s *quorumStory) checkpoint() {
	must(s.t, s.n.dir.Roll())
	id, err := projection.WriteCheckpoint(s.fs, metaDir, s.n.img, 1, 2)
	must(s.t, err)
	if s.wal {
		snap := s.snapshot(s.n.last)
		must(s.t, s.n.wal.Compact(snap, s.state(), s.n.log.After(snap.Index)))
		s.n.log.Compact(snap, 0)
		s.promised.snap, s.written.snap = snap.Index, snap.Index
	}
	must(s.t, s.n.dir.Added(id))
}

func (s *quorumStory) snapshot(index uint64) quorum.Snapshot {
	return quorum.Snapshot{Point: quorum.Point{Index: index, Term: s.term, End: s.n.img.End(), Epoch: s.n.img.Epoch()}, Conf: quorum.Conf([]model.BrokerID{1})}
}

// install takes the checkpoint of a leader that is n records ahead.
func (s *quorumStory) install(n int) {
	s.term++
	img, err := fold(s.n.img, metadata(s.n.img.Read(), model.Epoch(s.term), n))
	must(s.t, err)
	s.shown[img.End()] = show(img)
	id, err := projection.WriteCheckpoint(s.fs, metaDir, img, 1, 2) // as a download does
	must(s.t, err)
	s.n.img = img
	if s.wal {
		s.n.last++
		snap := s.snapshot(s.n.last)
		must(s.t, s.n.wal.Compact(snap, s.state(), nil))
		s.n.log.SetState(s.state())
		s.n.log.Reset(snap)
		s.written = mark{s.term, snap.Index, snap.Index, img.End()}
		s.promised = s.written
	}
	must(s.t, s.n.dir.Reset(id))
}

func (s *quorumStory) goOn(fs vfs.FS) (err error) {
	s.fs = fs
	if s.n, err = s.start(fs); err != nil {
		return err
	}
	s.term += 2
	s.elect()
	s.commits(2)
	s.checkpoint()
	s.commit(1)
	return nil
}

func (s *quorumStory) check(fs vfs.FS, killed bool) (string, error) {
	n, err := s.start(fs)
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w", err)
	}
	want := s.promised
	if killed {
		want = s.written
	}
	found, err := s.compare(fs, n, want)
	return found, errors.Join(err, n.close())
}

func (s *quorumStory) compare(fs vfs.FS, n *member, want mark) (string, error) {
	if got := show(n.img); got != s.shown[n.img.End()] {
		return "", fmt.Errorf("the image is %s, not %s", got, s.shown[n.img.End()])
	}
	if n.img.End() < want.end || n.last < want.last || n.dir.End() < n.img.End() {
		return "", fmt.Errorf("the log ends with entry %d at %d, in the segments at %d; %+v was promised", n.last, n.img.End(), n.dir.End(), want)
	}
	found := fmt.Sprint(show(n.img), n.dir.Start(), n.dir.End(), n.dir.Epoch(), n.last)
	if s.wal {
		if snap, st := n.log.LastSnapshot(), n.log.State(); snap.Index < want.snap || st.GetTerm() < want.term || st.GetVote() != voteIn(st.GetTerm()) && st.GetTerm() > 0 {
			return "", fmt.Errorf("snapshot at %d, term %d, vote %d; %+v was promised", snap.Index, st.GetTerm(), st.GetVote(), want)
		}
		found += fmt.Sprint(n.log.LastSnapshot().Index, n.log.State())
	}
	if got := string(contentOf(fs, metaDir+"/partition.metadata")); !strings.HasSuffix(got, "topic_id: AAAAAAAAAAAAAAAAAAAAAQ") {
		return "", fmt.Errorf("partition.metadata is %q", got)
	}
	// What readers are served is the same.
	alone := &member{dir: n.dir}
	if err := alone.load(fs); err != nil {
		return "", fmt.Errorf("the segments: %w", err)
	}
	if got := show(alone.img); got != s.shown[alone.img.End()] {
		return "", fmt.Errorf("the segments hold %s, not %s", got, s.shown[alone.img.End()])
	}
	return found, nil
}

var quorumScenarios = []scenario{
	{"controller", []string{"quorum-wal", "quorum-projection"}, newQuorumStory(true, quorumTale), fair},
	{"metadata of a broker", []string{"quorum-projection"}, newQuorumStory(false, quorumTale), fair},
}

func quorumTale(s *quorumStory) {
	s.elect()
	s.commits(3)
	s.checkpoint()
	s.commits(2)
	s.elect()
	s.commits(2)
	s.checkpoint()
	s.commit(1)
	s.install(5)
	s.commits(2)
	s.checkpoint()
	s.commit(1)
	s.checkpoint()
	s.commit(1)
	must(s.t, s.n.close())
}
