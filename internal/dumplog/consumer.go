package dumplog

import "github.com/twmb/franz-go/pkg/kmsg"

// subscription prints what a consumer said on joining its group, or its bytes if
// they are of no version that is known.
func subscription(b []byte) any {
	s := kmsg.NewConsumerMemberMetadata()
	v, err := versionOf(b)
	if err != nil || v < 0 || v > 3 || s.ReadFrom(b) != nil {
		return b
	}
	o := (&object{}).field("topics", filled(s.Topics)).field("userData", s.UserData)
	if v >= 1 {
		o.field("ownedPartitions", list(filled(s.OwnedPartitions), func(p kmsg.ConsumerMemberMetadataOwnedPartition) rawJSON {
			return partitions(p.Topic, p.Partitions)
		}))
	}
	if v >= 2 {
		o.field("generationId", s.Generation)
	}
	if v >= 3 {
		o.field("rackId", s.Rack)
	}
	return o.json()
}

// assignment prints what a consumer was assigned, or its bytes if they are of no
// version that is known.
func assignment(b []byte) any {
	a := kmsg.NewConsumerMemberAssignment()
	v, err := versionOf(b)
	if err != nil || v < 0 || v > 3 || a.ReadFrom(b) != nil {
		return b
	}
	return (&object{}).field("assignedPartitions", list(filled(a.Topics), func(t kmsg.ConsumerMemberAssignmentTopic) rawJSON {
		return partitions(t.Topic, t.Partitions)
	})).field("userData", a.UserData).json()
}

func partitions(topic string, ids []int32) rawJSON {
	return (&object{}).field("topic", topic).field("partitions", filled(ids)).json()
}

// filled is a list that prints as [] when it is empty, for arrays that cannot be
// null.
func filled[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
