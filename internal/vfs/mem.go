package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mem is a disk in memory that knows what was synced: the bytes of a file by
// File.Sync, the names in a folder by SyncDir, each on its own, which is the
// least that POSIX promises. It may be used from several goroutines; nothing
// that it does depends on chance or on the order of a map.
type Mem struct {
	mu     sync.Mutex
	root   *node
	locked map[*node]*memLock
	now    func() time.Time
}

// NewMem returns an empty disk. Modification times are zero until SetClock.
func NewMem() *Mem {
	return &Mem{root: newDir(), locked: map[*node]*memLock{}, now: func() time.Time { return time.Time{} }}
}

// SetClock gives the clock that stamps modification times.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// node is a file or a folder: what readers see, what is durable, and the
// operations between the two in their order.
type node struct {
	dir     bool
	mod     time.Time
	live    content
	durable content
	writes  []write

	names        map[string]*node
	durableNames map[string]*node
	changes      []change
}

// content is a sparse file: bytes past the end of data read as zeroes up to size.
// A clone shares data until either is written.
type content struct {
	data   []byte
	size   int64
	shared bool
}

// write is one unsynced operation on a file; nil bytes stand for a truncation.
type write struct {
	off   int64
	bytes []byte
}

// change is one unsynced operation on a folder: drop is the name that goes, add
// the name that comes, both for a rename.
type change struct {
	drop, add string
	node      *node
}

func newDir() *node {
	return &node{dir: true, names: map[string]*node{}, durableNames: map[string]*node{}}
}

func (c *content) write(b []byte, off int64) {
	end := off + int64(len(b))
	if c.shared {
		c.data, c.shared = slices.Clone(c.data), false
	}
	if end > int64(len(c.data)) {
		c.data = slices.Grow(c.data, int(end)-len(c.data))
		old := len(c.data)
		c.data = c.data[:end]
		clear(c.data[old:])
	}
	copy(c.data[off:], b)
	c.size = max(c.size, end)
}

func (c *content) truncate(size int64) {
	c.size = size
	if size < int64(len(c.data)) {
		c.data = c.data[:size]
	}
}

func (c *content) readAt(b []byte, off int64) (int, error) {
	if off >= c.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), c.size-off))
	done := 0
	if off < int64(len(c.data)) {
		done = copy(b[:n], c.data[off:])
	}
	clear(b[done:n])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (c *content) clone() content {
	c.shared = true
	return *c
}

func (c *content) apply(w write) {
	if w.bytes == nil {
		c.truncate(w.off)
		return
	}
	c.write(w.bytes, w.off)
}

func apply(names map[string]*node, c change) {
	if c.drop != "" {
		delete(names, c.drop)
	}
	if c.add != "" {
		names[c.add] = c.node
	}
}

func (n *node) change(c change) {
	apply(n.names, c)
	n.changes = append(n.changes, c)
}

// find walks to the node of a path; nil when there is none.
func (m *Mem) find(p string) *node {
	n := m.root
	for part := range strings.SplitSeq(clean(p), "/") {
		if part == "" {
			continue
		}
		if n == nil || !n.dir {
			return nil
		}
		n = n.names[part]
	}
	return n
}

func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// parent returns the folder that holds the path, and the path's last element.
func (m *Mem) parent(op, p string) (*node, string, error) {
	folder, name := path.Split(clean(p))
	n := m.find(folder)
	if n == nil || !n.dir || name == "" {
		return nil, "", &fs.PathError{Op: op, Path: p, Err: fs.ErrNotExist}
	}
	return n, name, nil
}

// Open implements FS.
func (m *Mem) Open(p string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(p)
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	return &memFile{m: m, n: n}, nil
}

// Create implements FS.
func (m *Mem) Create(p string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.create(p)
	if err != nil {
		return nil, err
	}
	if n.live.size > 0 {
		n.live.truncate(0)
		n.writes = append(n.writes, write{})
		n.mod = m.now()
	}
	return &memFile{m: m, n: n}, nil
}

