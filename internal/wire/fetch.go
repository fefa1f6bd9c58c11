package wire

import (
	"encoding/binary"
	"io"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// FetchResponse is the answer to a Fetch, versions 4 to 18. Unlike kmsg's, its
// records may be ranges of files, and encoding it copies no record.
type FetchResponse struct {
	Version        int16
	ThrottleMillis int32
	Err            model.Error // v7 and up
	SessionID      int32       // v7 and up
	Topics         []FetchTopic
	// Nodes says where the current leaders are (KIP-951, v16 and up).
	Nodes []Node
}

// FetchTopic is the part of one topic, named up to v12, by id from v13 on.
type FetchTopic struct {
	Name       string
	ID         model.UUID
	Partitions []FetchPartition
}

// FetchPartition is the part of one partition. Start from NewFetchPartition.
type FetchPartition struct {
	Partition int32
	Err       model.Error
	HW        model.Offset
	LSO       model.Offset
	LogStart  model.Offset // v5 and up
	// Aborted is nil for read_uncommitted, which the wire tells from an empty
	// list.
	Aborted   []AbortedTxn
	Preferred model.BrokerID // preferred read replica, v11 and up
	Records   Records
	// Diverging, Leader with LeaderEpoch, and Snapshot are sent when they are
	// known, v12 and up.
	Diverging   model.EpochEnd
	Leader      model.BrokerID
	LeaderEpoch model.Epoch
	Snapshot    model.EpochEnd
}

// AbortedTxn says that the transaction of a producer that begins at First was
// aborted.
type AbortedTxn struct {
	Producer model.ProducerID
	First    model.Offset
}

// Node is where a broker listens. Rack is nil when it has none.
type Node struct {
	ID   model.BrokerID
	Host string
	Port int32
	Rack *string
}

// Records is a range of a file, or bytes, or neither: no records. Release goes
// with File; if not nil, it is called once when the range is not needed any
// more.
type Records struct {
	Bytes   []byte
	File    io.ReaderAt
	Off     int64
	Len     int
	Release func()
}

// Size is the number of bytes.
func (r *Records) Size() int {
	if r.File != nil {
		return r.Len
	}
	return len(r.Bytes)
}

// NewFetchPartition is the answer of a partition without records, with Kafka's
// values for all that is unknown.
func NewFetchPartition(partition int32, err model.Error) FetchPartition {
	return FetchPartition{
		Partition: partition, Err: err,
		HW: model.UnknownOffset, LSO: model.UnknownOffset, LogStart: model.UnknownOffset,
		Preferred: model.NoBroker,
		Diverging: model.UndefinedEpochEnd, Snapshot: model.UndefinedEpochEnd,
		Leader: model.NoBroker, LeaderEpoch: model.NoEpoch,
	}
}

// Layout encodes the body into s. The bytes equal kmsg's. It never fails.
func (r *FetchResponse) Layout(s Sink) {
	flexible := r.Version >= 12
	b := s.Buffer()
	b = binary.BigEndian.AppendUint32(b, uint32(r.ThrottleMillis))
	if r.Version >= 7 {
		b = binary.BigEndian.AppendUint16(b, uint16(r.Err))
		b = binary.BigEndian.AppendUint32(b, uint32(r.SessionID))
	}
	b = appendArrayLen(b, len(r.Topics), flexible)
	for i := range r.Topics {
		b = r.Topics[i].layout(s, b, r.Version)
	}
	if flexible {
		b = r.appendTags(b)
	}
	s.SetBuffer(b)
}

// Discard releases the records of a response that is not going to be sent.
func (r *FetchResponse) Discard() {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if r := &r.Topics[i].Partitions[j].Records; r.File != nil && r.Release != nil {
				r.Release()
			}
		}
	}
}

func (t *FetchTopic) layout(s Sink, b []byte, version int16) []byte {
	flexible := version >= 12
	if version <= 12 {
		b = appendString(b, t.Name, flexible)
	} else {
		b = append(b, t.ID[:]...)
	}
	b = appendArrayLen(b, len(t.Partitions), flexible)
	for i := range t.Partitions {
		b = t.Partitions[i].layout(s, b, version)
	}
	if flexible {
		b = append(b, 0)
	}
	return b
}

