package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeOptions are the flags of consume.
type consumeOptions struct {
	at         reach
	topic      string
	group      string
	partitions []int32
	from       string
	count      int64
	untilEnd   bool
	isolation  string
	show       shown
}

// shown says which parts of a record are printed before its value.
type shown struct {
	json, keys, headers, offsets, timestamps bool
	separator                                string
}

func (a *App) consume() *cobra.Command {
	o := consumeOptions{}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the records of a topic, one a line",
		Args:  exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic = args[0]
			opts, err := o.client()
			if err != nil {
				return err
			}
			cl, err := o.at.connect(cmd.Context(), opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			return a.printRecords(cmd.Context(), cl, &o)
		},
	}
	o.at.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.group, "group", "g", "", "consumer group that remembers what was read")
	f.Int32SliceVarP(&o.partitions, "partition", "p", nil, "partitions to read; without it, all")
	f.StringVarP(&o.from, "offset", "o", "end", "where to begin without a committed offset: start, end, an OFFSET, -N for the last N, or @TIME (RFC 3339 or Unix milliseconds)")
	f.Int64VarP(&o.count, "count", "n", 0, "stop after so many records")
	f.BoolVarP(&o.untilEnd, "until-end", "e", false, "stop at what is the end when the command starts")
	f.StringVar(&o.isolation, "isolation", "read_committed", "read_committed, or read_uncommitted to see open and aborted transactions too")
	f.BoolVar(&o.show.json, "json", false, "print each record as a JSON object")
	f.BoolVar(&o.show.keys, "keys", false, "print keys")
	f.BoolVar(&o.show.headers, "headers", false, "print headers")
	f.BoolVar(&o.show.offsets, "offsets", false, "print partition and offset")
	f.BoolVar(&o.show.timestamps, "timestamps", false, "print timestamps")
	f.StringVar(&o.show.separator, "separator", "\t", "what stands between the parts of a record")
	return cmd
}

// client turns the flags into options of the client.
func (o *consumeOptions) client() ([]kgo.Opt, error) {
	offset, err := parseOffset(o.from)
	if err != nil {
		return nil, err
	}
	level := kgo.ReadCommitted()
	switch o.isolation {
	case "read_committed":
	case "read_uncommitted":
		level = kgo.ReadUncommitted()
	default:
		return nil, usagef("--isolation %s is not valid: give read_committed or read_uncommitted", o.isolation)
	}
	switch {
	case o.count < 0:
		return nil, usagef("--count %d is not valid: give 1 or more, or 0 for all", o.count)
	case o.group != "" && len(o.partitions) > 0:
		return nil, usagef("--group and --partition exclude each other: a group hands out the partitions itself")
	case o.group != "" && o.untilEnd:
		return nil, usagef("--group and --until-end exclude each other: use --count, or drop the group")
	}
	opts := []kgo.Opt{kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.FetchMaxWait(500 * time.Millisecond)}
	switch {
	case o.group != "":
		opts = append(opts, kgo.ConsumerGroup(o.group), kgo.ConsumeTopics(o.topic), kgo.ConsumeResetOffset(offset), kgo.AutoCommitMarks())
	case len(o.partitions) > 0:
		each := make(map[int32]kgo.Offset, len(o.partitions))
		for _, p := range o.partitions {
			if p < 0 {
				return nil, usagef("--partition %d is not valid: give 0 or more", p)
			}
			each[p] = offset
		}
		opts = append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.topic: each}))
	default:
		opts = append(opts, kgo.ConsumeTopics(o.topic), kgo.ConsumeResetOffset(offset))
	}
	return opts, nil
}

