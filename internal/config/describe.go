package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Resource is a kind of thing that has configs, numbered as on the wire.
type Resource int8

// The kinds of resources, as DescribeConfigs numbers them.
const (
	TopicResource         Resource = 2
	BrokerResource        Resource = 4
	ClientMetricsResource Resource = 16
	GroupResource         Resource = 32
)

// Source says where a value came from, numbered as on the wire.
type Source int8

// The sources of a value, as DescribeConfigs numbers them.
const (
	FromTopic          Source = 1
	FromBroker         Source = 2 // dynamic, of one broker
	FromClusterDefault Source = 3 // dynamic, of all brokers
	FromFile           Source = 4
	FromDefault        Source = 5
	FromClientMetrics  Source = 7
	FromGroup          Source = 8
)

// Entry is one key of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil when it has none, or is sensitive
	Type      Type
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Synonyms  []Synonym // best first
	Doc       string    // in our own words; empty where the key means nothing here
}

// Synonym is one place that could have given the value.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Dynamic is what the metadata log holds for brokers: the defaults of the whole
// cluster, and what one broker has of its own.
type Dynamic struct {
	Cluster map[string]string // Config records of broker ""
	Broker  map[string]string // Config records of this broker
}

// BrokerDefaults merges the file's keys with dynamic ones, the broker's own
// last. It is what TopicConfig takes; the caller must not change the map.
func (c *Config) BrokerDefaults(dyn Dynamic) map[string]string {
	if len(dyn.Cluster) == 0 && len(dyn.Broker) == 0 {
		return c.static
	}
	all := maps.Clone(c.static)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, dyn.Cluster)
	maps.Copy(all, dyn.Broker)
	return all
}

// With returns the configuration as the dynamic keys change it. Keys that only
// a restart can change, or that do not parse, are left as they are.
func (c *Config) With(dyn Dynamic) *Config {
	changed := *c
	merged := maps.Clone(dyn.Cluster)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, dyn.Broker)
	for key, v := range merged {
		d, ok := Lookup(BrokerResource, key)
		if m := brokerMeanings[key]; ok && d.Dynamic && m.set != nil && d.check(v) == nil {
			m.set(&changed, v)
		}
	}
	return &changed
}

// ValidateBroker says whether a dynamic broker key may be set to value while
// the broker runs. The error is one sentence that names the key, the value and
// what is allowed.
func ValidateBroker(key, value string) error {
	d, ok := Lookup(BrokerResource, key)
	switch {
	case !ok:
		return unknownKey(BrokerResource, key)
	case !d.Dynamic || key == keyListeners || key == keySecurityMap:
		return fmt.Errorf("%s cannot change while a broker runs: set it in the broker's file and restart it", key)
	}
	if err := refuse(key, value); err != nil {
		return err
	}
	return d.check(value)
}

// ValidateGroup says whether a group may set key to value.
func ValidateGroup(key, value string) error {
	d, ok := Lookup(GroupResource, key)
	if !ok {
		return unknownKey(GroupResource, key)
	}
	return d.check(value)
}

// DescribeTopic lists every config of a topic, sorted by name.
func (c *Config) DescribeTopic(dyn Dynamic, overrides map[string]string) []Entry {
	return c.describe(Keys(TopicResource), FromTopic, dyn, overrides)
}

// DescribeGroup lists every config of a consumer group, sorted by name.
func (c *Config) DescribeGroup(dyn Dynamic, overrides map[string]string) []Entry {
	return c.describe(Keys(GroupResource), FromGroup, dyn, overrides)
}

// describe lists the keys of a resource whose overrides come from source and
// whose defaults come from broker keys.
func (c *Config) describe(defs []*Def, source Source, dyn Dynamic, overrides map[string]string) []Entry {
	out := make([]Entry, 0, len(defs))
	for _, d := range defs {
		e := newEntry(d)
		e.add(d.Name, overrides, source)
		c.addBrokerLayers(&e, d.Synonyms, dyn)
		e.addDefaults(d, d.Synonyms)
		e.settle(d)
		out = append(out, e)
	}
	return out
}

