package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func parseYAML(data []byte, o Options) (*Value, *SyntaxError) {
	if at := bytes.IndexFunc(data, isControl); at >= 0 { // of which the parser does not report the line
		return nil, &SyntaxError{Line: lineOf(data, at), Err: fmt.Errorf("control characters, such as 0x%02x here, are not allowed", data[at])}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return nil, yamlError(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, &SyntaxError{Line: second.Line, Err: errors.New("a second document begins here")}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	t := &translator{Options: o, left: MaxValues}
	return t.value(document.Content[0], nil, 0)
}

// isControl reports whether YAML refuses a character, by its chapter 5.1.
func isControl(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\r", r) || r >= 0x7f && r < 0xa0 && r != 0x85
}

// oneShort are the messages of package yaml whose lines count from 0; all others
// count from 1.
var oneShort = []string{
	"did not find expected <document start>", "did not find expected node content", "did not find expected '-' indicator",
	"did not find expected key", "did not find expected ',' or ']'", "did not find expected ',' or '}'",
}

// yamlError takes the line out of the parser's message, the one place that has
// it.
func yamlError(err error) *SyntaxError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if n, _ := fmt.Sscanf(text, "line %d:", &line); n == 1 {
		_, text, _ = strings.Cut(text, ": ")
		if slices.Contains(oneShort, text) {
			line++
		}
	}
	return &SyntaxError{Line: line, Err: errors.New(text)}
}

// translator makes values of the nodes of package yaml.
type translator struct {
	Options
	left int // values that a document with aliases may yet have
}

func (t *translator) value(n *yaml.Node, parent *Value, depth int) (*Value, *SyntaxError) {
	v := &Value{Line: n.Line, Text: n.Value, parent: parent}
	if depth > maxDepth {
		return nil, &SyntaxError{Line: n.Line, Err: errors.New("nested too deeply")}
	}
	if t.left--; t.Aliases && t.left < 0 {
		return nil, &SyntaxError{Line: n.Line, Err: fmt.Errorf("its aliases make more than %d values of it", MaxValues)}
	}
	switch n.Kind {
	case yaml.AliasNode:
		if !t.Aliases {
			return nil, &SyntaxError{Line: n.Line, Err: errors.New("aliases (*name) are not supported; use defaults")}
		}
		return t.value(n.Alias, parent, depth+1)
	case yaml.ScalarNode:
		v.Kind = yamlScalarKind(n)
		return v, nil
	case yaml.SequenceNode:
		v.Kind = List
		for i, item := range n.Content {
			child, err := t.value(item, v, depth+1)
			if err != nil {
				return nil, err
			}
			child.index = i
			v.Items = append(v.Items, child)
		}
		return v, nil
	case yaml.MappingNode:
		v.Kind = Object
		for i := 0; i+1 < len(n.Content); i += 2 {
			child, err := t.value(n.Content[i+1], v, depth+1)
			if err != nil {
				return nil, err
			}
			if n.Content[i].Kind != yaml.ScalarNode {
				return nil, &SyntaxError{Line: n.Content[i].Line, Err: errors.New("a field's name must be a string")}
			}
			child.Key, child.Line = n.Content[i].Value, n.Content[i].Line
			v.Items = append(v.Items, child)
		}
		return v, nil
	}
	return nil, &SyntaxError{Line: n.Line, Err: errors.New("neither a value nor an alias")}
}

func yamlScalarKind(n *yaml.Node) Kind {
	switch n.ShortTag() {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int", "!!float":
		return Number
	}
	return String
}
