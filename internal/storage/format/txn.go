package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// TxnEntrySize is the size of an entry of the transaction index (R8.5).
const TxnEntrySize = 34

// ErrCorrupt: a file does not hold what it must.
var ErrCorrupt = errors.New("corrupt log")

// AbortedTxn is an entry of the transaction index: producer ID aborted what it
// wrote in [First, Last]; LSO is the last stable offset after that.
type AbortedTxn struct {
	ID          model.ProducerID
	First, Last model.Offset
	LSO         model.Offset
}

// Format is the entry as 34 bytes.
func (a AbortedTxn) Format() []byte {
	b := make([]byte, 2, TxnEntrySize)
	b = binary.BigEndian.AppendUint64(b, uint64(a.ID))
	b = binary.BigEndian.AppendUint64(b, uint64(a.First))
	b = binary.BigEndian.AppendUint64(b, uint64(a.Last))
	return binary.BigEndian.AppendUint64(b, uint64(a.LSO))
}

// ParseTxnIndex reads a .txnindex file. Entries must ascend (R8.5).
func ParseTxnIndex(b []byte) ([]AbortedTxn, error) {
	if len(b)%TxnEntrySize != 0 {
		return nil, fmt.Errorf("%w: transaction index of %d bytes", ErrCorrupt, len(b))
	}
	out := make([]AbortedTxn, 0, len(b)/TxnEntrySize)
	for ; len(b) > 0; b = b[TxnEntrySize:] {
		a := AbortedTxn{
			ID:    model.ProducerID(binary.BigEndian.Uint64(b[2:])),
			First: model.Offset(binary.BigEndian.Uint64(b[10:])),
			Last:  model.Offset(binary.BigEndian.Uint64(b[18:])),
			LSO:   model.Offset(binary.BigEndian.Uint64(b[26:])),
		}
		if v := binary.BigEndian.Uint16(b); v != 0 || a.First < 0 || a.Last < a.First || len(out) > 0 && a.Last <= out[len(out)-1].Last {
			return nil, fmt.Errorf("%w: transaction index entry %d is %+v, version %d", ErrCorrupt, len(out), a, v)
		}
		out = append(out, a)
	}
	return out, nil
}
