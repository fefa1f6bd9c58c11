package metalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestACorruptBitIsFound(t *testing.T) {
	b := AppendBatch(nil, 5, 1, 9, []Record{&Topic{"orders", uuidOf(1)}, &NoOp{}}, Level)
	for i := range b {
		if i < 8 || i >= 12 && i < 16 {
			continue // base offset and epoch are outside the checksum, as in every v2 batch
		}
		bad := bytes.Clone(b)
		bad[i] ^= 0x40
		handed := 0
		n, err := DecodeBatches(bad, func(Batch) error { handed++; return nil })
		if handed != 0 || n != 0 {
			t.Errorf("byte %d: handed %d batches, %d bytes", i, handed, n)
		}
		// A larger length looks like a batch that is not whole yet.
		if err == nil && (i < 8 || i >= 12) {
			t.Errorf("byte %d: no error", i)
		}
	}
}

func TestAPartialBatchAtTheEndIsLeftOut(t *testing.T) {
	one := AppendBatch(nil, 5, 1, 9, []Record{&NoOp{}}, Level)
	two := AppendBatch(bytes.Clone(one), 6, 1, 9, []Record{&NoOp{}}, Level)
	for cut := len(one); cut < len(two); cut++ {
		handed := 0
		n, err := DecodeBatches(two[:cut], func(Batch) error { handed++; return nil })
		if n != len(one) || err != nil || handed != 1 {
			t.Fatalf("cut at %d: %d bytes, %d batches, %v", cut, n, handed, err)
		}
	}
}

func TestBatchesAreOrderedAndEndsAreExclusive(t *testing.T) {
	b := AppendBatch(nil, 5, 1, 9, []Record{&NoOp{}, &NoOp{}}, Level)
	b = AppendBatch(b, 7, 2, 11, []Record{&ClearELR{}}, Level)
	var got []Batch
	n, err := DecodeBatches(b, func(batch Batch) error { got = append(got, batch); return nil })
	if err != nil || n != len(b) || len(got) != 2 {
		t.Fatal(n, err, len(got))
	}
	if got[0].Base != 5 || got[0].End != 7 || got[1].Base != 7 || got[1].End != 8 || got[1].Epoch != 2 || got[1].Timestamp != 11 {
		t.Errorf("%+v", got)
	}
	if !bytes.Equal(append(bytes.Clone(got[0].Raw), got[1].Raw...), b) {
		t.Error("the raw batches are not the log")
	}
}

func TestAnErrorOfTheCallerEndsTheDecoding(t *testing.T) {
	b := AppendBatch(nil, 5, 1, 9, []Record{&NoOp{}}, Level)
	b = AppendBatch(b, 6, 1, 9, []Record{&NoOp{}}, Level)
	stop := errors.New("stop")
	n, err := DecodeBatches(b, func(batch Batch) error {
		if batch.Base == 6 {
			return stop
		}
		return nil
	})
	if n != len(b)/2 || !errors.Is(err, stop) {
		t.Error(n, err)
	}
}

