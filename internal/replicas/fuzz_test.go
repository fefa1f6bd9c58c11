package replicas

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/dumplog"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// The log directory that is damaged: two logs, one of them with transactions.
const (
	fuzzDir   = "/data"
	fuzzLog   = "events-0"
	fuzzClean = ".kafka_cleanshutdown"
	fuzzNow   = model.Millis(1_796_002_300_000)
)

var (
	fuzzEvents = model.TopicPartition{Topic: "events", Partition: 0}
	fuzzOther  = model.TopicPartition{Topic: "other", Partition: 1}
)

// Damage to one file, in the two lowest bits: the fuzzer's bytes take its place,
// lie over it, follow a part of it, or it is gone. The next bit is an unclean stop,
// the two highest ones say whether the file is printed.
const (
	damageWhole = iota
	damageOver
	damageTail
	damageGone
	damageUnclean = 1 << 2
	damagePrinted = 1 << 6
)

// FuzzLogDirectory opens a log directory of which one file, that which names, is
// damaged. The directory opens or says why not. No batch before the damage is
// lost, the other log is whole, what is open takes records, and the next start
// finds what this one left. The readers of all small files, and the printer, see
// the same bytes.
func FuzzLogDirectory(f *testing.F) {
	whole := fuzzDirectory(f)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(whole)), func(name string) bool { return strings.HasPrefix(name, "other-1/") })
	for i, name := range names {
		b := whole[name]
		f.Add(uint8(i), uint8(damageWhole), uint16(0), b)
		f.Add(uint8(i), uint8(damageWhole|damageUnclean|damagePrinted), uint16(0), b[:len(b)/2])
		f.Add(uint8(i), uint8(damageOver), uint16(len(b)/2), []byte{0xff, 0xff, 0xff, 0xff})
		f.Add(uint8(i), uint8(damageTail|damageUnclean), uint16(len(b)), make([]byte, 100))
		f.Add(uint8(i), uint8(damageGone), uint16(0), []byte{})
	}
	addKafkasFiles(f, names)
	f.Fuzz(func(t *testing.T, which, how uint8, at uint16, b []byte) {
		name := names[int(which)%len(names)]
		readSmall(t, b)
		d := damaged{t: t, whole: whole, name: name, now: spoil(whole[name], how, int(at), b), gone: how&3 == damageGone}
		d.fs = d.disk(how&damageUnclean != 0)
		used := allocated(d.check)
		if most := uint64(64<<20 + 64*len(b)); used > most {
			t.Fatalf("%s of %d bytes took %d MiB", name, len(d.now), used>>20)
		}
		if how>>6 == 1 {
			d.print()
		}
	})
}

// spoil makes the content of a damaged file.
func spoil(old []byte, how uint8, at int, b []byte) []byte {
	at = min(at, len(old))
	switch how & 3 {
	case damageOver:
		out := slices.Clone(old)
		return append(out[:at], append(slices.Clone(b), out[min(len(out), at+len(b)):]...)...)
	case damageTail:
		return append(slices.Clone(old[:at]), b...)
	}
	return b
}

// damaged is one directory with its damage.
type damaged struct {
	t     *testing.T
	fs    *vfs.Mem
	whole map[string][]byte
	name  string
	now   []byte // the file's content
	gone  bool
}

func (d *damaged) disk(unclean bool) *vfs.Mem {
	fs := vfs.NewMem()
	for _, name := range slices.Sorted(maps.Keys(d.whole)) {
		b := d.whole[name]
		if name == d.name {
			if b = d.now; d.gone {
				continue
			}
		}
		if name != fuzzClean || !unclean {
			put(d.t, fs, filepath.Join(fuzzDir, name), b)
		}
	}
	return fs
}

