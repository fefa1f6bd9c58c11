package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// Load reads a configuration file and lays set, each KEY=VALUE, over it. A name
// that ends in .yaml or .yml is YAML, everything else Java properties. The
// strings are warnings for people, one sentence each. The error is one sentence
// that names key, value and fix.
func Load(path string, set []string) (*Config, []string, error) {
	raw, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	b := builder{values: map[string]string{}, lenient: map[string]bool{}}
	if err := b.file(path, raw); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := b.overlay(set); err != nil {
		return nil, nil, err
	}
	c, err := b.build()
	switch {
	case err != nil && slices.Contains(b.over, b.culprit):
		return nil, nil, fmt.Errorf("--set: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	warnings := b.warnings(path)
	for _, risk := range c.risks() {
		warnings = append(warnings, path+": "+risk)
	}
	return c, warnings, nil
}

// New makes the configuration of these keys; a key that it does not know is an
// error.
func New(values map[string]string) (*Config, error) {
	b := builder{values: make(map[string]string, len(values))}
	for k, v := range values {
		b.values[k] = v
	}
	return b.build()
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s: name your server.properties with --config FILE", path)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name the server.properties in it", path)
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s has %d bytes: a configuration file has at most %d", path, info.Size(), maxFileBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return raw, nil
}

// builder collects keys and turns them into a Config.
type builder struct {
	values  map[string]string
	lenient map[string]bool // keys of a server.properties, where Kafka ignores what it does not know
	twice   []string        // keys that the file gives more than once
	foreign []string        // keys that neither Kafka nor Tidemark has
	over    []string        // keys laid over the file's
	culprit string          // the key whose value was refused
}

// file takes the keys of a configuration file.
func (b *builder) file(path string, raw []byte) error {
	switch filepath.Ext(path) {
	case ".yaml", ".yml":
		pairs, err := parseYAML(raw)
		for _, p := range pairs {
			b.values[p.key] = p.value
		}
		return err
	}
	pairs, err := parseProperties(string(raw))
	for _, p := range pairs {
		if _, ok := b.values[p.key]; ok && !slices.Contains(b.twice, p.key) {
			b.twice = append(b.twice, p.key)
		}
		b.values[p.key], b.lenient[p.key] = p.value, true
	}
	return err
}

// overlay takes KEY=VALUE arguments, the last of a key counts.
func (b *builder) overlay(set []string) error {
	for _, arg := range set {
		key, value, ok := strings.Cut(arg, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return fmt.Errorf("--set %s is not KEY=VALUE: write it like --set num.partitions=3", arg)
		}
		b.values[key], b.over = value, append(b.over, key)
		delete(b.lenient, key)
	}
	return nil
}

// build checks every key and makes the Config, in order: unknown keys, values,
// what cannot be honoured, then what fits together.
func (b *builder) build() (*Config, error) {
	keys := sortedKeys(b.values)
	for _, key := range keys {
		if err := b.checkKey(key); err != nil {
			b.culprit = key
			return nil, err
		}
	}
	for _, key := range keys {
		if err := refuse(key, b.values[key]); err != nil {
			b.culprit = key
			return nil, err
		}
	}
	if err := singleNode(b.values); err != nil {
		return nil, err
	}
	c := &Config{static: b.values}
	c.apply(b.values)
	for _, step := range []func(map[string]string) error{c.setIdentity, c.setDirs, c.setListeners, c.setQuorum} {
		if err := step(b.values); err != nil {
			return nil, err
		}
	}
	if err := c.checkTogether(); err != nil {
		return nil, err
	}
	return c, nil
}

// checkKey refuses an unknown key, unless Kafka would have read past it, and a
// value that is not valid.
func (b *builder) checkKey(key string) error {
	d, ok := Lookup(BrokerResource, key)
	switch {
	case ok:
		return d.check(b.values[key])
	case isPrefixed(key):
		return nil
	case !b.lenient[key] || strings.HasPrefix(key, "tidemark."):
		return unknownKey(BrokerResource, key)
	}
	b.foreign = append(b.foreign, key)
	return nil
}

// apply sets every typed field from its key or the key's default.
func (c *Config) apply(values map[string]string) {
	for key, m := range brokerMeanings {
		if m.set == nil {
			continue
		}
		if v, ok := values[key]; ok {
			m.set(c, v)
		} else if d, ok := Lookup(BrokerResource, key); ok && d.Default != nil {
			m.set(c, *d.Default)
		}
	}
}

// warnings words what was read past.
func (b *builder) warnings(path string) []string {
	var idle, out []string
	for _, key := range sortedKeys(b.values) {
		if d, ok := Lookup(BrokerResource, key); ok && d.Doc == "" || !ok && isPrefixed(key) {
			idle = append(idle, key)
		}
	}
	if len(idle) > 0 {
		out = append(out, fmt.Sprintf("%s: these keys of Kafka change nothing here: %s", path, strings.Join(idle, ", ")))
	}
	if len(b.foreign) > 0 {
		names := make([]string, len(b.foreign))
		for i, key := range b.foreign {
			names[i] = key
			if near := nearest(BrokerResource, key); near != "" {
				names[i] += " (did you mean " + near + "?)"
			}
		}
		out = append(out, fmt.Sprintf("%s: these keys are unknown and were read past, as Kafka does: %s", path, strings.Join(names, ", ")))
	}
	if len(b.twice) > 0 {
		out = append(out, fmt.Sprintf("%s: these keys are given more than once and the last one counts: %s", path, strings.Join(b.twice, ", ")))
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
