package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
)

func (a *App) topic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Create, list, describe, alter and delete topics",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.topicCreate(), a.topicList(), a.topicDescribe(), a.topicAlter(), a.topicDelete())
	return cmd
}

// admin connects, hands an admin client to work and closes it.
func (r *reach) admin(ctx context.Context, work func(*kadm.Client) error) error {
	cl, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(int32(min(r.timeout.Milliseconds(), 1<<30)))
	return work(adm)
}

// keyValues parses KEY=VALUE arguments of a flag.
func keyValues(flag string, args []string) (map[string]*string, error) {
	out := make(map[string]*string, len(args))
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, usagef("%s %s is not KEY=VALUE", flag, arg)
		}
		out[key] = &value
	}
	return out, nil
}

// topicConfigs parses and checks --config arguments of a topic.
func topicConfigs(args []string) (map[string]*string, error) {
	configs, err := keyValues("--config", args)
	for key, value := range configs {
		if err := config.ValidateTopic(key, *value); err != nil {
			return nil, usageError{err}
		}
	}
	return configs, err
}

// knownTopicConfigs refuses keys that no topic has.
func knownTopicConfigs(keys []string) error {
	for _, key := range keys {
		if err := config.KnownTopic(key); err != nil {
			return usageError{err}
		}
	}
	return nil
}

func (a *App) topicCreate() *cobra.Command {
	var at reach
	var partitions int32
	var copies int16
	var settings []string
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic",
		Args:  exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			configs, err := topicConfigs(settings)
			switch {
			case err != nil:
				return err
			case partitions < 1 && partitions != -1:
				return usagef("--partitions %d is not valid: give 1 or more, or leave it to the cluster", partitions)
			case copies < 1 && copies != -1:
				return usagef("--replication-factor %d is not valid: give 1 or more, or leave it to the cluster", copies)
			}
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				made, err := adm.CreateTopic(cmd.Context(), partitions, copies, configs, args[0])
				if err != nil {
					return plain("create topic "+args[0], err, made.ErrMessage)
				}
				_, err = fmt.Fprintf(a.Out, "created topic %s\n", args[0])
				return err
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", -1, "how many partitions; -1 leaves it to the cluster")
	cmd.Flags().Int16VarP(&copies, "replication-factor", "r", -1, "how many replicas of each partition; -1 leaves it to the cluster")
	cmd.Flags().StringArrayVar(&settings, "config", nil, "a config of the topic, as KEY=VALUE; may be repeated")
	return cmd
}

func (a *App) topicList() *cobra.Command {
	var at reach
	var internal bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the names of the topics",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				topics, err := adm.ListTopicsWithInternal(cmd.Context())
				if err != nil {
					return plain("list topics", err, "")
				}
				if !internal {
					topics.FilterInternal()
				}
				for _, name := range topics.Names() {
					fmt.Fprintln(a.Out, name)
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&internal, "internal", false, "also those that the cluster keeps for itself")
	return cmd
}