func (d *damaged) check() {
	if d.name == cutsFile {
		d.checkCuts()
		return
	}
	dir, err := openFuzzed(d.fs)
	if err != nil {
		if text := err.Error(); !strings.HasPrefix(text, "open log directory /data: ") || strings.Contains(text, "\n") {
			d.t.Fatalf("the refusal is not one clear line: %q", text)
		}
		if !d.mayRefuse() {
			d.t.Fatalf("%s damaged: %v", d.name, err)
		}
		return
	}
	log, other := dir.Log(fuzzEvents), dir.Log(fuzzOther)
	if log == nil || other == nil {
		d.t.Fatal("a log is gone")
	}
	if all, err := recordsOf(other, other.Start()); err != nil || !slices.Equal(all, fuzzRecords(20, 0)) && !d.movesStart() {
		d.t.Fatalf("%s damaged: the other log holds %v, %v", d.name, all, err)
	}
	all, err := recordsOf(log, log.Start())
	d.checkRecords(log, all, err)
	if err != nil {
		dir.Close()
		return
	}
	_, _, timeErr := log.OffsetForTime(fuzzNow + 3)
	_, _, maxErr := log.MaxTimestampOffset()
	_, abortedErr := log.Aborted(log.Start(), log.LEO())
	if err := errors.Join(timeErr, maxErr, abortedErr); err != nil && !strings.HasSuffix(d.name, ".log") {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	d.goOn(dir, log, all)
}

// mayRefuse says which files the directory cannot be opened without.
func (d *damaged) mayRefuse() bool {
	return d.name == "meta.properties" || strings.HasSuffix(d.name, ".log")
}

// movesStart says that the damage may move where the logs begin.
func (d *damaged) movesStart() bool { return d.name == "log-start-offset-checkpoint" }

// checkRecords: nothing is missing before the damage, and nothing is made up but
// by a file of batches.
func (d *damaged) checkRecords(log *storage.Log, got []string, err error) {
	want := contentOf(d.whole)
	switch {
	case d.movesStart():
		if log.LEO() != model.Offset(len(want)) { // it claims that all is deleted
			return
		}
		want = want[log.Start():]
	case strings.HasPrefix(d.name, fuzzLog+"/") && strings.HasSuffix(d.name, ".log"):
		want = want[:d.safe()]
		if len(got) >= len(want) {
			got, err = got[:len(want)], nil
		}
	}
	if err != nil || !slices.Equal(got, want) {
		d.t.Fatalf("%s damaged: the log [%d, %d) holds %d records, %v; want %d:\n%v\n%v", d.name, log.Start(), log.LEO(), len(got), err, len(want), got, want)
	}
}

// safe is the offset after the last batch that lies wholly before the damage of a
// log file.
func (d *damaged) safe() model.Offset {
	old := d.whole[d.name]
	same := 0
	for same < len(old) && same < len(d.now) && old[same] == d.now[same] {
		same++
	}
	if d.gone {
		same = 0
	}
	var end model.Offset
	fmt.Sscanf(filepath.Base(d.name), "%d.log", &end)
	for h, b := range record.Split(old) {
		if same -= len(b); same < 0 {
			break
		}
		end = h.Next()
	}
	return end
}

// goOn appends to what was opened, stops and starts again.
func (d *damaged) goOn(dir *storage.Dir, log *storage.Log, all []string) {
	end := log.LEO()
	if end > 1<<40 {
		dir.Close()
		return
	}
	if _, err := log.Append(fuzzNow, storage.AppendBatch{Bytes: fuzzBatch(1, end), Stamp: true, Base: end, Epoch: 1 << 30}); err != nil {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	if err := dir.CloseClean(9); err != nil {
		d.t.Fatalf("%s damaged: %v", d.name, err)
	}
	dir, err := openFuzzed(d.fs)
	if err != nil {
		d.t.Fatalf("%s damaged: the next start: %v", d.name, err)
	}
	defer dir.Close()
	log = dir.Log(fuzzEvents)
	got, err := recordsOf(log, log.Start())
	if want := append(all, fuzzRecords(1, end)...); err != nil || !slices.Equal(got, want) {
		d.t.Fatalf("%s damaged: the next start finds %d records, %v; want %d:\n%v\n%v", d.name, len(got), err, len(want), got, want)
	}
}

// What docs/format/truncations.md says of the account.
const (
	cutsFile = "tidemark-truncations.jsonl"
	keptCuts = 16
)

func cutAt(id model.UUID, from model.Offset) cuts.Cut {
	return cuts.Cut{Topic: "t", TopicID: id.String(), Partition: 3, From: from, To: from + 1, Rule: "R4.11"}
}

// checkCuts: the account of truncations is read, and takes the next one.
func (d *damaged) checkCuts() {
	id := model.TopicIDPartition{TopicID: model.UUID{200, 9}, Partition: 3}
	c, err := cuts.Open(d.fs, fuzzDir)
	if err == nil {
		err = c.Write(cutAt(id.TopicID, 7))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	before := len(c.Of(id))
	if c, err = cuts.Open(d.fs, fuzzDir); err != nil {
		d.t.Fatal(err)
	}
	if got := c.Of(id); len(got) != min(before+1, keptCuts) || got[len(got)-1].From != 7 {
		d.t.Fatalf("%d truncations after one was added to %d", len(got), before)
	}
}

// print has the printer of log files print the damaged one with every decoder.
func (d *damaged) print() {
	name := filepath.Join(d.t.TempDir(), filepath.Base(d.name))
	if err := os.WriteFile(name, d.now, 0o644); err != nil {
		d.t.Fatal(err)
	}
	for _, decoder := range []dumplog.Decoder{dumplog.Plain, dumplog.ClusterMeta, dumplog.TransactionLog, dumplog.Offsets} {
		_ = dumplog.File(io.Discard, name, dumplog.Options{Deep: true, Data: true, Decoder: decoder})
	}
}
