package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// describeLogDirs serves key 35, versions 1 to 5: the one log directory with
// the size of each log in bytes; null topics mean all (KIP-113, 827, case B225).
// The offset lag is that of a replica that is moved between directories, which
// does not happen here: 0. Errors: KAFKA_STORAGE_ERROR for a directory that
// failed.
func (a *API) describeLogDirs(_ context.Context, _ *transport.Request, req *kmsg.DescribeLogDirsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	state := a.LogDir()
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.ErrorCode = state.Path, state.Err.Code()
	dir.TotalBytes, dir.UsableBytes = state.Total, state.Usable
	if state.Err == model.None {
		dir.Topics = logSizes(state.Logs, wantedLogs(req))
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp
}

// wantedLogs says which partitions a request names. Nil means all.
func wantedLogs(req *kmsg.DescribeLogDirsRequest) map[model.TopicPartition]bool {
	if req.Topics == nil {
		return nil
	}
	wanted := make(map[model.TopicPartition]bool)
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			wanted[model.TopicPartition{Topic: req.Topics[i].Topic, Partition: p}] = true
		}
	}
	return wanted
}

// logSizes lists the wanted logs by topic and partition.
func logSizes(logs []*storage.Log, wanted map[model.TopicPartition]bool) []kmsg.DescribeLogDirsResponseDirTopic {
	logs = slices.Clone(logs)
	slices.SortFunc(logs, func(x, y *storage.Log) int { return x.TP().Compare(y.TP()) })
	var topics []kmsg.DescribeLogDirsResponseDirTopic
	for _, log := range logs {
		tp := log.TP()
		if wanted != nil && !wanted[tp] {
			continue
		}
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = tp.Topic
			topics = append(topics, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size = tp.Partition, log.Size()
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	return topics
}
