package image

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Apply returns the image after one batch of records; end is the offset after
// the last, epoch that of the batch. Records inside a transaction show only
// after its end. Apply never fails: see Ignored. The image keeps lists of the
// records, which must not change afterwards.
func (i *Image) Apply(batch []metalog.Record, end model.Offset, epoch model.Epoch) *Image {
	shown, open := i, i.shadow != nil
	b := newBuilder(i)
	if open {
		b = newBuilder(i.shadow)
	}
	base := end - model.Offset(len(batch))
	for k, rec := range batch {
		switch rec.(type) {
		case *metalog.BeginTransaction:
			if open {
				b.img.ignored++
				continue
			}
			if k > 0 {
				b.img.end, b.img.epoch = base+model.Offset(k), epoch
			}
			shown, open = b.finish(), true
			b = newBuilder(shown)
		case *metalog.EndTransaction:
			b.ignoreUnless(open)
			open = false
		case *metalog.AbortTransaction:
			if open {
				b = newBuilder(shown)
			} else {
				b.img.ignored++
			}
			open = false
		default:
			b.apply(rec)
		}
	}
	return publish(b, shown, open, end, epoch)
}

// publish returns the image after a batch: what b built or, while a transaction
// is open, what was shown before it with what b built in its shadow.
func publish(b *builder, shown *Image, open bool, end model.Offset, epoch model.Epoch) *Image {
	b.img.end, b.img.epoch, b.img.read, b.img.readEpoch = end, epoch, end, epoch
	built := b.finish()
	if !open {
		return built
	}
	out := *shown
	out.shadow, out.read, out.readEpoch = built, end, epoch
	return &out
}

// ApplyControl returns the image after one control batch; end is the offset
// after its last record. A control record is of no transaction: it shows at once.
func (i *Image) ApplyControl(batch []metalog.Control, end model.Offset, epoch model.Epoch) *Image {
	out := *i
	for _, rec := range batch {
		switch rec := rec.(type) {
		case *metalog.KRaftVersion:
			out.kraft = rec.Level
		case *metalog.KRaftVoters:
			out.voters = rec.Voters
		}
	}
	out.read, out.readEpoch = end, epoch
	if out.shadow == nil {
		out.end, out.epoch = end, epoch
		return &out
	}
	shadow := *out.shadow
	shadow.kraft, shadow.voters = out.kraft, out.voters
	out.shadow = &shadow
	return &out
}

// builder changes a copy of an image, which nobody else sees until finish.
type builder struct {
	img     Image
	edit    *edit
	topic   *Topic                      // the last one that was changed
	topics  map[model.UUID]*Topic       // all that were changed, hence copied
	configs map[resource]bool           // likewise
	loads   map[model.BrokerID]load     // to be added to those of the image
	lists   map[uint64][]model.BrokerID // to share equal lists of one batch
	dirs    map[uint64][]model.UUID
}

func newBuilder(i *Image) *builder {
	b := &builder{img: *i, edit: new(edit)}
	b.img.shadow = nil
	return b
}

// finish returns the image. The builder must not be used any more.
func (b *builder) finish() *Image {
	for id, change := range b.loads {
		if change == (load{}) {
			continue
		}
		sum, _ := b.img.loads.get(id)
		sum.replicas += change.replicas
		sum.leads += change.leads
		if sum == (load{}) {
			b.img.loads.remove(b.edit, id)
		} else {
			b.img.loads.set(b.edit, id, sum)
		}
	}
	b.loads = nil
	return &b.img
}

// ignoreUnless counts the record as ignored when what it refers to is not there.
func (b *builder) ignoreUnless(ok bool) {
	if !ok {
		b.img.ignored++
	}
}

