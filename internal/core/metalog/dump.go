package metalog

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Dump prints the framed record as JSON, as Apache's kafka-dump-log prints it
// after "payload: " with --cluster-metadata-decoder. Errors are those of Decode.
func Dump(b []byte) (string, error) {
	var r reader
	rec, v, err := r.decode(b)
	if err != nil {
		return "", err
	}
	p := &printer{first: true}
	p.text(`{"type":"` + rec.Type().String() + `","version":` + strconv.Itoa(int(v)) + `,"data":{`)
	rec.walk(p, v)
	p.text("}}")
	return string(p.b), nil
}

// DumpControl prints a record of a control batch as kafka-dump-log does, such as
// SnapshotFooter {"version":0}. Errors are those of reading it.
func DumpControl(key, value []byte) (string, error) {
	rec, v, err := decodeControl(key, value)
	if err != nil {
		return "", err
	}
	p := &printer{first: true}
	p.text(controlNames[rec.ControlType()] + " {")
	p.int16("version", &v)
	rec.walk(p, v)
	p.text("}")
	return string(p.b), nil
}

var controlNames = map[int16]string{
	controlLeaderChange:   "LeaderChange:",
	controlSnapshotHeader: "SnapshotHeader",
	controlSnapshotFooter: "SnapshotFooter",
	controlKRaftVersion:   "KRaftVersion",
	controlKRaftVoters:    "KRaftVoters",
}

// printer prints fields as compact JSON.
type printer struct {
	b     []byte
	first bool // nothing was printed yet in the innermost object or array
}

func (p *printer) text(s string) { p.b = append(p.b, s...) }

func (p *printer) comma() {
	if !p.first {
		p.b = append(p.b, ',')
	}
	p.first = false
}

func (p *printer) name(s string) {
	p.comma()
	p.text(`"` + s + `":`)
}

func (p *printer) number(name string, v int64) {
	p.name(name)
	p.b = strconv.AppendInt(p.b, v, 10)
}

func (p *printer) bool(name string, v *bool) {
	p.name(name)
	p.b = strconv.AppendBool(p.b, *v)
}

func (p *printer) int8(name string, v *int8)     { p.number(name, int64(*v)) }
func (p *printer) int16(name string, v *int16)   { p.number(name, int64(*v)) }
func (p *printer) uint16(name string, v *uint16) { p.number(name, int64(*v)) }
func (p *printer) int32(name string, v *int32)   { p.number(name, int64(*v)) }
func (p *printer) int64(name string, v *int64)   { p.number(name, *v) }

func (p *printer) float64(name string, v *float64) {
	p.name(name)
	p.text(javaDouble(*v))
}

func (p *printer) uuid(name string, v *model.UUID) {
	p.name(name)
	p.text(`"` + v.String() + `"`)
}

func (p *printer) string(name string, v *string) {
	p.name(name)
	p.quote(*v)
}

func (p *printer) nullString(name string, v **string) {
	if *v != nil {
		p.string(name, *v)
		return
	}
	p.name(name)
	p.text("null")
}

func (p *printer) bytes(name string, v *[]byte) {
	p.name(name)
	p.text(`"` + base64.StdEncoding.EncodeToString(*v) + `"`)
}

func (p *printer) ids(name string, v *[]model.BrokerID) {
	p.begin(name, 0, 0)
	for _, id := range *v {
		p.comma()
		p.b = strconv.AppendInt(p.b, int64(id), 10)
	}
	p.end()
}

func (p *printer) uuids(name string, v *[]model.UUID) {
	p.begin(name, 0, 0)
	for _, id := range *v {
		p.comma()
		p.text(`"` + id.String() + `"`)
	}
	p.end()
}

func (p *printer) strings(name string, v *[]string) {
	p.begin(name, 0, 0)
	for _, s := range *v {
		p.comma()
		p.quote(s)
	}
	p.end()
}

func (p *printer) tagInt8(_ int, name string, v *int8, def int8) {
	if *v != def {
		p.int8(name, v)
	}
}

func (p *printer) tagInt32(_ int, name string, v *int32, def int32) {
	if *v != def {
		p.int32(name, v)
	}
}

func (p *printer) tagString(_ int, name string, v **string) {
	if *v != nil {
		p.string(name, *v)
	}
}

func (p *printer) tagIDs(_ int, name string, v *[]model.BrokerID) {
	if *v != nil {
		p.ids(name, v)
	}
}

func (p *printer) tagUUIDs(_ int, name string, v *[]model.UUID, emptyIsDefault bool) {
	if *v != nil && (!emptyIsDefault || len(*v) > 0) {
		p.uuids(name, v)
	}
}

func (p *printer) begin(name string, n, _ int) int {
	p.name(name)
	p.b, p.first = append(p.b, '['), true
	return n
}

func (p *printer) end() { p.b, p.first = append(p.b, ']'), false }

func (p *printer) open(name string) {
	if name == "" {
		p.comma()
	} else {
		p.name(name)
	}
	p.b, p.first = append(p.b, '{'), true
}

func (p *printer) shut() { p.b, p.first = append(p.b, '}'), false }

// quote prints a JSON string as Jackson does: only quotes, backslashes and
// control characters are escaped, and broken UTF-8 is replaced.
func (p *printer) quote(s string) {
	const hex = "0123456789ABCDEF"
	p.b = append(p.b, '"')
	for _, c := range s {
		if at := strings.IndexRune("\"\\\b\f\n\r\t", c); at >= 0 {
			p.b = append(p.b, '\\', `"\bfnrt`[at])
		} else if c < 0x20 {
			p.b = append(p.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			p.b = utf8.AppendRune(p.b, c)
		}
	}
	p.b = append(p.b, '"')
}

// javaDouble prints v as Java's Double.toString: the shortest digits, always
// with a point, in scientific form outside [0.001, 10^7).
func javaDouble(v float64) string {
	switch {
	case math.IsNaN(v):
		return `"NaN"`
	case math.IsInf(v, 1):
		return `"Infinity"`
	case math.IsInf(v, -1):
		return `"-Infinity"`
	}
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e7) {
		s := strconv.FormatFloat(v, 'E', -1, 64)
		digits, exp, _ := strings.Cut(s, "E")
		if !strings.Contains(digits, ".") {
			digits += ".0"
		}
		n, _ := strconv.Atoi(exp)
		return digits + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
