package least

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	headerSize = 61
	summedFrom = 21 // what the sum covers
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// produce stores a Produce request of version 3 to 8 while it arrives.
func (c *conn) produce(r request) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = r.version
	for range 2 { // client id, transactional id
		if _, err := c.text(); err != nil {
			return err
		}
	}
	acks, err := c.int16()
	if err == nil && acks == 0 {
		err = errors.New("acks=0 is not served: every request has an answer")
	}
	if err != nil {
		return err
	}
	if _, err := c.next(4); err != nil { // timeout
		return err
	}
	topics, err := c.int32()
	for i := int32(0); i < topics && err == nil; i++ {
		var t kmsg.ProduceResponseTopic
		t, err = c.topic()
		resp.Topics = append(resp.Topics, t)
	}
	if err != nil {
		return err
	}
	c.begin(r)
	c.out = resp.AppendTo(c.out)
	return c.finish(0)
}

func (c *conn) topic() (kmsg.ProduceResponseTopic, error) {
	out := kmsg.NewProduceResponseTopic()
	var err error
	if out.Topic, err = c.text(); err != nil {
		return out, err
	}
	parts, err := c.int32()
	for i := int32(0); i < parts && err == nil; i++ {
		part := kmsg.NewProduceResponseTopicPartition()
		part.Partition, err = c.int32()
		if err == nil {
			part.BaseOffset, part.ErrorCode, err = c.records(out.Topic, part.Partition)
		}
		out.Partitions = append(out.Partitions, part)
	}
	return out, err
}

// records stores one batch. A wrong sum is an answer, anything else the end of the
// connection.
func (c *conn) records(topic string, p int32) (base int64, code int16, err error) {
	size, err := c.int32()
	if err == nil && size < headerSize {
		err = fmt.Errorf("%d bytes of partition %d are not a batch", size, p)
	}
	if err != nil {
		return -1, 0, err
	}
	l, err := c.c.at(topic, p)
	if err != nil {
		return -1, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	head, err := c.need(headerSize)
	if err != nil {
		return -1, 0, err
	}
	if length := int32(binary.BigEndian.Uint32(head[8:])); length != size-12 || head[16] != 2 {
		return -1, 0, fmt.Errorf("%d bytes of partition %d are not one batch of format 2", size, p)
	}
	sum, last := binary.BigEndian.Uint32(head[17:]), int64(binary.BigEndian.Uint32(head[23:]))
	binary.BigEndian.PutUint64(head, uint64(l.next))
	binary.BigEndian.PutUint32(head[12:], 0)
	got, err := c.store(l, int(size))
	if err != nil {
		return -1, 0, err
	}
	if got != sum {
		return -1, kerr.CorruptMessage.Code, nil
	}
	base = l.next
	l.batches = append(l.batches, batch{base, l.size})
	l.size += int64(size)
	l.next += last + 1
	return base, 0, nil
}

// store writes what arrives behind the log's end and returns its sum.
func (c *conn) store(l *partition, size int) (uint32, error) {
	sum, skip := uint32(0), summedFrom
	for at := l.size; size > 0; {
		if c.from == c.to {
			c.from, c.to = 0, 0
			n, err := receive(c.f, c.buf[:min(size, len(c.buf))])
			if err != nil {
				return 0, err
			}
			c.to = n
		}
		b := c.buf[c.from:min(c.to, c.from+size)]
		sum = crc32.Update(sum, castagnoli, b[min(skip, len(b)):])
		skip -= min(skip, len(b))
		if _, err := l.file.WriteAt(b, at); err != nil {
			return 0, err
		}
		c.from += len(b)
		at += int64(len(b))
		size -= len(b)
	}
	return sum, nil
}
