package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxYAMLDepth bounds the nesting of a YAML file.
const maxYAMLDepth = 32

// parseYAML reads a mapping whose nested names join with dots into Kafka's keys;
// a list joins with commas. Anchors are refused. Errors name the line.
func parseYAML(text []byte) ([]pair, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	f := flattener{seen: map[string]int{}}
	if err := f.node("", doc.Content[0], 0); err != nil {
		return nil, err
	}
	return f.pairs, nil
}

// flattener walks a YAML document and collects its keys.
type flattener struct {
	pairs []pair
	seen  map[string]int // the line of each key
}

func (f *flattener) node(name string, n *yaml.Node, depth int) error {
	switch {
	case depth > maxYAMLDepth:
		return fmt.Errorf("line %d: nested more than %d levels deep", n.Line, maxYAMLDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not read: write the value itself", n.Line)
	case n.Kind == yaml.MappingNode:
		return f.mapping(name, n, depth)
	case name == "":
		return fmt.Errorf("line %d: the file must be a mapping of keys to values", n.Line)
	case n.Kind == yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.Anchor != "" {
				return fmt.Errorf("line %d: %s is a list of plain values", item.Line, name)
			}
			items[i] = item.Value
		}
		return f.add(name, strings.Join(items, ","), n.Line)
	case n.Tag == "!!null":
		return fmt.Errorf("line %d: %s has no value: give one or drop the key", n.Line, name)
	}
	return f.add(name, n.Value, n.Line)
}

func (f *flattener) mapping(name string, n *yaml.Node, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			return fmt.Errorf("line %d: a key must be a plain word", key.Line)
		}
		full := key.Value
		if name != "" {
			full = name + "." + full
		}
		if err := f.node(full, n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *flattener) add(name, value string, line int) error {
	if before, ok := f.seen[name]; ok {
		return fmt.Errorf("line %d: %s is given on line %d already", line, name, before)
	}
	f.seen[name] = line
	f.pairs = append(f.pairs, pair{key: name, value: value, line: line})
	return nil
}
