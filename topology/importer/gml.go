package importer

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// gmlItem is a key of a GML file and its value: a scalar's text, or a list.
// Source: Himsolt: GML: A portable Graph File Format, 1997, section 2.
type gmlItem struct {
	key  string
	line int
	text string
	list []gmlItem
	many bool // it is a list
}

// gmlParser reads GML token by token.
type gmlParser struct {
	data []byte
	line int
}

// maxGMLDepth is far deeper than a graph nests.
const maxGMLDepth = 16

func readGML(d *draft, data []byte) {
	p := &gmlParser{data: data, line: 1}
	items, err := p.list(0)
	if err != nil {
		d.fail(p.line, err)
		return
	}
	for _, item := range items {
		if item.key == "graph" && item.many {
			readGMLGraph(d, item)
			return
		}
	}
	d.fail(0, fmt.Errorf("no graph [ ... ] in it: %w", ErrFormat))
}

func readGMLGraph(d *draft, graph gmlItem) {
	z := &attributedGraph{draft: d}
	for _, item := range graph.list {
		switch {
		case item.key == "node" && item.many:
			z.nodes = append(z.nodes, item.element("id"))
		case item.key == "edge" && item.many:
			e := item.element("id")
			e.source, e.target = e.attributes["source"], e.attributes["target"]
			z.edges = append(z.edges, e)
		case item.key == "directed":
			z.directed = item.text == "1"
		case strings.EqualFold(item.key, "label") || strings.EqualFold(item.key, "network"):
			z.title = item.text
		}
	}
	z.read()
}

// element returns a node or edge of the graph.
func (i gmlItem) element(id string) element {
	e := element{line: i.line, attributes: make(map[string]string, len(i.list))}
	for _, a := range i.list {
		if !a.many {
			e.attributes[a.key] = a.text
		}
	}
	e.id = e.attributes[id]
	return e
}

// list reads items up to the closing bracket, or to the end at depth 0.
func (p *gmlParser) list(depth int) ([]gmlItem, error) {
	if depth > maxGMLDepth {
		return nil, fmt.Errorf("lists are nested deeper than %d: %w", maxGMLDepth, ErrSyntax)
	}
	var items []gmlItem
	for {
		key, _, err := p.token()
		switch {
		case err != nil:
			return nil, err
		case key == "" && depth == 0 || key == "]" && depth > 0:
			return items, nil
		case key == "":
			return nil, fmt.Errorf("the file ends within a list: a ] is missing: %w", ErrSyntax)
		case key == "[" || key == "]":
			return nil, fmt.Errorf("%s where the name of a value should be: %w", key, ErrSyntax)
		}
		item := gmlItem{key: key, line: p.line}
		value, quoted, err := p.token()
		switch {
		case err != nil:
			return nil, err
		case quoted:
			item.text = html.UnescapeString(value)
		case value == "[":
			item.many = true
			if item.list, err = p.list(depth + 1); err != nil {
				return nil, err
			}
		case value == "" || value == "]":
			return nil, fmt.Errorf("%q has no value: %w", short(key), ErrSyntax)
		default:
			item.text = value
		}
		items = append(items, item)
	}
}

// token returns the next word, bracket or text in quotes; nothing at the end.
func (p *gmlParser) token() (text string, quoted bool, err error) {
	p.skip()
	if len(p.data) == 0 {
		return "", false, nil
	}
	end := 1
	switch p.data[0] {
	case '[', ']':
	case '"':
		length := bytes.IndexByte(p.data[1:], '"')
		if length < 0 {
			return "", false, fmt.Errorf("a text in quotes has no end: %w", ErrSyntax)
		}
		body := p.data[1 : 1+length]
		p.data = p.data[length+2:]
		p.line += bytes.Count(body, []byte("\n"))
		if len(body) > MaxLine {
			return "", false, fmt.Errorf("a text of %d bytes, more than %d: %w", len(body), MaxLine, ErrTooLarge)
		}
		return string(body), true, nil
	default:
		for end < len(p.data) && !bytes.ContainsRune([]byte(" \t\r\n[]\""), rune(p.data[end])) {
			end++
		}
		if end > MaxLine {
			return "", false, fmt.Errorf("a word of %d bytes, more than %d: %w", end, MaxLine, ErrTooLarge)
		}
	}
	text, p.data = string(p.data[:end]), p.data[end:]
	return text, false, nil
}

// skip passes over blanks and comments, which go from # to the line's end.
func (p *gmlParser) skip() {
	for len(p.data) > 0 {
		switch p.data[0] {
		case '\n':
			p.line++
			p.data = p.data[1:]
		case ' ', '\t', '\r':
			p.data = p.data[1:]
		case '#':
			end := bytes.IndexByte(p.data, '\n')
			if end < 0 {
				end = len(p.data)
			}
			p.data = p.data[end:]
		default:
			return
		}
	}
}
