package cuts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func line(id model.UUID, from model.Offset) Cut {
	return Cut{Topic: "t", TopicID: id.String(), Partition: 3, From: from, To: from + 1, Rule: "R4.11"}
}

func TestWhatATruncationCutIsStillToldAfterARestart(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	id := model.UUID{1}
	for i := range model.Offset(20) {
		if err := c.Write(line(id, i)); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = Open(vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	got := c.Of(model.TopicIDPartition{TopicID: id, Partition: 3})
	if len(got) != kept || got[0].From != 4 || got[kept-1].From != 19 {
		t.Fatalf("%d truncations, from %d", len(got), got[0].From)
	}
	if other := c.Of(model.TopicIDPartition{TopicID: model.UUID{2}, Partition: 3}); len(other) != 0 {
		t.Fatalf("another topic of that name has %d truncations", len(other))
	}
}

func TestATornAccountIsReadUpToTheTear(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	id := model.UUID{1}
	if err := c.Write(line(id, 7)); err != nil {
		t.Fatal(err)
	}
	account := filepath.Join(dir, file)
	whole, err := os.ReadFile(account)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(account, append(append([]byte(nil), whole...), whole[:cut]...), 0o644); err != nil {
			t.Fatal(err)
		}
		if c, err = Open(vfs.OS, dir); err != nil {
			t.Fatalf("torn after %d bytes: %v", cut, err)
		}
		got := c.Of(model.TopicIDPartition{TopicID: id, Partition: 3})
		if len(got) < 1 || got[0].From != 7 {
			t.Fatalf("torn after %d bytes: %v", cut, got)
		}
		if err := c.Write(line(id, 8)); err != nil {
			t.Fatal(err)
		}
		if c, err = Open(vfs.OS, dir); err != nil || len(c.Of(model.TopicIDPartition{TopicID: id, Partition: 3})) < 2 {
			t.Fatalf("torn after %d bytes: the next line is lost (%v)", cut, err)
		}
	}
}
