package controller

import (
	"fmt"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxPartitions bounds the partitions that one request may create.
const maxPartitions = 200_000

// metadataTopic cannot be made or deleted by anybody.
const metadataTopic = "__cluster_metadata"

// refusal is a protocol error with the words that go to the client.
type refusal struct {
	code model.Error
	why  string
}

func refuse(code model.Error, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// createTopics answers a CreateTopics; the topics are judged one by one, and all
// that are good come to be in one transaction, unless only validation was asked
// for. Errors, for a topic: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS,
// INVALID_REQUEST, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
// INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, POLICY_VIOLATION (too many at
// once). The timeout is the caller's, who waits for the commit. KIP-4, 464, 525;
// R6.18.
func (s *State) createTopics(c Call, r *kmsg.CreateTopicsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrCreateTopicsResponse()
	resp.Version = r.Version
	batch := d.newTopicBatch(r)
	for i := range r.Topics {
		t := &r.Topics[i]
		if n := batch.named[t.Topic]; n > 1 || n < 0 {
			if n > 1 {
				batch.named[t.Topic] = -1 // answered once
				resp.Topics = append(resp.Topics, answerTopic(t, refuse(model.ErrInvalidRequest, "Duplicate topic name.")))
			}
			continue
		}
		resp.Topics = append(resp.Topics, d.createOne(batch, t))
	}
	if r.ValidateOnly {
		d.drop()
		for i := range resp.Topics {
			resp.Topics[i].TopicID = model.UUID{}
		}
	}
	return d.result(resp)
}

// topicBatch is what the topics of one request share.
type topicBatch struct {
	named  map[string]int    // how often each name comes; -1 once answered
	merged map[string]string // names that hold a '.' or '_', by the name with '_' for '.'
	placer *placer
	left   int // partitions that may still be created
}

func (d *decision) newTopicBatch(r *kmsg.CreateTopicsRequest) *topicBatch {
	b := &topicBatch{named: map[string]int{}, left: maxPartitions}
	for i := range r.Topics {
		b.named[r.Topics[i].Topic]++
	}
	return b
}

// collides returns the existing topic whose name differs from name only in '.'
// and '_', which metrics cannot tell apart.
func (b *topicBatch) collides(img *image.Image, name string) string {
	if !strings.ContainsAny(name, "._") {
		return ""
	}
	if b.merged == nil {
		b.merged = map[string]string{}
		for t := range img.Topics() {
			if strings.ContainsAny(t.Name, "._") {
				b.merged[mergedName(t.Name)] = t.Name
			}
		}
	}
	return b.merged[mergedName(name)]
}

func mergedName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// createOne judges one topic and emits its records if it is good.
func (d *decision) createOne(b *topicBatch, t *kmsg.CreateTopicsRequestTopic) kmsg.CreateTopicsResponseTopic {
	if no := d.checkNewName(b, t.Topic); no != nil {
		return answerTopic(t, no)
	}
	configs, no := d.checkNewConfigs(t)
	if no != nil {
		return answerTopic(t, no)
	}
	parts, no := d.newPartitions(b, t)
	if no != nil {
		return answerTopic(t, no)
	}
	id := d.newTopicID()
	d.emit(&metalog.Topic{Name: t.Topic, TopicID: id})
	overrides := map[string]string{}
	for _, c := range configs {
		d.emit(c)
		overrides[c.Name] = *c.Value
	}
	for i, replicas := range parts {
		d.emit(d.newPartition(id, int32(i), replicas))
	}
	b.left -= len(parts)
	if b.merged != nil && strings.ContainsAny(t.Topic, "._") {
		b.merged[mergedName(t.Topic)] = t.Topic
	}
	d.because(Reason{Code: ReasonTopicCreated, Topic: t.Topic})
	out := answerTopic(t, nil)
	out.TopicID = id
	out.NumPartitions, out.ReplicationFactor = int32(len(parts)), int16(len(parts[0]))
	out.Configs = d.describe(overrides)
	return out
}

// answerTopic makes the answer for a topic: a refusal, or a success yet to be
// filled in.
func answerTopic(t *kmsg.CreateTopicsRequestTopic, no *refusal) kmsg.CreateTopicsResponseTopic {
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic, out.NumPartitions, out.ReplicationFactor = t.Topic, -1, -1
	if no != nil {
		out.ErrorCode, out.ErrorMessage = no.code.Code(), &no.why
	}
	return out
}

// describe lists the effective configs of a new topic.
func (d *decision) describe(overrides map[string]string) []kmsg.CreateTopicsResponseTopicConfig {
	node, all := d.img.Config(metalog.ResourceBroker, d.s.nodeName), d.img.Config(metalog.ResourceBroker, "")
	list := d.s.cfg.Configs.Topic(overrides, node, all)
	out := make([]kmsg.CreateTopicsResponseTopicConfig, len(list))
	for i, c := range list {
		out[i] = kmsg.NewCreateTopicsResponseTopicConfig()
		out[i].Name, out[i].Value, out[i].ReadOnly = c.Name, c.Value, c.ReadOnly
		out[i].Source, out[i].IsSensitive = c.Source, c.Sensitive
	}
	return out
}

// checkNewName says why a topic cannot have the name.
func (d *decision) checkNewName(b *topicBatch, name string) *refusal {
	if why := checkTopicName(name); why != "" {
		return refuse(model.ErrInvalidTopicException, "%s", why)
	}
	if name == metadataTopic {
		return refuse(model.ErrTopicAuthorizationFailed, "Topic %s is the cluster's own.", name)
	}
	if d.img.TopicByName(name) != nil {
		return refuse(model.ErrTopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if other := b.collides(d.img, name); other != "" {
		return refuse(model.ErrInvalidTopicException, "Topic '%s' collides with existing topic: %s", name, other)
	}
	return nil
}

// checkTopicName says what is wrong with a topic's name: it holds up to 249 of
// the letters, digits, '.', '_' and '-', and is not "." or "..".
func checkTopicName(name string) string {
	switch {
	case name == "":
		return "Topic name is invalid: the empty string is not allowed"
	case name == "." || name == "..":
		return fmt.Sprintf("Topic name is invalid: '%s' is not allowed", name)
	case len(name) > 249:
		return fmt.Sprintf("Topic name is invalid: the length is %d and 249 is the longest allowed", len(name))
	}
	for _, r := range []byte(name) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		default:
			return fmt.Sprintf("Topic name is invalid: '%s' holds a character other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return ""
}

// checkNewConfigs validates the configs of a new topic and returns their records.
func (d *decision) checkNewConfigs(t *kmsg.CreateTopicsRequestTopic) ([]*metalog.Config, *refusal) {
	var recs []*metalog.Config
	seen := map[string]bool{}
	for i := range t.Configs {
		c := &t.Configs[i]
		switch {
		case c.Value == nil:
			return nil, refuse(model.ErrInvalidConfig, "Null value not supported for topic configs: %s", c.Name)
		case seen[c.Name]:
			return nil, refuse(model.ErrInvalidRequest, "Config %s is given twice.", c.Name)
		}
		seen[c.Name] = true
		if err := d.s.cfg.Configs.Validate(ResourceTopic, t.Topic, c.Name, *c.Value); err != nil {
			return nil, refuse(model.ErrInvalidConfig, "%s", err.Error())
		}
		recs = append(recs, &metalog.Config{
			ResourceType: metalog.ResourceTopic, ResourceName: t.Topic, Name: c.Name, Value: c.Value,
		})
	}
	return recs, nil
}

// newPartitions returns the replicas of every partition of a new topic, as the
// request assigns them or as the placer does.
func (d *decision) newPartitions(b *topicBatch, t *kmsg.CreateTopicsRequestTopic) ([][]model.BrokerID, *refusal) {
	if len(t.ReplicaAssignment) > 0 {
		return d.assigned(b, t)
	}
	switch {
	case t.ReplicationFactor < -1 || t.ReplicationFactor == 0:
		return nil, refuse(model.ErrInvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case t.NumPartitions < -1 || t.NumPartitions == 0:
		return nil, refuse(model.ErrInvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	n, rf := int(t.NumPartitions), int(t.ReplicationFactor)
	if n == -1 {
		n = int(d.s.cfg.NumPartitions)
	}
	if rf == -1 {
		rf = int(d.s.cfg.ReplicationFactor)
	}
	if n > b.left {
		return nil, tooMany()
	}
	if b.placer == nil {
		b.placer = d.newPlacer()
	}
	if why := b.placer.check(rf); why != "" {
		return nil, refuse(model.ErrInvalidReplicationFactor, "Unable to replicate the partition %d time(s): %s", rf, why)
	}
	parts := make([][]model.BrokerID, n)
	for i := range parts {
		parts[i] = b.placer.place(rf)
	}
	return parts, nil
}

func tooMany() *refusal {
	return refuse(model.ErrPolicyViolation, "One request may create at most %d partitions.", maxPartitions)
}

// assigned checks the assignment that a request gives.
func (d *decision) assigned(b *topicBatch, t *kmsg.CreateTopicsRequestTopic) ([][]model.BrokerID, *refusal) {
	switch {
	case t.ReplicationFactor != -1:
		return nil, refuse(model.ErrInvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	case t.NumPartitions != -1:
		return nil, refuse(model.ErrInvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	case len(t.ReplicaAssignment) > b.left:
		return nil, tooMany()
	}
	parts := make([][]model.BrokerID, len(t.ReplicaAssignment))
	size := -1
	for _, a := range t.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= len(parts) {
			return nil, refuse(model.ErrInvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		if parts[a.Partition] != nil {
			return nil, refuse(model.ErrInvalidReplicaAssignment,
				"Found multiple manual partition assignments for partition %d", a.Partition)
		}
		if why := d.checkAssignment(a.Replicas, size); why != "" {
			return nil, refuse(model.ErrInvalidReplicaAssignment, "%s", why)
		}
		size = len(a.Replicas)
		parts[a.Partition] = toBrokers(a.Replicas)
		if len(d.active(parts[a.Partition])) == 0 {
			return nil, refuse(model.ErrInvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", a.Partition)
		}
	}
	return parts, nil
}

// active returns those of the brokers that may be in an ISR.
func (d *decision) active(replicas []model.BrokerID) []model.BrokerID {
	out := make([]model.BrokerID, 0, len(replicas))
	for _, b := range replicas {
		if br := d.img.Broker(b); br != nil && !br.Fenced && !br.InControlledShutdown {
			out = append(out, b)
		}
	}
	return out
}

// newPartition makes the record of a new partition: the active replicas are its
// ISR, the first of them leads (R6.18).
func (d *decision) newPartition(topic model.UUID, id int32, replicas []model.BrokerID) *metalog.Partition {
	rec := &metalog.Partition{PartitionID: id, TopicID: topic, Replicas: replicas, ISR: d.active(replicas)}
	rec.Leader = rec.ISR[0]
	for _, b := range replicas {
		rec.Directories = append(rec.Directories, d.defaultDir(b))
	}
	return rec
}

// newTopicID draws a version 4 UUID that no topic has.
func (d *decision) newTopicID() model.UUID {
	for {
		var id model.UUID
		hi, lo := d.call.Rand.Uint64(), d.call.Rand.Uint64()
		for i := range 8 {
			id[i], id[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
		}
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		if d.img.TopicByID(id) == nil {
			return id
		}
	}
}