func (p *FetchPartition) layout(s Sink, b []byte, version int16) []byte {
	flexible := version >= 12
	b = binary.BigEndian.AppendUint32(b, uint32(p.Partition))
	b = binary.BigEndian.AppendUint16(b, uint16(p.Err))
	b = binary.BigEndian.AppendUint64(b, uint64(p.HW))
	b = binary.BigEndian.AppendUint64(b, uint64(p.LSO))
	if version >= 5 {
		b = binary.BigEndian.AppendUint64(b, uint64(p.LogStart))
	}
	b = p.appendAborted(b, flexible)
	if version >= 11 {
		b = binary.BigEndian.AppendUint32(b, uint32(p.Preferred))
	}
	b = p.Records.layout(s, b, flexible)
	if flexible {
		b = p.appendTags(b)
	}
	return b
}

func (p *FetchPartition) appendAborted(b []byte, flexible bool) []byte {
	if p.Aborted == nil {
		if flexible {
			return append(b, 0)
		}
		return binary.BigEndian.AppendUint32(b, 0xffffffff)
	}
	b = appendArrayLen(b, len(p.Aborted), flexible)
	for _, a := range p.Aborted {
		b = binary.BigEndian.AppendUint64(b, uint64(a.Producer))
		b = binary.BigEndian.AppendUint64(b, uint64(a.First))
		if flexible {
			b = append(b, 0)
		}
	}
	return b
}

func (r *Records) layout(s Sink, b []byte, flexible bool) []byte {
	n := r.Size()
	if flexible {
		b = binary.AppendUvarint(b, uint64(n)+1)
	} else {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	switch {
	case r.File != nil:
		s.SetBuffer(b)
		s.File(r.File, r.Off, n, r.Release)
		return s.Buffer()
	case n > 0:
		s.SetBuffer(b)
		s.Bytes(r.Bytes)
		return s.Buffer()
	}
	return b
}

// appendTags writes the diverging epoch, the current leader and the snapshot
// to fetch instead, tags 0 to 2, each when known.
func (p *FetchPartition) appendTags(b []byte) []byte {
	diverging := p.Diverging != model.UndefinedEpochEnd
	leader := p.Leader != model.NoBroker || p.LeaderEpoch != model.NoEpoch
	snapshot := p.Snapshot != model.UndefinedEpochEnd
	b = append(b, count(diverging)+count(leader)+count(snapshot))
	if diverging {
		b = append(b, 0, 4+8+1)
		b = binary.BigEndian.AppendUint32(b, uint32(p.Diverging.Epoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Diverging.End))
		b = append(b, 0)
	}
	if leader {
		b = append(b, 1, 4+4+1)
		b = binary.BigEndian.AppendUint32(b, uint32(p.Leader))
		b = binary.BigEndian.AppendUint32(b, uint32(p.LeaderEpoch))
		b = append(b, 0)
	}
	if snapshot {
		b = append(b, 2, 8+4+1)
		b = binary.BigEndian.AppendUint64(b, uint64(p.Snapshot.End))
		b = binary.BigEndian.AppendUint32(b, uint32(p.Snapshot.Epoch))
		b = append(b, 0)
	}
	return b
}

func count(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendTags writes the nodes, tag 0 of the response.
func (r *FetchResponse) appendTags(b []byte) []byte {
	if len(r.Nodes) == 0 || r.Version < 16 {
		return append(b, 0)
	}
	size := uvarintLen(uint64(len(r.Nodes)) + 1)
	for i := range r.Nodes {
		size += r.Nodes[i].size()
	}
	b = append(b, 1, 0)
	b = binary.AppendUvarint(b, uint64(size))
	b = appendArrayLen(b, len(r.Nodes), true)
	for i := range r.Nodes {
		n := &r.Nodes[i]
		b = binary.BigEndian.AppendUint32(b, uint32(n.ID))
		b = appendString(b, n.Host, true)
		b = binary.BigEndian.AppendUint32(b, uint32(n.Port))
		if n.Rack == nil {
			b = append(b, 0)
		} else {
			b = appendString(b, *n.Rack, true)
		}
		b = append(b, 0)
	}
	return b
}

func (n *Node) size() int {
	size := 4 + uvarintLen(uint64(len(n.Host))+1) + len(n.Host) + 4 + 1
	if n.Rack == nil {
		return size + 1
	}
	return size + uvarintLen(uint64(len(*n.Rack))+1) + len(*n.Rack)
}

func appendArrayLen(b []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(b, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendString(b []byte, s string, flexible bool) []byte {
	if flexible {
		b = binary.AppendUvarint(b, uint64(len(s))+1)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	}
	return append(b, s...)
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
