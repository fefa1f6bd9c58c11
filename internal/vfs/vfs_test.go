package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// both runs a test on the machine's file system and on the one in memory.
func both(t *testing.T, run func(t *testing.T, fs vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { run(t, vfs.OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem()
		must(t, m.MkdirAll("/data/d"))
		run(t, m, "/data/d")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, fs vfs.FS, path, content string) {
	t.Helper()
	f, err := fs.Create(path)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	must(t, f.Close())
}

func get(t *testing.T, fsys vfs.FS, path string) string {
	t.Helper()
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(b, 0)
		must(t, err)
	}
	return string(b)
}

func TestFilesBehaveAlikeOnBothDisks(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		put(t, fsys, a, "first")
		f, err := fsys.Open(a)
		must(t, err)
		n, err := f.WriteVecAt([][]byte{[]byte("se"), nil, []byte("cond")}, 5)
		if n != 6 || err != nil {
			t.Fatalf("WriteVecAt = %d, %v", n, err)
		}
		must(t, f.Truncate(13))
		must(t, f.Sync())
		must(t, f.Close())
		if got := get(t, fsys, a); got != "firstsecond\x00\x00" {
			t.Errorf("content %q", got)
		}
		must(t, fsys.Rename(a, b))
		must(t, fsys.SyncDir(dir))
		if _, err := fsys.Open(a); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("renamed file still opens: %v", err)
		}
		must(t, fsys.MkdirAll(filepath.Join(dir, "x/y")))
		infos, err := fsys.ReadDir(dir)
		must(t, err)
		if len(infos) != 2 || infos[0].Name != "b" || infos[0].Size != 13 || infos[1].Name != "x" || !infos[1].Dir {
			t.Errorf("ReadDir = %+v", infos)
		}
		must(t, fsys.Remove(b))
		must(t, fsys.RemoveAll(filepath.Join(dir, "x")))
		must(t, fsys.RemoveAll(filepath.Join(dir, "x")))
		if infos, _ := fsys.ReadDir(dir); len(infos) != 0 {
			t.Errorf("left over: %+v", infos)
		}
	})
}

func TestManyBuffersGoOutWhole(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		must(t, err)
		defer f.Close()
		bufs := make([][]byte, 3000)
		for i := range bufs {
			bufs[i] = []byte{byte(i), byte(i >> 8)}
		}
		n, err := f.WriteVecAt(bufs, 1)
		if n != 6000 || err != nil {
			t.Fatalf("WriteVecAt = %d, %v", n, err)
		}
		got := get(t, fsys, filepath.Join(dir, "f"))
		for i := range 3000 {
			if got[1+2*i] != byte(i) || got[2+2*i] != byte(i>>8) {
				t.Fatalf("buffer %d is wrong", i)
			}
		}
	})
}

func TestALockHasOneHolder(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		l, err := fsys.Lock(filepath.Join(dir, ".lock"))
		must(t, err)
		if _, err := fsys.Lock(filepath.Join(dir, ".lock")); !errors.Is(err, vfs.ErrLocked) {
			t.Fatalf("locked twice: %v", err)
		}
		must(t, l.Close())
		l, err = fsys.Lock(filepath.Join(dir, ".lock"))
		must(t, err)
		must(t, l.Close())
	})
}

func TestACrashKeepsOnlyWhatWasSynced(t *testing.T) {
	m := vfs.NewMem()
	must(t, m.MkdirAll("/d"))
	must(t, m.SyncDir("/"))
	put(t, m, "/d/a", "old")
	f, err := m.Open("/d/a")
	must(t, err)
	must(t, f.Sync())
	if got := get(t, m.CrashClone(vfs.CrashOptions{}), "/d/a"); got != "(none)" {
		t.Errorf("the name was not synced, yet there is %q", got)
	}
	must(t, m.SyncDir("/d"))
	_, err = f.WriteAt([]byte("new!"), 0)
	must(t, err)
	must(t, m.Rename("/d/a", "/d/b"))

	c := m.CrashClone(vfs.CrashOptions{})
	if a, b := get(t, c, "/d/a"), get(t, c, "/d/b"); a != "old" || b != "(none)" {
		t.Errorf("after the crash a=%q b=%q", a, b)
	}
	if b := get(t, m, "/d/b"); b != "new!" {
		t.Errorf("the original changed: %q", b)
	}
	k := m.Clone()
	if a, b := get(t, k, "/d/a"), get(t, k, "/d/b"); a != "(none)" || b != "new!" {
		t.Errorf("a killed process loses nothing, but a=%q b=%q", a, b)
	}
	if a := get(t, k.CrashClone(vfs.CrashOptions{}), "/d/a"); a != "old" {
		t.Errorf("a kill synced something: a=%q", a)
	}
}

