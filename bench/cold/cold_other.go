//go:build !linux

package cold

import (
	"errors"
	"os"
)

func forget(*os.File) error { return errors.ErrUnsupported }

func resident(*os.File, int64) (int64, error) { return 0, errors.ErrUnsupported }
