package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-log/tidemark/internal/explain"
)

func (a *App) replicas() *cobra.Command {
	var at reach
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "replicas [TOPIC...]",
		Args:  anyNumber("TOPIC"),
		Short: "Show the marks of every replica, and why a follower is outside the ISR",
		Long: "Ask every broker for its replicas and show, for each partition, the log end offset (LEO) and high\n" +
			"watermark (HW) of each replica, what the leader remembers of each follower (RemoteLEO, last fetch),\n" +
			"who is in the ISR and why not, and which replica holds the high watermark.",
		RunE: func(cmd *cobra.Command, topics []string) error {
			if every <= 0 {
				return usagef("--interval %v is not valid: give more than 0s", every)
			}
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				return a.showReplicas(cmd.Context(), adm, &at, topics, watch, every)
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show them again and again until ctrl-C")
	cmd.Flags().DurationVar(&every, "interval", 500*time.Millisecond, "how often --watch asks")
	return cmd
}

// showReplicas prints the replicas once, or with watch until ctx is done.
func (a *App) showReplicas(ctx context.Context, adm *kadm.Client, at *reach, topics []string, watch bool, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	clear := ""
	if watch && isTerminal(a.Out) {
		clear = "\x1b[H\x1b[2J"
	}
	for {
		v, err := survey(ctx, adm, at, topics)
		if ctx.Err() != nil && watch {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.Out, clear+v.render()); err != nil || !watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// view is what the brokers told, and the partitions that the metadata lists.
type view struct {
	topics  kadm.TopicDetails
	answers map[int32]*explain.Replicas
	silent  map[int32]string // why a broker told nothing
}

// survey asks the metadata for the partitions and every broker, at the same
// time, for its replicas.
func survey(ctx context.Context, adm *kadm.Client, at *reach, topics []string) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	m, err := settled(ctx, func() (kadm.Metadata, kadm.TopicDetails, error) {
		m, err := adm.Metadata(ctx, topics...)
		return m, m.Topics, err
	})
	if err != nil {
		return nil, plain("read the metadata", err, "")
	}
	for _, t := range m.Topics.Sorted() {
		if t.Err != nil {
			return nil, plain("topic "+t.Topic, t.Err, "")
		}
	}
	v := &view{topics: m.Topics, answers: map[int32]*explain.Replicas{}, silent: map[int32]string{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, b := range m.Brokers {
		wg.Go(func() {
			answer, err := askReplicas(ctx, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), topics)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				v.silent[b.NodeID] = err.Error()
				return
			}
			v.answers[b.NodeID] = answer
		})
	}
	wg.Wait()
	return v, nil
}

// told finds what a broker said of a partition.
func (v *view) told(broker int32, topic string, partition int32) *explain.Partition {
	a := v.answers[broker]
	if a == nil {
		return nil
	}
	for i := range a.Partitions {
		if p := &a.Partitions[i]; p.Topic == topic && p.Partition == partition {
			return p
		}
	}
	return nil
}

// render prints every partition.
func (v *view) render() string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	for _, t := range v.topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			v.partition(w, t.Topic, p)
		}
	}
	_ = w.Flush() // a bytes.Buffer takes everything
	if out.Len() == 0 {
		return "there are no topics\n"
	}
	return trimLines(out.String())
}

// trimLines drops the white space that columns leave at the ends of lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// partition prints one partition: its leader's view, then a line a replica.
func (v *view) partition(w *tabwriter.Writer, topic string, p kadm.PartitionDetail) {
	lead := v.told(p.Leader, topic, p.Partition)
	isr, epoch, note := p.ISR, p.LeaderEpoch, ""
	if lead != nil && lead.Role == "leader" {
		isr, epoch = lead.ISR, lead.LeaderEpoch
		note = fmt.Sprintf(", min ISR %d", lead.MinISR)
		if lead.PendingISR {
			note += ", asks the controller for " + ids(lead.MaximalISR)
		}
	}
	_ = w.Flush() // each partition aligns its own columns
	fmt.Fprintf(w, "%s-%d: leader %s, epoch %d, ISR %s, OSR %s%s\n", topic, p.Partition, leader(p.Leader), epoch, ids(isr),
		ids(outside(p.Replicas, isr)), note)
	fmt.Fprintln(w, "  broker\trole\tstart\tHW\tLEO\tRemoteLEO\tlag\tfetched\tISR\twhy")
	for _, id := range p.Replicas {
		fmt.Fprintln(w, "  "+strings.Join(v.replica(id, topic, p, lead, isr), "\t"))
	}
	if lead != nil && lead.HoldsHW != "" {
		fmt.Fprintf(w, "  HW %d: %s\n", lead.HW, lead.HoldsHW)
	}
	for _, id := range p.Replicas {
		if own := v.told(id, topic, p.Partition); own != nil {
			writeCuts(w, id, own.Cuts)
		}
	}
	fmt.Fprintln(w)
}

// outside are the replicas that are not in sync: AR = ISR + OSR.
func outside(replicas, isr []int32) []int32 {
	var out []int32
	for _, id := range replicas {
		if !slices.Contains(isr, id) {
			out = append(out, id)
		}
	}
	return out
}

// writeCuts tells what truncations took from a replica.
func writeCuts(w io.Writer, id int32, cuts []explain.Cut) {
	for _, c := range cuts {
		what := "uncommitted as far as it knew"
		if c.BelowHW {
			what = fmt.Sprintf("some below its HW %d", c.HW)
		}
		fmt.Fprintf(w, "  b%d cut off records [%d,%d) at %s, %s, to follow the leader of epoch %d (%s)\n", id, c.From, c.To,
			time.UnixMilli(c.TimeMs).UTC().Format(time.RFC3339), what, c.LeaderEpoch, c.Rule)
	}
}

// replica fills the columns of one replica from its own words and its leader's.
func (v *view) replica(id int32, topic string, p kadm.PartitionDetail, lead *explain.Partition, isr []int32) []string {
	row := []string{"b" + strconv.Itoa(int(id)), "?", "?", "?", "?", "", "", "", "out", ""}
	if slices.Contains(isr, id) {
		row[8] = "in"
	}
	own := v.told(id, topic, p.Partition)
	if own != nil {
		row[1], row[2], row[3], row[4] = own.Role, number(own.LogStart), number(own.HW), number(own.LEO)
	} else if why, ok := v.silent[id]; ok {
		row[9] = "does not answer: " + why
	} else if _, ok := v.answers[id]; !ok {
		row[9] = "is not in the cluster"
	}
	if lead == nil || lead.Role != "leader" || id == p.Leader {
		return row
	}
	for _, r := range lead.Remotes {
		if r.ID != id {
			continue
		}
		row[5], row[7] = number(r.LEO), ago(r.LastFetchMs)
		if r.LEO >= 0 {
			row[6] = number(max(0, lead.LEO-r.LEO))
		}
		if r.Why != "" {
			row[9] = strings.TrimPrefix(row[9]+"; "+r.Why, "; ")
		}
	}
	return row
}

// number prints an offset, where a negative one is unknown.
func number(n int64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

// ago prints how long something was ago, in milliseconds.
func ago(ms int64) string {
	switch {
	case ms < 0:
		return "never"
	case ms < 1000:
		return fmt.Sprintf("%d ms ago", ms)
	}
	return fmt.Sprintf("%.1f s ago", float64(ms)/1000)
}
