package image

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// maxPartition bounds the partition ids that are taken, so that no record can
// ask for a list of billions.
const maxPartition = 1 << 20

// ownTopic returns the topic as a copy that may be changed, or nil.
func (b *builder) ownTopic(id model.UUID) *Topic {
	if b.topic != nil && b.topic.ID == id {
		return b.topic
	}
	t := b.topics[id]
	if t == nil {
		old, ok := b.img.byID.get(id)
		if !ok {
			return nil
		}
		t = &Topic{ID: old.ID, Name: old.Name, Partitions: slices.Clone(old.Partitions)}
		b.keepTopic(t)
	}
	b.topic = t
	return t
}

func (b *builder) keepTopic(t *Topic) {
	if b.topics == nil {
		b.topics = map[model.UUID]*Topic{}
	}
	b.topics[t.ID] = t
	b.topic = t
	b.img.byID.set(b.edit, t.ID, t)
	b.img.byName.set(b.edit, t.Name, t)
}

// putTopic creates a topic. Whatever had its name or id before is a fault of the
// writer and goes.
func (b *builder) putTopic(r *metalog.Topic) {
	if old, ok := b.img.byName.get(r.Name); ok {
		b.img.ignored++
		b.removeTopic(old.ID)
	}
	if b.removeTopic(r.TopicID) {
		b.img.ignored++
	}
	b.keepTopic(&Topic{ID: r.TopicID, Name: r.Name})
}

// removeTopic removes the topic, its partitions and its configs; false if there
// is none.
func (b *builder) removeTopic(id model.UUID) bool {
	t, ok := b.img.byID.get(id)
	if !ok {
		return false
	}
	for n, p := range t.Partitions {
		b.account(id, int32(n), p, nil)
	}
	b.img.byID.remove(b.edit, id)
	b.img.byName.remove(b.edit, t.Name)
	b.img.configs.remove(b.edit, resource{metalog.ResourceTopic, t.Name})
	delete(b.topics, id)
	b.topic = nil
	return true
}

func (b *builder) putPartition(r *metalog.Partition) bool {
	if r.PartitionID < 0 || r.PartitionID >= maxPartition {
		return false
	}
	t := b.ownTopic(r.TopicID)
	if t == nil {
		return false
	}
	for len(t.Partitions) <= int(r.PartitionID) {
		t.Partitions = append(t.Partitions, absent)
	}
	p := &Partition{
		Replicas: b.share(r.Replicas), ISR: b.share(r.ISR), Adding: b.share(r.Adding), Removing: b.share(r.Removing),
		ELR: b.share(r.ELR), LastKnownELR: b.share(r.LastKnownELR), Leader: r.Leader, LeaderEpoch: r.LeaderEpoch,
		PartitionEpoch: r.PartitionEpoch, Recovering: r.RecoveryState == metalog.Recovering,
	}
	p.Directories = b.shareDirs(directories(r.Directories, r.Replicas, nil))
	b.replace(t, r.PartitionID, p)
	return true
}

// changePartition applies R1.13 and R6.8: every change bumps the partition
// epoch, naming a leader bumps the leader epoch.
func (b *builder) changePartition(r *metalog.PartitionChange) bool {
	t := b.ownTopicOf(r)
	if t == nil {
		return false
	}
	old := t.Partitions[r.PartitionID]
	p := *old
	p.PartitionEpoch++
	if r.Leader != metalog.LeaderUnchanged {
		p.Leader = r.Leader
		p.LeaderEpoch++
	}
	if r.RecoveryState != metalog.RecoveryUnchanged {
		p.Recovering = r.RecoveryState == metalog.Recovering
	}
	b.setIDs(&p.ISR, r.ISR)
	b.setIDs(&p.Replicas, r.Replicas)
	b.setIDs(&p.Adding, r.Adding)
	b.setIDs(&p.Removing, r.Removing)
	b.setIDs(&p.ELR, r.ELR)
	b.setIDs(&p.LastKnownELR, r.LastKnownELR)
	if r.Directories != nil || r.Replicas != nil {
		p.Directories = b.shareDirs(directories(r.Directories, p.Replicas, old))
	}
	b.replace(t, r.PartitionID, &p)
	return true
}

// ownTopicOf returns the topic of the change if the partition is there.
func (b *builder) ownTopicOf(r *metalog.PartitionChange) *Topic {
	t, ok := b.img.byID.get(r.TopicID)
	if !ok || r.PartitionID < 0 || int(r.PartitionID) >= len(t.Partitions) || t.Partitions[r.PartitionID] == absent {
		return nil
	}
	return b.ownTopic(r.TopicID)
}