func TestWhatIsSyncedIsKnownWithoutACrash(t *testing.T) {
	m := vfs.NewMem()
	must(t, m.MkdirAll("/d"))
	expect := func(name, want string) {
		t.Helper()
		if got := m.Synced(name); string(got) != want {
			t.Errorf("%s: %q is synced, not %q", name, got, want)
		}
		if got := get(t, m.CrashClone(vfs.CrashOptions{}), name); want != "" && got != want {
			t.Errorf("%s: a power cut leaves %q", name, got)
		}
	}
	put(t, m, "/d/a", "old")
	must(t, m.SyncDir("/"))
	expect("/d/a", "")
	must(t, m.SyncDir("/d"))
	f, err := m.Open("/d/a")
	must(t, err)
	must(t, f.Sync())
	expect("/d/a", "old")
	_, err = f.WriteAt([]byte("newer"), 0)
	must(t, err)
	expect("/d/a", "old")
	must(t, f.Sync())
	expect("/d/a", "newer")
	must(t, m.Rename("/d/a", "/d/b"))
	expect("/d/b", "")
	must(t, m.SyncDir("/d"))
	expect("/d/b", "newer")
	expect("/d/a", "")
	if m.Synced("/d") != nil || m.Synced("/d/b/c") != nil {
		t.Error("a folder has bytes")
	}
}

func TestACrashMayKeepAnyPrefixAndAnyPage(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "/a", "")
	must(t, m.SyncDir("/"))
	f, err := m.Open("/a")
	must(t, err)
	for i, s := range []string{"aaaa", "bbbb", "cccc"} {
		_, err := f.WriteAt([]byte(s), int64(4*i))
		must(t, err)
	}
	big := strings.Repeat("d", 5000)
	_, err = f.WriteAt([]byte(big), 12)
	must(t, err)
	whole := "aaaabbbbcccc" + big
	prefixes, pages, grown := map[string]bool{}, 0, 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		got := get(t, m.CrashClone(vfs.CrashOptions{Rand: r}), "/a")
		for i := range got {
			if got[i] != whole[i] && got[i] != 0 {
				t.Fatalf("%q was never written", got)
			}
		}
		switch {
		case got == whole[:len(got)] && len(got) <= 12:
			prefixes[got] = true
		case strings.HasPrefix(got, strings.Repeat("\x00", 4096)) && strings.HasSuffix(got, "d"):
			pages++
		case strings.HasSuffix(got, "\x00"):
			grown++
		}
	}
	if len(prefixes) != 13 || pages == 0 || grown == 0 {
		t.Errorf("saw %d prefixes, %d times the second page alone, %d times no bytes", len(prefixes), pages, grown)
	}
}

// states lists every way in which a disk may crash, as show tells them.
func states(m *vfs.Mem, show func(*vfs.Mem) string) map[string]int {
	seen := map[string]int{}
	for c := (vfs.Choices{}); ; {
		seen[show(m.CrashClone(vfs.CrashOptions{Choose: c.Choose}))]++
		if !c.Next() {
			return seen
		}
	}
}

func TestNamesSurviveOnTheirOwn(t *testing.T) {
	m := vfs.NewMem()
	for _, name := range []string{"/a", "/b"} {
		put(t, m, name, name)
		f, err := m.Open(name)
		must(t, err)
		must(t, f.Sync())
	}
	must(t, m.SyncDir("/"))
	must(t, m.Rename("/a", "/c"))
	must(t, m.Remove("/b"))
	must(t, m.Rename("/c", "/b"))
	got := states(m, func(m *vfs.Mem) string { return get(t, m, "/a") + get(t, m, "/b") + get(t, m, "/c") })
	for _, want := range []string{"/a/b(none)", "(none)/b/a", "/a(none)(none)", "(none)(none)/a", "(none)/a(none)"} {
		if got[want] == 0 {
			t.Errorf("never saw %s", want)
		}
	}
	if len(got) != 5 {
		t.Errorf("saw %v", got)
	}
}

