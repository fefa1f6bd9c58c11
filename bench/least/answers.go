package least

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	keyProduce  = 0
	keyVersions = 18
)

// span is of versions, both ends in it.
type span struct{ oldest, newest int16 }

// served are the versions that are served, by key; the newest ones are the last without
// tagged fields. Produce and Fetch are read and written by hand.
var served = map[int16]span{keyProduce: {3, 8}, 1: {11, 11}, 2: {1, 5}, 3: {0, 8}, keyVersions: {0, 3}, 19: {0, 4}, 22: {0, 1}}

// answer serves every request but Produce; body is what follows the fixed part of the
// header.
func (c *conn) answer(r request, body []byte) error {
	if r.key == keyVersions {
		return c.versions(r)
	}
	body, err := behindName(body)
	if err != nil {
		return err
	}
	req := kmsg.RequestForKey(r.key)
	req.SetVersion(r.version)
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("read a request with key %d: %w", r.key, err)
	}
	var resp kmsg.Response
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		return c.fetch(r, req)
	case *kmsg.ListOffsetsRequest:
		resp, err = c.offsets(req)
	case *kmsg.MetadataRequest:
		resp = c.c.metadata(req)
	case *kmsg.CreateTopicsRequest:
		resp = create(req)
	case *kmsg.InitProducerIDRequest:
		resp = c.c.producer(req)
	}
	if err != nil {
		return err
	}
	resp.SetVersion(r.version)
	return c.tell(r, resp)
}

// behindName skips the client's id, which may be null.
func behindName(b []byte) ([]byte, error) {
	if len(b) >= 2 {
		n := 2 + max(0, int(int16(binary.BigEndian.Uint16(b))))
		if n <= len(b) {
			return b[n:], nil
		}
	}
	return nil, errors.New("a request ends in its client's id")
}

func (c *conn) tell(r request, resp kmsg.Response) error {
	c.begin(r)
	c.out = resp.AppendTo(c.out)
	return c.finish(0)
}

func (c *conn) versions(r request) error {
	resp := kmsg.NewPtrApiVersionsResponse()
	if resp.Version = r.version; r.version < 0 || r.version > served[keyVersions].newest {
		resp.Version, resp.ErrorCode = 0, kerr.UnsupportedVersion.Code
	}
	for key, v := range served {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = key, v.oldest, v.newest
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	return c.tell(r, resp)
}

func (c *conn) offsets(req *kmsg.ListOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, t := range req.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			l, err := c.c.at(t.Topic, p.Partition)
			if err != nil {
				return nil, err
			}
			part := kmsg.NewListOffsetsResponseTopicPartition()
			part.Partition, part.Offset, part.LeaderEpoch = p.Partition, 0, 0
			if p.Timestamp != -2 {
				l.mu.Lock()
				part.Offset = l.next
				l.mu.Unlock()
			}
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// metadata tells that every topic asked for is there, all its replicas in sync.
func (c *Cluster) metadata(req *kmsg.MetadataRequest) kmsg.Response {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ControllerID = 1
	var all []int32
	for i, l := range c.listeners {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = int32(i+1), "127.0.0.1", int32(l.Addr().(*net.TCPAddr).Port)
		resp.Brokers = append(resp.Brokers, b)
		all = append(all, b.NodeID)
	}
	for _, t := range req.Topics {
		out := kmsg.NewMetadataResponseTopic()
		out.Topic = t.Topic
		for p := range int32(Partitions) {
			part := kmsg.NewMetadataResponseTopicPartition()
			part.Partition, part.Leader, part.LeaderEpoch = p, p%int32(len(all))+1, 0
			part.Replicas, part.ISR = all, all
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// create has nothing to do but to say what it cannot be asked for.
func create(req *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreateTopicsResponse()
	for _, t := range req.Topics {
		out := kmsg.NewCreateTopicsResponseTopic()
		if out.Topic = t.Topic; t.NumPartitions != Partitions {
			out.ErrorCode = kerr.InvalidPartitions.Code
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (c *Cluster) producer(*kmsg.InitProducerIDRequest) kmsg.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = c.ids, 0
	return resp
}
