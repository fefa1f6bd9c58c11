package config

import (
	"maps"
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

func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	f.Add("a=1\\\n b", false)
	f.Add("node.id: 1\nlog: {dirs: [a, b]}", true)
	f.Add("\\u12", false)
	f.Fuzz(func(t *testing.T, text string, yaml bool) {
		b := builder{values: map[string]string{}, lenient: map[string]bool{}}
		name := "f.properties"
		if yaml {
			name = "f.yaml"
		}
		if b.file(name, []byte(text)) == nil {
			if c, err := b.build(); (c == nil) == (err == nil) {
				t.Errorf("config %v with error %v", c, err)
			}
		}
	})
}
