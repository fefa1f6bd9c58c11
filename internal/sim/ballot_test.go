package sim

import (
	"bytes"
	"reflect"
	"testing"
)

func TestFamiliesByNameAreDrawnByNameOnly(t *testing.T) {
	for seed := range uint64(200) {
		if p := mustDraw(t, seed); p.NoELR {
			t.Fatalf("seed %d draws what nobody asked for", seed)
		}
	}
	for _, f := range byName {
		p, err := Draw(2, []string{f})
		if err != nil || len(p.Actions) == 0 {
			t.Fatalf("%s: %v, %v", f, p, err)
		}
		var b bytes.Buffer
		p.WriteScript(&b)
		if q, err := ReadScript(&b); err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%s: %v; read as %+v", f, err, q)
		}
	}
}
