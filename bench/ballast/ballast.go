// Package ballast makes sure that memory is there while it is measured. A virtual
// machine may give large free pieces of memory back to its host, and whoever
// touches such memory first pays for its return, often more than for the copy
// itself. Memory in small pieces stays.
package ballast

import "errors"

// Ballast keeps memory with the machine: it was touched, and a page here and there
// is held, so that no large piece is free.
type Ballast struct{ bytes []byte }

const (
	// page is the unit in which memory comes.
	page = 4096
	// stride is the distance between pages that are held: a quarter of the 2 MiB
	// that are given back at once at least.
	stride = 512 << 10
)

// Take touches so many megabytes and lets go of all but 1 in 128, or does nothing
// where it cannot.
func Take(megs int) (*Ballast, error) {
	if megs < 0 {
		return nil, errors.New("ballast is 0 MB or more")
	}
	b := &Ballast{}
	if megs == 0 {
		return b, nil
	}
	var err error
	if b.bytes, err = reserve(megs << 20); err != nil {
		return nil, err
	}
	for i := 0; i < len(b.bytes); i += page {
		b.bytes[i] = 1
	}
	for i := 0; i < len(b.bytes); i += stride {
		if err := letGo(b.bytes[i+page : i+stride]); err != nil {
			return nil, errors.Join(err, b.Drop())
		}
	}
	return b, nil
}

// Drop lets the rest go. It may be called again, and of nil.
func (b *Ballast) Drop() error {
	if b == nil || b.bytes == nil {
		return nil
	}
	bytes := b.bytes
	b.bytes = nil
	return release(bytes)
}
