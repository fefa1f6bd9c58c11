package metalog

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of testdata were written by Apache Kafka 4.4, but everyVersion, which
// is sampleLog; the texts beside them are what Apache's own reader printed.
const (
	goldenLog       = "00000000000000000000.log"
	goldenSnapshot  = "00000000000000000299-0000000001.checkpoint"
	goldenBootstrap = "00000000000000000000-0000000000.checkpoint"
	everyVersion    = "every_version.log"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eachRecord calls fn with the key and value of every record of the batches in b.
func eachRecord(t testing.TB, b []byte, fn func(batch Batch, i int, key, value []byte)) {
	t.Helper()
	n, err := DecodeBatches(b, func(batch Batch) error {
		rest := batch.Raw[headerSize:]
		for i := range int(batch.End - batch.Base) {
			key, value, after, err := splitRecord(rest, int64(i))
			if err != nil {
				return err
			}
			rest = after
			fn(batch, i, key, value)
		}
		return nil
	})
	if err != nil || n != len(b) {
		t.Fatalf("decoded %d of %d bytes: %v", n, len(b), err)
	}
}

func TestReadsWhatApacheWroteAndPrintsItAsApacheDoes(t *testing.T) {
	for file, text := range map[string]string{
		goldenLog:      "cluster_metadata.log.txt",
		goldenSnapshot: "cluster_metadata.checkpoint.txt",
		everyVersion:   "every_version.txt",
	} {
		want := printedRecords(t, text)
		seen := 0
		eachRecord(t, readFile(t, file), func(batch Batch, i int, key, value []byte) {
			var got string
			var err error
			if batch.Control != nil {
				got, err = DumpControl(key, value)
			} else if got, err = Dump(value); err == nil {
				got = "payload: " + got
			}
			offset := int64(batch.Base) + int64(i)
			if err != nil || got != want[offset] {
				t.Errorf("%s offset %d: error %v\n got %s\nwant %s", file, offset, err, got, want[offset])
			}
			seen++
		})
		if seen != len(want) || seen == 0 {
			t.Errorf("%s: read %d records, Apache printed %d", file, seen, len(want))
		}
	}
}

// printedRecords returns what follows the header keys on each record's line.
func printedRecords(t *testing.T, name string) map[int64]string {
	t.Helper()
	lines := map[int64]string{}
	scan := bufio.NewScanner(bytes.NewReader(readFile(t, name)))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		rest, ok := strings.CutPrefix(scan.Text(), "| offset: ")
		if !ok {
			continue
		}
		var offset int64
		if _, err := fmt.Sscanf(rest, "%d", &offset); err != nil {
			t.Fatal(err)
		}
		_, rest, ok = strings.Cut(rest, "headerKeys: [] ")
		if !ok {
			t.Fatalf("%s: line %q", name, scan.Text())
		}
		lines[offset] = rest
	}
	return lines
}

func TestWritesEveryVersionAsApacheReadIt(t *testing.T) {
	if !bytes.Equal(sampleLog(), readFile(t, everyVersion)) {
		t.Error("the samples are no longer written as when Apache's reader was asked")
	}
}

func TestReencodesEveryRecordOfApacheByteForByte(t *testing.T) {
	var w writer
	var r reader
	for _, file := range []string{goldenLog, goldenSnapshot, goldenBootstrap, everyVersion} {
		eachRecord(t, readFile(t, file), func(batch Batch, i int, key, value []byte) {
			var again []byte
			if batch.Control != nil {
				rec, _, err := decodeControl(key, value)
				if err != nil {
					t.Fatal(err)
				}
				again = w.appendControl(nil, rec)
			} else {
				rec, v, err := r.decode(value)
				if err != nil {
					t.Fatal(err)
				}
				again = w.appendVersion(nil, rec, v)
			}
			if !bytes.Equal(again, value) {
				t.Errorf("%s offset %d:\n got %x\nwant %x", file, int(batch.Base)+i, again, value)
			}
		})
	}
}

// At level 33, the one of the golden directory, the table chooses the versions
// that Apache chose, and the batches come out the same to the last byte.
func TestRebuildsEveryBatchOfApacheByteForByte(t *testing.T) {
	for _, file := range []string{goldenLog, goldenSnapshot, goldenBootstrap} {
		b := readFile(t, file)
		var again []byte
		n, err := DecodeBatches(b, func(batch Batch) error {
			before := len(again)
			if batch.Control != nil {
				again = AppendControlBatch(again, batch.Base, batch.Epoch, batch.Timestamp, batch.Control)
			} else {
				again = AppendBatch(again, batch.Base, batch.Epoch, batch.Timestamp, batch.Records, 33)
			}
			if !bytes.Equal(again[before:], batch.Raw) {
				t.Errorf("%s: the batch at %d differs", file, batch.Base)
			}
			return nil
		})
		if err != nil || n != len(b) || !bytes.Equal(again, b) {
			t.Errorf("%s: %d of %d bytes, %v", file, n, len(b), err)
		}
	}
}

func TestSnapshotOfApacheIsRebuiltFromItsRecords(t *testing.T) {
	b := readFile(t, goldenSnapshot)
	id, ok := ParseSnapshotName(goldenSnapshot)
	if !ok || id != (SnapshotID{299, 1}) || id.FileName() != goldenSnapshot {
		t.Fatalf("id %+v, %v", id, ok)
	}
	var batches []Batch
	if err := ReadSnapshot(b, func(batch Batch) error { batches = append(batches, batch); return nil }); err != nil {
		t.Fatal(err)
	}
	head := batches[0].Control[0].(*SnapshotHeader)
	var out bytes.Buffer
	w := NewSnapshotWriter(&out, id.Epoch, head.LastContainedTimestamp, batches[1].Timestamp, 33)
	for _, rec := range batches[1].Records {
		w.Add(rec)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// Apache stamps header, data and footer with three readings of its clock.
	body := len(batches[0].Raw)
	if got := out.Bytes()[body : len(b)-len(batches[2].Raw)]; !bytes.Equal(got, batches[1].Raw) {
		t.Error("the data batch differs")
	}
	if out.Len() != len(b) {
		t.Errorf("%d bytes, want %d", out.Len(), len(b))
	}
}
