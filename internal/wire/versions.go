package wire

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	keyApiVersions        = 18
	keyControlledShutdown = 7
	// FirstPrivateKey is where our own, unadvertised API keys begin. Their
	// headers are never flexible.
	FirstPrivateKey int16 = 10000
)

// Range is an inclusive range of versions of one API.
type Range struct {
	Key      int16
	Min, Max int16
	// Parse is the lowest version that we really answer. It is above Min only
	// for Produce, whose versions 0 to 2 are advertised for old clients'
	// feature tests and not served (case B6).
	Parse int16
}

// Versions is a table of what a listener serves, sorted by key.
type Versions struct {
	ranges []Range
	byKey  map[int16]Range
}

// NewVersions makes a table. A Range whose Parse is zero is served from Min on.
func NewVersions(ranges ...Range) *Versions {
	v := &Versions{ranges: slices.Clone(ranges), byKey: make(map[int16]Range, len(ranges))}
	for i := range v.ranges {
		r := &v.ranges[i]
		r.Parse = max(r.Parse, r.Min)
		v.byKey[r.Key] = *r
	}
	slices.SortFunc(v.ranges, func(a, b Range) int { return cmp.Compare(a.Key, b.Key) })
	return v
}

// Serves says whether requests of this key and version are answered.
func (v *Versions) Serves(key, version int16) bool {
	r, ok := v.byKey[key]
	return ok && version >= r.Parse && version <= r.Max
}

// Range looks up one key.
func (v *Versions) Range(key int16) (Range, bool) {
	r, ok := v.byKey[key]
	return r, ok
}

// Advertised lists what ApiVersions tells, sorted by key, without private keys.
func (v *Versions) Advertised() []Range {
	i, _ := slices.BinarySearchFunc(v.ranges, FirstPrivateKey, func(r Range, k int16) int { return cmp.Compare(r.Key, k) })
	return v.ranges[:i]
}

// flexibleFrom is the first flexible version of each of Kafka's keys, or
// neverFlexible.
var flexibleFrom = firstFlexibleVersions()

const neverFlexible int16 = 1<<15 - 1

func firstFlexibleVersions() []int16 {
	from := make([]int16, kmsg.MaxKey+1)
	for key := range from {
		from[key] = neverFlexible
		req := kmsg.RequestForKey(int16(key))
		if req == nil {
			continue
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			if req.SetVersion(v); req.IsFlexible() {
				from[key] = v
				break
			}
		}
	}
	return from
}

// Flexible says whether a request, and its response's body, of this key and
// version uses compact fields and tags (KIP-482). Private keys do not.
func Flexible(key, version int16) bool {
	return key >= 0 && int(key) < len(flexibleFrom) && version >= flexibleFrom[key]
}

// FlexibleResponseHeader says whether the response header has a tag section.
func FlexibleResponseHeader(key, version int16) bool {
	return key != keyApiVersions && Flexible(key, version)
}

// NewRequest makes an empty request of Kafka's key and version; nil when kmsg
// does not know them.
func NewRequest(key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	if req == nil || version < 0 || version > req.MaxVersion() {
		return nil
	}
	req.SetVersion(version)
	return req
}
