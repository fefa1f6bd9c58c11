package sim

import (
	"os"
	"strings"
	"testing"
)

// scripted runs a plan of testdata and returns its trace.
func scripted(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := ReadScript(file)
	if err != nil {
		t.Fatal(err)
	}
	r, trace := traced(p)
	if r.Err != nil {
		t.Errorf("%s: %v", name, r.Err)
	}
	return trace
}

func TestABrokerWithANewDiskLeadsAgain(t *testing.T) {
	trace := scripted(t, "new_disk_leads.txt")
	_, after, _ := strings.Cut(trace, "broker 1 is fenced")
	if !strings.Contains(after, "topic-1-0: leader 1 -> 2 in epoch 1, clean") {
		t.Errorf("broker 2 does not lead when broker 1 dies:\n%s", trace)
	}
}

func TestALastKnownLeaderWithANewDiskIsNotElected(t *testing.T) {
	trace := scripted(t, "new_disk_of_the_last_leader.txt")
	before, _, found := strings.Cut(trace, "operator unclean elections")
	if !found || strings.Contains(before, "log truncated") {
		t.Errorf("logs are cut before an operator chose:\n%s", trace)
	}
}