// Each case breaks a rule of the metadata log in a batch whose checksum is right.
func TestABatchThatNoMetadataLogHasIsRefused(t *testing.T) {
	good := AppendBatch(nil, 5, 1, 9, []Record{&NoOp{}, &NoOp{}}, Level)
	for name, change := range map[string]func(b []byte){
		"magic 1":               func(b []byte) { b[16] = 1 },
		"compressed":            func(b []byte) { b[22] = 4 },
		"transactional":         func(b []byte) { b[22] = 16 },
		"no records":            func(b []byte) { binary.BigEndian.PutUint32(b[57:], 0) },
		"negative count":        func(b []byte) { binary.BigEndian.PutUint32(b[57:], 1<<31) },
		"two billion records":   func(b []byte) { binary.BigEndian.PutUint32(b[57:], 1<<31-1) },
		"wrong last delta":      func(b []byte) { binary.BigEndian.PutUint32(b[23:], 2) },
		"a record attribute":    func(b []byte) { b[62] = 1 },
		"a timestamp delta":     func(b []byte) { b[63] = 2 },
		"a wrong offset delta":  func(b []byte) { b[64] = 2 },
		"an empty key":          func(b []byte) { b[65] = 0 },
		"a value beyond itself": func(b []byte) { b[66] = 0x7e },
		"a header":              func(b []byte) { b[71] = 2 },
		"a record of size 0":    func(b []byte) { b[61] = 0 },
		"control records":       func(b []byte) { b[22] = attrControl },
	} {
		b := bytes.Clone(good)
		change(b)
		resum(b)
		n, err := DecodeBatches(b, func(Batch) error { return nil })
		if n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	short := bytes.Clone(good)
	binary.BigEndian.PutUint32(short[8:], 12)
	if n, err := DecodeBatches(short, func(Batch) error { return nil }); n != 0 || err == nil {
		t.Errorf("a length below the header: %d bytes, %v", n, err)
	}
	if text := panicked(func() { AppendBatch(nil, 0, 0, 0, nil, Level) }); text == "<nil>" {
		t.Error("an empty batch was written")
	}
}

func TestASnapshotOfManyBatchesIsReadBack(t *testing.T) {
	var out bytes.Buffer
	voters := &KRaftVoters{[]Voter{{ID: 1}}}
	w := NewSnapshotWriter(&out, 7, 100, 200, Level, &KRaftVersion{1}, voters)
	const n = 30_000
	for i := range n {
		rec := benchPartition()
		rec.PartitionID = int32(i)
		w.Add(rec)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var next int32
	batches := 0
	err := ReadSnapshot(out.Bytes(), func(b Batch) error {
		batches++
		if len(b.Raw) > maxBatch || b.Epoch != 7 || b.Timestamp != 200 {
			t.Errorf("batch of %d bytes, epoch %d, time %d", len(b.Raw), b.Epoch, b.Timestamp)
		}
		if batches == 1 && (len(b.Control) != 3 || b.Control[0].(*SnapshotHeader).LastContainedTimestamp != 100) {
			t.Errorf("head %+v", b.Control)
		}
		for _, rec := range b.Records {
			if got := rec.(*Partition).PartitionID; got != next {
				t.Fatalf("partition %d, want %d", got, next)
			}
			next++
		}
		return nil
	})
	if err != nil || next != n || batches < 4 {
		t.Errorf("%d partitions in %d batches, %v", next, batches, err)
	}
}

func TestABrokenSnapshotIsRefused(t *testing.T) {
	var out bytes.Buffer
	w := NewSnapshotWriter(&out, 1, 1, 1, Level)
	head := out.Len()
	w.Add(&NoOp{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := out.Bytes()
	foot := AppendControlBatch(nil, 3, 1, 1, []Control{&SnapshotFooter{}})
	for name, b := range map[string][]byte{
		"empty":            nil,
		"no header":        whole[head:],
		"no footer":        whole[:len(whole)-len(foot)],
		"cut":              whole[:len(whole)-1],
		"trailing bytes":   append(bytes.Clone(whole), 1, 2, 3),
		"a second footer":  append(bytes.Clone(whole), foot...),
		"a hole":           append(bytes.Clone(whole[:head]), foot...),
		"data in the head": AppendBatch(nil, 0, 1, 1, []Record{&NoOp{}}, Level),
	} {
		if err := ReadSnapshot(b, func(Batch) error { return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := ReadSnapshot(whole, func(Batch) error { return nil }); err != nil {
		t.Error(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestAnErrorOfTheOutputWaitsForClose(t *testing.T) {
	w := NewSnapshotWriter(fullDisk{}, 1, 1, 1, Level)
	w.Add(&NoOp{})
	if err := w.Close(); err == nil {
		t.Error("no error")
	}
}

func TestOnlySnapshotNamesAreSnapshots(t *testing.T) {
	for _, name := range []string{
		"", "x", "00000000000000000299-0000000001", "00000000000000000299-0000000001.checkpoint.part",
		"299-1.checkpoint", "0000000000000000029x-0000000001.checkpoint", "99999999999999999999-0000000001.checkpoint",
		"00000000000000000299-9999999999.checkpoint", "+0000000000000000299-0000000001.checkpoint",
	} {
		if id, ok := ParseSnapshotName(name); ok {
			t.Errorf("%q is %+v", name, id)
		}
	}
	id := SnapshotID{End: model.Offset(1<<63 - 1), Epoch: 1<<31 - 1}
	if got, ok := ParseSnapshotName(id.FileName()); !ok || got != id {
		t.Errorf("%+v became %+v", id, got)
	}
}

// resum corrects the checksum of a batch.
func resum(raw []byte) {
	binary.BigEndian.PutUint32(raw[17:], checksum(raw))
}
