// Package ballast makes sure that memory is there before it is measured. A virtual
// machine may give what it does not use back to its host, and whoever touches such
// memory first pays for its return, often more than for the copy itself.
package ballast

import "errors"

// Ballast is memory that was touched and is held.
type Ballast struct{ bytes []byte }

// page is the unit in which memory comes.
const page = 4096

// Take touches so many megabytes and holds them, or nothing where it cannot.
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
	return b, nil
}

// Drop lets the memory go: the kernel gives it to those who ask next. It may be
// called again, and of nil.
func (b *Ballast) Drop() error {
	if b == nil || b.bytes == nil {
		return nil
	}
	bytes := b.bytes
	b.bytes = nil
	return release(bytes)
}
