package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Reason is why a decision was taken, for the log, the metrics and explain
// (R13.2). Which fields count depends on the code; String puts it in words.
type Reason struct {
	Code      ReasonCode
	Broker    model.BrokerID
	Epoch     model.BrokerEpoch
	Previous  model.BrokerEpoch // of the registration before
	Topic     string
	Partition int32
	Brokers   []model.BrokerID
	Silence   time.Duration
	Error     model.Error
	Detail    string
	Cause     ReasonCode // of ReasonLeft: what the broker is being judged for
	Election  *Election
}

// ReasonCode says what a Reason is about.
type ReasonCode uint8

// The reasons.
const (
	ReasonElection      ReasonCode = iota + 1 // the leader of a partition changed
	ReasonLeft                                // a follower left an ISR by the controller's decision
	ReasonReassigned                          // a reassignment was completed
	ReasonReassigning                         // a reassignment began
	ReasonCancelled                           // a reassignment was taken back
	ReasonRegistered                          // a new incarnation of a broker
	ReasonAmended                             // the same incarnation told its facts anew
	ReasonUnclean                             // a broker came back without a clean shutdown
	ReasonRefused                             // a request was refused, with the protocol code
	ReasonUnfenced                            // a broker caught up and serves
	ReasonSilent                              // fenced: its session ran out
	ReasonGone                                // fenced: its process is gone
	ReasonAsked                               // fenced: it asked for it
	ReasonStopped                             // fenced: its shutdown is done
	ReasonStopping                            // a broker entered controlled shutdown
	ReasonUnregistered                        // a broker was removed by an operator
	ReasonDirectories                         // directories of a broker went offline
	ReasonTopicCreated                        // a topic was created
	ReasonTopicDeleted                        // a topic was deleted
	ReasonConfigChanged                       // a configuration changed
)

// String says the reason in words.
func (r Reason) String() string {
	switch r.Code {
	case ReasonElection:
		return r.Election.say(r.partition())
	case ReasonLeft:
		return fmt.Sprintf("%s: broker %d leaves the ISR: it %s", r.partition(), r.Broker, causeWords[r.Cause])
	case ReasonReassigned:
		return fmt.Sprintf("%s: reassigned to %v: every target replica is in the ISR", r.partition(), r.Brokers)
	case ReasonReassigning:
		return fmt.Sprintf("%s: reassignment to %v began", r.partition(), r.Brokers)
	case ReasonCancelled:
		return fmt.Sprintf("%s: reassignment cancelled, back to %v", r.partition(), r.Brokers)
	case ReasonRefused:
		return r.refusal()
	case ReasonTopicCreated:
		return fmt.Sprintf("topic %s was created", r.Topic)
	case ReasonTopicDeleted:
		return fmt.Sprintf("topic %s was deleted", r.Topic)
	case ReasonConfigChanged:
		return r.Detail
	}
	return fmt.Sprintf("broker %d ", r.Broker) + r.aboutBroker()
}

// aboutBroker says what happened to a broker.
func (r Reason) aboutBroker() string {
	switch r.Code {
	case ReasonRegistered:
		return fmt.Sprintf("registered with epoch %d", r.Epoch)
	case ReasonAmended:
		return fmt.Sprintf("of epoch %d registered again as the same incarnation", r.Epoch)
	case ReasonUnclean:
		return fmt.Sprintf("did not shut down cleanly: it came back naming epoch %d and was registered with %d; "+
			"it leaves every ISR and ELR", r.Epoch, r.Previous)
	case ReasonUnfenced:
		return "is unfenced: it has caught up with the metadata and wants to serve"
	case ReasonSilent:
		return fmt.Sprintf("is fenced: not heard of for %v", r.Silence)
	case ReasonGone:
		return "is fenced: its process is gone, its listener refuses connections"
	case ReasonAsked:
		return "is fenced: it asked to be"
	case ReasonStopped:
		return "is fenced: it may stop, it leads nothing and every active broker knows"
	case ReasonStopping:
		return "is in controlled shutdown: it leaves every ISR and hands over what it leads"
	case ReasonUnregistered:
		return "was unregistered"
	case ReasonDirectories:
		return "lost directories: " + r.Detail
	}
	return ""
}

// causeWords says, in short, why a broker leaves its ISRs.
var causeWords = [...]string{
	ReasonSilent:       "is silent",
	ReasonGone:         "is dead",
	ReasonAsked:        "asked to be fenced",
	ReasonStopped:      "stops",
	ReasonStopping:     "is shutting down",
	ReasonRegistered:   "restarted",
	ReasonUnregistered: "was unregistered",
	ReasonDirectories:  "lost the directory",
}

func (r Reason) partition() string { return fmt.Sprintf("%s-%d", r.Topic, r.Partition) }

func (r Reason) refusal() string {
	who := fmt.Sprintf("broker %d", r.Broker)
	if r.Topic != "" {
		who += " for " + r.partition()
	}
	return fmt.Sprintf("%s: refused, %s: %s", who, r.Error.Error(), r.Detail)
}

// ruleWords says each rule.
var ruleWords = [...]string{
	RulePreferred: "it is the preferred leader",
	RuleKept:      "it leads already",
	RuleISR:       "it is the first valid member of the ISR",
	RuleELR:       "the ISR is empty and it is the first valid member of the ELR",
	RuleLastKnown: "ISR and ELR are empty and it is the last known leader",
	RuleUnclean:   "no replica is eligible and it is the first that lives",
	RuleNone:      "no replica may lead",
}

// String says the rule in words.
func (r Rule) String() string { return ruleWords[r] }

// barWords says each bar.
var barWords = [...]string{
	BarNone:         "",
	BarUnregistered: "not registered",
	BarFenced:       "fenced",
	BarShutdown:     "shutting down",
	BarLeaving:      "leaving",
	BarDir:          "its directory is offline",
}

// String says the bar in words; empty for none.
func (b Bar) String() string { return barWords[b] }

// String says the candidate in words: "2 in ISR", "3 in ELR, fenced".
func (c Candidate) String() string {
	words := fmt.Sprintf("%d ", c.Broker)
	switch {
	case c.InISR:
		words += "in ISR"
	case c.InELR:
		words += "in ELR"
	default:
		words += "out of ISR"
	}
	if c.Bar != BarNone {
		words += ", " + c.Bar.String()
	}
	return words
}

func (e *Election) say(partition string) string {
	how := "clean"
	switch {
	case e.Leader == model.NoBroker:
		how = "offline"
	case !e.Clean:
		how = "UNCLEAN"
	}
	words := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		words[i] = c.String()
	}
	return fmt.Sprintf("%s: leader %s -> %s in epoch %d, %s: %v (%s)", partition, leaderName(e.Old),
		leaderName(e.Leader), e.LeaderEpoch, how, e.Rule, strings.Join(words, "; "))
}

func leaderName(b model.BrokerID) string {
	if b == model.NoBroker {
		return "none"
	}
	return fmt.Sprint(b)
}
