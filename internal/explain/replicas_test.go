package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAReplicasAnswerSurvivesTheWire(t *testing.T) {
	want := Replicas{Broker: 2, NowMs: 7, Partitions: []Partition{{
		Topic: "orders", Partition: 3, Role: "leader", Leader: 2, LeaderEpoch: 5, PartitionEpoch: 9,
		HW: 4, LEO: 6, Replicas: []int32{2, 1}, ISR: []int32{2}, MinISR: 1,
		Remotes: []Remote{{ID: 1, LEO: 4, LastFetchMs: 12, LastCaughtUpMs: -1, Why: "its LEO 4 is below the HW"}},
	}}}
	body, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Replicas
	if err := Decode(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed on the wire (-sent +received):\n%s", diff)
	}
}

func TestAWrongLengthIsRefused(t *testing.T) {
	for _, body := range []string{"", "\x00\x00", "\x00\x00\x00\x03{}", "\xff\xff\xff\xff{}", "\x00\x00\x00\x01{}", "\x00\x00\x00\x01{"} {
		var v Replicas
		if err := Decode([]byte(body), &v); err == nil || !strings.HasPrefix(err.Error(), "decode ") {
			t.Errorf("body %q: error %v, want a refusal", body, err)
		}
	}
}
