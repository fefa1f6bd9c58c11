package vfs

import "testing"

func TestMakeDurablyOutlivesAPowerCut(t *testing.T) {
	m := NewMem()
	if err := MakeDurably(m, "/var/lib/tidemark/data"); err != nil {
		t.Fatal(err)
	}
	if err := MakeDurably(m, "/var/lib/tidemark/data"); err != nil {
		t.Fatal(err)
	}
	if info, err := m.CrashClone(CrashOptions{}).Stat("/var/lib/tidemark/data"); err != nil || !info.Dir {
		t.Fatalf("after the power cut: %v, %v", info, err)
	}
}
