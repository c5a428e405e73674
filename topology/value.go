package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// value is a piece of a document, in YAML or JSON alike, that knows its line
// and its way from the top.
type value struct {
	kind   valueKind
	line   int
	text   string // of a scalar
	items  []*value
	parent *value
	key    string // in a parent that is an object
	index  int    // in a parent that is a list
}

type valueKind uint8

const (
	nullValue valueKind = iota
	boolValue
	numberValue
	stringValue
	listValue
	objectValue
)

var valueKindNames = [...]string{"nothing", "true or false", "a number", "a string", "a list", "an object"}

func (k valueKind) String() string { return valueKindNames[k] }

// maxDepth is far deeper than the format ever nests.
const maxDepth = 16

// path names the value from the top, such as links[3].between[1].
func (v *value) path() string {
	if v.parent == nil {
		return ""
	}
	up, key := v.parent.path(), v.key
	if validName(key) != nil {
		key = strconv.Quote(key)
	}
	switch {
	case v.parent.kind == listValue:
		return up + "[" + strconv.Itoa(v.index) + "]"
	case up == "":
		return key
	default:
		return up + "." + key
	}
}

// syntaxError is what a document's parser found, at a line where it knows one.
type syntaxError struct {
	line int
	err  error
}

func (e *syntaxError) Error() string { return e.err.Error() }

// parseDocument reads a document in JSON if it begins with a brace, and else in
// YAML; both in UTF-8.
func parseDocument(data []byte) (*value, *syntaxError) {
	if !utf8.Valid(data) {
		return nil, &syntaxError{err: errors.New("it is not UTF-8")}
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return parseJSON(data)
	}
	return parseYAML(data)
}

func parseYAML(data []byte) (*value, *syntaxError) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return nil, yamlError(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, &syntaxError{line: second.Line, err: errors.New("a second document begins here")}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	return fromYAML(document.Content[0], nil, 0)
}

// oneShort are the messages of package yaml whose lines count from 0; all others
// count from 1.
var oneShort = []string{
	"did not find expected <document start>", "did not find expected node content", "did not find expected '-' indicator",
	"did not find expected key", "did not find expected ',' or ']'", "did not find expected ',' or '}'",
}

// yamlError takes the line out of the parser's message, the one place that has
// it.
func yamlError(err error) *syntaxError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var line int
	if n, _ := fmt.Sscanf(text, "line %d:", &line); n == 1 {
		_, text, _ = strings.Cut(text, ": ")
		if slices.Contains(oneShort, text) {
			line++
		}
	}
	return &syntaxError{line: line, err: errors.New(text)}
}

func fromYAML(n *yaml.Node, parent *value, depth int) (*value, *syntaxError) {
	v := &value{line: n.Line, text: n.Value, parent: parent}
	if depth > maxDepth {
		return nil, &syntaxError{line: n.Line, err: errors.New("nested too deeply")}
	}
	switch n.Kind {
	case yaml.ScalarNode:
		v.kind = yamlScalarKind(n)
		return v, nil
	case yaml.SequenceNode:
		v.kind = listValue
		for i, item := range n.Content {
			child, err := fromYAML(item, v, depth+1)
			if err != nil {
				return nil, err
			}
			child.index = i
			v.items = append(v.items, child)
		}
		return v, nil
	case yaml.MappingNode:
		v.kind = objectValue
		for i := 0; i+1 < len(n.Content); i += 2 {
			child, err := fromYAML(n.Content[i+1], v, depth+1)
			if err != nil {
				return nil, err
			}
			if n.Content[i].Kind != yaml.ScalarNode {
				return nil, &syntaxError{line: n.Content[i].Line, err: errors.New("a field's name must be a string")}
			}
			child.key, child.line = n.Content[i].Value, n.Content[i].Line
			v.items = append(v.items, child)
		}
		return v, nil
	}
	// A small file of aliases can stand for an enormous one.
	return nil, &syntaxError{line: n.Line, err: errors.New("aliases (*name) are not supported; use defaults")}
}

func yamlScalarKind(n *yaml.Node) valueKind {
	switch n.ShortTag() {
	case "!!null":
		return nullValue
	case "!!bool":
		return boolValue
	case "!!int", "!!float":
		return numberValue
	}
	return stringValue
}

func parseJSON(data []byte) (*value, *syntaxError) {
	p := &jsonParser{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1}
	p.decoder.UseNumber()
	v, err := p.value(nil, 0)
	if err == nil {
		if _, tokenErr := p.decoder.Token(); !errors.Is(tokenErr, io.EOF) {
			err = errors.New("something follows the document")
		}
	}
	if err != nil {
		p.advance(p.errorOffset(err))
		return nil, &syntaxError{line: p.line, err: err}
	}
	return v, nil
}

// jsonParser builds values from tokens, counting lines as it goes.
type jsonParser struct {
	data    []byte
	decoder *json.Decoder
	offset  int // up to which lines are counted
	line    int
}

func (p *jsonParser) advance(offset int) {
	offset = min(max(offset, p.offset), len(p.data))
	p.line += bytes.Count(p.data[p.offset:offset], []byte("\n"))
	p.offset = offset
}

func (p *jsonParser) errorOffset(err error) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return int(p.decoder.InputOffset())
}

func (p *jsonParser) value(parent *value, depth int) (*value, error) {
	token, err := p.decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the document ends too early")
	}
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	p.advance(int(p.decoder.InputOffset()))
	v := &value{line: p.line, parent: parent}
	switch t := token.(type) {
	case nil:
		v.kind = nullValue
	case bool:
		v.kind = boolValue
	case json.Number:
		v.kind, v.text = numberValue, t.String()
	case string:
		v.kind, v.text = stringValue, t
	case json.Delim:
		v.kind = listValue
		if t == '{' {
			v.kind = objectValue
		}
		return v, p.items(v, depth)
	}
	return v, nil
}

// items reads the rest of a list or object.
func (p *jsonParser) items(v *value, depth int) error {
	for i := 0; p.decoder.More(); i++ {
		key := ""
		if v.kind == objectValue {
			token, err := p.decoder.Token()
			if err != nil {
				return err
			}
			key, _ = token.(string)
		}
		child, err := p.value(v, depth+1)
		if err != nil {
			return err
		}
		child.key, child.index = key, i
		v.items = append(v.items, child)
	}
	_, err := p.decoder.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("the document ends too early")
	}
	return err
}
