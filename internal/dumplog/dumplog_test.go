package dumplog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/dumplog"
	"github.com/tidemark-log/tidemark/internal/record"
)

const fixtures = "../storage/testdata/kafka-4.4"

func dump(t *testing.T, name string, opts dumplog.Options) string {
	t.Helper()
	var out strings.Builder
	if err := dumplog.File(&out, name, opts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// compare shows the first line that differs.
func compare(t *testing.T, name, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w):
			t.Errorf("%s: %d lines, want %d", name, len(g), len(w))
			return
		case g[i] != w[i]:
			t.Errorf("%s line %d:\ngot  %s\nwant %s", name, i+1, g[i], w[i])
			return
		}
	}
}

func TestWePrintWhatKafkaPrints(t *testing.T) {
	deep := dumplog.Options{Deep: true}
	meta := dumplog.Options{Data: true, Decoder: dumplog.ClusterMeta}
	files := map[string]struct {
		dump string
		opts dumplog.Options
	}{
		"__cluster_metadata-0/00000000000000000000.log":                   {"cluster_metadata.log.txt", meta},
		"__cluster_metadata-0/00000000000000000299-0000000001.checkpoint": {"cluster_metadata.checkpoint.txt", meta},
		"__transaction_state-31/00000000000000000000.log":                 {"transaction_state-31.log.txt", dumplog.Options{Data: true, Decoder: dumplog.TransactionLog}},
	}
	dumps, err := filepath.Glob(fixtures + "/dump/events-0_*.txt")
	if err != nil || len(dumps) != 11 {
		t.Fatal(dumps, err)
	}
	for _, d := range dumps {
		name := strings.TrimSuffix(strings.Replace(filepath.Base(d), "_", "/", 1), ".txt")
		files[name] = struct {
			dump string
			opts dumplog.Options
		}{filepath.Base(d), deep}
	}
	want := map[string]string{}
	for name, f := range files {
		b, err := os.ReadFile(filepath.Join(fixtures, "dump", f.dump))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = string(b)
	}
	t.Chdir(fixtures + "/node1")
	for name, f := range files {
		compare(t, name, dump(t, name, f.opts), want[name])
	}
}

// logFile writes a log of the given batches.
func logFile(t *testing.T, content ...[]byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "00000000000000000000.log")
	var all []byte
	for _, c := range content {
		all = append(all, c...)
	}
	if err := os.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func batch(opts record.BatchOptions, pairs ...[2][]byte) []byte {
	b := record.NewBuilder(opts)
	for _, p := range pairs {
		b.Add(1000, p[0], p[1], record.HeaderField{Key: "h"})
	}
	return b.Bytes()
}

func TestDataIsPrintedAsText(t *testing.T) {
	opts := record.PlainOptions()
	opts.LogAppendTime = true
	name := logFile(t, batch(opts, [2][]byte{[]byte("k"), []byte("v")}, [2][]byte{nil, {}}, [2][]byte{{}, nil}))
	got := strings.Split(dump(t, name, dumplog.Options{Data: true}), "\n")
	want := []string{
		"| offset: 0 LogAppendTime: 1000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [h] key: k payload: v",
		"| offset: 1 LogAppendTime: 1000 keySize: -1 valueSize: 0 sequence: -1 headerKeys: [h] payload: ",
		"| offset: 2 LogAppendTime: 1000 keySize: 0 valueSize: -1 sequence: -1 headerKeys: [h] key: ",
	}
	compare(t, "records", strings.Join(got[3:6], "\n"), strings.Join(want, "\n"))
	got = strings.Split(dump(t, name, dumplog.Options{Data: true, SkipRecordMetadata: true}), "\n")
	if got[3] != "| key: k payload: v" {
		t.Errorf("%q", got[3])
	}
	if n := strings.Count(dump(t, name, dumplog.Options{}), "|"); n != 0 {
		t.Errorf("%d records without being asked", n)
	}
}