func (a *App) topicDescribe() *cobra.Command {
	var at reach
	var internal bool
	cmd := &cobra.Command{
		Use:   "describe [TOPIC...]",
		Args:  anyNumber("TOPIC"),
		Short: "Show leaders, replicas, ISR and configs of topics",
		RunE: func(cmd *cobra.Command, names []string) error {
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				topics, err := describe(cmd.Context(), adm, names...)
				if err != nil {
					return plain("describe topics", err, "")
				}
				if len(names) == 0 && !internal {
					topics.FilterInternal()
				}
				for _, t := range topics.Sorted() {
					if t.Err != nil {
						return plain("topic "+t.Topic, t.Err, "")
					}
				}
				configs, err := adm.DescribeTopicConfigs(cmd.Context(), topics.Names()...)
				if err != nil {
					return plain("describe configs", err, "")
				}
				for _, t := range topics.Sorted() {
					if err := a.printTopic(t, configs); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&internal, "internal", false, "without names: also those that the cluster keeps for itself")
	return cmd
}

// printTopic prints one topic and its partitions.
func (a *App) printTopic(t kadm.TopicDetail, configs kadm.ResourceConfigs) error {
	var own []string
	if c, err := configs.On(t.Topic, nil); err == nil {
		for _, kv := range c.Configs {
			if kv.Source == kmsg.ConfigSourceDynamicTopicConfig {
				own = append(own, kv.Key+"="+kv.MaybeValue())
			}
		}
	}
	slices.Sort(own)
	fmt.Fprintf(a.Out, "%s  partitions %d  replication factor %d", t.Topic, len(t.Partitions), t.Partitions.NumReplicas())
	if len(own) > 0 {
		fmt.Fprintf(a.Out, "  %s", strings.Join(own, " "))
	}
	fmt.Fprintln(a.Out)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  partition\tleader\tepoch\treplicas\tISR\t")
	for _, p := range t.Partitions.Sorted() {
		note := ""
		if len(p.OfflineReplicas) > 0 {
			note = "offline " + ids(p.OfflineReplicas)
		}
		if p.Err != nil && !errors.Is(p.Err, kerr.ReplicaNotAvailable) {
			note = strings.TrimSpace(note + " " + p.Err.Error())
		}
		fmt.Fprintf(w, "  %d\t%s\t%d\t%s\t%s\t%s\n", p.Partition, leader(p.Leader), p.LeaderEpoch, ids(p.Replicas), ids(p.ISR), note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(a.Out, trimLines(table.String()))
	return err
}

// leader prints a broker id, where -1 is nobody.
func leader(id int32) string {
	if id < 0 {
		return "none"
	}
	return fmt.Sprint(id)
}

// ids prints a set of brokers.
func ids(list []int32) string {
	words := make([]string, len(list))
	for i, id := range list {
		words[i] = fmt.Sprint(id)
	}
	return "{" + strings.Join(words, ",") + "}"
}

func (a *App) topicAlter() *cobra.Command {
	var at reach
	var partitions int
	var settings, drop []string
	cmd := &cobra.Command{
		Use:   "alter TOPIC",
		Short: "Add partitions to a topic, or change its configs",
		Args:  exactly("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			configs, err := topicConfigs(settings)
			if err != nil {
				return err
			}
			if err := knownTopicConfigs(drop); err != nil {
				return err
			}
			changes := alterations(configs, drop)
			if partitions == 0 && len(changes) == 0 {
				return usagef("nothing to alter: give --partitions, --config or --delete-config")
			}
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				return a.alterTopic(cmd.Context(), adm, args[0], partitions, changes)
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().IntVarP(&partitions, "partitions", "p", 0, "how many partitions it has afterwards")
	cmd.Flags().StringArrayVar(&settings, "config", nil, "set a config of the topic, as KEY=VALUE; may be repeated")
	cmd.Flags().StringArrayVar(&drop, "delete-config", nil, "return a config of the topic, by its KEY, to its default; may be repeated")
	return cmd
}

// alterations lists changes of configs in a stable order.
func alterations(set map[string]*string, drop []string) []kadm.AlterConfig {
	var out []kadm.AlterConfig
	for _, key := range slices.Sorted(maps.Keys(set)) {
		out = append(out, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: set[key]})
	}
	for _, key := range drop {
		out = append(out, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	return out
}

func (a *App) alterTopic(ctx context.Context, adm *kadm.Client, topic string, partitions int, changes []kadm.AlterConfig) error {
	if len(changes) > 0 {
		responses, err := adm.AlterTopicConfigs(ctx, changes, topic)
		message := ""
		for _, r := range responses {
			if r.Err != nil {
				err, message = r.Err, r.ErrMessage
			}
		}
		if err != nil {
			return plain("alter topic "+topic, err, message)
		}
	}
	if partitions > 0 {
		responses, err := adm.UpdatePartitions(ctx, partitions, topic)
		message := ""
		for _, r := range responses {
			if r.Err != nil {
				err, message = r.Err, r.ErrMessage
			}
		}
		if err != nil {
			return plain("add partitions to topic "+topic, err, message)
		}
	}
	_, err := fmt.Fprintf(a.Out, "altered topic %s\n", topic)
	return err
}

func (a *App) topicDelete() *cobra.Command {
	var at reach
	var internal bool
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics with all their records",
		Args:  atLeastOne("TOPIC"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return at.admin(cmd.Context(), func(adm *kadm.Client) error {
				if !internal {
					if err := refuseInternal(cmd.Context(), adm, names); err != nil {
						return err
					}
				}
				responses, err := adm.DeleteTopics(cmd.Context(), names...)
				if err != nil {
					return plain("delete topics", err, "")
				}
				for _, name := range names {
					r, err := responses.On(name, func(r *kadm.DeleteTopicResponse) error { return r.Err })
					if err != nil {
						return plain("delete topic "+name, err, r.ErrMessage)
					}
					fmt.Fprintf(a.Out, "deleted topic %s\n", name)
				}
				return nil
			})
		},
	}
	at.flags(cmd)
	cmd.Flags().BoolVar(&internal, "internal", false, "delete topics too in which the cluster keeps its own state, such as offsets of consumer groups")
	return cmd
}

// refuseInternal refuses topics that the cluster keeps for itself. One that is not
// there is left to the deletion.
func refuseInternal(ctx context.Context, adm *kadm.Client, names []string) error {
	topics, err := adm.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return plain("delete topics", err, "")
	}
	for _, name := range names {
		if topics[name].IsInternal {
			return fmt.Errorf("delete topic %s: the cluster keeps its own state in it: give --internal if you mean it; nothing was deleted", name)
		}
	}
	return nil
}
