package check

import "github.com/tidemark-log/tidemark/internal/core/model"

// Outcome is how a call of a client ended.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota // an answer without an error
	Failed                 // an answer with an error; the records may be there all the same
	Unknown                // no answer: timeout, connection lost, client killed
)

// History is what clients asked and were told, in the order in which it
// happened. The workload calls its methods at the time of each call and return;
// a Set reads it after each step. Partitions go by the topic id that the client
// knew when it called, so that a topic made anew is another one.
type History struct {
	events []event
	ops    []op
}

// event is one thing that happened to a client.
type event struct{}

// op is one produce.
type op struct{}

// NewHistory returns one without calls.
func NewHistory() *History { return &History{} }

// Produce is one call: one batch to one partition.
type Produce struct {
	Client        string
	TP            model.TopicIDPartition
	Acks          int8             // -1 all, 0 none, 1 leader
	ProducerID    model.ProducerID // -1 without idempotence
	ProducerEpoch int16
	Sequence      int32    // of the first record; -1 without idempotence
	Values        []string // of the records, each unique in the run
}

// Op names a call that has not returned.
type Op int

// ProduceCalled notes that a client begins to produce.
func (h *History) ProduceCalled(p Produce) Op { return 0 }

// ProduceReturned notes how it ended; offset is that of the first record when OK
// with acks other than 0. A call that never returns counts as Unknown.
func (h *History) ProduceReturned(op Op, offset model.Offset, out Outcome) {}

// Fetch is one answer to a consumer, without an error.
type Fetch struct {
	Consumer  string // one position: another one gets another name, or ResumedFrom
	TP        model.TopicIDPartition
	From      model.BrokerID
	Asked     model.Offset   // fetch offset
	Offsets   []model.Offset // of the records handed to the application, ascending
	Values    []string       // of the same records
	LogStart  model.Offset
	HW, LSO   model.Offset // of the answer
	Committed bool         // read_committed
}

// Fetched notes records that a consumer got.
func (h *History) Fetched(f Fetch) {}

// ListedLatest notes that a client was told the partition's end.
func (h *History) ListedLatest(client string, tp model.TopicIDPartition, offset model.Offset) {}

// CommitCalled notes that a group begins to commit an offset.
func (h *History) CommitCalled(group string, tp model.TopicIDPartition, offset model.Offset) Op {
	return 0
}

// CommitReturned notes how it ended.
func (h *History) CommitReturned(op Op, out Outcome) {}

// ResumedFrom notes where a consumer begins anew: as its group's committed offset
// says, -1 when it has none; an empty group for a position that it chose itself.
func (h *History) ResumedFrom(group, consumer string, tp model.TopicIDPartition, offset model.Offset) {
}

// DeletedRecords notes that a client asks to delete all records below an offset;
// it is called before the request is sent.
func (h *History) DeletedRecords(tp model.TopicIDPartition, upTo model.Offset) {}

// TopicDeleted notes that a client asks to delete a topic; it is called before
// the request is sent. From then on nothing is demanded of the topic.
func (h *History) TopicDeleted(id model.UUID) {}

// Pending is how many produces have not returned (J4).
func (h *History) Pending() int { return 0 }
