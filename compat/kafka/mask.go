package main

import (
	"regexp"
	"slices"
	"strings"
)

// masks hide what differs from run to run; the more special come first.
var masks = []struct {
	re   *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,:]\d{1,9})?Z?`), "DATE"},
	{regexp.MustCompile(`\b1[789]\d{11}\b`), "MILLIS"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UUID"},
}

// base64ID looks like an id in Kafka's way of writing; wordy is the name of a
// class, an API or a topic that happens to be as long.
var base64ID = regexp.MustCompile(`(^|[^A-Za-z0-9_-])([A-Za-z0-9_-]{22})($|[^A-Za-z0-9_-])`)
var wordy = regexp.MustCompile(`^([A-Z][a-z]+)+$|^[a-z_.-]+$|^[A-Z_]+$|^A+$`)

func maskIDs(line string) string {
	return base64ID.ReplaceAllStringFunc(line, func(m string) string {
		p := base64ID.FindStringSubmatch(m)
		if wordy.MatchString(p[2]) {
			return m
		}
		return p[1] + "ID" + p[3]
	})
}

// noise is a line of a Java stack trace, or an advertisement.
var noise = regexp.MustCompile(`^\s+at .*\)$|^Caused by: |^\s+\.\.\. \d+ more$|\(KIP-848\) is production-ready`)

// mask cuts the output into lines, hides what differs from run to run, leaves out
// empty lines and noise. The names are replaced first.
func mask(out string, names *strings.Replacer) []string {
	var lines []string
	for line := range strings.SplitSeq(names.Replace(out), "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line == "" || noise.MatchString(line) {
			continue
		}
		for _, m := range masks {
			line = m.re.ReplaceAllString(line, m.word)
		}
		lines = append(lines, maskIDs(line))
	}
	return lines
}

func choose(in []string, re *regexp.Regexp, keep bool) []string {
	return slices.DeleteFunc(slices.Clone(in), func(l string) bool { return re.MatchString(l) != keep })
}

func replace(in []string, re *regexp.Regexp, with string) []string {
	out := make([]string, len(in))
	for i, l := range in {
		out[i] = strings.TrimRight(re.ReplaceAllString(l, with), " \t")
	}
	return slices.DeleteFunc(out, func(l string) bool { return l == "" })
}

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

func unique(in []string) []string { return slices.Compact(slices.Clone(in)) }

// difference shows the lines that only one side has, in order.
func difference(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	// longest common subsequence; the texts are short
	n, m := len(want), len(got)
	size := make([][]int, n+1)
	for i := range size {
		size[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if want[i] == got[j] {
				size[i][j] = size[i+1][j+1] + 1
			} else {
				size[i][j] = max(size[i+1][j], size[i][j+1])
			}
		}
	}
	var b strings.Builder
	for i, j := 0, 0; i < n || j < m; {
		switch {
		case i < n && j < m && want[i] == got[j]:
			i, j = i+1, j+1
		case i < n && (j == m || size[i+1][j] >= size[i][j+1]):
			b.WriteString("want " + want[i] + "\n")
			i++
		default:
			b.WriteString("got  " + got[j] + "\n")
			j++
		}
	}
	return b.String()
}
