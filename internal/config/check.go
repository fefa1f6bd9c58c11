package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// check says whether value is of the key's type and among its valid values. The
// error is one sentence with the key, the value and what is allowed.
func (d *Def) check(value string) error {
	if want, ok := d.typed(value); !ok {
		if more, _ := d.checkValid(value); more != "" {
			want += ", " + more
		}
		return d.refuse(value, want)
	}
	if want, ok := d.checkValid(value); !ok {
		return d.refuse(value, want)
	}
	return nil
}

// refuse words an invalid value; one that is secret is not repeated.
func (d *Def) refuse(value, want string) error {
	if d.Sensitive {
		value = "(hidden)"
	}
	return fmt.Errorf("%s=%s is not valid: give %s", d.Name, value, want)
}

// typed says whether value parses as the key's type, and if not what would.
func (d *Def) typed(value string) (want string, ok bool) {
	value = strings.TrimSpace(value)
	var err error
	switch d.Type {
	case Boolean:
		return "true or false", strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
	case Short:
		_, err = strconv.ParseInt(value, 10, 16)
		want = "a whole number of at most 32767"
	case Int:
		_, err = strconv.ParseInt(value, 10, 32)
		want = "a whole number of at most 2147483647"
	case Long:
		_, err = strconv.ParseInt(value, 10, 64)
		want = "a whole number"
	case Double:
		var f float64
		f, err = strconv.ParseFloat(value, 64)
		if math.IsNaN(f) {
			return "a number", false
		}
		want = "a number"
	}
	return want, err == nil
}

// checkValid says whether a value of the right type is among the valid ones,
// and if not what is: "-" allows all, "1..9" is a range whose end may be open,
// "1..9|-1" one with one value more, "a|b" a set of words, "~a|b" one that
// ignores case; every item of a list must be in the set.
func (d *Def) checkValid(value string) (want string, ok bool) {
	value = strings.TrimSpace(value)
	switch {
	case d.valid == "-":
		return "", true
	case d.valid == "throttled":
		return "* or a list of PARTITION:BROKER", throttledList(value)
	case strings.Contains(d.valid, ".."):
		return d.checkRange(value)
	}
	set, fold := strings.CutPrefix(d.valid, "~")
	words := strings.Split(set, "|")
	items := []string{value}
	if d.Type == List {
		items = splitList(value)
	}
	for _, item := range items {
		if !inSet(words, item, fold) {
			return "one of " + strings.Join(words, ", "), false
		}
	}
	return "", true
}

func inSet(words []string, item string, fold bool) bool {
	for _, w := range words {
		if w == item || fold && strings.EqualFold(w, item) {
			return true
		}
	}
	return false
}

// checkRange says whether a number lies within "LOW..HIGH" or is the one extra
// value after "|".
func (d *Def) checkRange(value string) (want string, ok bool) {
	span, extra, _ := strings.Cut(d.valid, "|")
	low, high, _ := strings.Cut(span, "..")
	switch {
	case high == "":
		want = low + " or more"
	default:
		want = "a value from " + low + " to " + high
	}
	if extra != "" {
		want += ", or " + extra
		if value == extra {
			return "", true
		}
	}
	if d.Type == Double {
		v, _ := strconv.ParseFloat(value, 64)
		lo, _ := strconv.ParseFloat(low, 64)
		hi, err := strconv.ParseFloat(high, 64)
		return want, v >= lo && (err != nil || v <= hi)
	}
	v, _ := strconv.ParseInt(value, 10, 64)
	lo, _ := strconv.ParseInt(low, 10, 64)
	hi, err := strconv.ParseInt(high, 10, 64)
	return want, v >= lo && (err != nil || v <= hi)
}

// splitList cuts a value of type List at its commas; an empty value has no items.
func splitList(value string) []string {
	if value = strings.TrimSpace(value); value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// throttledList says whether value is empty, * or a list of PARTITION:BROKER.
func throttledList(value string) bool {
	if value == "*" {
		return true
	}
	for _, item := range splitList(value) {
		partition, broker, ok := strings.Cut(item, ":")
		if !ok || !isID(partition) || !isID(broker) {
			return false
		}
	}
	return true
}

func isID(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0
}

// The readers below are for values that check let through.

func readInt(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	return n
}

func readBool(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "true") }
