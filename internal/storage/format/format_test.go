package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

const fixture = "../testdata/kafka-4.4/node1"

var events0 = model.TopicPartition{Topic: "events", Partition: 0}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesOfKafkaAreRead(t *testing.T) {
	get := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(fixture, name))
		must(t, err)
		return b
	}
	hw, err := format.ParseOffsets(get("replication-offset-checkpoint"))
	must(t, err)
	if len(hw) != 51 || hw[events0] != 1548 || hw[model.TopicPartition{Topic: "__transaction_state", Partition: 31}] != 26 {
		t.Errorf("%d marks, events %d", len(hw), hw[events0])
	}
	none, err := format.ParseOffsets(get("log-start-offset-checkpoint"))
	if err != nil || len(none) != 0 {
		t.Errorf("%v %v", none, err)
	}
	m, err := format.ParseMeta(get("meta.properties"))
	if err != nil || m.NodeID != 1 || m.ClusterID != "P0y1z4e6mz4kF-HprJgivA" || m.DirectoryID.String() != "hW4v64Ut4SysrP6gfwfIdw" {
		t.Errorf("%+v %v", m, err)
	}
	if again, err := format.ParseMeta(m.Format()); again != m || err != nil {
		t.Errorf("%+v %v", again, err)
	}
	epoch, err := format.ParseCleanShutdown(get(".kafka_cleanshutdown"))
	if err != nil || epoch != 199 {
		t.Errorf("%d %v", epoch, err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	offsets := func(b []byte) error { _, err := format.ParseOffsets(b); return err }
	epochs := func(b []byte) error { _, err := format.ParseEpochs(b); return err }
	meta := func(b []byte) error { _, err := format.ParseMeta(b); return err }
	id := func(b []byte) error { _, err := format.ParsePartitionMetadata(b); return err }
	clean := func(b []byte) error { _, err := format.ParseCleanShutdown(b); return err }
	snapshot := func(b []byte) error { _, err := format.ParseSnapshot(b); return err }
	txn := func(b []byte) error { _, err := format.ParseTxnIndex(b); return err }
	for _, c := range []struct {
		parse   func([]byte) error
		content string
	}{
		{offsets, ""}, {offsets, "0"}, {offsets, "1\n0\n"}, {offsets, "0\n1\n"}, {offsets, "0\n1\nt 0\n"}, {offsets, "0\n1\nt 0 x\n"},
		{offsets, "0\n1\nt -1 0\n"}, {offsets, "0\n1\nt 0 -1\n"}, {offsets, "0\n2\nt 0 1\n"}, {offsets, "0\n0\nt 0 1\n"}, {offsets, "0\nx\n"},
		{offsets, "0\n1\nt 0 1 2\n"}, {offsets, "0\n1\nt  0 1\n"}, {offsets, "0\n1\n 0 1\n"},
		{epochs, ""}, {epochs, "0\n1\n1\n"}, {epochs, "0\n2\n1 5\n1 6\n"}, {epochs, "0\n2\n1 5\n2 5\n"}, {epochs, "0\n1\n-1 5\n"}, {epochs, "0\n1\n1 99999999999999999999\n"},
		{meta, ""}, {meta, "version=2\ncluster.id=x\nnode.id=1\n"}, {meta, "version=1\nnode.id=1\n"}, {meta, "version=1\ncluster.id=x\n"},
		{meta, "version=1\ncluster.id=x\nnode.id=-1\n"}, {meta, "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n"},
		{id, ""}, {id, "version: 0\n"}, {id, "version: 1\ntopic_id: _DBuDsoeSKO92UnwpkTFlw"}, {id, "version: 0\ntopic_id: x"},
		{id, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"}, {id, "version: 0\nid: _DBuDsoeSKO92UnwpkTFlw"},
		{clean, ""}, {clean, "{}"}, {clean, `{"version":1,"brokerEpoch":1}`},
		{snapshot, ""}, {snapshot, "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
		{txn, "x"}, {txn, strings.Repeat("\x01", 34)}, {txn, strings.Repeat("\x00", 68)},
	} {
		if err := c.parse([]byte(c.content)); err == nil {
			t.Errorf("%q was taken", c.content)
		}
	}
}