// parseOffset reads the flag --offset.
func parseOffset(s string) (kgo.Offset, error) {
	wrong := usagef("--offset %s is not valid: give start, end, an OFFSET, -N or @TIME", s)
	switch {
	case s == "start":
		return kgo.NewOffset().AtStart(), nil
	case s == "end":
		return kgo.NewOffset().AtEnd(), nil
	case strings.HasPrefix(s, "@"):
		if ms, ok := parseTime(s); ok {
			return kgo.NewOffset().AfterMilli(ms), nil
		}
		return kgo.Offset{}, wrong
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return kgo.Offset{}, wrong
	case n < 0:
		return kgo.NewOffset().AtEnd().Relative(n), nil
	}
	return kgo.NewOffset().At(n), nil
}

// parseTime reads @TIME as milliseconds since the Unix epoch.
func parseTime(s string) (int64, bool) {
	s, ok := strings.CutPrefix(s, "@")
	if !ok {
		return 0, false
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ms, ms >= 0
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UnixMilli(), err == nil
}

// reader prints records and knows when it has enough.
type reader struct {
	o    *consumeOptions
	out  *bufio.Writer
	left map[int32]int64 // exclusive ends not reached yet; nil without --until-end
	seen int64
	size int64
}

// printRecords prints records until there are enough, the user stops it or a
// partition fails. What a group printed is committed.
func (a *App) printRecords(ctx context.Context, cl *kgo.Client, o *consumeOptions) error {
	left, err := o.ends(ctx, cl)
	if err != nil {
		return err
	}
	r := &reader{o: o, out: bufio.NewWriter(a.Out), left: left}
	bar := newProgress(a.Err, "consumed", time.Now())
	if isTerminal(a.Out) {
		bar.w = nil // the records themselves are the progress
	}
	for !r.enough() {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			break
		}
		if err = r.take(fetches, cl); err != nil {
			break
		}
		bar.show(time.Now(), r.seen, r.size)
	}
	bar.end(time.Now(), r.seen, r.size)
	if flushErr := r.out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("the output cannot be written: %w", flushErr)
	}
	if o.group != "" {
		err = errors.Join(err, o.leave(cl))
	}
	return err
}

// leave commits what was printed and leaves the group.
func (o *consumeOptions) leave(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.at.timeout)
	defer cancel()
	err := cl.CommitMarkedOffsets(ctx)
	cl.LeaveGroupContext(ctx)
	if err != nil {
		return plain("commit the offsets of group "+o.group, err, "")
	}
	return nil
}

// ends asks for the end of every partition that is read, when --until-end needs
// it, and refuses a topic that is not there.
func (o *consumeOptions) ends(ctx context.Context, cl *kgo.Client) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, o.at.timeout)
	defer cancel()
	adm := kadm.NewClient(cl)
	topics, err := describe(ctx, adm, o.topic)
	if err == nil {
		err = topics.Error()
	}
	if err == nil && !topics.Has(o.topic) {
		err = kerr.UnknownTopicOrPartition
	}
	if err != nil {
		return nil, plain("consume "+o.topic, err, "")
	}
	for _, p := range o.partitions {
		if err := hasPartition("consume", topics[o.topic], p); err != nil {
			return nil, err
		}
	}
	if !o.untilEnd {
		return nil, nil
	}
	list := adm.ListCommittedOffsets
	if o.isolation == "read_uncommitted" {
		list = adm.ListEndOffsets
	}
	ends, err := list(ctx, o.topic)
	if err != nil {
		return nil, plain("find the end of "+o.topic, err, "")
	}
	return o.unread(ctx, adm, ends)
}

// unread keeps the ends of partitions that hold records to read. A partition
// whose records all lie before the start of the reading has none.
func (o *consumeOptions) unread(ctx context.Context, adm *kadm.Client, ends kadm.ListedOffsets) (map[int32]int64, error) {
	starts, err := o.starts(ctx, adm)
	if err != nil {
		return nil, plain("find the start of "+o.topic, err, "")
	}
	left := map[int32]int64{}
	for p, end := range ends[o.topic] {
		start, _ := starts.Lookup(o.topic, p)
		switch {
		case len(o.partitions) > 0 && !slices.Contains(o.partitions, p):
		case end.Err != nil:
			return nil, plain(fmt.Sprintf("find the end of %s-%d", o.topic, p), end.Err, "")
		case end.Offset > max(start.Offset, o.begin(end.Offset)):
			left[p] = end.Offset
		}
	}
	return left, nil
}