func TestARemovalOfAFolderMayBeHalfDone(t *testing.T) {
	m := vfs.NewMem()
	must(t, m.MkdirAll("/d"))
	put(t, m, "/d/a", "")
	put(t, m, "/d/b", "")
	must(t, m.SyncDir("/d"))
	must(t, m.SyncDir("/"))
	must(t, m.RemoveAll("/d"))
	got := states(m, func(m *vfs.Mem) string {
		infos, err := m.ReadDir("/d")
		if err != nil {
			return "gone"
		}
		return fmt.Sprint(len(infos))
	})
	if got["gone"] == 0 || got["0"] == 0 || got["1"] != 2 || got["2"] == 0 {
		t.Errorf("saw %v", got)
	}
}

func TestAPowerCutTakesLocksAndUnsyncedBytes(t *testing.T) {
	m := vfs.NewMem()
	_, err := m.Lock("/l")
	must(t, err)
	put(t, m, "/a", "synced")
	f, err := m.Open("/a")
	must(t, err)
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	_, err = f.WriteAt([]byte("lost"), 6)
	must(t, err)
	m.PowerCut(vfs.CrashOptions{})
	if got := get(t, m, "/a"); got != "synced" {
		t.Errorf("there is %q", got)
	}
	if _, err := m.Lock("/l"); err != nil {
		t.Errorf("still locked: %v", err)
	}
}

func TestClonesDoNotSeeEachOther(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "/a", "old!")
	k := m.Clone()
	for i, disk := range []*vfs.Mem{m, k} {
		f, err := disk.Open("/a")
		must(t, err)
		_, err = f.WriteAt([]byte{byte('0' + i)}, 3)
		must(t, err)
	}
	if a, b := get(t, m, "/a"), get(t, k, "/a"); a != "old0" || b != "old1" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestAFaultTakesThePlaceOfTheOperation(t *testing.T) {
	boom := errors.New("boom")
	var fail vfs.OpKind
	m := vfs.NewMem()
	f := vfs.Faulty(m, func(op vfs.Op) error {
		if op.Kind == fail {
			return boom
		}
		return nil
	})
	put(t, f, "/a", "x")
	file, err := f.Open("/a")
	must(t, err)
	buf := []byte{0}
	ops := map[vfs.OpKind]func() error{
		vfs.OpOpen:      func() error { _, err := f.Open("/a"); return err },
		vfs.OpCreate:    func() error { _, err := f.Create("/a"); return err },
		vfs.OpRename:    func() error { return f.Rename("/a", "/b") },
		vfs.OpRemove:    func() error { return f.Remove("/a") },
		vfs.OpRemoveAll: func() error { return f.RemoveAll("/a") },
		vfs.OpMkdir:     func() error { return f.MkdirAll("/m") },
		vfs.OpReadDir:   func() error { _, err := f.ReadDir("/"); return err },
		vfs.OpStat:      func() error { _, err := f.Stat("/a"); return err },
		vfs.OpSyncDir:   func() error { return f.SyncDir("/") },
		vfs.OpLock:      func() error { _, err := f.Lock("/l"); return err },
		vfs.OpRead:      func() error { _, err := file.ReadAt(buf, 0); return err },
		vfs.OpWrite:     func() error { _, err := file.WriteVecAt([][]byte{buf, buf}, 1); return err },
		vfs.OpTruncate:  func() error { return file.Truncate(0) },
		vfs.OpSync:      file.Sync,
	}
	for kind, op := range ops {
		fail = kind
		if err := op(); !errors.Is(err, boom) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	fail = ""
	if got := get(t, f, "/a"); got != "x" {
		t.Errorf("a failed operation had an effect: %q", got)
	}
}
