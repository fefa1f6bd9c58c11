package controlplane

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// MetadataDir is the name of the directory, inside the metadata log directory,
// that holds the metadata log.
const MetadataDir = "__cluster_metadata-0"

// Voter is one member of the controller quorum.
type Voter struct {
	ID model.BrokerID
	// DirectoryID is zero for static voters (kraft.version 0): nobody knows the
	// others' directories when a node is formatted.
	DirectoryID model.UUID
	// Host and Port are the address of its controller listener.
	Host string
	Port uint16
}

// Options says how a controller runs. The zero value of a field marked
// (default) takes the value named there.
type Options struct {
	NodeID      model.BrokerID
	ClusterID   string
	DirectoryID model.UUID
	// Dir is the path of __cluster_metadata-0; made when missing.
	Dir string
	// Voters are the static voters of controller.quorum.voters (kraft.version
	// 0). Empty means that the voters are read from the log or the bootstrap
	// checkpoint, which Format wrote (kraft.version 1).
	Voters []Voter
	// Listener is the open controller listener; the controller closes it.
	Listener net.Listener
	// ListenerName is the first of controller.listener.names (default
	// CONTROLLER). Apache brokers look a leader's address up by this name.
	ListenerName string
	// Host and Port are what other nodes dial to reach Listener (default: the
	// address of this node in Voters, else that of Listener).
	Host string
	Port uint16

	// Core configures the controller core; NodeID and ClusterID are filled in
	// from above.
	Core controller.Config
	// SnapshotBytes is metadata.log.max.record.bytes.between.snapshots (default
	// 20 MiB): so many bytes of new records make a checkpoint.
	SnapshotBytes int64
	// DescribeConfigs answers that request at a controller; nil answers
	// UNSUPPORTED_VERSION and leaves the API out of ApiVersions. It must not
	// block.
	DescribeConfigs func(req *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsResponse
	// Dial replaces the TCP dialer, for every connection that is opened here.
	Dial Dial
	// Tick is the unit of raft time (default 100 ms); an election takes 10 to 20
	// ticks without news of the leader.
	Tick time.Duration
	Log  *slog.Logger // default: discarded
	FS   vfs.FS       // default: vfs.OS

	Runtime *task.Runtime // nil: goroutines and the machine's clock
	Seed    uint64        // of every random choice; 0: from the time
}

// Dial opens a connection to HOST:PORT; nil is TCP. A refused dial must satisfy
// transport.Refused.
type Dial func(ctx context.Context, addr string) (net.Conn, error)

// ObserverOptions says which quorum an observer follows.
type ObserverOptions struct {
	NodeID      model.BrokerID
	ClusterID   string
	DirectoryID model.UUID
	// Dir is the path of __cluster_metadata-0; made when missing.
	Dir string
	// Voters are the static voters; Bootstrap are "host:port" addresses of
	// controller.quorum.bootstrap.servers. One of them is needed.
	Voters    []Voter
	Bootstrap []string
	// FetchTimeout is controller.quorum.fetch.timeout.ms (default 2 s): so long
	// without an answer makes the observer look for another voter.
	FetchTimeout time.Duration
	// SnapshotBytes makes a checkpoint after so many bytes of new records
	// (default 20 MiB).
	SnapshotBytes int64
	// Dial replaces the TCP dialer.
	Dial Dial
	Log  *slog.Logger // default: discarded
	FS   vfs.FS       // default: vfs.OS

	Runtime *task.Runtime // nil: goroutines and the machine's clock
	Seed    uint64        // of every random choice; 0: from the time
}
