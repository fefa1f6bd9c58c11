package controlplane

import (
	"encoding/binary"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// The API keys that controllers speak among themselves. They are served on the
// controller listener and not advertised.
const (
	keyRaft            = wire.FirstPrivateKey     // raft messages, answered when queued
	keyInstallSnapshot = wire.FirstPrivateKey + 1 // one MsgSnap, answered when the checkpoint is at hand
)

// raftRequest carries raft messages of one node to another:
//
//	cluster id (u16 length, bytes) | sender i32 | count u32 | messages (u32 length, protobuf)
type raftRequest struct {
	key       int16
	clusterID string
	from      model.BrokerID
	messages  []*pb.Message
}

var errShortRaft = errors.New("a raft request ends too early")

// maxMessages bounds the messages of one request.
const maxMessages = 4096

func (r *raftRequest) Key() int16                  { return r.key }
func (r *raftRequest) MaxVersion() int16           { return 0 }
func (r *raftRequest) SetVersion(int16)            {}
func (r *raftRequest) GetVersion() int16           { return 0 }
func (r *raftRequest) IsFlexible() bool            { return false }
func (r *raftRequest) ResponseKind() kmsg.Response { return &raftResponse{key: r.key} }

// AppendTo implements kmsg.Request.
func (r *raftRequest) AppendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.clusterID)))
	dst = append(dst, r.clusterID...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.from))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.messages)))
	for _, m := range r.messages {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		var err error
		if dst, err = quorum.AppendMessage(dst, m); err != nil {
			panic(err) // a message that raft made
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// ReadFrom implements kmsg.Request.
func (r *raftRequest) ReadFrom(b []byte) error {
	if len(b) < 2 || len(b) < 10+int(binary.BigEndian.Uint16(b)) {
		return errShortRaft
	}
	n := int(binary.BigEndian.Uint16(b))
	r.clusterID = string(b[2 : 2+n])
	b = b[2+n:]
	r.from = model.BrokerID(binary.BigEndian.Uint32(b))
	count := binary.BigEndian.Uint32(b[4:])
	b = b[8:]
	if count > maxMessages || int(count) > len(b)/4 {
		return errShortRaft
	}
	for range count {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return errShortRaft
		}
		size := int(binary.BigEndian.Uint32(b))
		m, err := quorum.DecodeMessage(b[4 : 4+size])
		if err != nil {
			return err
		}
		r.messages = append(r.messages, m)
		b = b[4+size:]
	}
	return nil
}

// raftResponse says whether the messages were taken.
type raftResponse struct {
	key  int16
	code int16
}

func (r *raftResponse) Key() int16                { return r.key }
func (r *raftResponse) MaxVersion() int16         { return 0 }
func (r *raftResponse) SetVersion(int16)          {}
func (r *raftResponse) GetVersion() int16         { return 0 }
func (r *raftResponse) IsFlexible() bool          { return false }
func (r *raftResponse) RequestKind() kmsg.Request { return &raftRequest{key: r.key} }

// AppendTo implements kmsg.Response.
func (r *raftResponse) AppendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(r.code))
}

// ReadFrom implements kmsg.Response.
func (r *raftResponse) ReadFrom(b []byte) error {
	if len(b) != 2 {
		return errShortRaft
	}
	r.code = int16(binary.BigEndian.Uint16(b))
	return nil
}