// apply changes the image by one record that is not of a transaction's frame.
func (b *builder) apply(rec metalog.Record) {
	switch rec := rec.(type) {
	case *metalog.PartitionChange:
		b.ignoreUnless(b.changePartition(rec))
	case *metalog.Partition:
		b.ignoreUnless(b.putPartition(rec))
	case *metalog.Topic:
		b.putTopic(rec)
	case *metalog.RemoveTopic:
		b.ignoreUnless(b.removeTopic(rec.TopicID))
	case *metalog.ClearELR:
		b.ignoreUnless(b.clearELR(rec.TopicName))
	case *metalog.Config:
		b.setConfig(rec)
	case *metalog.FeatureLevel:
		b.setFeature(rec)
	case *metalog.ProducerIDs:
		b.img.nextProducerID = rec.NextProducerID
	case *metalog.RegisterController:
		b.putController(rec)
	case *metalog.UnregisterController:
		at, ok := findController(b.img.controllers, rec.ControllerID)
		b.ignoreUnless(ok)
		b.img.controllers = without(b.img.controllers, at, ok)
	case *metalog.NoOp, *metalog.ZkMigrationState:
	default:
		b.applyBrokerOrSecurity(rec)
	}
}

func (b *builder) applyBrokerOrSecurity(rec metalog.Record) {
	switch rec := rec.(type) {
	case *metalog.RegisterBroker:
		b.putBroker(rec)
	case *metalog.BrokerRegistrationChange:
		b.changeBroker(rec.BrokerID, rec.BrokerEpoch, func(n *Broker) { mergeBroker(n, rec) })
	case *metalog.FenceBroker:
		b.changeBroker(rec.BrokerID, rec.BrokerEpoch, func(n *Broker) { n.Fenced = true })
	case *metalog.UnfenceBroker:
		b.changeBroker(rec.BrokerID, rec.BrokerEpoch, func(n *Broker) { n.Fenced = false })
	case *metalog.UnregisterBroker:
		at, ok := findBroker(b.img.brokers, rec.BrokerID)
		ok = ok && b.img.brokers[at].Epoch == rec.BrokerEpoch
		b.ignoreUnless(ok)
		b.img.brokers = without(b.img.brokers, at, ok)
	case *metalog.ClientQuota:
		b.setQuota(rec)
	case *metalog.AccessControlEntry:
		b.img.acls.set(b.edit, rec.ID, rec)
	case *metalog.RemoveAccessControlEntry:
		b.img.acls.remove(b.edit, rec.ID)
	case *metalog.UserScramCredential:
		b.img.credentials.set(b.edit, credential{rec.Name, rec.Mechanism}, rec)
	case *metalog.RemoveUserScramCredential:
		b.img.credentials.remove(b.edit, credential{rec.Name, rec.Mechanism})
	case *metalog.DelegationToken:
		b.img.tokens.set(b.edit, rec.TokenID, rec)
	case *metalog.RemoveDelegationToken:
		b.img.tokens.remove(b.edit, rec.TokenID)
	default:
		b.img.ignored++
	}
}

// with returns a copy of the list in which v is at the place at: instead of what
// is there if found, else before it.
func with[T any](list []T, at int, found bool, v T) []T {
	if found {
		list = slices.Clone(list)
		list[at] = v
		return list
	}
	return slices.Insert(slices.Clip(list), at, v)
}

// without returns a copy of the list without the place at, or the list itself if
// not found.
func without[T any](list []T, at int, found bool) []T {
	if !found {
		return list
	}
	return slices.Delete(slices.Clone(list), at, at+1)
}

func (b *builder) putBroker(r *metalog.RegisterBroker) {
	at, found := findBroker(b.img.brokers, r.BrokerID)
	b.img.brokers = with(b.img.brokers, at, found, &Broker{
		ID: r.BrokerID, Epoch: r.BrokerEpoch, Incarnation: r.IncarnationID, Endpoints: r.Endpoints,
		Features: r.Features, Rack: r.Rack, Fenced: r.Fenced, InControlledShutdown: r.InControlledShutdown,
		Directories: r.LogDirs, Cordoned: r.CordonedLogDirs,
	})
}

