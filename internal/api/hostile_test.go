package api

import (
	"math"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/wire"
)

// Requests that decode and make no sense are answered: wrong ids, names that
// repeat, numbers at the edges. No handler panics, and each answer decodes.
func TestNonsenseIsAnswered(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 2)
	w.createTopic("u", 1)
	for _, r := range wire.BrokerVersions.Advertised() {
		if r.Key == int16(kmsg.UpdateFeatures) || r.Key == int16(kmsg.UnregisterBroker) {
			continue // they would end the cluster that the others need
		}
		rapid.Check(t, func(rt *rapid.T) {
			req := wire.NewRequest(r.Key, rapid.Int16Range(r.Parse, r.Max).Draw(rt, "version"))
			version := req.GetVersion()
			nonsense(rt, reflect.ValueOf(req).Elem())
			req.SetVersion(version)
			if create, ok := req.(*kmsg.CreateTopicsRequest); ok {
				create.ValidateOnly = true
			}
			if produce, ok := req.(*kmsg.ProduceRequest); ok && produce.Acks == 0 {
				produce.Acks = 1 // else there is no answer
			}
			if _, err := w.client.Do(t.Context(), req); err != nil {
				rt.Fatalf("%s v%d: %v", kmsg.NameForKey(r.Key), version, err)
			}
		})
	}
}

// nonsense sets all fields of a request, often to what means something here.
func nonsense(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "UnknownTags" {
				nonsense(t, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "bytes"))
			return
		}
		n := rapid.IntRange(0, 3).Draw(t, "len")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			nonsense(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(rapid.IntRange(0, 1).Draw(t, "byte")))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			nonsense(t, v.Elem())
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "t", "u", "1", "2", "root", "retention.ms", "no such", offsetsTopic}).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		edge := int64(math.MaxInt64) >> (64 - v.Type().Bits())
		v.SetInt(rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 8, 16, -1, -2, -6, edge, -edge - 1}).Draw(t, "int"))
	case reflect.Uint16:
		v.SetUint(uint64(rapid.Uint16().Draw(t, "uint")))
	default:
		t.Fatalf("a field of kind %s", v.Kind())
	}
}
