package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// observe starts an observer of the cluster; dir "" is a new directory.
func observe(t *testing.T, c *cluster, dir string, options func(*ObserverOptions)) (*Observer, string) {
	t.Helper()
	if dir == "" {
		dir = filepath.Join(t.TempDir(), MetadataDir)
	}
	o := ObserverOptions{NodeID: 101, ClusterID: testCluster, DirectoryID: model.UUID{8}, Dir: dir, Voters: c.voters, Log: testLog()}
	if options != nil {
		options(&o)
	}
	ob, err := StartObserver(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return ob, dir
}

func closeObserver(t *testing.T, o *Observer) {
	t.Helper()
	if err := o.Close(); err != nil {
		t.Errorf("close observer: %v", err)
	}
}

func reaches(end model.Offset) func(*image.Image) bool {
	return func(img *image.Image) bool { return img.End() >= end }
}

// sameImage waits until b has reached the image of a and compares them.
func sameImage(t *testing.T, a, b source) {
	t.Helper()
	for {
		want := a.broadcaster().img.Load()
		got := until(t, b, "the end of the other", reaches(want.End()))
		if got.End() == want.End() {
			if dump(got) != dump(want) {
				t.Fatalf("images at %d differ:\n%s\nand\n%s", got.End(), dump(got), dump(want))
			}
			return
		}
	}
}

func TestAnObserverFollowsAndStartsFromItsDisk(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	mustCreate(t, c.nodes[0], "before")
	o, dir := observe(t, c, "", nil)
	until(t, o, "the first topic", hasTopic("before"))
	mustCreate(t, o, "forwarded")
	until(t, o, "the forwarded topic", hasTopic("forwarded"))
	sameImage(t, c.nodes[0], o)
	end := o.Image().End()
	closeObserver(t, o)

	o, _ = observe(t, c, dir, nil)
	if got := o.Image().End(); got != end {
		t.Errorf("the observer starts at %d, its disk held %d", got, end)
	}
	mustCreate(t, c.nodes[0], "after")
	until(t, o, "the last topic", hasTopic("after"))
	closeObserver(t, o)
}

func TestAnObserverFollowsThroughFailOverAndNeverGoesBack(t *testing.T) {
	c := newCluster(t, 3, nil)
	lead := c.leader()
	registerBroker(t, c.nodes[lead], 1, 9)
	o, _ := observe(t, c, "", nil)
	defer closeObserver(t, o)
	last := model.Offset(-1)
	stop := o.Subscribe(func(img *image.Image) {
		if img.End() <= last {
			t.Errorf("the image went from %d to %d", last, img.End())
		}
		last = img.End()
	})
	defer stop()
	for i := range 3 {
		name := fmt.Sprint("topic-", i)
		mustCreate(t, o, name)
		until(t, o, name, hasTopic(name))
		lead := c.leader()
		c.stop(lead)
		createAnyhow(t, o, name+"-after")
		until(t, o, name+"-after", hasTopic(name+"-after"))
		c.start(lead)
		sameImage(t, c.nodes[c.leader()], o)
	}
}

func TestASnapshotIsServedToAnObserverThatBeginsAnew(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) { o.SnapshotBytes = 2000 })
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	for i := range 100 {
		mustCreate(t, c.nodes[0], fmt.Sprint("topic-", i))
	}
	o, dir := observe(t, c, "", func(o *ObserverOptions) { o.SnapshotBytes = 2000 })
	until(t, o, "the last topic", hasTopic("topic-99"))
	sameImage(t, c.nodes[0], o)
	if o.follower.dir.View().Start() == 0 {
		t.Error("the observer copied the log from its start")
	}
	for i := range 100 {
		mustCreate(t, c.nodes[0], fmt.Sprint("more-", i))
	}
	until(t, o, "the last topic", hasTopic("more-99"))
	sameImage(t, c.nodes[0], o)
	closeObserver(t, o)
	o, _ = observe(t, c, dir, nil)
	sameImage(t, c.nodes[0], o)
	closeObserver(t, o)
}
