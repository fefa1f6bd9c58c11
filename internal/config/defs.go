package config

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Type is the type of a key's value, numbered as on the wire.
type Type int8

// The types of values, as DescribeConfigs numbers them.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

var typeNames = map[string]Type{
	"boolean": Boolean, "string": String, "int": Int, "short": Short, "long": Long,
	"double": Double, "list": List, "class": Class, "password": Password,
}

// Def describes one key of a resource.
type Def struct {
	Name      string
	Type      Type
	Default   *string // nil where Kafka has none
	Dynamic   bool    // may change while the node runs
	Internal  bool    // read, but described to nobody
	Sensitive bool
	Synonyms  []string // broker keys that give a topic's or group's key its default, best first
	Doc       string   // what it does here; empty where it means nothing
	Own       bool     // a key of Tidemark, not of Kafka

	valid string // see checkValid
}

// Each table is one resource's listing by an Apache Kafka 4.4.0 broker, with the
// ranges of its own definitions added. A line holds name, type, how it changes
// (read-only, dynamic or internal), sensitive or -, the default (- for none,
// =VALUE), the valid values (see checkValid) and the broker keys behind it.
//
//go:embed kafka44/*.tsv
var listing embed.FS

// table is the definitions of one resource.
type table struct {
	byName map[string]*Def
	shown  []*Def // sorted by name, without internal ones
}

var tables = sync.OnceValue(func() map[Resource]table {
	broker := readTable("broker", brokerMeanings)
	for _, own := range ownKeys {
		own.Doc = brokerMeanings[own.Name].doc
		broker.add(own)
	}
	for _, rate := range rateKeys {
		broker.add(rate)
	}
	all := map[Resource]table{
		BrokerResource:        broker,
		TopicResource:         readTable("topic", topicMeanings),
		GroupResource:         readTable("group", nil),
		ClientMetricsResource: readTable("client-metrics", nil),
	}
	for res, t := range all {
		slices.SortFunc(t.shown, func(a, b *Def) int { return strings.Compare(a.Name, b.Name) })
		all[res] = t
	}
	return all
})

// ownKeys are the keys that Kafka does not have.
var ownKeys = []Def{
	{Name: keyLivenessProbe, Type: Boolean, Default: text("true"), Own: true, valid: "-"},
	{Name: keyHTTPListen, Type: String, Default: text(""), Own: true, valid: "-"},
}

// rateKeys limit what replication sends and receives. Kafka knows them in the
// metadata log only, not in a file, so they are described where they are set.
var rateKeys = []Def{
	{Name: "leader.replication.throttled.rate", Type: Long, Dynamic: true, Internal: true, valid: "0.."},
	{Name: "follower.replication.throttled.rate", Type: Long, Dynamic: true, Internal: true, valid: "0.."},
	{Name: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Dynamic: true, Internal: true, valid: "0.."},
}

func text(s string) *string { return &s }

func (t *table) add(d Def) {
	t.byName[d.Name] = &d
	if !d.Internal {
		t.shown = append(t.shown, &d)
	}
}

// readTable reads one embedded listing. A line that does not parse is a bug of
// this package, so it panics.
func readTable(name string, meanings map[string]meaning) table {
	raw, err := listing.ReadFile("kafka44/" + name + ".tsv")
	if err != nil {
		panic(fmt.Sprintf("config: %v", err))
	}
	t := table{byName: map[string]*Def{}}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 7 || typeNames[f[1]] == 0 {
			panic(fmt.Sprintf("config: bad line in %s.tsv: %q", name, line))
		}
		d := Def{
			Name: f[0], Type: typeNames[f[1]], Dynamic: f[2] == "dynamic", Internal: f[2] == "internal",
			Sensitive: f[3] == "sensitive", valid: f[5], Doc: meanings[f[0]].doc,
		}
		if v, ok := strings.CutPrefix(f[4], "="); ok {
			d.Default = &v
		}
		if f[6] != "-" {
			d.Synonyms = strings.Fields(f[6])
		}
		t.add(d)
	}
	return t
}

// Lookup returns the definition of a key of a resource. Internal keys of Kafka
// are found too.
func Lookup(res Resource, key string) (*Def, bool) {
	d, ok := tables()[res].byName[key]
	return d, ok
}

// Keys lists the definitions of a resource that DescribeConfigs shows, sorted by
// name. The caller must not change the slice.
func Keys(res Resource) []*Def { return tables()[res].shown }
