package controller

import (
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// operate does what an operator might.
func (d *driver) operate() {
	img := d.w.s.Image()
	var topics []*image.Topic
	for t := range img.Topics() {
		topics = append(topics, t)
	}
	if len(topics) == 0 || len(topics) < 3 && d.rng.IntN(4) == 0 {
		d.create()
		return
	}
	t := topics[d.rng.IntN(len(topics))]
	part := int32(d.rng.IntN(len(t.Partitions)))
	switch k := d.rng.IntN(20); {
	case k < 1:
		d.say("delete %s", t.Name)
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Version = 6
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic = &t.Name
		r.Topics = append(r.Topics, rt)
		d.do(r)
	case k < 8:
		d.reassign(t.Name, part, k == 2)
	case k < 12:
		d.elect(t.Name, part, int8(d.rng.IntN(2)))
	case k < 14 && len(t.Partitions) < 3:
		d.say("grow %s", t.Name)
		r := kmsg.NewPtrCreatePartitionsRequest()
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = t.Name, int32(len(t.Partitions)+1)
		r.Topics = append(r.Topics, rt)
		d.do(r)
	case k < 16:
		d.configure(kmsg.ConfigResourceTypeTopic, t.Name, configUnclean, strconv.FormatBool(d.rng.IntN(3) == 0))
	case k < 18:
		d.configure(kmsg.ConfigResourceTypeTopic, t.Name, configMinISR, strconv.Itoa(1+d.rng.IntN(3)))
		d.everyoneKnows()
	case k < 19:
		d.configure(kmsg.ConfigResourceTypeBroker, "", configMinISR, strconv.Itoa(1+d.rng.IntN(2)))
		d.everyoneKnows()
	default:
		if p := d.anyone(); !p.up {
			d.say("unregister %d", p.id)
			r := kmsg.NewPtrUnregisterBrokerRequest()
			r.BrokerID = int32(p.id)
			d.do(r)
		}
	}
}

// everyoneKnows lets all processes apply the metadata. A leader that learns of a
// smaller ISR by the answer to its proposal, before it learns of a higher
// minimum by its log, would commit under the old one.
func (d *driver) everyoneKnows() {
	for id := range model.BrokerID(driverBrokers) {
		if p := d.procs[id+1]; p.up && p.epoch >= 0 {
			d.apply(p, d.w.s.Image())
		}
	}
}

func (d *driver) create() {
	d.topics++
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version = 7
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic = "t" + strconv.Itoa(d.topics)
	t.NumPartitions, t.ReplicationFactor = int32(1+d.rng.IntN(2)), int16(1+d.rng.IntN(3))
	r.Topics = append(r.Topics, t)
	d.say("create %s rf=%d", t.Topic, t.ReplicationFactor)
	d.do(r)
}

func (d *driver) reassign(topic string, part int32, cancel bool) {
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	t, p := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	t.Topic, p.Partition = topic, part
	if !cancel {
		for _, b := range d.rng.Perm(driverBrokers)[:1+d.rng.IntN(3)] {
			p.Replicas = append(p.Replicas, int32(b+1))
		}
	}
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	d.say("reassign %s-%d to %v", topic, part, p.Replicas)
	d.do(r)
}

func (d *driver) elect(topic string, part int32, kind int8) {
	r := kmsg.NewPtrElectLeadersRequest()
	r.Version, r.ElectionType = 2, kind
	t := kmsg.NewElectLeadersRequestTopic()
	t.Topic, t.Partitions = topic, []int32{part}
	r.Topics = append(r.Topics, t)
	d.say("elect %s-%d type %d", topic, part, kind)
	d.do(r)
}

func (d *driver) configure(kind kmsg.ConfigResourceType, name, key, value string) {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kind, name
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = key, &value
	res.Configs = append(res.Configs, c)
	r.Resources = append(r.Resources, res)
	d.say("configure %q %s=%s", name, key, value)
	d.do(r)
}
