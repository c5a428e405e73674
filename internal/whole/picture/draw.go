package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-graphviz"
	"github.com/goccy/go-graphviz/cgraph"
)

// SVG draws the scenes below each other, under a title and above a legend.
// It fails for no scene, for one without a fabric, or whose tree is not one of
// its fabric (ErrScene), and where w does.
func SVG(ctx context.Context, w io.Writer, title string, scenes ...Scene) (err error) {
	if len(scenes) == 0 {
		return fmt.Errorf("%w: no scene", ErrScene)
	}
	sheets := make([]*sheet, len(scenes))
	for i := range scenes {
		if err := scenes[i].validate(); err != nil {
			return err
		}
		sheets[i] = compose(&scenes[i])
		sheets[i].place()
		sheets[i].route()
		sheets[i].trim()
	}
	engine, err := graphviz.New(ctx)
	if err != nil {
		return fmt.Errorf("picture: starting graphviz: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	p := page{}
	if p.graph, err = engine.Graph(graphviz.WithName("fabric"), graphviz.WithDirectedType(graphviz.UnDirected)); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	defer func() { err = errors.Join(err, p.graph.Close()) }()
	p.draw(title, sheets)
	if p.err != nil {
		return fmt.Errorf("picture: %w", p.err)
	}
	var svg bytes.Buffer
	engine.SetLayout(graphviz.NOP2)
	if err := engine.Render(ctx, p.graph, graphviz.SVG, &svg); err != nil {
		return fmt.Errorf("picture: rendering: %w", err)
	}
	if _, err := w.Write(svg.Bytes()); err != nil {
		return fmt.Errorf("picture: writing: %w", err)
	}
	return nil
}

// page is the graph that Graphviz renders. The first error stays.
type page struct {
	graph *cgraph.Graph
	texts int
	edges int
	err   error

	// Graphviz draws edges in the order of the nodes that they begin at, and
	// then nodes. So every line begins at one of two nodes that are not seen,
	// and the tree lies over the other links; its place is its own in any case.
	under, over *cgraph.Node
}

// style is a set of Graphviz's attributes.
type style map[string]string

// with returns the style with the attributes of t, too.
func (s style) with(t style) style {
	u := maps.Clone(s)
	maps.Copy(u, t)
	return u
}

func (p *page) set(o interface {
	SafeSet(name, value, def string) error
}, s style) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := o.SafeSet(name, s[name], ""); err != nil && p.err == nil {
			p.err = err
		}
	}
}

// node adds a node and returns it.
func (p *page) node(name string, at point, w, h float64, s style) *cgraph.Node {
	n, err := p.graph.CreateNodeByName(name)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return nil
	}
	p.set(n, style{
		"pos": pos(at), "width": number(w / 72), "height": number(h / 72), "fixedsize": "true", "fontname": fontName,
	}.with(s))
	return n
}

// edge adds a line, over those of the links that no tree uses or among them.
func (p *page) edge(over bool, path []point, at point, s style) {
	if p.err != nil {
		return
	}
	from := p.under
	if over {
		from = p.over
	}
	p.edges++
	e, err := p.graph.CreateEdgeByName(strconv.Itoa(p.edges), from, p.over)
	if err != nil {
		p.err = err
		return
	}
	p.set(e, s.with(style{"pos": splinePos(path, at)}))
}

// The measures of the page, in points.
const (
	titleFont   = 17.0
	headingFont = 13.0
	noteFont    = 10.5
	margin      = 14.0
)

// draw places the parts of the page from the bottom up: legend, the scenes from
// the last to the first, title.
func (p *page) draw(title string, sheets []*sheet) {
	width := max(2*legendColumn(), widest(title, titleFont))
	for _, s := range sheets {
		width = max(width, s.size.x, widest(s.scene.Heading, headingFont))
	}
	p.set(p.graph, style{
		"bgcolor": "white", "pad": "0.25", "outputorder": "edgesfirst", "tooltip": title,
	})
	unseen := style{"shape": "none", "label": "", "class": "legend"}
	p.under, p.over = p.node("under", point{}, 1, 1, unseen), p.node("over", point{}, 1, 1, unseen)
	y := p.legend(sheets, width)
	for i, s := range slices.Backward(sheets) {
		y += margin
		p.scene(i+1, s, point{(width - s.size.x) / 2, y})
		y += s.size.y + margin
		if s.note != "" {
			y = p.text(s.note, noteFont, y, width, "note", colourText)
		}
		if s.scene.Heading != "" {
			y = p.text(s.scene.Heading, headingFont, y+margin/2, width, "heading", colourInk)
		}
	}
	if slices.ContainsFunc(sheets, func(s *sheet) bool { return len(s.scene.Tree.Vertices) > 0 }) {
		y = p.text(moral, noteFont, y+margin, width, "moral", colourText)
	}
	p.text(title, titleFont, y+2, width, "title", colourInk)
}

// text writes lines from height y up, from the left, and returns the height
// above. It breaks what is wider than the page.
func (p *page) text(text string, size, y, width float64, class, colour string) float64 {
	p.texts++
	lines := wrap(text, size, width)
	h := size * 1.4 * float64(len(lines))
	_, font := fontOf(size)
	p.node(fmt.Sprintf("text %d", p.texts), point{width / 2, y + h/2}, width, h, style{
		"shape": "plaintext", "label": literal(strings.Join(lines, "\n"), `\l`) + `\l`, "fontsize": number(size), "fontcolor": colour,
		"class": class, "margin": "0", "fontname": font,
	})
	return y + h
}

// scene draws one sheet with its lowest left corner at a place.
func (p *page) scene(number int, s *sheet, at point) {
	for i := range s.boxes {
		b := &s.boxes[i]
		id := fmt.Sprintf("s%d-%s", number, b.name)
		p.node(id, b.at.plus(at), b.w, b.h, b.style().with(style{"id": id, "label": literal(b.label, `\n`), "tooltip": b.name}))
		if b.role == broken {
			p.cross(id, b.at.plus(at), b.w, b.h)
		}
	}
	g := s.scene.View.Graph()
	for i := range s.wires {
		w := &s.wires[i]
		id, name := fmt.Sprintf("s%d-link-%d", number, w.link), "links"
		if w.link < 0 {
			id = fmt.Sprintf("s%d-links-%d", number, i)
		} else {
			name = g.LinkName(w.link)
		}
		look := courses[w.course]
		if w.course == used && len(w.path) > 4 {
			look = look.with(style{"penwidth": "2.2"}) // of a fan, where many lie close
		}
		p.edge(w.course == used, w.path, at, look.with(style{"id": id, "tooltip": name}))
	}
}

// cross marks what is down at its upper left corner, where its label does not
// reach.
func (p *page) cross(name string, at point, w, h float64) {
	p.node(name+" cross", at.plus(point{-w / 2, h / 2}), crossSize, crossSize, style{
		"shape": "box", "style": "filled", "color": colourCross, "fillcolor": colourCross, "label": "×",
		"fontsize": number(0.85 * crossSize), "fontcolor": "white", "class": "cross", "margin": "0",
	})
}
