package metalog

import (
	"fmt"
)

const frameVersion = 1

// Append appends the framed record to dst, in the version that the level of
// metadata.version allows; fields which that version lacks are left out. It
// panics when the level does not allow the type at all: such a record would end
// the metadata thread of every reader.
func Append(dst []byte, rec Record, level int16) []byte {
	var w writer
	return w.append(dst, rec, level)
}

func (w *writer) append(dst []byte, rec Record, level int16) []byte {
	v, ok := version(rec, level)
	if !ok {
		panic(fmt.Sprintf("metalog: %v is not allowed at metadata.version %d", rec.Type(), level))
	}
	return w.appendVersion(dst, rec, v)
}

// appendVersion appends the framed record in the version v, which must exist.
func (w *writer) appendVersion(dst []byte, rec Record, v int16) []byte {
	w.reset(dst)
	w.uvarint(frameVersion)
	w.uvarint(uint64(rec.Type()))
	w.uvarint(uint64(v))
	rec.walk(w, v)
	w.finish()
	return w.b
}

// Decode reads one framed record; it keeps no reference to b. Unknown types,
// unknown versions and trailing bytes are errors. Unknown tagged fields are
// skipped.
func Decode(b []byte) (Record, error) {
	var r reader
	rec, _, err := r.decode(b)
	return rec, err
}

// decode also returns the version of the record.
func (r *reader) decode(b []byte) (Record, int16, error) {
	r.reset(b)
	frame, number, v := r.uvarint(), r.uvarint(), r.uvarint()
	if r.err != nil {
		return nil, 0, fmt.Errorf("read the frame of a metadata record: %w", r.err)
	}
	if frame != frameVersion {
		return nil, 0, fmt.Errorf("metadata frame version %d is unknown", frame)
	}
	if number > uint32(len(schemas)) || lookup(Type(number)) == nil {
		return nil, 0, fmt.Errorf("metadata record type %d is unknown", number)
	}
	s := schemas[number]
	if v >= uint32(len(s.levels)) {
		return nil, 0, fmt.Errorf("%s has no version %d", s.name, v)
	}
	rec := s.fresh()
	rec.walk(r, int16(v))
	if err := r.finish(); err != nil {
		return nil, 0, fmt.Errorf("read %s version %d: %w", s.name, v, err)
	}
	return rec, int16(v), nil
}
