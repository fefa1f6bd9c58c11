package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer prints a protocol code.
func (sc *script) answer(what string, code int16, message *string) {
	if message != nil {
		sc.printf("%s -> %s: %s", what, model.Error(code).Error(), *message)
		return
	}
	sc.printf("%s -> %s", what, model.Error(code).Error())
}

// register ID: a new process of the broker registers; again: the same one once
// more. previous=clean names the epoch of the last registration, previous=N any
// other. rack=, dirs=(n,n), cluster=, without=(feature), max=(feature:level).
func (sc *script) register() {
	id := sc.broker()
	if !sc.has("again") {
		sc.incarnation[id]++
	}
	previous := model.BrokerEpoch(-1)
	if sc.text("previous", "") == "clean" {
		previous = sc.w.s.Image().Broker(id).Epoch
	} else if sc.has("previous") {
		previous = model.BrokerEpoch(sc.number("previous", -1))
	}
	r := sc.w.registration(id, sc.incarnation[id], previous)
	r.Version = int16(sc.number("version", 4))
	r.ClusterID = sc.text("cluster", r.ClusterID)
	if sc.has("rack") {
		r.Rack = kmsg.StringPtr(sc.text("rack", ""))
	}
	if sc.has("dirs") {
		r.LogDirs = nil
		for _, v := range sc.vals("dirs") {
			if v == "none" {
				break
			}
			r.LogDirs = append(r.LogDirs, sc.dir(id, v))
		}
	}
	for _, name := range sc.vals("without") {
		r.Features = slices.DeleteFunc(r.Features, func(f kmsg.BrokerRegistrationRequestFeature) bool { return f.Name == name })
	}
	for _, v := range sc.vals("max") {
		name, level, _ := strings.Cut(v, ":")
		n, _ := strconv.Atoi(level)
		for i := range r.Features {
			if r.Features[i].Name == name {
				r.Features[i].MaxSupportedVersion = int16(n)
			}
		}
	}
	resp := sc.w.do(r).(*kmsg.BrokerRegistrationResponse)
	if resp.ErrorCode != 0 {
		sc.incarnation[id]--
		sc.answer("register", resp.ErrorCode, nil)
	}
}

// dir names a directory: 0 the broker's first, 2:0 that of broker 2, reserved.
func (sc *script) dir(id model.BrokerID, v string) [16]byte {
	if v == "reserved" {
		return [16]byte{15: 7}
	}
	if other, n, ok := strings.Cut(v, ":"); ok {
		o, _ := strconv.Atoi(other)
		id, v = model.BrokerID(o), n
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		sc.d.Fatalf(sc.w.t, "directory %q: %v", v, err)
	}
	return dirID(id, n)
}

// heartbeat ID: want=fence, want=shutdown, lag=N offsets behind, epoch=N,
// offline=(n) directories. It prints the answer when it says anything new.
func (sc *script) heartbeat() {
	id := sc.broker()
	r := sc.w.beat(id)
	r.WantFence = slices.Contains(sc.vals("want"), "fence")
	r.WantShutdown = slices.Contains(sc.vals("want"), "shutdown")
	r.CurrentMetadataOffset -= int64(sc.number("lag", 0))
	if sc.has("epoch") {
		r.BrokerEpoch = int64(sc.number("epoch", 0))
	}
	for _, v := range sc.vals("offline") {
		r.OfflineLogDirs = append(r.OfflineLogDirs, sc.dir(id, v))
	}
	resp := sc.w.do(r).(*kmsg.BrokerHeartbeatResponse)
	words := model.Error(resp.ErrorCode).Error()
	for _, w := range []struct {
		is   bool
		word string
	}{{resp.IsCaughtUp, "caught up"}, {resp.IsFenced, "fenced"}, {resp.ShouldShutdown, "may stop"}} {
		if w.is && resp.ErrorCode == 0 {
			words += ", " + w.word
		}
	}
	sc.printf("heartbeat -> %s", words)
}

