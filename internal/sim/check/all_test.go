package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names and numbers are complete: what the specification lists is there, and no
// name stands twice.
func TestTheListIsComplete(t *testing.T) {
	var numbers []string
	seen := map[string]bool{}
	for _, a := range All() {
		if seen[a.Name] || a.Says == "" {
			t.Errorf("%s is there twice, or says nothing", a.Name)
		}
		seen[a.Name] = true
		numbers = append(numbers, strings.Split(a.Numbers, ", ")...)
	}
	have := "," + strings.Join(numbers, ",") + ","
	for letter, n := range map[string]int{"I": 32, "J": 8} {
		for i := 1; i <= n; i++ {
			if want := letter + itoa(i); !strings.Contains(have, ","+want+",") {
				t.Errorf("%s has no checker", want)
			}
		}
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// Each name stands in a test that shows its checker fail.
func TestEveryCheckerIsShownToFail(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(b)
	}
	for _, a := range All() {
		if !strings.Contains(tests.String(), `"`+a.Name+`"`) {
			t.Errorf("no test names %s", a.Name)
		}
	}
}