// DescribeBroker lists every config of this broker, sorted by name.
func (c *Config) DescribeBroker(dyn Dynamic) []Entry {
	defs := brokerKeys(dyn)
	out := make([]Entry, 0, len(defs))
	for _, d := range defs {
		e := newEntry(d)
		keys := family(d.Name)
		c.addBrokerLayers(&e, keys, dyn)
		if d.Name == keyBrokerID && len(e.Synonyms) == 0 {
			id := fmt.Sprint(c.NodeID)
			e.Synonyms = append(e.Synonyms, Synonym{Name: keyBrokerID, Value: &id, Source: FromFile})
		}
		e.addDefaults(d, keys)
		for len(e.Synonyms) > 0 && e.Synonyms[0].Name != d.Name { // what another key says is not what this one does
			e.Synonyms = e.Synonyms[1:]
		}
		e.settle(d)
		out = append(out, e)
	}
	return out
}

// brokerKeys lists what is described of a broker, sorted by name.
func brokerKeys(dyn Dynamic) []*Def {
	defs := slices.Clone(Keys(BrokerResource))
	for _, rate := range rateKeys {
		_, here := dyn.Broker[rate.Name]
		_, all := dyn.Cluster[rate.Name]
		if here || all {
			defs = append(defs, &rate)
		}
	}
	slices.SortFunc(defs, func(a, b *Def) int { return strings.Compare(a.Name, b.Name) })
	return defs
}

// family lists the broker keys of which the first that is set counts, such as
// log.retention.ms, .minutes and .hours; most keys stand alone.
func family(key string) []string {
	for _, d := range Keys(TopicResource) {
		if len(d.Synonyms) > 1 && slices.Contains(d.Synonyms, key) {
			return d.Synonyms
		}
	}
	return []string{key}
}

// DescribeDefaults lists the dynamic keys of all brokers that are set.
func DescribeDefaults(cluster map[string]string) []Entry {
	var out []Entry
	for _, key := range sortedKeys(cluster) {
		d, ok := Lookup(BrokerResource, key)
		if !ok {
			continue
		}
		e := newEntry(d)
		e.add(key, cluster, FromClusterDefault)
		e.settle(d)
		out = append(out, e)
	}
	return out
}

func newEntry(d *Def) Entry {
	return Entry{Name: d.Name, Type: d.Type, ReadOnly: !d.Dynamic, Sensitive: d.Sensitive, Doc: d.Doc, Source: FromDefault}
}

// addBrokerLayers adds the places where the file or the metadata log sets one
// of the keys.
func (c *Config) addBrokerLayers(e *Entry, keys []string, dyn Dynamic) {
	for _, layer := range []struct {
		values map[string]string
		source Source
	}{{dyn.Broker, FromBroker}, {dyn.Cluster, FromClusterDefault}, {c.static, FromFile}} {
		for _, key := range keys {
			e.add(key, layer.values, layer.source)
		}
	}
}

// addDefaults adds the default of the first of the keys, and those of the others
// if the first is set somewhere: then they are what would count without it.
func (e *Entry) addDefaults(d *Def, keys []string) {
	for i, key := range keys {
		b, ok := Lookup(BrokerResource, key)
		if !ok { // a group's key that lists itself
			b = d
		}
		set := slices.ContainsFunc(e.Synonyms, func(s Synonym) bool { return s.Name == keys[0] })
		if b.Default != nil && (i == 0 || set || key == d.Name) {
			e.Synonyms = append(e.Synonyms, Synonym{Name: b.Name, Value: b.Default, Source: FromDefault})
		}
	}
}

func (e *Entry) add(key string, values map[string]string, source Source) {
	if v, ok := values[key]; ok {
		e.Synonyms = append(e.Synonyms, Synonym{Name: key, Value: &v, Source: source})
	}
}

// settle takes the value and its source from the best synonym, else from the
// default, and hides what is secret.
func (e *Entry) settle(d *Def) {
	e.Value = d.Default
	if len(e.Synonyms) > 0 {
		best := e.Synonyms[0]
		e.Source = best.Source
		v := *best.Value
		if best.Name != d.Name && best.Source != FromDefault {
			v = converted(d.Name, best.Name, v)
		}
		e.Value = &v
	}
	if d.Sensitive {
		e.Value = nil
		for i := range e.Synonyms {
			e.Synonyms[i].Value = nil
		}
	}
	e.trim()
}

// trim drops the white space around values, as Kafka reads them.
func (e *Entry) trim() {
	if e.Value != nil && (e.Type != String && e.Type != Password) {
		v := strings.TrimSpace(*e.Value)
		e.Value = &v
	}
}