// setIDs sets a list that the record tells; nil tells nothing.
func (b *builder) setIDs(to *[]model.BrokerID, list []model.BrokerID) {
	if list != nil {
		*to = b.share(list)
	}
}

// directories returns one directory per replica: those told, or else what the
// partition had for the same replica, or MIGRATING, which counts as online.
func directories(told []model.UUID, replicas []model.BrokerID, old *Partition) []model.UUID {
	if len(told) == len(replicas) {
		return told
	}
	dirs := make([]model.UUID, len(replicas))
	for i, id := range replicas {
		if i < len(told) {
			dirs[i] = told[i]
		} else if told == nil && old != nil {
			if at := slices.Index(old.Replicas, id); at >= 0 {
				dirs[i] = old.Directories[at]
			}
		}
	}
	return dirs
}

// clearELR empties the ELR of one topic or of all; false if the topic is absent.
func (b *builder) clearELR(name string) bool {
	if name != "" {
		t, ok := b.img.byName.get(name)
		if ok {
			b.clearTopicELR(t)
		}
		return ok
	}
	// A tree must not be walked while it changes.
	for _, t := range slices.Collect(values(b.img.byName.all())) {
		b.clearTopicELR(t)
	}
	return true
}

func (b *builder) clearTopicELR(t *Topic) {
	for n, p := range t.Partitions {
		if len(p.ELR) == 0 && len(p.LastKnownELR) == 0 {
			continue
		}
		change := metalog.NewPartitionChange(t.ID, int32(n))
		change.ELR, change.LastKnownELR = []model.BrokerID{}, []model.BrokerID{}
		b.changePartition(change)
	}
}

// replace puts p in the place of the partition.
func (b *builder) replace(t *Topic, id int32, p *Partition) {
	b.account(t.ID, id, t.Partitions[id], p)
	t.Partitions[id] = p
}

// account keeps the counts and sets that follow from the partitions when old
// becomes p; nil and absent are none.
func (b *builder) account(topic model.UUID, id int32, old, p *Partition) {
	key := model.TopicIDPartition{TopicID: topic, Partition: id}
	b.count(old, -1)
	b.count(p, +1)
	if was, is := isLeaderless(old), isLeaderless(p); was != is {
		mark(&b.img.leaderless, b.edit, key, is)
	}
	if was, is := isMoving(old), isMoving(p); was != is {
		mark(&b.img.moving, b.edit, key, is)
	}
}

func isLeaderless(p *Partition) bool { return p != nil && p != absent && p.Leader == model.NoBroker }

func isMoving(p *Partition) bool { return p != nil && len(p.Adding)+len(p.Removing) > 0 }

func mark(set *tree[model.TopicIDPartition, struct{}], e *edit, key model.TopicIDPartition, in bool) {
	if in {
		set.set(e, key, struct{}{})
	} else {
		set.remove(e, key)
	}
}

func (b *builder) count(p *Partition, n int) {
	if p == nil || p == absent {
		return
	}
	if b.loads == nil {
		b.loads = map[model.BrokerID]load{}
	}
	b.img.partitions += n
	for _, id := range p.Replicas {
		l := b.loads[id]
		l.replicas += n
		b.loads[id] = l
	}
	if p.Leader != model.NoBroker {
		l := b.loads[p.Leader]
		l.leads += n
		b.loads[p.Leader] = l
	}
}

// share returns a list equal to the given one, nil if that is empty. Lists of
// one batch that are equal become one, which keeps a loaded snapshot small.
func (b *builder) share(list []model.BrokerID) []model.BrokerID {
	if len(list) == 0 {
		return nil
	}
	h := hashStart
	for _, id := range list {
		h = mix(h, uint64(id))
	}
	if same, ok := b.lists[h]; ok && slices.Equal(same, list) {
		return same
	}
	if b.lists == nil {
		b.lists = map[uint64][]model.BrokerID{}
	}
	b.lists[h] = list
	return list
}

// shareDirs is share for directories.
func (b *builder) shareDirs(list []model.UUID) []model.UUID {
	h := hashStart
	for i := range list {
		for _, c := range list[i] {
			h = mix(h, uint64(c))
		}
	}
	if same, ok := b.dirs[h]; ok && slices.Equal(same, list) {
		return same
	}
	if b.dirs == nil {
		b.dirs = map[uint64][]model.UUID{}
	}
	b.dirs[h] = list
	return list
}

// The hash of FNV-1a, over words.
const hashStart uint64 = 14695981039346656037

func mix(h, v uint64) uint64 { return (h ^ v) * 1099511628211 }
