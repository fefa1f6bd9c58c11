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
	events  []event
	calls   []call
	acked   map[model.TopicIDPartition]model.Offset // end of what acks=all acknowledged
	deleted map[model.UUID]bool
	open    int
}

// eventKind says what happened to a client.
type eventKind uint8

const (
	produced eventKind = iota
	fetched
	listed
	commitBegan
	commitEnded
	resumed
	deletedBelow
	topicGone
	forgot
	deleteEnded
	asked
	hinted
)

// event is one thing that happened to a client.
type event struct {
	kind   eventKind
	op     Op
	who    string // consumer, or client
	group  string
	tp     model.TopicIDPartition
	offset model.Offset
	fetch  *Fetch
	text   string
	// from a broker that hinted to another.
	from, to model.BrokerID
}

// call is one produce or commit.
type call struct {
	Produce
	group    string // of a commit
	began    int    // events before it
	ended    int    // events before its return; -1 while it has not returned
	floor    model.Offset
	offset   model.Offset
	out      Outcome
	returned bool
}

// NewHistory returns one without calls.
func NewHistory() *History {
	return &History{acked: map[model.TopicIDPartition]model.Offset{}, deleted: map[model.UUID]bool{}}
}

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

func (h *History) note(e event) { h.events = append(h.events, e) }

// ProduceCalled notes that a client begins to produce. What it sends again is one
// call, as long as the broker can tell it from a new batch.
func (h *History) ProduceCalled(p Produce) Op {
	h.open++
	h.calls = append(h.calls, call{Produce: p, began: len(h.events), ended: -1, floor: h.acked[p.TP],
		offset: model.UnknownOffset, out: Unknown})
	return Op(len(h.calls) - 1)
}

// ProduceReturned notes how it ended; offset is that of the first record when OK
// with acks other than 0, -1 when it was not told. A call that never returns
// counts as Unknown.
func (h *History) ProduceReturned(op Op, offset model.Offset, out Outcome) {
	c := &h.calls[op]
	if c.returned {
		return
	}
	h.open--
	c.returned, c.offset, c.out, c.ended = true, offset, out, len(h.events)
	if end := offset + model.Offset(len(c.Values)); out == OK && c.Acks == -1 && offset >= 0 {
		h.acked[c.TP] = max(h.acked[c.TP], end)
	}
	h.note(event{kind: produced, op: op, who: c.Client, tp: c.TP, offset: offset})
}

// Fetch is one answer to a consumer, without an error.
type Fetch struct {
	Consumer  string // one position: another one gets another name, or ResumedFrom
	TP        model.TopicIDPartition
	From      model.BrokerID
	Asked     model.Offset   // fetch offset
	Offsets   []model.Offset // of the records handed to the application, ascending
	Values    []string       // of the same records
	LogStart  model.Offset   // of the answer; -1 when not told
	HW, LSO   model.Offset   // of the answer; LSO -1 when not told
	Committed bool           // read_committed
}

// Fetched notes the answer to a consumer, with or without records.
func (h *History) Fetched(f Fetch) {
	h.note(event{kind: fetched, who: f.Consumer, tp: f.TP, offset: f.Asked, fetch: &f})
}

// ListedLatest notes that a client was told the partition's end.
func (h *History) ListedLatest(client string, tp model.TopicIDPartition, offset model.Offset) {
	h.note(event{kind: listed, who: client, tp: tp, offset: offset})
}

// CommitCalled notes that a group begins to commit an offset.
func (h *History) CommitCalled(group string, tp model.TopicIDPartition, offset model.Offset) Op {
	op := Op(len(h.calls))
	h.calls = append(h.calls, call{Produce: Produce{TP: tp}, group: group, began: len(h.events), ended: -1, offset: offset, out: Unknown})
	h.note(event{kind: commitBegan, op: op, group: group, tp: tp, offset: offset})
	return op
}

// CommitReturned notes how it ended.
func (h *History) CommitReturned(op Op, out Outcome) {
	c := &h.calls[op]
	c.returned, c.out, c.ended = true, out, len(h.events)
	h.note(event{kind: commitEnded, op: op, group: c.group, tp: c.TP, offset: c.offset})
}

// ResumedFrom notes where a consumer begins anew: as its group's committed offset
// says, -1 when it has none; an empty group for a position that it chose itself.
// It is called with the answer, and no member of the group commits between the
// question and the answer.
func (h *History) ResumedFrom(group, consumer string, tp model.TopicIDPartition, offset model.Offset) {
	h.note(event{kind: resumed, who: consumer, group: group, tp: tp, offset: offset})
}

// Forgotten notes an answer to an idempotent producer that contradicts an earlier
// one, where nothing was deleted.
func (h *History) Forgotten(client string, tp model.TopicIDPartition, text string) {
	h.note(event{kind: forgot, who: client, tp: tp, text: text})
}

// DeletedRecords notes that a client asks to delete all records below an offset;
// it is called before the request is sent.
func (h *History) DeletedRecords(client string, tp model.TopicIDPartition, upTo model.Offset) Op {
	op := Op(len(h.calls))
	h.calls = append(h.calls, call{Produce: Produce{Client: client, TP: tp}, began: len(h.events), ended: -1, offset: upTo, out: Unknown})
	h.note(event{kind: deletedBelow, op: op, who: client, tp: tp, offset: upTo})
	return op
}

// DeleteReturned notes how it ended.
func (h *History) DeleteReturned(op Op, out Outcome) {
	c := &h.calls[op]
	c.returned, c.out, c.ended = true, out, len(h.events)
	h.note(event{kind: deleteEnded, op: op, who: c.Client, tp: c.TP, offset: c.offset})
}

// FetchAsked notes that a consumer with a rack is about to fetch from an offset.
func (h *History) FetchAsked(consumer string, tp model.TopicIDPartition, offset model.Offset) {
	h.note(event{kind: asked, who: consumer, tp: tp, offset: offset})
}

// Hinted notes that the fetch asked for last was answered by a broker with the
// name of a replica that is nearer.
func (h *History) Hinted(consumer string, tp model.TopicIDPartition, offset model.Offset, by, near model.BrokerID) {
	h.note(event{kind: hinted, who: consumer, tp: tp, offset: offset, from: by, to: near})
}

// TopicDeleted notes that a client asks to delete a topic; it is called before
// the request is sent. From then on nothing is demanded of the topic.
func (h *History) TopicDeleted(id model.UUID) {
	h.deleted[id] = true
	h.note(event{kind: topicGone, tp: model.TopicIDPartition{TopicID: id}})
}

// Pending is how many produces have not returned (J4).
func (h *History) Pending() int { return h.open }

// Acknowledged counts the records that acks=all acknowledged.
func (h *History) Acknowledged() int {
	n := 0
	for i := range h.calls {
		if c := &h.calls[i]; c.out == OK && c.Acks == -1 {
			n += len(c.Values)
		}
	}
	return n
}
