package sim

import (
	"strings"
	"testing"
)

func TestAWordThatAScriptGetsWrongIsAnsweredWithThoseThatItMayBe(t *testing.T) {
	const cluster = "seed 1\nnodes 3 combined\ntopics partitions=1 replication=3 min.isr=2 unclean=false\n"
	for script, want := range map[string]string{
		"at 1s kil 1\nend 2s\n":        `there is no verb "kil": the verbs are cut, delay, full, heal, jump, kill, loss, mend, narrow, pause,`,
		"workloads konsumer\nend 2s\n": `there is no workload "konsumer": the workloads are admin-bounce, admin-churn,`,
		"racks 2\n":                    "the script has no end",
	} {
		if _, err := ReadScript(strings.NewReader(cluster + script)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", script, err)
		}
	}
}
