package config

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

// Def describes one key of a resource.
type Def struct {
	Name      string
	Type      Type
	Default   *string // nil where Kafka has none
	Dynamic   bool    // may change while the node runs
	Sensitive bool
	Synonyms  []string // broker keys that give a topic's or group's key its default, best first
	Doc       string   // what it does here; empty where it means nothing
	Own       bool     // a key of Tidemark, not of Kafka
}

// Lookup returns the definition of a key of a resource.
func Lookup(res Resource, key string) (*Def, bool) { return nil, false }

// Keys lists the definitions of a resource, sorted by name.
func Keys(res Resource) []*Def { return nil }

// ValidateBroker says whether a dynamic broker key may be set to value while
// the broker runs. The error is one sentence that names the key, the value and
// what is allowed.
func ValidateBroker(key, value string) error { return nil }

// ValidateGroup says whether a group may set key to value.
func ValidateGroup(key, value string) error { return nil }
