package cases

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// codecs are all that exist.
var codecs = []record.Codec{record.CodecNone, record.CodecGzip, record.CodecSnappy, record.CodecLZ4, record.CodecZstd}

// packed are the options of a batch of a codec.
func packed(c record.Codec) record.BatchOptions {
	o := record.PlainOptions()
	o.Codec = c
	return o
}

// atMagic is where the part of a batch begins that a broker does not write.
const atMagic = 16

// B45: what a client packed is stored, replicated and served as it came.
func TestEveryCodecIsStoredUntouched(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(3))
		var values []string
		for i := range 1000 {
			values = append(values, fmt.Sprint("value ", i%7))
		}
		for i, c := range codecs {
			sent := bytes.Clone(batchOf(packed(c), values...))
			first := int64(i * 1000)
			w.accepted(c.String(), "t", sent, first)
			w.WaitHW("t", 0, first+1000)
			for broker := 1; broker <= 3; broker++ {
				f := at("t", first)
				f.wait = 5 * time.Second
				p, _ := w.fetch(broker, f)
				got := p.RecordBatches
				if h, ok := record.ParseHeader(got); !ok || len(got) != len(sent) || !bytes.Equal(got[atMagic:], sent[atMagic:]) || h.Codec() != c {
					t.Fatalf("%v: broker %d serves %d bytes that differ from the %d that came", c, broker, len(got), len(sent))
				}
				if n := len(w.values(p, first)); n != 1000 {
					t.Errorf("%v: broker %d serves %d records", c, broker, n)
				}
			}
		}
	})
}

// B47: zstd came with Produce v7. Who fetches by an old version gets an answer all
// the same.
func TestZstdNeedsANewProduce(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		set := batchOf(packed(record.CodecZstd), "x")
		for version := int16(3); version <= 9; version++ {
			before := w.end("t")
			req := produceRequest("t", 0, -1, time.Second, bytes.Clone(set))
			req.Version = version
			p := ask[*kmsg.ProduceResponse](w, 1, req).Topics[0].Partitions[0]
			if version >= 7 {
				code(t, fmt.Sprint("v", version), p.ErrorCode, model.None)
			} else if code(t, fmt.Sprint("v", version), p.ErrorCode, model.ErrUnsupportedCompressionType); w.end("t") != before {
				t.Errorf("v%d: a refused batch is in the log", version)
			}
		}
		w.WaitHW("t", 0, 3)
		for version := int16(4); version <= 12; version++ {
			f := at("t", 0)
			f.version = version
			p, _ := w.fetch(1, f)
			if version >= 10 || p.ErrorCode == 0 {
				code(t, fmt.Sprint("Fetch v", version), p.ErrorCode, model.None)
				if n := len(w.values(p, 0)); n != 3 {
					t.Errorf("Fetch v%d: %d records", version, n)
				}
			} else if code(t, "Fetch", p.ErrorCode, model.ErrUnsupportedCompressionType); len(p.RecordBatches) != 0 {
				t.Errorf("Fetch v%d: %d bytes with an error", version, len(p.RecordBatches))
			}
		}
	})
}

// hundred is a batch of a hundred records with headers and null values.
func hundred(o record.BatchOptions, from int) *record.Builder {
	b := record.NewBuilder(o)
	for i := range 100 {
		n := from + i
		var value []byte
		if n%3 > 0 {
			value = fmt.Append(nil, "value ", n)
		}
		b.Add(model.Millis(1000+(n*7)%100), fmt.Append(nil, n), value, record.HeaderField{Key: "h", Value: fmt.Append(nil, n)},
			record.HeaderField{Key: "null"})
	}
	return b
}

// told is all that a batch says of its records.
func told(t *testing.T, set []byte) (out []string) {
	t.Helper()
	for _, b := range record.Split(set) {
		if err := record.Records(b, func(r *record.Record) bool {
			text := fmt.Sprintf("%d at %d seq %d: %q null %v, %q null %v", r.Offset, r.Timestamp, r.Sequence, r.Key, r.Key == nil, r.Value, r.Value == nil)
			for _, h := range r.Headers {
				text += fmt.Sprintf(" %q=%q null %v", h.Key, h.Value, h.Value == nil)
			}
			out = append(out, text)
			return true
		}); err != nil {
			t.Fatalf("records: %v", err)
		}
	}
	return out
}

