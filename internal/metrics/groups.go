package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Connections counts the connections of all listeners.
type Connections struct {
	open            prometheus.Gauge
	opened, refused prometheus.Counter
}

func (c *Connections) init(f factory) {
	c.open = f.gauge("connections", "Connections that are open.")
	c.opened = f.counter("connections_opened_total", "Connections that were accepted.")
	c.refused = f.counter("connections_refused_total", "Connections closed at once, because there were too many.")
}

// Opened counts an accepted connection.
func (c *Connections) Opened() { c.opened.Inc(); c.open.Inc() }

// Closed counts the end of an accepted connection.
func (c *Connections) Closed() { c.open.Dec() }

// Refused counts a connection that was closed at once.
func (c *Connections) Refused() { c.refused.Inc() }

// Traffic counts records and their bytes as stored, batch overhead included.
type Traffic struct {
	recordsIn, bytesIn                      prometheus.Counter
	toConsumers, toFollowers, replicatedIn  prometheus.Counter
	refusedBytes                            prometheus.Counter
	sessions, parkedProduces, parkedFetches prometheus.Gauge
}

func (t *Traffic) init(f factory) {
	t.recordsIn = f.counter("records_in_total", "Records that producers sent.")
	t.bytesIn = f.counter("bytes_in_total", "Bytes of record batches that producers sent.")
	t.refusedBytes = f.counter("bytes_refused_total", "Bytes of record batches that were refused.")
	t.toConsumers = f.counter("bytes_out_total", "Bytes of record batches sent to consumers.")
	t.toFollowers = f.counter("replication_bytes_out_total", "Bytes of record batches sent to followers.")
	t.replicatedIn = f.counter("replication_bytes_in_total", "Bytes of record batches fetched from leaders.")
	t.sessions = f.gauge("fetch_sessions", "Fetch sessions that are remembered.")
	t.parkedProduces = f.gauge("purgatory_produces", "Produce requests that wait for the high watermark.")
	t.parkedFetches = f.gauge("purgatory_fetches", "Fetch requests that wait for records.")
}

// Produced counts a batch from a producer.
func (t *Traffic) Produced(records, bytes int) {
	t.recordsIn.Add(float64(records))
	t.bytesIn.Add(float64(bytes))
}

// Refused counts the bytes of a batch that was not taken.
func (t *Traffic) Refused(bytes int) { t.refusedBytes.Add(float64(bytes)) }

// Consumed counts bytes sent to a consumer.
func (t *Traffic) Consumed(bytes int) { t.toConsumers.Add(float64(bytes)) }

// SentToFollower counts bytes sent to a follower.
func (t *Traffic) SentToFollower(bytes int) { t.toFollowers.Add(float64(bytes)) }

// Replicated counts bytes fetched from a leader.
func (t *Traffic) Replicated(bytes int) { t.replicatedIn.Add(float64(bytes)) }

// SetSessions says how many fetch sessions there are.
func (t *Traffic) SetSessions(n int) { t.sessions.Set(float64(n)) }

// SetParked says how many produce and fetch requests wait in the purgatory.
func (t *Traffic) SetParked(produces, fetches int) {
	t.parkedProduces.Set(float64(produces))
	t.parkedFetches.Set(float64(fetches))
}

// ReplicaCounts is how a broker's replicas stand.
type ReplicaCounts struct {
	Partitions      int // replicas on this broker
	Leaders         int // of them led here
	UnderReplicated int // led here, with an ISR smaller than the replicas
	UnderMinISR     int // led here, with an ISR below the minimum
	AtMinISR        int // led here, with an ISR at the minimum
	Offline         int // on this broker, without a leader or on a failed directory
	Reassigning     int // led here, with replicas being added or removed
}

// Replication counts what happens to replicas.
type Replication struct {
	partitions, leaders, underReplicated, underMin, atMin, offline, reassigning prometheus.Gauge
	shrinks, expands, refused                                                   prometheus.Counter
	truncations, truncated, truncatedBelowHW                                    prometheus.Counter
	maxLag                                                                      prometheus.Gauge
}

func (r *Replication) init(f factory) {
	r.partitions = f.gauge("partitions", "Replicas on this broker.")
	r.leaders = f.gauge("leaders", "Partitions that this broker leads.")
	r.underReplicated = f.gauge("under_replicated_partitions", "Partitions led here with replicas outside the ISR.")
	r.underMin = f.gauge("under_min_isr_partitions", "Partitions led here that refuse acks=all, because the ISR is below its minimum.")
	r.atMin = f.gauge("at_min_isr_partitions", "Partitions led here that would refuse acks=all with one replica less.")
	r.offline = f.gauge("offline_replicas", "Replicas on this broker that have no leader or a failed directory.")
	r.reassigning = f.gauge("reassigning_partitions", "Partitions led here whose replicas are being changed.")
	r.maxLag = f.gauge("follower_max_lag_records", "The most records that a follower of a partition led here lacks, as its leader has heard.")
	r.shrinks = f.counter("isr_shrinks_total", "Times that a leader here took replicas out of an ISR.")
	r.expands = f.counter("isr_expands_total", "Times that a leader here put replicas into an ISR.")
	r.refused = f.counter("isr_updates_failed_total", "ISR changes that the controller did not accept.")
	r.truncations = f.counter("truncations_total", "Times that a replica here cut its log.")
	r.truncated = f.counter("truncated_records_total", "Records that replicas here cut off.")
	r.truncatedBelowHW = f.counter("truncated_committed_records_total", "Records below the local high watermark that replicas here cut off.")
}

