package importer

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// graphmlFile is a file of GraphML. Source: the GraphML specification.
type graphmlFile struct {
	Keys []struct {
		ID      string  `xml:"id,attr"`
		Of      string  `xml:"for,attr"`
		Name    string  `xml:"attr.name,attr"`
		Default *string `xml:"default"` // of elements without it
	} `xml:"key"`
	Graphs []graphmlElement `xml:"graph"`
}

// graphmlElement is a graph, a node or an edge with its line.
type graphmlElement struct {
	line int
	graphmlFields
}

type graphmlFields struct {
	ID         string `xml:"id,attr"`
	Directed   string `xml:"edgedefault,attr"`
	Source     string `xml:"source,attr"`
	Target     string `xml:"target,attr"`
	SourcePort string `xml:"sourceport,attr"`
	TargetPort string `xml:"targetport,attr"`
	Data       []struct {
		Key  string `xml:"key,attr"`
		Text string `xml:",chardata"`
	} `xml:"data"`
	Nodes      []graphmlElement `xml:"node"`
	Edges      []graphmlElement `xml:"edge"`
	Hyperedges []graphmlElement `xml:"hyperedge"`
	Graphs     []struct{}       `xml:"graph"`
}

// UnmarshalXML keeps the line on which the element begins.
func (e *graphmlElement) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	e.line, _ = d.InputPos()
	return d.DecodeElement(&e.graphmlFields, &start)
}

func readGraphML(d *draft, data []byte) {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	var file graphmlFile
	err := decoder.Decode(&file)
	for err == nil { // up to the end
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		line, _ := decoder.InputPos()
		d.fail(line, fmt.Errorf("%w: %w", ErrSyntax, err))
		return
	}
	if len(file.Graphs) == 0 {
		d.fail(0, fmt.Errorf("no <graph> in it: %w", ErrFormat))
		return
	}
	z := &attributedGraph{draft: d}
	for i, g := range file.Graphs {
		z.directed = g.Directed == "directed"
		if i > 0 {
			d.note(g.line, Changed, "another graph", Unknown, "a part of the first")
		}
		for _, data := range g.Data {
			if name := file.name(data.Key); name == "label" || name == "Network" {
				z.title = data.Text
			}
		}
		for _, n := range g.Nodes {
			z.nodes = append(z.nodes, element{id: n.ID, line: n.line, attributes: file.attributes(&n, "node")})
			if len(n.Graphs) > 0 {
				d.note(n.line, Skipped, "a graph within a node", Unknown, "")
			}
		}
		for _, e := range g.Edges {
			z.edges = append(z.edges, element{
				line: e.line, source: e.Source, target: e.Target, ports: [2]string{e.SourcePort, e.TargetPort}, attributes: file.attributes(&e, "edge"),
			})
		}
		for _, h := range g.Hyperedges {
			d.note(h.line, Skipped, "hyperedge", Unknown, "")
		}
	}
	z.read()
}

// attributes returns an element's own attributes, and those that it has by default.
func (f *graphmlFile) attributes(e *graphmlElement, of string) map[string]string {
	all := map[string]string{}
	for _, k := range f.Keys {
		if k.Default != nil && (k.Of == of || k.Of == "all") {
			all[k.Name] = *k.Default
		}
	}
	for _, data := range e.Data {
		if name := f.name(data.Key); name != "" {
			all[name] = data.Text
		}
	}
	return all
}

// name returns the attribute that a key stands for, or nothing.
func (f *graphmlFile) name(key string) (name string) {
	for _, k := range f.Keys {
		if k.ID == key {
			name = k.Name
		}
	}
	return name
}
