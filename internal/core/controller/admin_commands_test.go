package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reassign orders-0 to=(3,4,5), or cancel; keep-size forbids another replication
// factor, times=2 names the partition twice.
func (sc *script) reassign() {
	topic, id := sc.target(0)
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	r.Version, r.AllowReplicationFactorChange = 1, !sc.has("keep-size")
	t, p := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	t.Topic, p.Partition = topic, id
	if !sc.has("cancel") {
		p.Replicas = append([]int32{}, sc.ids("to")...)
	}
	for range sc.number("times", 1) {
		t.Partitions = append(t.Partitions, p)
	}
	r.Topics = append(r.Topics, t)
	for _, p := range sc.w.do(r).(*kmsg.AlterPartitionAssignmentsResponse).Topics[0].Partitions {
		sc.answer("reassign", p.ErrorCode, p.ErrorMessage)
	}
}

// reassignments [orders-0]: lists those in progress.
func (sc *script) reassignments() {
	r := kmsg.NewPtrListPartitionReassignmentsRequest()
	for i := range sc.d.CmdArgs {
		t := kmsg.NewListPartitionReassignmentsRequestTopic()
		topic, id := sc.target(i)
		t.Topic, t.Partitions = topic, []int32{id}
		r.Topics = append(r.Topics, t)
	}
	for _, t := range sc.w.do(r).(*kmsg.ListPartitionReassignmentsResponse).Topics {
		for _, p := range t.Partitions {
			sc.printf("%s-%d AR %v adding %v removing %v", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas)
		}
	}
}

// resource reads topic:NAME, broker:ID, broker: or TYPE:NAME.
func (sc *script) resource(arg int) (kmsg.ConfigResourceType, string) {
	kind, name, _ := strings.Cut(sc.d.CmdArgs[arg].Key, ":")
	switch kind {
	case "topic":
		return kmsg.ConfigResourceTypeTopic, name
	case "broker":
		return kmsg.ConfigResourceTypeBroker, name
	case "logger":
		return kmsg.ConfigResourceTypeBrokerLogger, name
	}
	sc.d.Fatalf(sc.w.t, "unknown resource %q", kind)
	return 0, ""
}

// configure RESOURCE set=(key:value) delete=(key) append=(key:value)
// subtract=(key:value) odd=(key:value); validate-only, times=2.
func (sc *script) configure() {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r.Version, r.ValidateOnly = 1, sc.has("validate-only")
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = sc.resource(0)
	for _, op := range []struct {
		word string
		op   kmsg.IncrementalAlterConfigOp
	}{{"set", 0}, {"delete", 1}, {"append", 2}, {"subtract", 3}, {"odd", 9}} {
		for _, v := range sc.vals(op.word) {
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			name, value, ok := strings.Cut(v, ":")
			if c.Name, c.Op = name, op.op; ok {
				value = strings.ReplaceAll(value, "+", ",")
				c.Value = &value
			}
			res.Configs = append(res.Configs, c)
		}
	}
	for range sc.number("times", 1) {
		r.Resources = append(r.Resources, res)
	}
	for _, res := range sc.w.do(r).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		sc.answer("configure", res.ErrorCode, res.ErrorMessage)
	}
	sc.configs(res.ResourceType, res.ResourceName)
}

// replace-configs RESOURCE set=(key:value): the resource has these overrides and
// no others.
func (sc *script) replaceConfigs() {
	r := kmsg.NewPtrAlterConfigsRequest()
	r.Version, r.ValidateOnly = 2, sc.has("validate-only")
	res := kmsg.NewAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = sc.resource(0)
	for _, v := range sc.vals("set") {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		name, value, ok := strings.Cut(v, ":")
		if c.Name = name; ok {
			c.Value = &value
		}
		res.Configs = append(res.Configs, c)
	}
	for range sc.number("times", 1) {
		r.Resources = append(r.Resources, res)
	}
	for _, res := range sc.w.do(r).(*kmsg.AlterConfigsResponse).Resources {
		sc.answer("replace", res.ErrorCode, res.ErrorMessage)
	}
	sc.configs(res.ResourceType, res.ResourceName)
}

// configs prints the overrides of a resource.
func (sc *script) configs(kind kmsg.ConfigResourceType, name string) {
	var keys []string
	configs := sc.w.s.Image().Config(int8(kind), name)
	for key := range configs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		sc.printf("config    %s=%s", key, configs[key])
	}
}

// feature NAME=LEVEL: upgrade, or down, unsafe; version=, validate-only.
func (sc *script) feature() {
	r := kmsg.NewPtrUpdateFeaturesRequest()
	r.Version, r.ValidateOnly = int16(sc.number("version", 2)), sc.has("validate-only")
	for _, a := range sc.d.CmdArgs {
		if len(a.Vals) == 0 || a.Key == "version" || a.Key == "type" {
			continue
		}
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		level, _ := strconv.Atoi(a.Vals[0])
		u.Feature, u.MaxVersionLevel, u.UpgradeType = a.Key, int16(level), int8(sc.number("type", 1))
		u.AllowDowngrade = u.UpgradeType > 1
		r.FeatureUpdates = append(r.FeatureUpdates, u)
	}
	resp := sc.w.do(r).(*kmsg.UpdateFeaturesResponse)
	sc.answer("feature", resp.ErrorCode, resp.ErrorMessage)
	for _, f := range resp.Results {
		sc.answer("  "+f.Feature, f.ErrorCode, nil)
	}
	for _, f := range sc.w.s.Image().Features() {
		sc.printf("%s=%d", f.Name, f.Level)
	}
}