func TestDamageIsTold(t *testing.T) {
	good := batch(record.PlainOptions(), [2][]byte{[]byte("k"), []byte("v")})
	bad := append([]byte(nil), good...)
	bad[len(bad)-1] ^= 1
	bad[61] = 0x7e // a record longer than the batch
	name := logFile(t, good, bad, good[:40])
	got := dump(t, name, dumplog.Options{Deep: true})
	for _, want := range []string{"isvalid: true", "isvalid: false", "| the records cannot be read: ", "Found 40 invalid bytes at the end of 00000000000000000000.log\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestIndexesAreComparedWithTheirLog(t *testing.T) {
	first := batch(record.PlainOptions(), [2][]byte{nil, []byte("a")})
	second := append([]byte(nil), first...)
	record.Stamp(second, 1, 0)
	name := logFile(t, first, second)
	at := byte(len(first))
	write := func(suffix string, b []byte) string {
		n := strings.TrimSuffix(name, ".log") + suffix
		if err := os.WriteFile(n, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := write(".index", append([]byte{0, 0, 0, 1, 0, 0, 0, at}, make([]byte, 80)...))
	if got := dump(t, n, dumplog.Options{}); got != fmt.Sprintf("Dumping %s\noffset: 1 position: %d\n", n, at) {
		t.Errorf("a good index: %s", got)
	}
	n = write(".index", nil)
	if got := dump(t, n, dumplog.Options{}); got != fmt.Sprintf("Dumping %s\n%s is empty.\n", n, n) {
		t.Errorf("an empty index: %s", got)
	}
	n = write(".index", []byte{0, 0, 0, 7, 0, 0, 0, at, 0, 0, 0, 8, 0, 0, 0, 99})
	if got := dump(t, n, dumplog.Options{}); !strings.Contains(got, "Index offset: 7, log offset: 1\n") || !strings.Contains(got, "Index offset: 8, log offset: none\n") {
		t.Errorf("a bad index: %s", got)
	}
	n = write(".timeindex", append([]byte{0, 0, 0, 0, 0, 0, 0x03, 0xe8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0xe9, 0, 0, 0, 1}, make([]byte, 24)...))
	if got := dump(t, n, dumplog.Options{}); strings.Count(got, "timestamp: ") != 4 || !strings.Contains(got, "Index timestamp: 1001, log timestamp: 1000\n") {
		t.Errorf("a bad time index: %s", got)
	}
}

func TestGroupRecordsAreDecoded(t *testing.T) {
	key := kmsg.NewOffsetCommitKey()
	key.Version, key.Group, key.Topic, key.Partition = 1, "g", "t", 4
	value := kmsg.NewOffsetCommitValue()
	value.Version, value.Offset, value.LeaderEpoch, value.Metadata, value.CommitTimestamp = 3, 77, 2, "m<", 9
	group := kmsg.NewGroupMetadataKey()
	group.Version, group.Group = 2, "g"
	state := kmsg.NewGroupMetadataValue()
	state.Version, state.ProtocolType, state.Generation = 3, "consumer", 5
	m := kmsg.NewGroupMetadataValueMember()
	m.MemberID, m.ClientID, m.ClientHost, m.RebalanceTimeoutMillis, m.SessionTimeoutMillis = "m-1", "c", "/h", 300, 45
	m.Subscription = []byte{1}
	state.Members = append(state.Members, m)
	name := logFile(t, batch(record.PlainOptions(), [2][]byte{key.AppendTo(nil), value.AppendTo(nil)},
		[2][]byte{group.AppendTo(nil), state.AppendTo(nil)}, [2][]byte{group.AppendTo(nil), nil}, [2][]byte{{0, 99}, {0}}))
	got := strings.Split(dump(t, name, dumplog.Options{Data: true, Decoder: dumplog.Offsets, SkipRecordMetadata: true}), "\n")[3:]
	want := []string{
		`| key: {"type":"1","data":{"group":"g","topic":"t","partition":4}} payload: {"version":"3","data":{"offset":77,"leaderEpoch":2,"metadata":"m<","commitTimestamp":9}}`,
		`| key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"protocolType":"consumer","generation":5,"protocol":null,"leader":null,"currentStateTimestamp":-1,"members":[{"memberId":"m-1","groupInstanceId":null,"clientId":"c","clientHost":"/h","rebalanceTimeout":300,"sessionTimeout":45,"subscription":"AQ==","assignment":""}]}}`,
		`| key: {"type":"2","data":{"group":"g"}} payload: <DELETE>`,
	}
	compare(t, "groups", strings.Join(got[:3], "\n"), strings.Join(want, "\n"))
	if !strings.Contains(got[3], "unknown group log key of type 99") {
		t.Errorf("%q", got[3])
	}
}

// What consumers subscribed to and were assigned is printed in words, in the
// fields of its version; what cannot be read stays bytes.
func TestConsumersOfAGroupAreDecoded(t *testing.T) {
	sub, given := kmsg.NewConsumerMemberMetadata(), kmsg.NewConsumerMemberAssignment()
	sub.Topics, sub.UserData, sub.Generation, sub.Rack = []string{"t"}, []byte{1}, 4, kmsg.StringPtr("r")
	sub.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{0}}}
	given.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{2, 3}}, {Topic: "u"}}
	words := []string{`{"topics":["t"],"userData":"AQ=="}`}
	for _, more := range []string{`,"ownedPartitions":[{"topic":"t","partitions":[0]}]`, `,"generationId":4`, `,"rackId":"r"`} {
		words = append(words, strings.TrimSuffix(words[len(words)-1], "}")+more+"}")
	}
	assigned := `{"assignedPartitions":[{"topic":"t","partitions":[2,3]},{"topic":"u","partitions":[]}],"userData":null}`
	group := kmsg.NewGroupMetadataKey()
	group.Version, group.Group = 2, "g"
	show := func(protocolType string, m ...kmsg.GroupMetadataValueMember) string {
		state := kmsg.NewGroupMetadataValue()
		state.Version, state.ProtocolType, state.Members = 3, protocolType, m
		name := logFile(t, batch(record.PlainOptions(), [2][]byte{group.AppendTo(nil), state.AppendTo(nil)}))
		return dump(t, name, dumplog.Options{Data: true, Decoder: dumplog.Offsets, SkipRecordMetadata: true})
	}
	for v := range 4 {
		sub.Version, given.Version = int16(v), int16(v)
		m := kmsg.GroupMetadataValueMember{Subscription: sub.AppendTo(nil), Assignment: given.AppendTo(nil)}
		if got, want := show("consumer", m), `"subscription":`+words[v]+`,"assignment":`+assigned+"}]"; !strings.Contains(got, want) {
			t.Errorf("version %d: %s\nwithout %s", v, got, want)
		}
		if got := show("connect", m); strings.Contains(got, "assigned") {
			t.Errorf("another protocol was read as consumers': %s", got)
		}
		m.Subscription, m.Assignment = m.Subscription[:4], []byte{0, 9}
		if got, want := show("consumer", m), `"assignment":"AAk="`; !strings.Contains(got, want) || strings.Contains(got, "topics") {
			t.Errorf("damaged bytes: %s", got)
		}
	}
	if got := show("consumer"); !strings.Contains(got, `"members":[]`) {
		t.Errorf("a group without members: %s", got)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x.txt", "x.log", "0-1.checkpoint", "00000000000000000000.snapshot", "00000000000000000000.txnindex"} {
		full := filepath.Join(dir, name)
		if err := os.WriteFile(full, []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := dumplog.File(&out, full, dumplog.Options{}); err == nil {
			t.Errorf("%s was taken: %s", name, out.String())
		}
	}
	if err := dumplog.File(&strings.Builder{}, filepath.Join(dir, "none.log"), dumplog.Options{}); err == nil {
		t.Error("a missing file was taken")
	}
}