func (m *Mem) create(p string) (*node, error) {
	dir, name, err := m.parent("create", p)
	if err != nil {
		return nil, err
	}
	n := dir.names[name]
	if n == nil {
		n = &node{mod: m.now()}
		dir.change(change{add: name, node: n})
	}
	if n.dir {
		return nil, &fs.PathError{Op: "create", Path: p, Err: errors.New("is a folder")}
	}
	return n, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldName, err := m.parent("rename", oldPath)
	if err != nil {
		return err
	}
	to, newName, err := m.parent("rename", newPath)
	if err != nil {
		return err
	}
	n := from.names[oldName]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: oldPath, Err: fs.ErrNotExist}
	}
	if at := to.names[newName]; at != nil && at.dir && len(at.names) > 0 {
		return &fs.PathError{Op: "rename", Path: newPath, Err: fs.ErrExist}
	}
	if from == to {
		from.change(change{drop: oldName, add: newName, node: n})
		return nil
	}
	to.change(change{add: newName, node: n})
	from.change(change{drop: oldName})
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, name, err := m.parent("remove", p)
	if err != nil {
		return err
	}
	n := dir.names[name]
	switch {
	case n == nil:
		return &fs.PathError{Op: "remove", Path: p, Err: fs.ErrNotExist}
	case n.dir && len(n.names) > 0:
		return &fs.PathError{Op: "remove", Path: p, Err: fs.ErrExist}
	}
	dir.change(change{drop: name})
	return nil
}

// RemoveAll implements FS. A crash may find any part of it done.
func (m *Mem) RemoveAll(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, name, err := m.parent("remove", p)
	if err != nil || dir.names[name] == nil {
		return nil //nolint:nilerr // what is not there needs no removal
	}
	dir.removeAll(name)
	return nil
}

func (n *node) removeAll(name string) {
	if c := n.names[name]; c.dir {
		for _, inner := range slices.Sorted(maps.Keys(c.names)) {
			c.removeAll(inner)
		}
	}
	n.change(change{drop: name})
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for part := range strings.SplitSeq(clean(p), "/") {
		if part == "" {
			continue
		}
		next := n.names[part]
		if next == nil {
			next = newDir()
			next.mod = m.now()
			n.change(change{add: part, node: next})
		}
		if !next.dir {
			return &fs.PathError{Op: "mkdir", Path: p, Err: fs.ErrExist}
		}
		n = next
	}
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(p string) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(p)
	if n == nil || !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: p, Err: fs.ErrNotExist}
	}
	infos := make([]Info, 0, len(n.names))
	for name, c := range n.names {
		infos = append(infos, c.info(name))
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (n *node) info(name string) Info {
	return Info{Name: name, Size: n.live.size, Dir: n.dir, ModTime: n.mod}
}

// Stat implements FS.
func (m *Mem) Stat(p string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(p)
	if n == nil {
		return Info{}, &fs.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
	}
	return n.info(path.Base(clean(p))), nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(p)
	if n == nil || !n.dir {
		return &fs.PathError{Op: "syncdir", Path: p, Err: fs.ErrNotExist}
	}
	for _, c := range n.changes {
		apply(n.durableNames, c)
	}
	n.changes = nil
	return nil
}

// Synced returns the bytes of a file of which a power cut takes nothing, nil when it
// may take the file. The caller must not change them.
func (m *Mem) Synced(p string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for part := range strings.SplitSeq(clean(p), "/") {
		if part == "" {
			continue
		}
		if n = n.durableNames[part]; n == nil {
			return nil
		}
	}
	if n.dir || int64(len(n.durable.data)) < n.durable.size {
		return nil // or a sparse file, which is none that anybody asks for
	}
	return n.durable.data[:n.durable.size:n.durable.size]
}

// Lock implements FS.
func (m *Mem) Lock(p string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.create(p)
	if err != nil {
		return nil, err
	}
	if m.locked[n] != nil {
		return nil, &fs.PathError{Op: "lock", Path: p, Err: ErrLocked}
	}
	l := &memLock{m: m, n: n}
	m.locked[n] = l
	return l, nil
}

type memLock struct {
	m *Mem
	n *node
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.locked[l.n] == l {
		delete(l.m.locked, l.n)
	}
	return nil
}