// alter ID orders-0 isr=(1,2): the broker proposes an ISR, knowing the present
// epochs. leader-epoch=, partition-epoch=, epochs=(2:17) for a member's broker
// epoch, sender-epoch=, recovering, version=2, times=2 name what differs.
func (sc *script) alter() {
	id := sc.broker()
	topic, part := sc.target(1)
	r := kmsg.NewPtrAlterPartitionRequest()
	r.Version = int16(sc.number("version", 3))
	r.BrokerID, r.BrokerEpoch = int32(id), -1
	if b := sc.w.s.Image().Broker(id); b != nil {
		r.BrokerEpoch = int64(b.Epoch)
	}
	r.BrokerEpoch = int64(sc.number("sender-epoch", int(r.BrokerEpoch)))
	rt, rp := kmsg.NewAlterPartitionRequestTopic(), kmsg.NewAlterPartitionRequestTopicPartition()
	rt.TopicID, rp.Partition = [16]byte{1}, part
	if t := sc.w.s.Image().TopicByName(topic); t != nil {
		rt.TopicID = t.ID
		if int(part) < len(t.Partitions) {
			rp.LeaderEpoch, rp.PartitionEpoch = int32(t.Partitions[part].LeaderEpoch), int32(t.Partitions[part].PartitionEpoch)
		}
	}
	rp.LeaderEpoch = int32(sc.number("leader-epoch", int(rp.LeaderEpoch)))
	rp.PartitionEpoch = int32(sc.number("partition-epoch", int(rp.PartitionEpoch)))
	if sc.has("recovering") {
		rp.LeaderRecoveryState = 1
	}
	sc.members(&rp, r.Version)
	for range sc.number("times", 1) {
		rt.Partitions = append(rt.Partitions, rp)
	}
	r.Topics = append(r.Topics, rt)
	resp := sc.w.do(r).(*kmsg.AlterPartitionResponse)
	if resp.ErrorCode != 0 {
		sc.answer("alter", resp.ErrorCode, nil)
		return
	}
	for _, p := range resp.Topics[0].Partitions {
		if p.ErrorCode != 0 {
			sc.answer("alter", p.ErrorCode, nil)
			continue
		}
		sc.printf("alter -> NONE, ISR %s leader %d epochs %d/%d", set(toBrokers(p.ISR)), p.LeaderID, p.LeaderEpoch, p.PartitionEpoch)
	}
}

// members fills in the proposed ISR with broker epochs.
func (sc *script) members(rp *kmsg.AlterPartitionRequestTopicPartition, version int16) {
	if version < 3 {
		rp.NewISR = sc.ids("isr")
		return
	}
	epochs := map[string]int64{}
	for _, v := range sc.vals("epochs") {
		who, epoch, _ := strings.Cut(v, ":")
		epochs[who], _ = strconv.ParseInt(epoch, 10, 64)
	}
	for _, b := range sc.ids("isr") {
		m := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		m.BrokerID, m.BrokerEpoch = b, -1
		if br := sc.w.s.Image().Broker(model.BrokerID(b)); br != nil {
			m.BrokerEpoch = int64(br.Epoch)
		}
		if e, ok := epochs[strconv.Itoa(int(b))]; ok {
			m.BrokerEpoch = e
		}
		rp.NewEpochISR = append(rp.NewEpochISR, m)
	}
}

// create NAME...: partitions=, rf=, on=(1,2,3) assigns partition 0, on1=(...)
// partition 1 and so on; configs=(key:value); validate-only, version=.
func (sc *script) create() {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.ValidateOnly = int16(sc.number("version", 7)), sc.has("validate-only")
	for _, a := range sc.d.CmdArgs {
		if len(a.Vals) > 0 || a.Key == "validate-only" {
			continue
		}
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic = strings.NewReplacer("<empty>", "", "<long>", strings.Repeat("x", 250), "<longest>", strings.Repeat("y", 249)).Replace(a.Key)
		t.NumPartitions, t.ReplicationFactor = int32(sc.number("partitions", -1)), int16(sc.number("rf", -1))
		for i, key := range []string{"on", "on1", "on2"} {
			if sc.has(key) {
				ra := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
				ra.Partition, ra.Replicas = int32(sc.number("first", 0)+i), sc.ids(key)
				t.ReplicaAssignment = append(t.ReplicaAssignment, ra)
			}
		}
		for _, v := range sc.vals("configs") {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			name, value, ok := strings.Cut(v, ":")
			if c.Name = name; ok {
				c.Value = &value
			}
			t.Configs = append(t.Configs, c)
		}
		r.Topics = append(r.Topics, t)
	}
	for _, t := range sc.w.do(r).(*kmsg.CreateTopicsResponse).Topics {
		name := t.Topic
		if len(name) > 40 {
			name = name[:10] + "..."
		}
		if sc.answer("create "+name, t.ErrorCode, t.ErrorMessage); t.ErrorCode == 0 {
			sc.printf("          %d partitions, replication factor %d, %s=%s from %d", t.NumPartitions, t.ReplicationFactor,
				t.Configs[0].Name, *t.Configs[0].Value, t.Configs[0].Source)
		}
	}
}

