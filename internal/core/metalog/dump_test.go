package metalog

import (
	"math"
	"testing"
)

func TestDoublesArePrintedAsJavaPrintsThem(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 100: "100.0", 9999999: "9999999.0", 1e7: "1.0E7", 12345678.9: "1.23456789E7",
		0.001: "0.001", 0.0009: "9.0E-4", -2.5: "-2.5", 1.7976931348623157e308: "1.7976931348623157E308",
		math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`,
	} {
		if got := javaDouble(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
	if got := javaDouble(math.Copysign(0, -1)); got != "-0.0" {
		t.Errorf("minus zero: %s", got)
	}
	if got := javaDouble(math.NaN()); got != `"NaN"` {
		t.Errorf("not a number: %s", got)
	}
}

func TestStringsAreEscapedAsJacksonEscapesThem(t *testing.T) {
	p := &printer{}
	p.quote("a\"\\\b\f\n\r\t\x00\x1f\x7fé\u2028\xff/")
	if want := `"a\"\\\b\f\n\r\t\u0000\u001F` + "\x7fé\u2028\ufffd" + `/"`; string(p.b) != want {
		t.Errorf("got %s, want %s", p.b, want)
	}
}
