package sim

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

// names lists what a word may be.
func names[S ~string](of iter.Seq[S]) string {
	var out []string
	for name := range of {
		out = append(out, string(name))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// workloadNames yields the names that a script may use.
func workloadNames(yield func(string) bool) {
	for _, w := range slices.Concat(workload.All(), workload.Aimed()) {
		if !yield(w.Name()) {
			return
		}
	}
}

// String is the action as a script has it.
func (a Action) String() string {
	s := fmt.Sprintf("at %v %s %d", a.At, a.Verb, a.Node)
	if a.Verb.between() {
		s += fmt.Sprintf(" %d", a.To)
	}
	if want := verbs[a.Verb]; want == 3 || want == 2 && !a.Verb.between() {
		s += fmt.Sprintf(" %d", a.N)
	}
	return s
}

// WriteScript writes the plan in words that ReadScript understands.
func (p *Plan) WriteScript(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "seed %d\n", p.Seed)
	if p.Combined {
		fmt.Fprintf(b, "nodes %d combined\n", p.Brokers)
	} else {
		fmt.Fprintf(b, "nodes %d brokers %d controllers\n", p.Brokers, p.Controllers)
	}
	fmt.Fprintf(b, "topics partitions=%d replication=%d min.isr=%d unclean=%t\n", p.Partitions, p.Replication, p.MinISR, p.Unclean)
	if p.NoELR {
		fmt.Fprintln(b, "elr off")
	}
	if p.Racks > 0 {
		fmt.Fprintf(b, "racks %d\n", p.Racks)
	}
	if p.Fetchers > 0 {
		fmt.Fprintf(b, "fetchers %d\n", p.Fetchers)
	}
	fmt.Fprintln(b, strings.Join(append([]string{"workloads"}, p.Workloads...), " "))
	if p.Pace > 0 {
		fmt.Fprintf(b, "pace %v\n", p.Pace)
	}
	for _, a := range p.Actions {
		fmt.Fprintln(b, a)
	}
	fmt.Fprintf(b, "end %v\n", p.Length)
	return b.Flush()
}

// ReadScript reads a plan. An error names the line.
func ReadScript(r io.Reader) (*Plan, error) {
	p := &Plan{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if err := p.line(f); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	return p, p.check()
}

func (p *Plan) line(f []string) (err error) {
	rest := strings.Join(f[1:], " ")
	switch f[0] {
	case "seed":
		p.Seed, err = strconv.ParseUint(rest, 10, 64)
	case "nodes":
		if strings.HasSuffix(rest, "combined") {
			p.Combined = true
			_, err = fmt.Sscanf(rest, "%d combined", &p.Brokers)
		} else {
			_, err = fmt.Sscanf(rest, "%d brokers %d controllers", &p.Brokers, &p.Controllers)
		}
	case "topics":
		err = p.topics(rest)
	case "elr":
		if p.NoELR = rest == "off"; !p.NoELR && rest != "on" {
			err = fmt.Errorf("elr is on or off")
		}
	case "racks":
		p.Racks, err = strconv.Atoi(rest)
	case "fetchers":
		p.Fetchers, err = strconv.Atoi(rest)
	case "workloads":
		p.Workloads = f[1:]
	case "at":
		var a Action
		a, err = parseAction(f[1:])
		p.Actions = append(p.Actions, a)
	case "pace":
		if p.Pace, err = time.ParseDuration(rest); err != nil || p.Pace <= 0 {
			err = fmt.Errorf("pace is a time such as 100ms")
		}
	case "end":
		p.Length, err = time.ParseDuration(rest)
	default:
		err = fmt.Errorf("a line starts with seed, nodes, topics, elr, racks, fetchers, workloads, pace, at or end")
	}
	return err
}

// topics reads what the topics are like.
func (p *Plan) topics(rest string) error {
	unclean := ""
	_, err := fmt.Sscanf(rest, "partitions=%d replication=%d min.isr=%d unclean=%s", &p.Partitions, &p.Replication, &p.MinISR, &unclean)
	if p.Unclean = unclean == "true"; err != nil || !p.Unclean && unclean != "false" {
		return fmt.Errorf("say for instance \"topics partitions=2 replication=3 min.isr=2 unclean=false\"")
	}
	return nil
}

func parseAction(f []string) (Action, error) {
	if len(f) < 2 {
		return Action{}, fmt.Errorf("an action is: at TIME VERB NODE ...")
	}
	at, err := time.ParseDuration(f[0])
	if err != nil {
		return Action{}, err
	}
	a := Action{At: at, Verb: Verb(f[1])}
	want, known := verbs[a.Verb]
	if !known {
		return a, fmt.Errorf("there is no verb %q: the verbs are %s", f[1], names(maps.Keys(verbs)))
	}
	if len(f)-2 != want {
		return a, fmt.Errorf("%s takes so many numbers: %d", a.Verb, want)
	}
	var n [3]int64
	for i, text := range f[2:] {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return a, err
		}
	}
	a.Node = int(n[0])
	switch {
	case a.Verb.between():
		a.To, a.N = int(n[1]), n[2]
	default:
		a.N = n[1]
	}
	return a, nil
}

// What one process can simulate in a time that somebody waits for.
const (
	mostNodes      = 50
	mostPartitions = 1000
	mostClients    = 100
	mostFetchers   = 10
)

// check refuses a plan that cannot be carried out.
func (p *Plan) check() error {
	switch {
	case p.Brokers < 1 || !p.Combined && p.Controllers < 1:
		return fmt.Errorf("the script names no nodes: say \"nodes 3 combined\" or \"nodes 3 brokers 3 controllers\"")
	case p.Nodes() > mostNodes:
		return fmt.Errorf("%d nodes are too many: a script may have %d", p.Nodes(), mostNodes)
	case p.Partitions > mostPartitions || len(p.Workloads) > mostClients || p.Racks > mostNodes:
		return fmt.Errorf("a script may have %d partitions in each topic, %d workloads and %d racks", mostPartitions, mostClients, mostNodes)
	case p.Replication < 1 || p.Replication > p.Brokers:
		return fmt.Errorf("replication %d does not fit %d brokers", p.Replication, p.Brokers)
	case p.Partitions < 1 || p.MinISR < 1 || p.Racks < 0:
		return fmt.Errorf("partitions and min.isr are at least 1, racks at least 0")
	case p.Fetchers < 0 || p.Fetchers > mostFetchers:
		return fmt.Errorf("fetchers are 0 to %d", mostFetchers)
	case p.Length <= 0:
		return fmt.Errorf("the script has no end: say for instance \"end 20s\"")
	}
	for _, name := range p.Workloads {
		if workload.Named(name) == nil {
			return fmt.Errorf("there is no workload %q: the workloads are %s", name, names(workloadNames))
		}
	}
	for _, a := range p.Actions {
		if err := p.checkAction(a); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) checkAction(a Action) error {
	least, most := int64(0), int64(1)<<40
	switch a.Verb {
	case Skew:
		least, most = -500_000, 500_000 // a clock that stands still would never see a deadline
	case Jump:
		least = -most
	case Rot:
		least, most = math.MinInt64, math.MaxInt64
	case Loss:
		most = 999 // more is a cut
	}
	switch {
	case a.Node < 1 || a.Node > p.Nodes() || a.Verb.between() && (a.To < 1 || a.To > p.Nodes() || a.To == a.Node):
		return fmt.Errorf("%q: nodes run from 1 to %d", a, p.Nodes())
	case a.At < 0: // what comes after the end is not done: then all is mended
		return fmt.Errorf("%q: times start with 0", a)
	case a.N < least || a.N > most:
		return fmt.Errorf("%q: the number runs from %d to %d", a, least, most)
	}
	return nil
}
