package sim

import (
	"path"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// unchecked is how many bytes of a batch its checksum does not cover and no other
// field betrays: base offset, length, leader epoch. What rots there is not found by
// Kafka's format.
const unchecked = 16

// rotten is a batch that may rot: its bytes in a file.
type rotten struct {
	file string
	at   int64
	size int64
}

// rot flips one bit of a batch that a recovery will read again: one behind the
// recovery point of its log. n chooses which; false says that there is none.
func rot(fs *vfs.Mem, dir string, n uint64) bool {
	points, _ := format.ParseOffsets(content(fs, path.Join(dir, "recovery-point-offset-checkpoint")))
	var all []rotten
	folders, _ := fs.ReadDir(dir)
	for _, folder := range folders {
		i := strings.LastIndexByte(folder.Name, '-')
		if n, err := strconv.Atoi(folder.Name[i+1:]); folder.Dir && i > 0 && err == nil {
			tp := model.TopicPartition{Topic: folder.Name[:i], Partition: int32(n)}
			all = append(all, unsettled(fs, path.Join(dir, folder.Name), points[tp])...)
		}
	}
	if len(all) == 0 {
		return false
	}
	b := all[n%uint64(len(all))]
	f, err := fs.Open(b.file)
	if err != nil {
		return false
	}
	defer f.Close()
	at, bit := b.at+unchecked+int64((n>>8)%uint64(b.size-unchecked)), []byte{0}
	f.ReadAt(bit, at)
	bit[0] ^= 1 << (n % 8)
	f.WriteAt(bit, at)
	return f.Sync() == nil
}

// unsettled lists the batches of a log's folder from a recovery point on.
func unsettled(fs *vfs.Mem, dir string, point model.Offset) []rotten {
	var out []rotten
	files, _ := fs.ReadDir(dir)
	for _, info := range files {
		if !strings.HasSuffix(info.Name, ".log") {
			continue
		}
		name, at := path.Join(dir, info.Name), int64(0)
		for h, b := range record.Split(content(fs, name)) {
			if h.Base >= point {
				out = append(out, rotten{name, at, int64(len(b))})
			}
			at += int64(len(b))
		}
	}
	return out
}

// content is a file's bytes; none when it is not there.
func content(fs *vfs.Mem, name string) []byte {
	f, err := fs.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, _ := f.Size()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}
