package least

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel waits for the file's part for a fifth of a second: one try in time is
// enough, and without the wait there is none.
func TestAnAnswerLeavesTogetherWithItsPartOfAFile(t *testing.T) {
	const tries = 10
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("records"); err != nil {
		t.Fatal(err)
	}
	for range tries {
		if segments(t, file) == 1 {
			return
		}
	}
	t.Errorf("none of %d answers left in one segment", tries)
}

// segments returns in how many an answer leaves.
func segments(t *testing.T, file *os.File) uint32 {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reader, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	tcp, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	f, err := blocking(tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &conn{f: f, out: []byte("header")}
	if err := c.pour([][]stretch{{{log: &partition{file: file}, n: len("records"), behind: len(c.out)}}}); err != nil {
		t.Fatal(err)
	}
	info, err := unix.GetsockoptTCPInfo(int(f.Fd()), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return info.Data_segs_out
}
