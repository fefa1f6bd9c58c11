package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// script is a file of testdata: checks in their order.
//
//	# What is promised.
//	$ topics --bootstrap-server $B --list
//	< a line for the standard input
//	| only REGEX | drop REGEX | mask REGEX WORD | sort | retry | within 20s | apache | tidemark
//	what the command prints
//
// Empty lines mean nothing; a printed line that begins as one of these is written
// with a backslash before it. A command that ends with another status than 0
// prints a last line "exit STATUS".
type script struct {
	name   string
	checks []*check
}

// check is one command with what it must print.
type check struct {
	name   string
	notes  []string // comment lines above it
	args   []string
	line   string // the command as written
	input  []string
	pipes  []string // as written
	want   []string
	filter []filter
	retry  bool
	within time.Duration
	only   string // "apache" or "tidemark": the brokers that it is for
}

// filter changes the lines that were printed.
type filter func(lines []string) []string

func parseScript(name, text string) (*script, error) {
	s := &script{name: name}
	var notes []string
	var at *check
	for i, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		var err error
		switch {
		case strings.TrimSpace(line) == "":
		case mark == "#":
			notes, at = append(notes, rest), nil
		case mark == "$":
			at = &check{name: strings.TrimSuffix(strings.Join(notes, " "), "."), notes: notes, line: rest, within: time.Minute}
			at.args, err = words(rest)
			if at.name == "" {
				at.name = rest
			}
			notes, s.checks = nil, append(s.checks, at)
		case at == nil:
			err = fmt.Errorf("text outside of a check")
		case mark == "<":
			at.input = append(at.input, rest)
		case mark == "|":
			err = at.pipe(rest)
		default:
			at.want = append(at.want, strings.TrimPrefix(line, `\`))
		}
		if err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", name, i+1, err)
		}
	}
	return s, nil
}

// pipe adds one line of what happens to the output.
func (c *check) pipe(text string) error {
	c.pipes = append(c.pipes, text)
	w, err := words(text)
	if err != nil || len(w) == 0 {
		return fmt.Errorf("cannot read %q", text)
	}
	var re *regexp.Regexp
	if len(w) > 1 && w[0] != "within" {
		if re, err = regexp.Compile(w[1]); err != nil {
			return err
		}
	}
	switch key := fmt.Sprintf("%s %d", w[0], len(w)-1); key {
	case "only 1":
		c.filter = append(c.filter, func(in []string) []string { return choose(in, re, true) })
	case "drop 1":
		c.filter = append(c.filter, func(in []string) []string { return choose(in, re, false) })
	case "mask 2":
		c.filter = append(c.filter, func(in []string) []string { return replace(in, re, w[2]) })
	case "sort 0":
		c.filter = append(c.filter, sorted)
	case "uniq 0":
		c.filter = append(c.filter, unique)
	case "retry 0":
		c.retry = true
	case "within 1":
		c.within, err = time.ParseDuration(w[1])
	case "apache 0", "tidemark 0":
		c.only = w[0]
	default:
		err = fmt.Errorf("there is no %q", key)
	}
	return err
}

// String writes the script down again, with what each check wants by now.
func (s *script) String() string {
	var b strings.Builder
	for i, c := range s.checks {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, n := range c.notes {
			fmt.Fprintf(&b, "# %s\n", n)
		}
		fmt.Fprintf(&b, "$ %s\n", c.line)
		for _, l := range c.input {
			fmt.Fprintf(&b, "< %s\n", l)
		}
		for _, l := range c.pipes {
			fmt.Fprintf(&b, "| %s\n", l)
		}
		for _, l := range c.want {
			if slices.Contains([]string{"#", "$", "<", "|"}, strings.SplitN(l, " ", 2)[0]) || strings.HasPrefix(l, `\`) {
				l = `\` + l
			}
			fmt.Fprintf(&b, "%s\n", l)
		}
	}
	return b.String()
}

// words splits a line at spaces, as a shell does; quotes of both kinds hold words
// together.
func words(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if open {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed in %q", line)
	}
	if open {
		out = append(out, word.String())
	}
	return out, nil
}
