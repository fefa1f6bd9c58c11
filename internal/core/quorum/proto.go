package quorum

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

func unmarshal(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("read a membership change: %w", err)
	}
	return nil
}

// AppendMessage appends a message in the form that DecodeMessage reads.
func AppendMessage(dst []byte, m *pb.Message) ([]byte, error) {
	out, err := proto.MarshalOptions{}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("write a %s: %w", m.GetType(), err)
	}
	return out, nil
}

// DecodeMessage reads a message of another node. The result does not alias b.
func DecodeMessage(b []byte) (*pb.Message, error) {
	m := new(pb.Message)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("read a raft message: %w", err)
	}
	return m, nil
}
