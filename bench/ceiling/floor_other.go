//go:build !linux

package ceiling

import (
	"errors"
	"os"
	"time"
)

func spent(func() error) (time.Duration, error) { return 0, errors.ErrUnsupported }

func (m mover) sendfile(f, to *os.File) error { return errors.ErrUnsupported }

func (m mover) mapped(f, to *os.File) error { return errors.ErrUnsupported }
