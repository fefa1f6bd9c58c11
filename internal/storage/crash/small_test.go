package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/node"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// accountStory writes down truncations: each line is durable before its cut.
type accountStory struct {
	t                 testing.TB
	promised, written int // lines
}

func (s *accountStory) fork() story {
	f := *s
	return &f
}

// start opens the log directory first, as a node does.
func (s *accountStory) start(files vfs.FS) (*cuts.Log, func(), error) {
	at := now
	d, err := storage.OpenDir(files, root, options(&at, &strings.Builder{}))
	if err != nil {
		return nil, nil, err
	}
	c, err := cuts.Open(files, root)
	return c, func() { must(s.t, d.Close()) }, err
}

func (s *accountStory) play(files vfs.FS) error { return s.write(files, 7) }

func (s *accountStory) goOn(files vfs.FS) error {
	c, stop, err := s.start(files)
	if err != nil {
		return err
	}
	s.written = len(linesOf(c)) // a line that was torn is dropped
	stop()
	return s.write(files, 2)
}

func (s *accountStory) write(files vfs.FS, n int) error {
	c, stop, err := s.start(files)
	if err != nil {
		return err
	}
	defer stop()
	for range n {
		from := model.Offset(s.written)
		epochs := []model.EpochStart{{Epoch: 1, Start: from}}
		line := cuts.Cut{Topic: "t", TopicID: topicID.String(), From: from, To: from + 1, Epochs: epochs, Rule: strings.Repeat("R4.11 ", 300)}
		if err := c.Write(line); err != nil {
			return err
		}
		s.written++
		s.promised = s.written
	}
	return nil
}

func linesOf(c *cuts.Log) []cuts.Cut {
	return c.Of(model.TopicIDPartition{TopicID: topicID})
}

func (s *accountStory) check(files vfs.FS, killed bool) (string, error) {
	c, stop, err := s.start(files)
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w", err)
	}
	defer stop()
	got := linesOf(c)
	if n := len(got); n < s.promised || n > s.written+1 || killed && n < s.written {
		return "", fmt.Errorf("%d lines, %d were promised, %d written", n, s.promised, s.written)
	}
	for i, line := range got {
		if line.From != model.Offset(i) || len(line.Rule) != 1800 {
			return "", fmt.Errorf("line %d tells of %d", i, line.From)
		}
	}
	return fmt.Sprint(len(got)), nil
}

// formatStory formats a node: until that has returned it may be done again.
type formatStory struct {
	t    testing.TB
	cfg  *config.Config
	done bool
}

func newFormatStory(t testing.TB) story {
	cfg, err := config.New(map[string]string{
		"node.id": "1", "process.roles": "broker,controller", "log.dirs": root, "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
		"controller.listener.names": "CONTROLLER", "controller.quorum.bootstrap.servers": "localhost:9093",
	})
	must(t, err)
	return &formatStory{t: t, cfg: cfg}
}

func (s *formatStory) fork() story {
	f := *s
	return &f
}

func (s *formatStory) play(files vfs.FS) error {
	err := node.FormatOn(nil, files, s.cfg, cluster)
	s.done = err == nil
	return err
}

// goOn is who formats again, because it was never told that it is done.
func (s *formatStory) goOn(files vfs.FS) error {
	if _, err := files.Stat(root + "/meta.properties"); err == nil {
		return nil
	}
	return s.play(files)
}

func (s *formatStory) check(files vfs.FS, _ bool) (string, error) {
	_, err := files.Stat(root + "/meta.properties")
	if errors.Is(err, fs.ErrNotExist) && !s.done {
		return "not formatted", nil
	}
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w", err)
	}
	meta, err := storage.ParseMeta(contentOf(files, root+"/meta.properties"))
	if err != nil {
		return "", fmt.Errorf("the start is refused: %w", err)
	}
	b, err := projection.ReadFile(files, metaDir, projection.Bootstrap)
	if err != nil {
		return "", err
	}
	var records, voters int
	err = metalog.ReadSnapshot(b, func(batch metalog.Batch) error {
		records += len(batch.Records)
		for _, c := range batch.Control {
			if v, ok := c.(*metalog.KRaftVoters); ok {
				voters += len(v.Voters)
				if !slices.ContainsFunc(v.Voters, func(v metalog.Voter) bool { return v.DirectoryID == meta.DirectoryID }) {
					return fmt.Errorf("directory %s is no voter's", meta.DirectoryID)
				}
			}
		}
		return nil
	})
	if err == nil && (records == 0 || voters != 1 || meta.ClusterID != cluster) {
		err = fmt.Errorf("%d records, %d voters, cluster %s", records, voters, meta.ClusterID)
	}
	return fmt.Sprint(meta, records), err
}

var smallScenarios = []scenario{
	{"account of truncations", []string{"truncations"}, func(t testing.TB) story { return &accountStory{t: t} }, cheap},
	{"format", []string{"identity", "quorum-projection"}, newFormatStory, cheap},
}
