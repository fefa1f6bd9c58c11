package node

import (
	"context"
	"errors"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/metrics"
)

// startHTTP opens the listener for metrics and health, if one is configured.
func (n *Node) startHTTP() error {
	if n.cfg.HTTPListen == "" {
		return nil
	}
	n.metrics.CollectMarks(n.scrape)
	var err error
	n.http, err = n.metrics.Listen(n.cfg.HTTPListen, n.health)
	if err == nil {
		n.log.Info("metrics and health over HTTP", "address", n.http.Addr().String())
	}
	return err
}

func (n *Node) stopHTTP(ctx context.Context) {
	if n.http != nil {
		n.http.Close(ctx)
		n.http = nil
	}
}

// health says why this node is not of use, or nil.
func (n *Node) health() error {
	if err := n.Err(); err != nil {
		return err
	}
	if !n.ReadySignal().Closed() {
		return errors.New("the broker is fenced: it has not caught up with the metadata yet, or reaches no controller")
	}
	return nil
}

// scrape sets the gauges and returns the marks of every replica.
func (n *Node) scrape() []metrics.Marks {
	n.metrics.Controller.Set(n.clusterCounts(n.source.Image()))
	if n.broker == nil {
		return nil
	}
	failed := 0
	if n.dir.Err() != nil {
		failed = 1
	}
	n.metrics.Log.SetFailedDirs(failed)
	n.metrics.Traffic.SetSessions(n.broker.data.Sessions())
	return n.broker.scrape(n.metrics)
}

// clusterCounts is how the cluster stands by the image.
func (n *Node) clusterCounts(img *image.Image) metrics.ControllerCounts {
	active, _ := n.source.Active()
	c := metrics.ControllerCounts{Active: n.cfg.Controller && active == n.cfg.NodeID,
		Topics: img.TopicCount(), Partitions: img.PartitionCount(), MetadataEnd: int64(img.End())}
	for _, b := range img.Brokers() {
		if b.Fenced {
			c.Fenced++
		} else {
			c.Brokers++
		}
	}
	for t := range img.Topics() {
		for _, p := range t.Partitions {
			if p.Leader < 0 {
				c.Offline++
			}
			if len(p.Replicas) > 0 && p.Leader != p.Replicas[0] {
				c.NotPreferred++
			}
		}
	}
	return c
}

func (b *broker) scrape(reg *metrics.Registry) []metrics.Marks {
	var out []metrics.Marks
	var c metrics.ReplicaCounts
	lag := int64(0)
	img := b.applier.Image()
	reg.Traffic.SetParked(b.replicas.Parked())
	for _, r := range b.replicas.Views(nil) {
		v, m := r.View, r.View.Marks
		for _, f := range v.Remotes {
			lag = max(lag, int64(v.Marks.LEO-max(f.LEO, 0)))
		}
		count(&c, v, img.Partition(r.Hosted.ID.TopicID, r.Hosted.ID.Partition))
		out = append(out, metrics.Marks{Topic: r.TP.Topic, Partition: r.TP.Partition, Leader: v.Role == partition.Leader,
			LogStart: int64(m.LogStart), HW: int64(m.HW), LEO: int64(m.LEO), LastStable: int64(m.LSO),
			Bytes: r.Hosted.Log.Size(), InSync: len(v.ISR)})
	}
	reg.Replication.Set(c)
	reg.Replication.SetMaxLag(lag)
	return out
}

// count adds one replica to the counts of its broker.
func count(c *metrics.ReplicaCounts, v partition.View, p *image.Partition) {
	c.Partitions++
	if p == nil || p.Leader < 0 {
		c.Offline++
	}
	if v.Role != partition.Leader {
		return
	}
	c.Leaders++
	if len(v.ISR) < len(v.Replicas) {
		c.UnderReplicated++
	}
	switch {
	case len(v.ISR) < v.MinISR:
		c.UnderMinISR++
	case len(v.ISR) == v.MinISR:
		c.AtMinISR++
	}
	if p != nil && len(p.Adding)+len(p.Removing) > 0 {
		c.Reassigning++
	}
}