// starts asks where the reading can begin at the earliest.
func (o *consumeOptions) starts(ctx context.Context, adm *kadm.Client) (kadm.ListedOffsets, error) {
	if ms, ok := parseTime(o.from); ok {
		return adm.ListOffsetsAfterMilli(ctx, ms, o.topic)
	}
	return adm.ListStartOffsets(ctx, o.topic)
}

// begin is the first offset that --offset names by its number.
func (o *consumeOptions) begin(end int64) int64 {
	if o.from == "end" {
		return end
	}
	n, err := strconv.ParseInt(o.from, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// enough reports whether no more records are wanted.
func (r *reader) enough() bool {
	return r.o.count > 0 && r.seen >= r.o.count || r.left != nil && len(r.left) == 0
}

// take prints what a poll brought.
func (r *reader) take(fetches kgo.Fetches, cl *kgo.Client) error {
	for _, e := range fetches.Errors() {
		subject := fmt.Sprintf("consume %s-%d", e.Topic, e.Partition)
		if e.Topic == "" { // of the group or of the whole client
			subject = "consume " + r.o.topic
		}
		return plain(subject, e.Err, "")
	}
	var err error
	fetches.EachRecord(func(rec *kgo.Record) {
		end, bounded := r.left[rec.Partition]
		if err != nil || r.o.count > 0 && r.seen >= r.o.count || r.left != nil && (!bounded || rec.Offset >= end) {
			return
		}
		if !rec.Attrs.IsControl() {
			err = r.print(rec)
			r.seen++
			r.size += int64(len(rec.Key) + len(rec.Value))
		}
		cl.MarkCommitRecords(rec)
		if bounded && rec.Offset+1 >= end {
			delete(r.left, rec.Partition)
		}
	})
	if err == nil {
		err = r.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	return nil
}

// jsonRecord is a record as --json prints it. Bytes that are not UTF-8 are
// replaced by U+FFFD.
type jsonRecord struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Offset    int64        `json:"offset"`
	Timestamp int64        `json:"timestamp"` // milliseconds since the Unix epoch
	Key       *string      `json:"key"`
	Value     *string      `json:"value"`
	Headers   []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

// print writes one record as a line.
func (r *reader) print(rec *kgo.Record) error {
	if r.o.show.json {
		line, err := json.Marshal(toJSON(rec))
		if err == nil {
			_, err = r.out.Write(append(line, '\n'))
		}
		return err
	}
	_, err := r.out.WriteString(r.o.show.line(rec))
	return err
}

// line puts the parts of a record that are wanted into one line.
func (s shown) line(rec *kgo.Record) string {
	var parts []string
	if s.offsets {
		parts = append(parts, fmt.Sprintf("%d@%d", rec.Partition, rec.Offset))
	}
	if s.timestamps {
		parts = append(parts, rec.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if s.headers {
		list := make([]string, len(rec.Headers))
		for i, h := range rec.Headers {
			list[i] = h.Key + "=" + string(h.Value)
		}
		parts = append(parts, strings.Join(list, ","))
	}
	if s.keys {
		parts = append(parts, string(rec.Key))
	}
	return strings.Join(append(parts, string(rec.Value)), s.separator) + "\n"
}

func toJSON(rec *kgo.Record) jsonRecord {
	optional := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		return &s
	}
	out := jsonRecord{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp.UnixMilli(),
		Key: optional(rec.Key), Value: optional(rec.Value),
	}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, jsonHeader{Key: h.Key, Value: optional(h.Value)})
	}
	return out
}
