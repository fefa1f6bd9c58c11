package storage

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Suffixes of files and folders (R8.1).
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"
	deletedSuffix  = ".deleted"
	cleanedSuffix  = ".cleaned"
	swapSuffix     = ".swap"
	tmpSuffix      = ".tmp"

	deleteDir = "-delete"
	futureDir = "-future"
	strayDir  = "-stray"
)

// Names of single files.
const (
	lockFile         = ".lock"
	cleanFile        = ".kafka_cleanshutdown"
	metaFile         = "meta.properties"
	metadataFile     = "partition.metadata"
	epochsFile       = "leader-epoch-checkpoint"
	hwFile           = "replication-offset-checkpoint"
	recoveryFile     = "recovery-point-offset-checkpoint"
	logStartFile     = "log-start-offset-checkpoint"
	metadataTopicDir = "__cluster_metadata-0"
)

// maxName is the longest name of a folder that file systems take.
const maxName = 255

func segmentName(base model.Offset, suffix string) string {
	return fmt.Sprintf("%020d%s", base, suffix)
}

// parseSegmentName splits "00000000000000000042.log"; ok is false for a name
// that does not begin with an offset.
func parseSegmentName(name string) (base model.Offset, suffix string, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || len(digits) != 20 {
		return 0, "", false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, "", false
	}
	return model.Offset(n), "." + rest, true
}

// parseLogDir splits "topic-7".
func parseLogDir(name string) (model.TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return model.TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || n < 0 || strconv.Itoa(int(n)) != name[i+1:] {
		return model.TopicPartition{}, false
	}
	return model.TopicPartition{Topic: name[:i], Partition: int32(n)}, true
}

// asideName is the folder of a log that was set aside: topic-7.ID-delete. The
// topic gives way when the name grows too long, as in Kafka.
func asideName(tp model.TopicPartition, id [16]byte, suffix string) string {
	tail := fmt.Sprintf("-%d.%x%s", tp.Partition, id, suffix)
	return tp.Topic[:min(len(tp.Topic), maxName-len(tail))] + tail
}

// fits reports whether an offset can be held as a distance from base.
func fits(base, offset model.Offset) bool {
	d := offset - base
	return d >= 0 && d <= math.MaxInt32
}