// Set says how the replicas stand.
func (r *Replication) Set(c ReplicaCounts) {
	r.partitions.Set(float64(c.Partitions))
	r.leaders.Set(float64(c.Leaders))
	r.underReplicated.Set(float64(c.UnderReplicated))
	r.underMin.Set(float64(c.UnderMinISR))
	r.atMin.Set(float64(c.AtMinISR))
	r.offline.Set(float64(c.Offline))
	r.reassigning.Set(float64(c.Reassigning))
}

// SetMaxLag says how many records the follower that is furthest behind lacks.
func (r *Replication) SetMaxLag(records int64) { r.maxLag.Set(float64(records)) }

// Shrunk counts an ISR that lost members.
func (r *Replication) Shrunk() { r.shrinks.Inc() }

// Expanded counts an ISR that gained members.
func (r *Replication) Expanded() { r.expands.Inc() }

// RefusedISR counts a change of an ISR that the controller did not accept.
func (r *Replication) RefusedISR() { r.refused.Inc() }

// Truncated counts a cut: records dropped, and how many of them lay below the
// local high watermark.
func (r *Replication) Truncated(records, belowHW int64) {
	r.truncations.Inc()
	r.truncated.Add(float64(records))
	r.truncatedBelowHW.Add(float64(belowHW))
}

// Log counts what the log writer does.
type Log struct {
	appends, flushes prometheus.Histogram
	batches          prometheus.Counter
	failed           prometheus.Gauge
}

func (l *Log) init(f factory) {
	l.appends = f.histogram("log_append_seconds", "Time of one write of grouped batches.")
	l.flushes = f.histogram("log_flush_seconds", "Time of one sync of a log.")
	l.batches = f.counter("log_batches_total", "Batches written, by producers and as a follower.")
	l.failed = f.gauge("log_dirs_failed", "Data directories that are offline after an error of the disk.")
}

// Appended counts one write that held so many batches.
func (l *Log) Appended(took time.Duration, batches int) {
	l.appends.Observe(took.Seconds())
	l.batches.Add(float64(batches))
}

// Flushed counts one sync.
func (l *Log) Flushed(took time.Duration) { l.flushes.Observe(took.Seconds()) }

// SetFailedDirs says how many data directories are offline.
func (l *Log) SetFailedDirs(n int) { l.failed.Set(float64(n)) }

// ControllerCounts is how the cluster stands by the metadata that this node has
// applied.
type ControllerCounts struct {
	Active             bool // this node is the active controller
	Brokers            int  // unfenced
	Fenced             int  // registered and fenced
	Topics, Partitions int
	Offline            int   // partitions without a leader
	NotPreferred       int   // partitions whose leader is not the preferred replica
	MetadataEnd        int64 // exclusive end of the applied metadata log
}

// Controller says how the cluster stands by the metadata.
type Controller struct {
	active, brokers, fenced, topics, partitions, offline, notPreferred, end prometheus.Gauge
}

func (c *Controller) init(f factory) {
	c.active = f.gauge("active_controller", "1 on the active controller, else 0.")
	c.brokers = f.gauge("active_brokers", "Brokers that are registered and not fenced.")
	c.fenced = f.gauge("fenced_brokers", "Brokers that are registered and fenced.")
	c.topics = f.gauge("cluster_topics", "Topics of the cluster.")
	c.partitions = f.gauge("cluster_partitions", "Partitions of the cluster.")
	c.offline = f.gauge("offline_partitions", "Partitions of the cluster without a leader.")
	c.notPreferred = f.gauge("preferred_replica_imbalance", "Partitions that are not led by their preferred replica.")
	c.end = f.gauge("metadata_end_offset", "End of the metadata log that this node has applied.")
}

// Set says how the cluster stands.
func (c *Controller) Set(n ControllerCounts) {
	c.active.Set(0)
	if n.Active {
		c.active.Set(1)
	}
	c.brokers.Set(float64(n.Brokers))
	c.fenced.Set(float64(n.Fenced))
	c.topics.Set(float64(n.Topics))
	c.partitions.Set(float64(n.Partitions))
	c.offline.Set(float64(n.Offline))
	c.notPreferred.Set(float64(n.NotPreferred))
	c.end.Set(float64(n.MetadataEnd))
}
