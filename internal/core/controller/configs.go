package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// resource names what a configuration belongs to.
type resource struct {
	kind ResourceType
	name string
}

// edit is what a request wants of one key; a nil value deletes it.
type edit struct {
	key   string
	value *string
}

// edited is the resources of one request: each may be named once.
type edited struct {
	d       *decision
	seen    map[resource]bool
	changed []resource
}

// take edits one resource, unless no refuses it already.
func (e *edited) take(res resource, edits []edit, no *refusal) *refusal {
	if e.seen[res] {
		return refuse(model.ErrInvalidRequest, "Each resource must appear at most once.")
	}
	e.seen[res] = true
	if no == nil {
		no = e.d.edit(res, edits)
	}
	if no == nil {
		e.changed = append(e.changed, res)
	}
	return no
}

// alterConfigs answers an AlterConfigs, which states all overrides of a
// resource: what it does not name goes back to its default. Errors, for a
// resource: those of checkEdits, INVALID_REQUEST. KIP-133.
func (s *State) alterConfigs(c Call, r *kmsg.AlterConfigsRequest) Result {
	resp := kmsg.NewPtrAlterConfigsResponse()
	resp.Version = r.Version
	e := edited{d: s.decide(c), seen: map[resource]bool{}}
	for _, rr := range r.Resources {
		res := resource{ResourceType(rr.ResourceType), rr.ResourceName}
		edits, no := e.d.replacing(res, rr.Configs)
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = rr.ResourceType, rr.ResourceName
		if no = e.take(res, edits, no); no != nil {
			out.ErrorCode, out.ErrorMessage = no.code.Code(), &no.why
		}
		resp.Resources = append(resp.Resources, out)
	}
	return e.d.endConfigs(e.changed, r.ValidateOnly, resp)
}

// replacing turns a full list of overrides into edits.
func (d *decision) replacing(res resource, configs []kmsg.AlterConfigsRequestResourceConfig) ([]edit, *refusal) {
	var edits []edit
	named := map[string]bool{}
	for _, c := range configs {
		switch {
		case named[c.Name]:
			return nil, refuse(model.ErrInvalidRequest, "Config %s is given twice.", c.Name)
		case c.Value == nil:
			return nil, refuse(model.ErrInvalidRequest, "Null value not supported for : %s", c.Name)
		}
		named[c.Name] = true
		edits = append(edits, edit{c.Name, c.Value})
	}
	for _, key := range slices.Sorted(maps.Keys(d.img.Config(int8(res.kind), res.name))) {
		if !named[key] {
			edits = append(edits, edit{key, nil})
		}
	}
	return edits, nil
}

// incrementalAlterConfigs answers an IncrementalAlterConfigs, which sets,
// deletes, appends to or subtracts from single keys. Errors, for a resource:
// those of checkEdits, INVALID_REQUEST, and INVALID_CONFIG where a list is
// needed. KIP-339.
func (s *State) incrementalAlterConfigs(c Call, r *kmsg.IncrementalAlterConfigsRequest) Result {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	resp.Version = r.Version
	e := edited{d: s.decide(c), seen: map[resource]bool{}}
	for _, rr := range r.Resources {
		res := resource{ResourceType(rr.ResourceType), rr.ResourceName}
		edits, no := e.d.editing(res, rr.Configs)
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = rr.ResourceType, rr.ResourceName
		if no = e.take(res, edits, no); no != nil {
			out.ErrorCode, out.ErrorMessage = no.code.Code(), &no.why
		}
		resp.Resources = append(resp.Resources, out)
	}
	return e.d.endConfigs(e.changed, r.ValidateOnly, resp)
}

// editing turns operations into edits.
func (d *decision) editing(res resource, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]edit, *refusal) {
	var edits []edit
	named := map[string]bool{}
	for _, op := range ops {
		if named[op.Name] {
			return nil, refuse(model.ErrInvalidRequest, "Error due to duplicate config keys: %s", op.Name)
		}
		named[op.Name] = true
		if op.Op == kmsg.IncrementalAlterConfigOpDelete {
			edits = append(edits, edit{op.Name, nil})
			continue
		}
		if op.Value == nil {
			return nil, refuse(model.ErrInvalidRequest, "Null value not supported for : %s", op.Name)
		}
		switch op.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			edits = append(edits, edit{op.Name, op.Value})
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			value, no := d.editList(res, op)
			if no != nil {
				return nil, no
			}
			edits = append(edits, edit{op.Name, &value})
		default:
			return nil, refuse(model.ErrInvalidRequest, "Unknown operation %d for config %s.", op.Op, op.Name)
		}
	}
	return edits, nil
}

// editList adds entries to a list, or takes them out.
func (d *decision) editList(res resource, op kmsg.IncrementalAlterConfigsRequestResourceConfig) (string, *refusal) {
	list, value := d.s.cfg.Configs.IsList(res.kind, op.Name)
	if !list {
		return "", refuse(model.ErrInvalidConfig, "Can't %v to key %s because its type is not LIST.", op.Op, op.Name)
	}
	if v, ok := d.img.Config(int8(res.kind), res.name)[op.Name]; ok {
		value = v
	}
	have, given := splitList(value), splitList(*op.Value)
	if op.Op == kmsg.IncrementalAlterConfigOpSubtract {
		have = slices.DeleteFunc(have, func(x string) bool { return slices.Contains(given, x) })
		return strings.Join(have, ","), nil
	}
	for _, x := range given {
		if !slices.Contains(have, x) {
			have = append(have, x)
		}
	}
	return strings.Join(have, ","), nil
}

