package metalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestARecordSurvivesItsHighestVersion(t *testing.T) {
	for _, rec := range samples() {
		got, err := Decode(Append(nil, rec, 33))
		if err != nil {
			t.Fatalf("%v: %v", rec.Type(), err)
		}
		if diff := cmp.Diff(rec, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", rec.Type(), diff)
		}
	}
}

func TestNullDiffersFromEmptyInAPartitionChange(t *testing.T) {
	change := NewPartitionChange(uuidOf(1), 3)
	change.ISR = []model.BrokerID{}
	rec, err := Decode(Append(nil, change, Level))
	if err != nil {
		t.Fatal(err)
	}
	got := rec.(*PartitionChange)
	if got.ISR == nil || len(got.ISR) != 0 {
		t.Errorf("ISR is %#v, want empty and not nil", got.ISR)
	}
	if got.ELR != nil || got.Replicas != nil || got.Directories != nil {
		t.Errorf("fields that were not told are not nil: %+v", got)
	}
	if got.Leader != LeaderUnchanged || got.RecoveryState != RecoveryUnchanged {
		t.Errorf("leader %d, recovery %d: not unchanged", got.Leader, got.RecoveryState)
	}
}

func TestDefaultsOfTaggedFieldsTakeNoBytes(t *testing.T) {
	b := Append(nil, NewPartitionChange(model.UUID{}, 0), Level)
	if want := 3 + 4 + 16 + 1; len(b) != want { // frame, partition, topic, no tags
		t.Errorf("%d bytes, want %d: %x", len(b), want, b)
	}
}

