package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLineBytes bounds one record read from the input.
const maxLineBytes = 100 << 20

// produceOptions are the flags of produce.
type produceOptions struct {
	at          reach
	topic       string
	partition   int32
	separator   string
	null        string
	headers     []string
	acks        string
	compression string
	idempotent  bool
	offsets     bool
}

func (a *App) produce() *cobra.Command {
	o := produceOptions{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Send each line of the standard input as a record",
		Args:  exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic = args[0]
			opts, err := o.client(cmd.Flags().Changed("idempotent"))
			if err != nil {
				return err
			}
			headers, err := o.parseHeaders()
			if err != nil {
				return err
			}
			cl, err := o.at.connect(cmd.Context(), opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			if err := o.checkPartition(cmd.Context(), cl); err != nil {
				return err
			}
			return a.sendLines(cmd.Context(), cl, &o, headers)
		},
	}
	o.at.flags(cmd)
	f := cmd.Flags()
	f.Int32VarP(&o.partition, "partition", "p", -1, "partition; without it, chosen by the key")
	f.StringVarP(&o.separator, "key-separator", "k", "", "what stands between key and value; without it, records have no key")
	f.StringVar(&o.null, "null", "", "the value that stands for no value, which deletes a key from a compacted topic")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "a header of every record, as KEY=VALUE; may be repeated")
	f.StringVarP(&o.acks, "acks", "a", "all", "who must have the record: all, 1 (the leader) or 0 (nobody)")
	f.StringVarP(&o.compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.BoolVar(&o.idempotent, "idempotent", true, "number the records, so that a retry is not stored twice; needs --acks all")
	f.BoolVar(&o.offsets, "offsets", false, "print where each record was stored")
	return cmd
}

// client turns the flags into options of the client. chose says that
// --idempotent was given and not defaulted.
func (o *produceOptions) client(chose bool) ([]kgo.Opt, error) {
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[o.compression]
	if !ok {
		return nil, usagef("--compression %s is not valid: give none, gzip, snappy, lz4 or zstd", o.compression)
	}
	acks, ok := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "-1": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}[o.acks]
	switch {
	case !ok:
		return nil, usagef("--acks %s is not valid: give all, 1 or 0", o.acks)
	case o.partition < -1:
		return nil, usagef("--partition %d is not valid: give 0 or more", o.partition)
	case acks != kgo.AllISRAcks() && o.idempotent && chose:
		return nil, usagef("--idempotent needs --acks all: drop one of them")
	}
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(acks), kgo.AllowAutoTopicCreation(),
		kgo.RecordDeliveryTimeout(max(o.at.timeout, time.Second)), kgo.UnknownTopicRetries(5),
	}
	if acks != kgo.AllISRAcks() || !o.idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if o.partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return opts, nil
}

// checkPartition refuses a partition that the topic does not have. A topic that
// the broker does not know is left to the client, which may create it or wait
// for news of it.
func (o *produceOptions) checkPartition(ctx context.Context, cl *kgo.Client) error {
	if o.partition < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.at.timeout)
	defer cancel()
	topics, err := describe(ctx, kadm.NewClient(cl), o.topic)
	if err == nil {
		err = topics.Error()
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return nil
	case err != nil:
		return plain("produce to "+o.topic, err, "")
	}
	return hasPartition("produce to", topics[o.topic], o.partition)
}

// hasPartition refuses a partition that the topic does not have.
func hasPartition(verb string, topic kadm.TopicDetail, p int32) error {
	if _, ok := topic.Partitions[p]; !ok {
		return fmt.Errorf("%s %s: there is no partition %d: it has 0 to %d", verb, topic.Topic, p, len(topic.Partitions)-1)
	}
	return nil
}

func (o *produceOptions) parseHeaders() ([]kgo.RecordHeader, error) {
	var out []kgo.RecordHeader
	for _, h := range o.headers {
		key, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, usagef("--header %s is not KEY=VALUE", h)
		}
		out = append(out, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return out, nil
}

// record makes a record of one line. The line's bytes are copied.
func (o *produceOptions) record(line []byte, headers []kgo.RecordHeader) (*kgo.Record, error) {
	text := string(line)
	r := &kgo.Record{Topic: o.topic, Partition: o.partition, Headers: headers}
	if o.separator != "" {
		key, value, ok := strings.Cut(text, o.separator)
		if !ok {
			return nil, fmt.Errorf("the line %.40q has no %q between key and value: add it, or drop --key-separator", text, o.separator)
		}
		r.Key, text = []byte(key), value
	}
	if o.null == "" || text != o.null {
		r.Value = []byte(text)
	}
	return r, nil
}

// delivery gathers what became of the records. Its methods are called from the
// client's goroutines.
type delivery struct {
	mu             sync.Mutex
	records, bytes int64
	err            error
	out            io.Writer // nil prints no offsets
	stop           context.CancelFunc
}

// done takes the outcome of one record and stops the sending at the first error.
func (d *delivery) done(r *kgo.Record, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil && d.err == nil:
		d.err = plain("produce to "+r.Topic, err, "")
		d.stop()
	case err == nil:
		d.records++
		d.bytes += int64(len(r.Key) + len(r.Value))
		if d.out != nil {
			fmt.Fprintf(d.out, "%s-%d@%d\n", r.Topic, r.Partition, r.Offset)
		}
	}
}

func (d *delivery) counts() (records, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records, d.bytes
}

// line is one line of the input, or why there are no more.
type line struct {
	text []byte
	err  error
}

// readLines passes the lines of in on until it ends. A read of a terminal cannot
// be interrupted, so the goroutine may outlive ctx: it ends with the input, or
// with the process.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	out := make(chan line, 64)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), maxLineBytes)
		for lines.Scan() {
			select {
			case out <- line{text: bytes.Clone(lines.Bytes())}:
			case <-ctx.Done():
				return
			}
		}
		err := lines.Err()
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			err = fmt.Errorf("a line is longer than %d bytes: send records of that size with a client", maxLineBytes)
		case err != nil:
			err = fmt.Errorf("the input cannot be read: %w", err)
		default:
			return
		}
		select {
		case out <- line{err: err}:
		case <-ctx.Done():
		}
	}()
	return out
}

// sendLines sends records until the input ends, an error stops it or the user
// does, and waits for those that are under way.
func (a *App) sendLines(ctx context.Context, cl *kgo.Client, o *produceOptions, headers []kgo.RecordHeader) error {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	d := &delivery{stop: stop}
	if o.offsets {
		d.out = a.Out
	}
	bar := newProgress(a.Err, "produced", time.Now())
	bad := o.send(sending, cl, readLines(sending, a.In), headers, d, bar)
	flushErr := cl.Flush(ctx)
	records, size := d.counts()
	bar.end(time.Now(), records, size)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %d records were stored, the rest may or may not be", records)
	case d.err != nil:
		return fmt.Errorf("%w (%d records were stored before)", d.err, records)
	case bad != nil:
		return bad
	}
	return flushErr
}

// send hands every line to the client. The error is one of the input.
func (o *produceOptions) send(ctx context.Context, cl *kgo.Client, lines <-chan line, headers []kgo.RecordHeader, d *delivery, bar *progress) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, more := <-lines:
			if !more || l.err != nil {
				return l.err
			}
			r, err := o.record(l.text, headers)
			if err != nil {
				return err
			}
			cl.Produce(ctx, r, d.done)
			records, size := d.counts()
			bar.show(time.Now(), records, size)
		}
	}
}