// delete NAME...: by=id names the topics by id, by=both and by=neither wrongly,
// by=random by an unknown id; version=, disabled.
func (sc *script) delete() {
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.Version = int16(sc.number("version", 6))
	sc.w.s.cfg.DeleteTopics = !sc.has("disabled")
	for _, a := range sc.d.CmdArgs {
		if len(a.Vals) > 0 || a.Key == "disabled" {
			continue
		}
		name, t := a.Key, kmsg.NewDeleteTopicsRequestTopic()
		r.TopicNames = append(r.TopicNames, name)
		by := sc.text("by", "name")
		if by == "name" || by == "both" {
			t.Topic = &name
		}
		if img := sc.w.s.Image().TopicByName(name); img != nil && (by == "id" || by == "both") {
			t.TopicID = img.ID
		}
		if by == "random" {
			t.TopicID = [16]byte{9}
		}
		r.Topics = append(r.Topics, t)
	}
	for _, t := range sc.w.do(r).(*kmsg.DeleteTopicsResponse).Topics {
		name := "?"
		if t.Topic != nil {
			name = *t.Topic
		}
		sc.answer("delete "+name, t.ErrorCode, t.ErrorMessage)
	}
	sc.w.s.cfg.DeleteTopics = true
}

// grow NAME count=: on=(1,2) and on1=(...) assign the new partitions.
func (sc *script) grow() {
	r := kmsg.NewPtrCreatePartitionsRequest()
	r.Version, r.ValidateOnly = 3, sc.has("validate-only")
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = sc.d.CmdArgs[0].Key, int32(sc.number("count", 0))
	for _, key := range []string{"on", "on1", "on2"} {
		if sc.has(key) {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = sc.ids(key)
			t.Assignment = append(t.Assignment, a)
		}
	}
	for range sc.number("times", 1) {
		r.Topics = append(r.Topics, t)
	}
	for _, t := range sc.w.do(r).(*kmsg.CreatePartitionsResponse).Topics {
		sc.answer("grow", t.ErrorCode, t.ErrorMessage)
	}
}

// disconnect ID: the connection of its heartbeats ends.
func (sc *script) disconnect() {
	id := sc.broker()
	if p, ok := sc.w.s.Disconnected(sc.w.now, id, sc.w.s.Image().Broker(id).Epoch); ok {
		sc.tell(Result{Probes: []Probe{p}})
	}
}

// refused ID: the listener refused the dial; epoch= of the probe.
func (sc *script) refused() {
	id := sc.broker()
	epoch := model.BrokerEpoch(sc.number("epoch", int(sc.w.s.Image().Broker(id).Epoch)))
	sc.w.commit(sc.w.s.ProbeRefused(sc.w.call(), id, epoch))
}

// elect preferred|unclean orders-0 ..., or all.
func (sc *script) elect() {
	r := kmsg.NewPtrElectLeadersRequest()
	r.Version = int16(sc.number("version", 2))
	switch kind := sc.d.CmdArgs[0].Key; kind {
	case "unclean":
		r.ElectionType = 1
	case "preferred":
	default:
		r.ElectionType = 5
	}
	for i, a := range sc.d.CmdArgs[1:] {
		if a.Key == "all" || len(a.Vals) > 0 {
			continue
		}
		topic, id := sc.target(i + 1)
		rt := kmsg.NewElectLeadersRequestTopic()
		rt.Topic, rt.Partitions = topic, []int32{id}
		r.Topics = append(r.Topics, rt)
	}
	resp := sc.w.do(r).(*kmsg.ElectLeadersResponse)
	if resp.ErrorCode != 0 {
		sc.answer("elect", resp.ErrorCode, nil)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			sc.answer("elect "+t.Topic+"-"+strconv.Itoa(int(p.Partition)), p.ErrorCode, p.ErrorMessage)
		}
	}
}
