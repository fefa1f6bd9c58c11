package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Meta is meta.properties: whose directory it is (R8.9).
type Meta struct {
	ClusterID   string
	NodeID      model.BrokerID
	DirectoryID model.UUID
}

// ParseMeta reads meta.properties of version 1.
func ParseMeta(b []byte) (Meta, error) {
	m := Meta{NodeID: model.NoBroker}
	version := ""
	for line := range strings.SplitSeq(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "version":
			version = value
		case "cluster.id":
			m.ClusterID = value
		case "node.id":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 0 {
				return m, fmt.Errorf("node.id %q is no node id", value)
			}
			m.NodeID = model.BrokerID(n)
		case "directory.id":
			id, err := model.ParseUUID(value)
			if err != nil {
				return m, fmt.Errorf("directory.id: %w", err)
			}
			m.DirectoryID = id
		}
	}
	if version != "1" {
		return m, fmt.Errorf("version %q is not 1", version)
	}
	if m.ClusterID == "" || m.NodeID == model.NoBroker {
		return m, errors.New("cluster.id or node.id is missing")
	}
	return m, nil
}

// Format is the inverse of ParseMeta.
func (m Meta) Format() []byte {
	return fmt.Appendf(nil, "#\nnode.id=%d\ndirectory.id=%s\nversion=1\ncluster.id=%s\n", m.NodeID, m.DirectoryID, m.ClusterID)
}

// ParsePartitionMetadata reads partition.metadata and returns the topic id.
func ParsePartitionMetadata(b []byte) (model.UUID, error) {
	var id model.UUID
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 || strings.TrimSpace(lines[0]) != "version: 0" {
		return id, errors.New("no partition metadata of version 0")
	}
	value, ok := strings.CutPrefix(lines[1], "topic_id: ")
	if !ok {
		return id, fmt.Errorf("bad line %q", lines[1])
	}
	id, err := model.ParseUUID(strings.TrimSpace(value))
	if err == nil && id.IsZero() {
		return id, errors.New("the topic id is zero")
	}
	return id, err
}

// PartitionMetadata is the inverse of ParsePartitionMetadata.
func PartitionMetadata(id model.UUID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", id)
}

// cleanShutdown is the content of .kafka_cleanshutdown (R8.10).
type cleanShutdown struct {
	Version     int               `json:"version"`
	BrokerEpoch model.BrokerEpoch `json:"brokerEpoch"`
}

// ParseCleanShutdown reads .kafka_cleanshutdown and returns the broker epoch.
func ParseCleanShutdown(b []byte) (model.BrokerEpoch, error) {
	c := cleanShutdown{Version: -1, BrokerEpoch: model.UnknownBrokerEpoch}
	if err := json.Unmarshal(b, &c); err != nil {
		return model.UnknownBrokerEpoch, err
	}
	if c.Version != 0 {
		return model.UnknownBrokerEpoch, fmt.Errorf("version %d is not 0", c.Version)
	}
	return c.BrokerEpoch, nil
}

// CleanShutdown is the inverse of ParseCleanShutdown.
func CleanShutdown(epoch model.BrokerEpoch) []byte {
	return fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, epoch)
}