// The versions that clusters at a level can read, from Kafka's list of metadata
// versions: a row changes where a level of the head starts.
func TestNoVersionAboveTheLevelIsWritten(t *testing.T) {
	levels := []int16{7, 8, 11, 13, 14, 15, 17, 22, 23, 25, 29, 30, 33}
	table := map[Type][]int16{
		TypeRegisterBroker:            {1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4},
		TypePartition:                 {0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2},
		TypePartitionChange:           {0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2},
		TypeBrokerRegistrationChange:  {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3},
		TypeZkMigrationState:          {-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeUserScramCredential:       {-1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeRemoveUserScramCredential: {-1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeBeginTransaction:          {-1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeEndTransaction:            {-1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeAbortTransaction:          {-1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeDelegationToken:           {-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeRemoveDelegationToken:     {-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeRegisterController:        {-1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0},
		TypeClearELR:                  {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0},
		TypeUnregisterController:      {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0},
	}
	for _, rec := range samples() {
		row, ok := table[rec.Type()]
		if !ok {
			row = make([]int16, len(levels)) // version 0 from the start
		}
		for i, level := range levels {
			top, ok := maxVersion(rec.Type(), level)
			if top != row[i] || ok != (row[i] >= 0) {
				t.Errorf("%v at level %d: version %d, want %d", rec.Type(), level, top, row[i])
			}
			if ok {
				if b := Append(nil, rec, level); int16(b[2]) > row[i] {
					t.Errorf("%v at level %d: wrote version %d", rec.Type(), level, b[2])
				}
			} else if err := panicked(func() { Append(nil, rec, level) }); !strings.Contains(err, rec.Type().String()) {
				t.Errorf("%v at level %d: panic %q", rec.Type(), level, err)
			}
		}
	}
}

func panicked(fn func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	fn()
	return ""
}

func TestEveryTypeHasASample(t *testing.T) {
	have := map[Type]bool{}
	for _, rec := range samples() {
		have[rec.Type()] = true
	}
	for i, s := range schemas {
		if s != nil && !have[Type(i)] {
			t.Errorf("%s has no sample", s.name)
		}
		if s != nil && s.fresh().Type() != Type(i) {
			t.Errorf("%s makes a record of type %v", s.name, s.fresh().Type())
		}
	}
}

func TestARegistrationChangeTakesTheLowestVersion(t *testing.T) {
	dirs := []model.UUID{uuidOf(1)}
	for want, change := range []*BrokerRegistrationChange{
		{Fenced: FencedSet}, {InControlledShutdown: 1}, {LogDirs: dirs}, {CordonedLogDirs: []model.UUID{}},
	} {
		if b := Append(nil, change, 33); int(b[2]) != want {
			t.Errorf("%+v: version %d, want %d", change, b[2], want)
		}
	}
}

// notRecords are bytes that look like records and are none.
func notRecords() map[string][]byte {
	good := Append(nil, &Topic{"orders", uuidOf(1)}, Level)
	frame := func(b ...byte) []byte { return b }
	return map[string][]byte{
		"nothing":                 nil,
		"frame version 0":         append(frame(0), good[1:]...),
		"type 6":                  frame(1, 6, 0, 0),
		"type 30":                 frame(1, 30, 0, 0),
		"type 65536":              frame(1, 0x80, 0x80, 4, 0, 0),
		"version 1 of a topic":    append(frame(1, 2, 1), good[3:]...),
		"a trailing byte":         append(bytes.Clone(good), 0),
		"a varint of six bytes":   frame(0x81, 0x80, 0x80, 0x80, 0x80, 0),
		"a null name":             append(frame(1, 2, 0, 0), make([]byte, 17)...),
		"a name of 2 GiB":         append(frame(1, 2, 0, 0xff, 0xff, 0xff, 0xff, 7), make([]byte, 17)...),
		"a name of 32 KiB":        Append(nil, &Topic{Name: strings.Repeat("n", 1<<15)}, Level),
		"four billion replicas":   append(append(frame(1, 3, 0), make([]byte, 20)...), 0xff, 0xff, 0xff, 0xff, 0xf),
		"four billion endpoints":  append(append(frame(1, 0, 0), make([]byte, 28)...), 0xff, 0xff, 0xff, 0xff, 0xf),
		"four billion tags":       frame(1, 20, 0, 0xff, 0xff, 0xff, 0xff, 0xf),
		"a tag larger than left":  frame(1, 20, 0, 1, 5, 9, 0),
		"a tag that is too long":  frame(1, 23, 0, 1, 0, 3, 2, 'a', 'b'),
		"a tag that is too short": frame(1, 23, 0, 1, 0, 1, 2, 'a'),
	}
}

func TestWhatIsNotARecordIsRefused(t *testing.T) {
	for name, b := range notRecords() {
		if rec, err := Decode(b); err == nil {
			t.Errorf("%s: read as %+v", name, rec)
		}
	}
	good := Append(nil, &Topic{"orders", uuidOf(1)}, Level)
	for i := range good {
		if rec, err := Decode(good[:i]); err == nil {
			t.Errorf("the first %d bytes: read as %+v", i, rec)
		}
	}
}

func TestHostileSizesCostNoMemory(t *testing.T) {
	inputs := notRecords()
	for name, b := range inputs {
		if n := allocated(func() { _, _ = Decode(b) }); n > 64<<10 {
			t.Errorf("%s: %d bytes were allocated", name, n)
		}
	}
	batch := AppendBatch(nil, 5, 1, 9, []Record{&NoOp{}}, Level)
	binary.BigEndian.PutUint32(batch[57:], 1<<31-1)
	binary.BigEndian.PutUint32(batch[23:], 1<<31-2)
	resum(batch)
	if n := allocated(func() { _, _ = DecodeBatches(batch, func(Batch) error { return nil }) }); n > 64<<10 {
		t.Errorf("two billion records: %d bytes were allocated", n)
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAnEmptyListThatIsTheDefaultTakesNoBytes(t *testing.T) {
	none := Append(nil, &RegisterBroker{BrokerID: 1}, Level)
	if empty := Append(nil, &RegisterBroker{BrokerID: 1, LogDirs: []model.UUID{}}, Level); !bytes.Equal(none, empty) {
		t.Errorf("%x and %x", none, empty)
	}
}

func TestUnknownTaggedFieldsAreSkipped(t *testing.T) {
	b := []byte{1, 20, 0, 2, 7, 2, 0xaa, 0xbb, 0x80, 1, 1, 0xcc} // a NoOp with tags 7 and 128
	if rec, err := Decode(b); err != nil || rec.Type() != TypeNoOp {
		t.Errorf("%v, %v", rec, err)
	}
}

func TestControlRecordsSurvive(t *testing.T) {
	all := append(controlSamples(), leaderChangeV1())
	n, err := DecodeBatches(AppendControlBatch(nil, 40, 3, 77, all), func(b Batch) error {
		if b.Base != 40 || b.End != 40+model.Offset(len(all)) || b.Epoch != 3 || b.Timestamp != 77 || b.Records != nil {
			t.Errorf("batch %+v", b)
		}
		if diff := cmp.Diff(all, b.Control, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	if n == 0 || err != nil {
		t.Error(n, err)
	}
	key := func(typ byte) []byte { return []byte{0, 0, 0, typ} }
	for _, c := range []struct{ key, value []byte }{
		{key(0), nil}, {key(1), nil}, {key(7), nil}, {key(3)[:3], nil},
		{key(4), []byte{0, 1, 0}}, {key(4), []byte{0, 0}}, {key(4), []byte{0, 0, 0, 0}}, {key(2), []byte{0xff, 0xff, 0}},
	} {
		if rec, _, err := decodeControl(c.key, c.value); err == nil {
			t.Errorf("key %x value %x: read as %+v", c.key, c.value, rec)
		}
	}
}

func TestAVersionOneLeaderChangeTellsDirectories(t *testing.T) {
	var w writer
	got, err := DumpControl([]byte{0, 0, 0, 2}, w.appendControl(nil, leaderChangeV1()))
	want := `LeaderChange: {"version":1,"leaderId":2,"voters":[` +
		`{"voterId":1,"voterDirectoryId":"AQAAAAAAAEAAAAAAAAAAAQ"},{"voterId":2,"voterDirectoryId":"AgAAAAAAAEAAAAAAAAAAAg"}],` +
		`"grantingVoters":[{"voterId":2,"voterDirectoryId":"AgAAAAAAAEAAAAAAAAAAAg"}]}`
	if err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func BenchmarkDecodePartition(b *testing.B) {
	raw := Append(nil, benchPartition(), Level)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendPartition(b *testing.B) {
	rec, raw := benchPartition(), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		raw = Append(raw[:0], rec, Level)
	}
}

func benchPartition() *Partition {
	ids := []model.BrokerID{1, 2, 3}
	return &Partition{
		PartitionID: 1, TopicID: uuidOf(1), Replicas: ids, ISR: ids, Leader: 1,
		Directories: []model.UUID{uuidOf(1), uuidOf(2), uuidOf(3)},
	}
}

// BenchmarkBatch10k writes and reads one batch of 10,000 partition changes.
func BenchmarkBatch10k(b *testing.B) {
	recs := make([]Record, 10_000)
	for i := range recs {
		change := NewPartitionChange(uuidOf(1), int32(i))
		change.ISR, change.Leader = []model.BrokerID{2, 3}, 2
		recs[i] = change
	}
	raw := []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		raw = AppendBatch(raw[:0], 0, 1, 1, recs, Level)
		if n, err := DecodeBatches(raw, func(Batch) error { return nil }); n == 0 || err != nil {
			b.Fatal(n, err)
		}
	}
	b.SetBytes(int64(len(raw)))
}