// B49: a topic's compression.type is the codec that is stored, whatever came, and
// nothing else of the records changes.
func TestATopicsCompressionTypeIsStored(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for _, target := range codecs {
			topic, name := "t-"+target.String(), target.String()
			if target == record.CodecNone {
				name = "uncompressed"
			}
			w.CreateTopic(topic, 1, 1, map[string]string{"compression.type": name})
			o := w.producerID(1)
			for i, c := range codecs {
				o.Codec, o.BaseSequence = c, int32(100*i)
				sent := bytes.Clone(hundred(o, 100*i).Bytes())
				first := int64(100 * i)
				w.accepted(fmt.Sprintf("%v as %v", c, target), topic, bytes.Clone(sent), first)
				w.WaitHW(topic, 0, first+100)
				h, got := w.headerAt(topic, first)
				record.Stamp(sent, model.Offset(first), h.LeaderEpoch)
				if a, b := told(t, got), told(t, sent); len(a) != 100 || fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("%v as %v: the records differ:\n%v\n%v", c, target, a, b)
				}
				if h.Codec() != target || h.ProducerID != o.ProducerID || h.ProducerEpoch != o.ProducerEpoch || h.BaseSequence != o.BaseSequence {
					t.Errorf("%v as %v: header %+v", c, target, h)
				}
			}
			o.Codec, o.BaseSequence = record.CodecGzip, 400
			w.accepted("a retry", topic, hundred(o, 400).Bytes(), 400)
			if w.end(topic) != 500 {
				t.Errorf("the log ends at %d", w.end(topic))
			}
		}
	})
}

// B50: with LogAppendTime the broker's clock counts, in the answer, in the log and
// in queries.
func TestLogAppendTimeIsTheBrokersClock(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
		for i, c := range codecs {
			pass(time.Second)
			now, first := time.Now().UnixMilli(), int64(3*i)
			p := w.accepted(c.String(), "t", timed(packed(c), 1000, 3000, 2000), first)
			w.WaitHW("t", 0, first+3)
			h, got := w.headerAt("t", first)
			if p.LogAppendTime < now || p.LogAppendTime > now+1000 || int64(h.MaxTimestamp) != p.LogAppendTime || !h.LogAppendTime() || h.Codec() != c {
				t.Errorf("%v: answer %d, header %+v, the clock says %d", c, p.LogAppendTime, h, now)
			}
			if err := record.Records(got, func(r *record.Record) bool {
				if int64(r.Timestamp) != p.LogAppendTime {
					t.Errorf("%v: a record at %d", c, r.Timestamp)
				}
				return true
			}); err != nil {
				t.Errorf("%v: %v", c, err)
			}
			if l := w.list(1, "t", p.LogAppendTime); l.Offset != first || l.Timestamp != p.LogAppendTime {
				t.Errorf("%v: the time of the append is found at %d, %d", c, l.Offset, l.Timestamp)
			}
		}
		if l := w.list(1, "t", 1000); l.Offset != 0 {
			t.Errorf("time 1000 is found at %d", l.Offset)
		}
		w.CreateTopic("u", 1, 1, nil)
		if p := w.accepted("CreateTime", "u", batch("x"), 0); p.LogAppendTime != -1 {
			t.Errorf("with CreateTime the answer tells of time %d", p.LogAppendTime)
		}
	})
}

// B52: the largest time of a batch is that of its records, whatever its header
// says.
func TestAWrongMaxTimestampIsRepaired(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		next := int64(0)
		for i, c := range codecs {
			from := int64(1000 * i)
			for _, wrong := range []int64{-1, 1e15, 0, 100} {
				set := forged(timed(packed(c), from+100, from+300, from+200), atMaxTimestamp, 8, wrong)
				w.accepted(fmt.Sprint(c, " ", wrong), "t", set, next)
				w.WaitHW("t", 0, next+3)
				if h, _ := w.headerAt("t", next); int64(h.MaxTimestamp) != from+300 || h.Codec() != c {
					t.Errorf("%v: stored with %d instead of %d", c, h.MaxTimestamp, wrong)
				}
				next += 3
			}
			if l, want := w.list(1, "t", from+250), next-12+1; l.Offset != want || l.Timestamp != from+300 {
				t.Errorf("%v: found at %d, %d; want %d", c, l.Offset, l.Timestamp, want)
			}
		}
	})
}

// B57: null is not empty, and headers keep their order.
func TestNullIsNotEmptyAndHeadersKeepTheirOrder(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		headers := []record.HeaderField{{Key: "a"}, {Key: "a", Value: []byte{}}, {Key: "b", Value: all}, {Key: "a", Value: []byte("again")}, {Key: ""}}
		for _, compression := range []string{"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"} {
			topic := "t-" + compression
			w.CreateTopic(topic, 1, 1, map[string]string{"compression.type": compression})
			for i, c := range codecs {
				b := record.NewBuilder(packed(c))
				for _, key := range [][]byte{nil, {}, []byte("k")} {
					for _, value := range [][]byte{nil, {}, []byte("v")} {
						b.Add(1000, key, value, headers...)
					}
				}
				sent, first := bytes.Clone(b.Bytes()), int64(9*i)
				w.accepted(compression, topic, bytes.Clone(sent), first)
				w.WaitHW(topic, 0, first+9)
				_, got := w.headerAt(topic, first)
				record.Stamp(sent, model.Offset(first), 0)
				if x, y := told(t, got), told(t, sent); len(x) != 9 || fmt.Sprint(x) != fmt.Sprint(y) {
					t.Errorf("%v to %s:\n%v\n%v", c, compression, x, y)
				}
			}
		}
	})
}
