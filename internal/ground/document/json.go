package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

func parseJSON(data []byte) (*Value, *SyntaxError) {
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
		return nil, &SyntaxError{Line: p.line, Err: err}
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

func (p *jsonParser) value(parent *Value, depth int) (*Value, error) {
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
	v := &Value{Line: p.line, parent: parent}
	switch t := token.(type) {
	case nil:
		v.Kind = Null
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(t)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = String, t
	case json.Delim:
		v.Kind = List
		if t == '{' {
			v.Kind = Object
		}
		return v, p.items(v, depth)
	}
	return v, nil
}

// items reads the rest of a list or object.
func (p *jsonParser) items(v *Value, depth int) error {
	for i := 0; p.decoder.More(); i++ {
		key := ""
		if v.Kind == Object {
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
		child.Key, child.index = key, i
		v.Items = append(v.Items, child)
	}
	_, err := p.decoder.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("the document ends too early")
	}
	return err
}
