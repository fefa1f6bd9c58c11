package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Marks are the offsets of one replica at the time of a scrape.
type Marks struct {
	Topic      string
	Partition  int32
	Leader     bool
	LogStart   int64
	HW         int64
	LEO        int64
	Bytes      int64 // on disk
	InSync     int   // of a leader: members of the ISR
	LastStable int64
}

// marksCollector asks for the marks of all replicas at every scrape.
type marksCollector struct {
	read                                       func() []Marks
	start, hw, lso, leo, bytes, leader, inSync *prometheus.Desc
}

// CollectMarks adds one gauge for each mark of each replica. read is called at
// every scrape, from the scraping goroutine. Call it once.
func (r *Registry) CollectMarks(read func() []Marks) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_partition_"+name, help, []string{"topic", "partition"}, nil)
	}
	r.prom.MustRegister(&marksCollector{
		read:   read,
		start:  desc("log_start_offset", "Log start offset of the replica."),
		hw:     desc("high_watermark", "High watermark of the replica."),
		lso:    desc("last_stable_offset", "Last stable offset of the replica."),
		leo:    desc("log_end_offset", "Log end offset of the replica."),
		bytes:  desc("log_bytes", "Bytes of the replica's segments on disk."),
		leader: desc("leader", "1 where this broker leads the partition, else 0."),
		inSync: desc("in_sync_replicas", "Members of the ISR, on the leader."),
	})
}

// Describe lists the metrics for the registry.
func (c *marksCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.start, c.hw, c.lso, c.leo, c.bytes, c.leader, c.inSync} {
		out <- d
	}
}

// Collect reads every replica's marks.
func (c *marksCollector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.read() {
		labels := []string{m.Topic, strconv.Itoa(int(m.Partition))}
		put := func(d *prometheus.Desc, v int64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
		}
		put(c.start, m.LogStart)
		put(c.hw, m.HW)
		put(c.lso, m.LastStable)
		put(c.leo, m.LEO)
		put(c.bytes, m.Bytes)
		if !m.Leader {
			put(c.leader, 0)
			continue
		}
		put(c.leader, 1)
		put(c.inSync, int64(m.InSync))
	}
}
