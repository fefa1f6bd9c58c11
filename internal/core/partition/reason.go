package partition

import "github.com/tidemark-log/tidemark/internal/core/model"

// ReasonCode names one decision of the core (R13.2).
type ReasonCode uint8

// Reason says why the core decided as it did. It is a plain value, so that it
// costs nothing when nobody reads it; String puts it into words.
type Reason struct {
	Code   ReasonCode
	Broker model.BrokerID // whom it is about; NoBroker when nobody
	Offset model.Offset   // the offset it turns on
	Bound  model.Offset   // what Offset was compared with
	Epoch  model.Epoch
}

// String says it in words.
func (r Reason) String() string { return "" }
