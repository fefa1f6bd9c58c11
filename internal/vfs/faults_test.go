package vfs_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestARevokedDiskChangesNoMore(t *testing.T) {
	m := vfs.NewMem()
	fsys, revoke := vfs.Revocable(m)
	put(t, fsys, "/a", "x")
	file, err := fsys.Open("/a")
	must(t, err)
	revoke()
	buf := []byte{0}
	for i, op := range []func() error{
		func() error { _, err := fsys.Open("/a"); return err },
		func() error { _, err := fsys.Create("/a"); return err },
		func() error { return fsys.Rename("/a", "/b") },
		func() error { return fsys.Remove("/a") },
		func() error { return fsys.RemoveAll("/a") },
		func() error { return fsys.MkdirAll("/m") },
		func() error { _, err := fsys.ReadDir("/"); return err },
		func() error { _, err := fsys.Stat("/a"); return err },
		func() error { return fsys.SyncDir("/") },
		func() error { _, err := fsys.Lock("/k"); return err },
		func() error { _, err := file.ReadAt(buf, 0); return err },
		func() error { _, err := file.WriteAt(buf, 0); return err },
		func() error { _, err := file.WriteVecAt([][]byte{buf}, 0); return err },
		func() error { return file.Truncate(0) },
		func() error { _, err := file.Size(); return err },
		file.Sync,
	} {
		if err := op(); !errors.Is(err, vfs.ErrRevoked) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if got := get(t, m, "/a"); got != "x" {
		t.Errorf("what was written is now %q", got)
	}
	if _, err := m.Stat("/m"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}

func TestRevokingADiskReleasesItsLocks(t *testing.T) {
	m := vfs.NewMem()
	fsys, revoke := vfs.Revocable(m)
	lock, err := fsys.Lock("/l")
	must(t, err)
	if _, err := m.Lock("/l"); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("locked twice: %v", err)
	}
	revoke()
	next, err := m.Lock("/l")
	must(t, err)
	must(t, lock.Close())
	if _, err := m.Lock("/l"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the dead process released the lock of the next: %v", err)
	}
	must(t, next.Close())
}

// faulty is a disk with one empty file that is open.
func faulty(t *testing.T) (*vfs.Mem, *vfs.Faults, vfs.File) {
	t.Helper()
	m, faults := vfs.NewMem(), &vfs.Faults{}
	f := vfs.Faulty(m, faults.Check)
	put(t, f, "/d.log", "")
	must(t, m.SyncDir("/"))
	file, err := f.Open("/d.log")
	must(t, err)
	return m, faults, file
}

func TestFaultsFollowTheirRules(t *testing.T) {
	m, faults, file := faulty(t)
	faults.Add(vfs.Fault{Kind: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC, After: 1, Times: 1, Bytes: 2})
	faults.Add(vfs.Fault{Path: "/elsewhere/*", Err: syscall.EIO})
	for i, want := range []int{4, 2, 4} {
		n, err := file.WriteVecAt([][]byte{[]byte("ab"), []byte("cd")}, int64(4*i))
		if n != int64(want) || errors.Is(err, syscall.ENOSPC) != (want < 4) {
			t.Errorf("write %d: %d bytes, %v", i, n, err)
		}
	}
	if got := get(t, m, "/d.log"); got != "abcdab\x00\x00abcd" {
		t.Errorf("there is %q", got)
	}
	faults.Add(vfs.Fault{Kind: vfs.OpRead, Err: syscall.EIO})
	for range 2 {
		if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.EIO) {
			t.Errorf("read: %v", err)
		}
	}
	faults.Clear()
	if _, err := file.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestAFailedSyncLosesWhatItHad(t *testing.T) {
	m, faults, file := faulty(t)
	_, err := file.WriteAt([]byte("abcd"), 0)
	must(t, err)
	must(t, file.Sync())
	_, err = file.WriteAt([]byte("lost"), 0)
	must(t, err)
	faults.Add(vfs.Fault{Kind: vfs.OpSync, Err: syscall.EIO, Times: 1})
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync: %v", err)
	}
	must(t, file.Sync())
	if got := get(t, m.CrashClone(vfs.CrashOptions{}), "/d.log"); got != "abcd" {
		t.Errorf("what a failed sync had is durable: %q", got)
	}
	if got := get(t, m, "/d.log"); got != "lost" {
		t.Errorf("what a failed sync had cannot be read: %q", got)
	}
}

func TestABitRotsOnDisk(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "/a", "abc")
	must(t, m.SyncDir("/"))
	f, err := m.Open("/a")
	must(t, err)
	must(t, m.Rot("/a", 0, 1))
	must(t, f.Sync())
	must(t, m.Rot("/a", 2, 4))
	if a, b := get(t, m, "/a"), get(t, m.CrashClone(vfs.CrashOptions{}), "/a"); a != "`bg" || b != a {
		t.Errorf("%q, after a crash %q", a, b)
	}
	if err := m.Rot("/a", 3, 1); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a byte behind the end: %v", err)
	}
	if err := m.Rot("/b", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