// changeBroker changes a copy of the broker, if its epoch is the given one.
func (b *builder) changeBroker(id model.BrokerID, epoch model.BrokerEpoch, change func(*Broker)) {
	at, ok := findBroker(b.img.brokers, id)
	if !ok || b.img.brokers[at].Epoch != epoch {
		b.img.ignored++
		return
	}
	n := *b.img.brokers[at]
	change(&n)
	b.img.brokers = with(b.img.brokers, at, true, &n)
}

func mergeBroker(n *Broker, r *metalog.BrokerRegistrationChange) {
	if r.Fenced != metalog.FencedUnchanged {
		n.Fenced = r.Fenced == metalog.FencedSet
	}
	if r.InControlledShutdown != 0 {
		n.InControlledShutdown = r.InControlledShutdown > 0
	}
	if len(r.LogDirs) > 0 {
		n.Directories = r.LogDirs
	}
	if r.CordonedLogDirs != nil {
		n.Cordoned = r.CordonedLogDirs
	}
}

func (b *builder) putController(r *metalog.RegisterController) {
	at, found := findController(b.img.controllers, r.ControllerID)
	b.img.controllers = with(b.img.controllers, at, found, &Controller{
		ID: r.ControllerID, Incarnation: r.IncarnationID, Endpoints: r.Endpoints, Features: r.Features,
		ZkMigrationReady: r.ZkMigrationReady,
	})
}

func (b *builder) setFeature(r *metalog.FeatureLevel) {
	at, found := findFeature(b.img.features, r.Name)
	if r.FeatureLevel == 0 {
		b.img.features = without(b.img.features, at, found)
		return
	}
	b.img.features = with(b.img.features, at, found, Feature{r.Name, r.FeatureLevel})
}

func (b *builder) setConfig(r *metalog.Config) {
	key := resource{r.ResourceType, r.ResourceName}
	m, ok := b.img.configs.get(key)
	if r.Value == nil && (!ok || len(m) == 1 && hasKey(m, r.Name)) {
		b.img.configs.remove(b.edit, key)
		return
	}
	if !ok || !b.configs[key] {
		copied := make(map[string]string, len(m)+1)
		maps.Copy(copied, m)
		m = copied
		if b.configs == nil {
			b.configs = map[resource]bool{}
		}
		b.configs[key] = true
		b.img.configs.set(b.edit, key, m)
	}
	if r.Value == nil {
		delete(m, r.Name)
	} else {
		m[r.Name] = *r.Value
	}
}

func hasKey[V any](m map[string]V, k string) bool { _, ok := m[k]; return ok }

func (b *builder) setQuota(r *metalog.ClientQuota) {
	key, entity := quotaKey(r.Entity)
	q := &quota{entity: entity, values: map[string]float64{}}
	if old, ok := b.img.quotas.get(key); ok {
		maps.Copy(q.values, old.values)
	}
	if r.Remove {
		delete(q.values, r.Key)
	} else {
		q.values[r.Key] = r.Value
	}
	if len(q.values) == 0 {
		b.img.quotas.remove(b.edit, key)
	} else {
		b.img.quotas.set(b.edit, key, q)
	}
}

// quotaKey returns one string for all orders of the entity's parts, and the
// parts in that order.
func quotaKey(parts []metalog.QuotaEntity) (string, []metalog.QuotaEntity) {
	parts = slices.SortedFunc(slices.Values(parts), func(a, b metalog.QuotaEntity) int {
		return cmp.Compare(a.EntityType, b.EntityType)
	})
	var key []byte
	for _, p := range parts {
		key = append(append(key, p.EntityType...), 0)
		if p.EntityName != nil {
			key = append(append(key, 1), *p.EntityName...)
		}
		key = append(key, 0)
	}
	return string(key), parts
}
