package controller

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzController has a controller with two brokers and a topic decide whatever
// decodes to requests: key, version and body, then perhaps another one. Each
// decision keeps the invariants, is read back from the log as it was written, and
// is answered in the version that asked.
func FuzzController(f *testing.F) {
	keys := []int16{19, 20, 33, 37, 43, 44, 45, 46, 56, 57, 62, 63, 64, 67, 70, 73}
	for i, key := range keys {
		req := kmsg.RequestForKey(key)
		req.SetVersion(req.MaxVersion())
		f.Add(uint8(i), uint8(req.MaxVersion()), req.AppendTo(nil), uint8(0), []byte{})
		f.Add(uint8(i), uint8(0), []byte{0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}, uint8(i), []byte{})
	}
	w := served(f, 2)
	f.Add(uint8(10), uint8(4), w.registration(1, 2, 1).AppendTo(nil), uint8(10), w.registration(3, 1, -1).AppendTo(nil))
	f.Add(uint8(11), w.version(63), w.beat(1).AppendTo(nil), uint8(11), w.beat(2).AppendTo(nil))
	f.Fuzz(func(t *testing.T, key, version uint8, body []byte, next uint8, more []byte) {
		w := served(t, 2)
		w.create("t", []int32{1, 2}, []int32{2, 1})
		w.hostile(keys[int(key)%len(keys)], int16(version), body)
		w.hostile(keys[int(next)%len(keys)], int16(version), more)
	})
}

// version is the newest of a key.
func (w *world) version(key int16) uint8 { return uint8(kmsg.RequestForKey(key).MaxVersion()) }

// hostile decides and commits a request, if the body is one.
func (w *world) hostile(key, version int16, body []byte) {
	req := kmsg.RequestForKey(key)
	if version > req.MaxVersion() {
		return
	}
	req.SetVersion(version)
	if req.ReadFrom(body) != nil {
		return
	}
	r, ok := w.s.Handle(w.call(), req)
	if !ok {
		return
	}
	w.check.request = req
	w.commit(r)
	w.check.request = nil
	if r.Response != nil && (r.Response.Key() != key || r.Response.GetVersion() != version) {
		w.t.Fatalf("%T version %d was answered with %#v", req, version, r.Response)
	}
}
