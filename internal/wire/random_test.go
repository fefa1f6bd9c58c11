package wire

import (
	"bytes"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func roundTrip(t *rapid.T, key, version int16) {
	req := NewRequest(key, version)
	fill(t, reflect.ValueOf(req).Elem())
	req.SetVersion(version)
	first := req.AppendTo(nil)
	again := NewRequest(key, version)
	if err := again.ReadFrom(first); err != nil {
		t.Fatalf("decode a request: %v", err)
	}
	if second := again.AppendTo(nil); !bytes.Equal(first, second) {
		t.Fatalf("request %x, after decoding %x", first, second)
	}
	resp := req.ResponseKind()
	fill(t, reflect.ValueOf(resp).Elem())
	resp.SetVersion(version)
	first = resp.AppendTo(nil)
	back := req.ResponseKind()
	back.SetVersion(version)
	if err := back.ReadFrom(first); err != nil {
		t.Fatalf("decode a response: %v", err)
	}
	if second := back.AppendTo(nil); !bytes.Equal(first, second) {
		t.Fatalf("response %x, after decoding %x", first, second)
	}
}

var tagsType = reflect.TypeFor[kmsg.Tags]()

// fill sets all fields of a kmsg struct to drawn values.
func fill(t *rapid.T, v reflect.Value) {
	if v.Type() == tagsType {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	case reflect.Slice:
		fillSlice(t, v)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 8, 20).Draw(t, "s"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "b"))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64Range(-1<<(bits-1), 1<<(bits-1)-1).Draw(t, "n"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(rapid.Uint64Range(0, 1<<v.Type().Bits()-1).Draw(t, "u"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "f"))
	default:
		t.Fatalf("a field of kind %s", v.Kind())
	}
}

func fillSlice(t *rapid.T, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "bytes"))
		return
	}
	n := rapid.IntRange(0, 2).Draw(t, "len")
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		fill(t, v.Index(i))
	}
}
