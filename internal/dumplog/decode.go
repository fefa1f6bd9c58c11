package dumplog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

var errShort = errors.New("record is cut short")

// versionOf reads the int16 that keys and values of internal topics begin with.
func versionOf(b []byte) (int16, error) {
	if len(b) < 2 {
		return -1, errShort
	}
	return int16(binary.BigEndian.Uint16(b)), nil
}

// object prints fields in their order. Callers leave out tagged fields that have
// their default, as Apache does.
type object struct{ b strings.Builder }

func (o *object) field(name string, v any) *object {
	if o.b.Len() == 0 {
		o.b.WriteByte('{')
	} else {
		o.b.WriteByte(',')
	}
	fmt.Fprintf(&o.b, "%q:", name)
	if raw, ok := v.(rawJSON); ok {
		o.b.WriteString(string(raw))
		return o
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("a plain value has no JSON: " + err.Error())
	}
	o.b.WriteString(strings.TrimSuffix(text.String(), "\n"))
	return o
}

// rawJSON is a value that is JSON already.
type rawJSON string

func (o *object) json() rawJSON {
	if o.b.Len() == 0 {
		return "{}"
	}
	return rawJSON(o.b.String() + "}")
}

func list[T any](in []T, f func(T) rawJSON) rawJSON {
	if in == nil {
		return "null"
	}
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(f(v))
	}
	return rawJSON("[" + strings.Join(out, ",") + "]")
}

func typed(name string, version int16, data rawJSON) string {
	return string((&object{}).field(name, fmt.Sprint(version)).field("data", data).json())
}

// decodeTransaction prints a record of __transaction_state.
func decodeTransaction(key, value []byte) (string, string, error) {
	v, err := versionOf(key)
	if err != nil {
		return "", "", err
	}
	if v != 0 {
		return "", "", fmt.Errorf("unknown transaction log key of type %d", v)
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return "", "", err
	}
	keyText := typed("type", 0, (&object{}).field("transactionalId", k.TransactionalID).json())
	if value == nil {
		return keyText, "<DELETE>", nil
	}
	t := kmsg.NewTxnMetadataValue()
	if err := t.ReadFrom(value); err != nil {
		return "", "", err
	}
	return keyText, typed("version", t.Version, transaction(&t)), nil
}

var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

func transaction(t *kmsg.TxnMetadataValue) rawJSON {
	state := fmt.Sprintf("Unknown(%d)", t.State)
	if i := int(t.State); i >= 0 && i < len(transactionStates) {
		state = transactionStates[i]
	}
	o := (&object{}).field("producerId", t.ProducerID)
	if t.PreviousProducerID != -1 {
		o.field("previousProducerId", t.PreviousProducerID)
	}
	if t.NextProducerID != -1 {
		o.field("nextProducerId", t.NextProducerID)
	}
	o.field("producerEpoch", t.ProducerEpoch)
	if t.NextProducerEpoch != -1 {
		o.field("nextProducerEpoch", t.NextProducerEpoch)
	}
	o.field("transactionTimeoutMs", t.TimeoutMillis).field("transactionStatus", state)
	o.field("transactionPartitions", list(t.Topics, func(p kmsg.TxnMetadataValueTopic) rawJSON {
		return (&object{}).field("topic", p.Topic).field("partitionIds", p.Partitions).json()
	}))
	o.field("transactionLastUpdateTimestampMs", t.LastUpdateTimestamp).field("transactionStartTimestampMs", t.StartTimestamp)
	if t.ClientTransactionVersion != 0 {
		o.field("clientTransactionVersion", t.ClientTransactionVersion)
	}
	return o.json()
}

// decodeGroup prints a record of __consumer_offsets: a committed offset or a
// classic group.
func decodeGroup(key, value []byte) (string, string, error) {
	v, err := versionOf(key)
	if err != nil {
		return "", "", err
	}
	switch v {
	case 0, 1:
		return decodeOffset(v, key, value)
	case 2:
		return decodeClassicGroup(key, value)
	}
	return "", "", fmt.Errorf("unknown group log key of type %d", v)
}

func decodeOffset(v int16, key, value []byte) (string, string, error) {
	k := kmsg.NewOffsetCommitKey()
	if err := k.ReadFrom(key); err != nil {
		return "", "", err
	}
	keyText := typed("type", v, (&object{}).field("group", k.Group).field("topic", k.Topic).field("partition", k.Partition).json())
	if value == nil {
		return keyText, "<DELETE>", nil
	}
	c := kmsg.NewOffsetCommitValue()
	if err := c.ReadFrom(value); err != nil {
		return "", "", err
	}
	o := (&object{}).field("offset", c.Offset)
	if c.Version >= 3 {
		o.field("leaderEpoch", c.LeaderEpoch)
	}
	o.field("metadata", c.Metadata).field("commitTimestamp", c.CommitTimestamp)
	if c.Version == 1 {
		o.field("expireTimestamp", c.ExpireTimestamp)
	}
	if id := model.UUID(c.TopicID); !id.IsZero() {
		o.field("topicId", id.String())
	}
	return keyText, typed("version", c.Version, o.json()), nil
}

func decodeClassicGroup(key, value []byte) (string, string, error) {
	k := kmsg.NewGroupMetadataKey()
	if err := k.ReadFrom(key); err != nil {
		return "", "", err
	}
	keyText := typed("type", k.Version, (&object{}).field("group", k.Group).json())
	if value == nil {
		return keyText, "<DELETE>", nil
	}
	g := kmsg.NewGroupMetadataValue()
	if err := g.ReadFrom(value); err != nil {
		return "", "", err
	}
	o := (&object{}).field("protocolType", g.ProtocolType).field("generation", g.Generation).field("protocol", g.Protocol).field("leader", g.Leader)
	if g.Version >= 2 {
		o.field("currentStateTimestamp", g.CurrentStateTimestamp)
	}
	o.field("members", list(filled(g.Members), func(m kmsg.GroupMetadataValueMember) rawJSON {
		return member(&g, &m)
	}))
	return keyText, typed("version", g.Version, o.json()), nil
}

// member prints one member; what it subscribed to and was assigned can be read if
// the group is one of consumers.
func member(g *kmsg.GroupMetadataValue, m *kmsg.GroupMetadataValueMember) rawJSON {
	o := (&object{}).field("memberId", m.MemberID)
	if g.Version >= 3 {
		o.field("groupInstanceId", m.InstanceID)
	}
	o.field("clientId", m.ClientID).field("clientHost", m.ClientHost)
	if g.Version >= 1 {
		o.field("rebalanceTimeout", m.RebalanceTimeoutMillis)
	}
	o.field("sessionTimeout", m.SessionTimeoutMillis)
	if g.ProtocolType != "consumer" {
		return o.field("subscription", m.Subscription).field("assignment", m.Assignment).json()
	}
	return o.field("subscription", subscription(m.Subscription)).field("assignment", assignment(m.Assignment)).json()
}
