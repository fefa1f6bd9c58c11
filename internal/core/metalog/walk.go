package metalog

import "github.com/tidemark-log/tidemark/internal/core/model"

// walker visits the fields of a record. A record names its fields once, in the
// order of Kafka's schema, and is thereby written (writer), read (reader) and
// printed (printer), so that the three cannot disagree.
//
// The tag methods are for tagged fields, which travel after all others in the
// order of their tags and are left out when they have their default.
type walker interface {
	bool(name string, p *bool)
	int8(name string, p *int8)
	int16(name string, p *int16)
	uint16(name string, p *uint16)
	int32(name string, p *int32)
	int64(name string, p *int64)
	float64(name string, p *float64)
	uuid(name string, p *model.UUID)
	string(name string, p *string)
	nullString(name string, p **string)
	bytes(name string, p *[]byte)
	ids(name string, p *[]model.BrokerID)
	uuids(name string, p *[]model.UUID)
	strings(name string, p *[]string)

	tagInt8(tag int, name string, p *int8, def int8)
	tagInt32(tag int, name string, p *int32, def int32)
	tagString(tag int, name string, p **string)
	// tagIDs omits nil; an empty list is told.
	tagIDs(tag int, name string, p *[]model.BrokerID)
	// tagUUIDs omits nil, and with emptyIsDefault empty lists too.
	tagUUIDs(tag int, name string, p *[]model.UUID, emptyIsDefault bool)

	// begin opens an array of n structs of at least size bytes each. It returns
	// how many to visit: n, or when reading what the bytes say.
	begin(name string, n, size int) int
	// open and shut enclose one struct, of the array or of a field with a name.
	open(name string)
	shut()
	// end closes the array.
	end()
}

// structs visits a list of structs, each at least size bytes long on the wire.
func structs[T any](w walker, name string, p *[]T, size int, each func(walker, *T)) {
	n := w.begin(name, len(*p), size)
	if n != len(*p) {
		*p = make([]T, n)
	}
	for i := range *p {
		w.open("")
		each(w, &(*p)[i])
		w.shut()
	}
	w.end()
}
