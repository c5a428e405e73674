package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// span is a rectangle of a page, in points; y grows downwards, as in SVG.
type span struct{ left, right, top, bottom float64 }

func (s span) over(t span) bool {
	return s.left < t.right && t.left < s.right && s.top < t.bottom && t.top < s.bottom
}

// written is a line of text of a page.
type written struct {
	text string
	span
}

// drawnNode is a node of a page.
type drawnNode struct {
	class string
	shape span // around its shapes; without any, of left > right
	lines []written
}

// readPage returns the nodes of an SVG, and its width in points to the left and
// the right of its origin. Text is as wide as DejaVu Sans makes it.
func readPage(t *testing.T, svg []byte) (all []drawnNode, page span) {
	t.Helper()
	attr := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	value := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var of written
	var size float64
	font, anchor := regular, ""
	node := false
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, page
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			class := attr(e, "class")
			switch e.Name.Local {
			case "svg":
				f := strings.Fields(attr(e, "viewBox"))
				page.right = value(f[2])
			case "g":
				if at := strings.Index(attr(e, "transform"), "translate("); at >= 0 { // its scale is 1
					x := value(strings.FieldsFunc(attr(e, "transform")[at+len("translate("):], func(r rune) bool { return r == ' ' || r == ')' })[0])
					page.left, page.right = -x, page.right-x
				}
				if strings.HasPrefix(class, "node") || strings.HasPrefix(class, "edge") {
					node = strings.HasPrefix(class, "node")
					all = append(all, drawnNode{class: class, shape: span{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}})
				}
			case "rect":
				if !node {
					break
				}
				n := &all[len(all)-1].shape
				x, y := value(attr(e, "x")), value(attr(e, "y"))
				*n = span{min(n.left, x), max(n.right, x+value(attr(e, "width"))), min(n.top, y), max(n.bottom, y+value(attr(e, "height")))}
			case "text":
				size, anchor, font = value(attr(e, "font-size")), attr(e, "text-anchor"), regular
				if attr(e, "font-weight") == "bold" {
					font = bold
				}
				of = written{span: span{left: value(attr(e, "x")), bottom: value(attr(e, "y"))}}
				of.top = of.bottom - 0.76*size // its capitals
			}
		case xml.CharData:
			if size > 0 {
				of.text += string(e)
			}
		case xml.EndElement:
			if e.Name.Local != "text" {
				break
			}
			w := extent(of.text, font, size)
			if anchor == "middle" {
				of.left -= w / 2
			}
			of.right = of.left + w
			all[len(all)-1].lines = append(all[len(all)-1].lines, of)
			size = 0
		}
	}
}

// pages are pictures of all that a picture can say, in names of wide letters.
func pages(t *testing.T) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	draw := func(name, title string, scenes ...Scene) {
		var b bytes.Buffer
		if err := SVG(&b, title, scenes...); err != nil {
			t.Fatal(err)
		}
		m[name] = b.Bytes()
	}
	tree := func(g *topology.Graph, members int) pathsel.Tree {
		r := pathsel.Request{Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32), Slots: 128, ChunkBytes: 1432}
		for n := range topology.NodeID(members) {
			r.Members = append(r.Members, n)
		}
		p, err := pathsel.NewPlanner(g, pathsel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.Plan(g.View(), nil, r)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Tree
	}
	var b topology.Builder
	must := func(r topology.Ref, err error) topology.Ref {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var switches []topology.Ref
	for _, name := range []string{"MMMM-ROOM-1", "aggregation-mmm", "WWW-spare"} {
		switches = append(switches, must(b.AddSwitch(name, topology.DefaultCapability())))
	}
	for i, name := range []string{"GPU-MW-0001", "www_mmm", "OSS-MM-01", "w.m.w.m.w.m"} {
		h := must(b.AddHost(name))
		if _, err := b.Connect(h, 0, switches[i%3], 0, topology.DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		if _, err := b.Connect(switches[i], 0, switches[i+1], 0, topology.DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	failed, err := topology.NewOverlay(g).With(topology.NodeState(g.Switch(2), false), topology.NodeState(0, false))
	if err != nil {
		t.Fatal(err)
	}
	draw("wide", "Fabric MMMM and the collection tree of group \"Zürich WWWWMMMM 東京\"",
		Scene{Heading: "The tree of epoch 1", View: g.View(), Tree: tree(g, 3)},
		Scene{Heading: "After the death of MMMM-ROOM-1: no tree is left, and the hosts reduce among themselves, as WWWW can", View: failed.View()})
	for _, spec := range []string{"fat-tree:4", "leaf-spine:4,2,2", "four-switches"} {
		g, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		draw(spec, spec, Scene{View: g.View(), Tree: tree(g, 2)})
	}
	g, err = topology.Parse("fat-tree:16")
	if err != nil {
		t.Fatal(err)
	}
	draw("large", "large", Scene{View: g.View(), Tree: tree(g, g.Hosts())})
	return m
}

// Whatever font of the common ones the reader has, no text reaches beyond its
// box, the page, or into another text.
func TestTextHasRoom(t *testing.T) {
	for name, svg := range pages(t) {
		nodes, page := readPage(t, svg)
		var all []written
		for _, n := range nodes {
			for _, l := range n.lines {
				if n.shape.left < n.shape.right && (l.left < n.shape.left || l.right > n.shape.right) {
					t.Errorf("%s: %q is %.1f points wide, its box %.1f", name, l.text, l.right-l.left, n.shape.right-n.shape.left)
				}
				if l.left < page.left || l.right > page.right {
					t.Errorf("%s: %q reaches beyond the page, from %.0f to %.0f of %.0f to %.0f", name, l.text, l.left, l.right, page.left, page.right)
				}
				for _, o := range all {
					if o.over(l.span) {
						t.Errorf("%s: %q lies over %q", name, l.text, o.text)
					}
				}
				all = append(all, l)
			}
		}
		if len(all) < 10 {
			t.Errorf("%s: only %d lines were found", name, len(all))
		}
	}
}

// The mark of what is down hides no part of a name.
func TestTheCrossHidesNoText(t *testing.T) {
	crosses := 0
	for name, svg := range pages(t) {
		nodes, _ := readPage(t, svg)
		for _, n := range nodes {
			if !strings.Contains(n.class, "cross") {
				continue
			}
			crosses++
			for _, o := range nodes {
				for _, l := range o.lines {
					if !strings.Contains(o.class, "cross") && (l.over(n.shape) || l.over(n.lines[0].span)) {
						t.Errorf("%s: a cross lies over %q", name, l.text)
					}
				}
			}
		}
	}
	if crosses != 3 { // a switch, a host, the legend's
		t.Errorf("%d crosses were found, want 3", crosses)
	}
}