// splitList splits a list at its commas; an empty text is an empty list.
func splitList(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// edit emits the records of one resource's edits, if they are all good.
func (d *decision) edit(res resource, edits []edit) *refusal {
	if no := d.checkResource(res); no != nil {
		return no
	}
	have := d.img.Config(int8(res.kind), res.name)
	var keys []string
	var recs []metalog.Record
	for _, e := range edits {
		if no := d.checkEdit(res, e); no != nil {
			return no
		}
		if old, ok := have[e.key]; ok == (e.value != nil) && (!ok || old == *e.value) {
			continue
		}
		recs = append(recs, &metalog.Config{ResourceType: int8(res.kind), ResourceName: res.name, Name: e.key, Value: e.value})
		keys = append(keys, e.key)
	}
	if len(recs) > 0 {
		d.emit(recs...)
		d.because(Reason{Code: ReasonConfigChanged, Detail: fmt.Sprintf("configs of %s changed: %s", res, strings.Join(keys, ", "))})
	}
	return nil
}

// String names the resource in words.
func (r resource) String() string {
	switch {
	case r.kind == ResourceTopic:
		return "topic " + r.name
	case r.kind == ResourceBroker && r.name == "":
		return "all brokers"
	case r.kind == ResourceBroker:
		return "broker " + r.name
	case r.kind == ResourceGroup:
		return "group " + r.name
	}
	return "client metrics " + r.name
}

// checkResource says why a resource cannot carry configurations. Errors:
// UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED, INVALID_REQUEST.
func (d *decision) checkResource(res resource) *refusal {
	switch res.kind {
	case ResourceTopic:
		if d.img.TopicByName(res.name) == nil {
			return refuse(model.ErrUnknownTopicOrPartition, "The topic '%s' does not exist.", res.name)
		}
	case ResourceBroker:
		if res.name == "" {
			return nil
		}
		id, err := strconv.ParseInt(res.name, 10, 32)
		if err != nil {
			return refuse(model.ErrInvalidRequest, "Invalid broker name %s", res.name)
		}
		b := model.BrokerID(id)
		if d.img.Broker(b) == nil && d.img.Controller(b) == nil && b != d.s.cfg.NodeID {
			return refuse(model.ErrBrokerIDNotRegistered, "No broker with id %d found.", id)
		}
	case ResourceClientMetrics, ResourceGroup:
	default:
		return refuse(model.ErrInvalidRequest, "Resource type %d is not kept by the controller.", res.kind)
	}
	return nil
}

// checkEdit says why one edit is refused. While ELR is on, every broker must
// count with one and the same minimum of in-sync replicas, so it may not differ
// between brokers nor be left to their files. Errors: INVALID_CONFIG; for a value
// that a broker may not have, INVALID_REQUEST, as Kafka's brokers answer.
func (d *decision) checkEdit(res resource, e edit) *refusal {
	if d.elr && e.key == configMinISR && res.kind == ResourceBroker {
		if res.name != "" {
			return refuse(model.ErrInvalidConfig, "Broker-level %s cannot be altered while ELR is enabled.", configMinISR)
		}
		if e.value == nil {
			return refuse(model.ErrInvalidConfig, "Cluster-level %s cannot be removed while ELR is enabled.", configMinISR)
		}
	}
	if e.value == nil {
		return nil
	}
	err := d.s.cfg.Configs.Validate(res.kind, res.name, e.key, *e.value)
	switch {
	case err == nil:
		return nil
	case res.kind == ResourceBroker:
		return refuse(model.ErrInvalidRequest, "%s", err.Error())
	}
	return refuse(model.ErrInvalidConfig, "%s", err.Error())
}

// endConfigs ends a request that changed configurations: partitions for which a
// new value matters are decided again in the same breath.
func (d *decision) endConfigs(changed []resource, validateOnly bool, resp kmsg.Response) Result {
	if validateOnly {
		d.drop()
		return d.result(resp)
	}
	if len(d.recs) == 0 {
		return d.result(resp)
	}
	before := d.settings(changed)
	d.settle()
	after := d.settings(changed)
	for i, res := range changed {
		if before[i] == after[i] {
			continue
		}
		if res.kind == ResourceTopic {
			d.reconsider(res.name)
			continue
		}
		for t := range d.img.Topics() {
			d.reconsider(t.Name)
		}
		break // every topic has been looked at
	}
	return d.result(resp)
}

// settings returns, for each resource, its values of the keys that decide about
// partitions; those of another broker decide nothing here.
func (d *decision) settings(of []resource) [][2]string {
	out := make([][2]string, len(of))
	for i, res := range of {
		if res.kind == ResourceTopic || res.kind == ResourceBroker && (res.name == "" || res.name == d.s.nodeName) {
			configs := d.img.Config(int8(res.kind), res.name)
			out[i] = [2]string{configs[configMinISR], configs[configUnclean]}
		}
	}
	return out
}

// reconsider looks at a topic whose settings changed. A lower minimum may end an
// ELR, since the high watermark may now move without its members; unclean
// elections, when switched on, find leaders at once.
func (d *decision) reconsider(topic string) {
	t := d.img.TopicByName(topic)
	if t == nil {
		return
	}
	for id, p := range t.Partitions {
		if p.Leader != model.NoBroker && len(p.ELR) == 0 {
			continue
		}
		c := d.change(t, int32(id))
		c.unclean = d.uncleanAllowed(topic)
		d.apply(c)
	}
}
