package importer

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// graphmlKey says what attribute a <data> element means. Source: the GraphML
// specification, section on attributes.
type graphmlKey struct {
	of, name  string
	otherwise string // of elements without it
}

// graphmlReader reads GraphML element by element.
type graphmlReader struct {
	attributedGraph
	decoder *xml.Decoder
	keys    map[string]graphmlKey
	filled  []graphmlKey // those with a default, in order
	graphs  int
}

func readGraphML(d *draft, data []byte) {
	r := &graphmlReader{attributedGraph: attributedGraph{draft: d}, decoder: xml.NewDecoder(bytes.NewReader(data)), keys: map[string]graphmlKey{}}
	if err := r.elements(); err != nil {
		line, _ := r.decoder.InputPos()
		d.fail(line, fmt.Errorf("%w: %w", ErrSyntax, err))
		return
	}
	if r.graphs == 0 {
		d.fail(0, fmt.Errorf("no <graph> in it: %w", ErrFormat))
		return
	}
	for _, list := range [][]element{r.nodes, r.edges} {
		for _, e := range list {
			r.fillIn(e)
		}
	}
	r.read()
}

// elements reads the whole file.
func (r *graphmlReader) elements() error {
	for {
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		line, _ := r.decoder.InputPos()
		switch start.Name.Local {
		case "key":
			err = r.key(start)
		case "graph":
			r.graphs++
			r.directed = attribute(start, "edgedefault") == "directed"
			if r.graphs > 1 {
				r.note(line, Changed, "another graph", Unknown, "a part of the first")
			}
		case "node":
			err = r.element(start, element{id: attribute(start, "id"), line: line}, &r.nodes)
		case "edge":
			err = r.element(start, element{
				line: line, source: attribute(start, "source"), target: attribute(start, "target"),
				ports: [2]string{attribute(start, "sourceport"), attribute(start, "targetport")},
			}, &r.edges)
		case "data":
			err = r.graphData(start)
		case "hyperedge":
			r.note(line, Skipped, "hyperedge", Unknown, "")
			err = r.decoder.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// attribute returns an XML attribute, or nothing.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (r *graphmlReader) key(start xml.StartElement) error {
	k := graphmlKey{of: attribute(start, "for"), name: attribute(start, "attr.name")}
	var inside struct {
		Default *string `xml:"default"`
	}
	if err := r.decoder.DecodeElement(&inside, &start); err != nil {
		return err
	}
	if inside.Default != nil {
		k.otherwise = *inside.Default
		r.filled = append(r.filled, k)
	}
	r.keys[attribute(start, "id")] = k
	return nil
}

// element reads a node or an edge up to its end; a graph within a node is left
// out.
func (r *graphmlReader) element(start xml.StartElement, e element, to *[]element) error {
	var inside struct {
		Data []struct {
			Key  string `xml:"key,attr"`
			Text string `xml:",chardata"`
		} `xml:"data"`
		Graph []struct{} `xml:"graph"`
	}
	if err := r.decoder.DecodeElement(&inside, &start); err != nil {
		return err
	}
	e.attributes = map[string]string{}
	for _, data := range inside.Data {
		if k := r.keys[data.Key]; k.name != "" {
			e.attributes[k.name] = data.Text
		}
	}
	if len(inside.Graph) > 0 {
		r.note(e.line, Skipped, "a graph within a node", Unknown, "")
	}
	*to = append(*to, e)
	return nil
}

// graphData reads an attribute of the graph itself.
func (r *graphmlReader) graphData(start xml.StartElement) error {
	var text string
	if err := r.decoder.DecodeElement(&text, &start); err != nil {
		return err
	}
	if name := r.keys[attribute(start, "key")].name; name == "label" || name == "Network" {
		r.title = text
	}
	return nil
}

// fillIn gives an element the attributes that it has by default.
func (r *graphmlReader) fillIn(e element) {
	of := "node"
	if e.source != "" {
		of = "edge"
	}
	for _, k := range r.filled {
		if _, has := e.attributes[k.name]; !has && (k.of == of || k.of == "all") {
			e.attributes[k.name] = k.otherwise
		}
	}
}
