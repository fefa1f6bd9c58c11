package config

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPropertiesAreReadAsJavaReadsThem(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"a=1\nb:2\nc 3\n d\t=\t4 \r\ne=5\rf=6":            {"a": "1", "b": "2", "c": "3", "d": "4 ", "e": "5", "f": "6"},
		"# x=1\n ! y=2\n\n\t\nz=#3":                       {"z": "#3"},
		"list=a,\\\n   b,\\\n\tc\nnext=1":                 {"list": "a,b,c", "next": "1"},
		"path=C:\\\\dir\\tx\\q\nu=\\u00e9\\u0041":         {"path": "C:\\dir\txq", "u": "éA"},
		"a\\ b\\=c\\:d=e=f:g":                             {"a b=c:d": "e=f:g"},
		"even=x\\\\\nother=y":                             {"even": "x\\", "other": "y"},
		"empty\nempty2=\nempty3 :":                        {"empty": "", "empty2": "", "empty3": ""},
		"cont=a\\\n# not a comment\nlast=end\\":           {"cont": "a# not a comment", "last": "end"},
		"listeners = PLAINTEXT://:9092 , CONTROLLER://:1": {"listeners": "PLAINTEXT://:9092 , CONTROLLER://:1"},
		"=v": {"": "v"},
		"":   {},
	} {
		pairs, err := parseProperties(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := map[string]string{}
		for _, p := range pairs {
			got[p.key] = p.value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestPrintedPropertiesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "values")
		delete(want, "") // Java can hold an empty key, a configuration cannot
		pairs, err := parseProperties(string(Properties(want)))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, p := range pairs {
			got[p.key] = p.value
		}
		if !maps.Equal(want, got) {
			t.Fatalf("printed %q, read %q", want, got)
		}
	})
}

// Files that are nearly right, and such that are not at all, give a configuration
// or an error, never both and never a panic.
func TestAnyFileIsReadOrRefused(t *testing.T) {
	texts := []string{"a=1\\\n b", "\\u12", "node.id=1\nprocess.roles=broker,controller\nlog.dirs=/d", "node.id: 1\nlog: {dirs: [a, b]}", "? [a\n- &x *x", "a: !!binary ="}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			cut := rapid.IntRange(at, min(len(text), at+3)).Draw(t, "cut")
			text = slices.Concat(text[:at], []byte(rapid.StringMatching(`[ -~\n\t\\:{}\[\]&*!=,]{0,4}`).Draw(t, "put")), text[cut:])
		}
		for _, name := range []string{"f.properties", "f.yaml"} {
			b := builder{values: map[string]string{}, lenient: map[string]bool{}}
			if b.file(name, text) == nil {
				if c, err := b.build(); (c == nil) == (err == nil) {
					t.Fatalf("config %v with error %v", c, err)
				}
			}
		}
	})
}