// unregister ID.
func (sc *script) unregister() {
	r := kmsg.NewPtrUnregisterBrokerRequest()
	r.BrokerID = int32(sc.broker())
	resp := sc.w.do(r).(*kmsg.UnregisterBrokerResponse)
	sc.answer("unregister", resp.ErrorCode, resp.ErrorMessage)
}

// producer-ids ID: epoch= of the broker.
func (sc *script) producerIDs() {
	r := kmsg.NewPtrAllocateProducerIDsRequest()
	r.BrokerID, r.BrokerEpoch = int32(sc.broker()), sc.w.beat(sc.broker()).BrokerEpoch
	r.BrokerEpoch = int64(sc.number("epoch", int(r.BrokerEpoch)))
	resp := sc.w.do(r).(*kmsg.AllocateProducerIDsResponse)
	if sc.answer("producer ids", resp.ErrorCode, nil); resp.ErrorCode == 0 {
		sc.printf("          [%d, %d)", resp.ProducerIDStart, resp.ProducerIDStart+int64(resp.ProducerIDLen))
	}
}

// dirs ID orders-0 in=N: the broker says in which directory it keeps the replica.
func (sc *script) dirs() {
	id := sc.broker()
	topic, part := sc.target(1)
	r := kmsg.NewPtrAssignReplicasToDirsRequest()
	r.BrokerID, r.BrokerEpoch = int32(id), int64(sc.number("epoch", int(sc.w.beat(id).BrokerEpoch)))
	d := kmsg.NewAssignReplicasToDirsRequestDirectory()
	d.ID = sc.dir(id, sc.text("in", "0"))
	t, p := kmsg.NewAssignReplicasToDirsRequestDirectoryTopic(), kmsg.NewAssignReplicasToDirsRequestDirectoryTopicPartition()
	if img := sc.w.s.Image().TopicByName(topic); img != nil {
		t.TopicID = img.ID
	}
	p.Partition = part
	for range sc.number("times", 1) {
		t.Partitions = append(t.Partitions, p)
	}
	d.Topics = append(d.Topics, t)
	r.Directories = append(r.Directories, d)
	resp := sc.w.do(r).(*kmsg.AssignReplicasToDirsResponse)
	sc.answer("dirs", resp.ErrorCode, nil)
	for _, d := range resp.Directories {
		for _, p := range d.Topics[0].Partitions {
			sc.answer("  "+topic+"-"+strconv.Itoa(int(p.Partition)), p.ErrorCode, nil)
		}
	}
}

// controller ID incarnation=: a controller registers itself; without=(feature).
func (sc *script) controller() {
	r := kmsg.NewPtrControllerRegistrationRequest()
	r.ControllerID, r.IncarnationID = int32(sc.broker()), incarnationID(sc.broker(), sc.number("incarnation", 1))
	for _, f := range sc.w.s.Image().Features() {
		if slices.Contains(sc.vals("without"), f.Name) {
			continue
		}
		rf := kmsg.NewControllerRegistrationRequestFeature()
		rf.Name, rf.MaxSupportedVersion = f.Name, f.Level
		r.Features = append(r.Features, rf)
	}
	resp := sc.w.do(r).(*kmsg.ControllerRegistrationResponse)
	sc.answer("controller", resp.ErrorCode, resp.ErrorMessage)
	sc.printf("          %d registered, %d record(s) written", len(sc.w.s.Image().Controllers()), len(sc.w.last.Records))
}

// state prints all brokers and partitions, or those of a topic with the
// directories of its replicas.
func (sc *script) state() {
	img := sc.w.s.Image()
	for _, b := range img.Brokers() {
		sc.printf("broker %d  %s", b.ID, showBroker(b))
	}
	for t := range img.Topics() {
		for id, p := range t.Partitions {
			sc.printf("%s-%d  %s", t.Name, id, show(p))
			if sc.has("dirs") {
				sc.printf("          directories %s", showDirs(p.Directories))
			}
		}
	}
}

func showDirs(dirs []model.UUID) string {
	var words []string
	for _, d := range dirs {
		switch d {
		case metalog.DirUnassigned:
			words = append(words, "unassigned")
		case metalog.DirMigrating:
			words = append(words, "migrating")
		case metalog.DirLost:
			words = append(words, "lost")
		default:
			words = append(words, strconv.Itoa(int(d[15]))+":"+strconv.Itoa(int(d[8])))
		}
	}
	return strings.Join(words, " ")
}

// builder orders-0 isr=() : makes one change directly, with the given target ISR
// and with the brokers of down=(...) taken as fenced.
func (sc *script) builder() {
	topic, id := sc.target(0)
	d := sc.w.s.decide(sc.w.call())
	for _, b := range sc.ids("down") {
		br := d.img.Broker(model.BrokerID(b))
		d.emit(&metalog.BrokerRegistrationChange{BrokerID: br.ID, BrokerEpoch: br.Epoch, Fenced: metalog.FencedSet})
	}
	d.settle()
	c := d.change(d.img.TopicByName(topic), id)
	c.isr = toBrokers(sc.ids("isr"))
	d.apply(c)
	sc.w.commit(d.result(nil))
}
