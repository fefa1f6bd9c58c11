package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pair is one key of a file, with the line where it began.
type pair struct {
	key, value string
	line       int
}

// parseProperties reads Java's properties format: one key a line, split from its
// value by =, : or white space; # and ! begin comments; a backslash at the end
// continues a line, elsewhere it escapes. Errors name the line.
func parseProperties(text string) ([]pair, error) {
	var pairs []pair
	lines := splitLines(text)
	for i := 0; i < len(lines); i++ {
		line, first := strings.TrimLeft(lines[i], " \t\f"), i+1
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		var joined strings.Builder
		for ; continues(line) && i+1 < len(lines); line = strings.TrimLeft(lines[i], " \t\f") {
			joined.WriteString(line[:len(line)-1])
			i++
		}
		if continues(line) { // the file ends after the backslash
			line = line[:len(line)-1]
		}
		joined.WriteString(line)
		key, value, err := splitPair(joined.String())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		pairs = append(pairs, pair{key: key, value: value, line: first})
	}
	return pairs, nil
}

// splitLines cuts at \n, \r and \r\n.
func splitLines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// splitPair cuts a logical line at its first separator that is not escaped.
func splitPair(line string) (key, value string, err error) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if key, err = unescape(line[:end]); err != nil {
		return "", "", err
	}
	value, err = unescape(rest)
	return key, value, err
}

var escapes = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

// unescape resolves backslashes: \t, \n, \r, \f, \uXXXX, and any other
// character for itself.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch c, ok := escapes[s[i]]; {
		case ok:
			out = append(out, c)
		case s[i] == 'u':
			if len(s) < i+5 {
				return "", fmt.Errorf(`\u needs four hexadecimal digits after it: write \\u for a plain backslash`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 32)
			if err != nil {
				return "", fmt.Errorf(`\u%s is not a character: write four hexadecimal digits, or \\u for a plain backslash`, s[i+1:i+5])
			}
			out = utf8.AppendRune(out, rune(n))
			i += 4
		default:
			out = append(out, s[i])
		}
	}
	return string(out), nil
}

var propertyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\f", `\f`)

// Properties prints keys as a server.properties file, sorted, one a line.
func Properties(values map[string]string) []byte {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out bytes.Buffer
	for _, k := range keys {
		v := propertyEscapes.Replace(values[k])
		if strings.HasPrefix(v, " ") {
			v = `\` + v
		}
		fmt.Fprintf(&out, "%s=%s\n", strings.NewReplacer(" ", `\ `, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`).Replace(propertyEscapes.Replace(k)), v)
	}
	return out.Bytes()
}
