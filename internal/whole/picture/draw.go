package picture

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// SVG draws the scenes below each other, under a title and above a legend.
// It fails for no scene, for one without a fabric, or whose tree is not one of
// its fabric (ErrScene), and where w does.
func SVG(w io.Writer, title string, scenes ...Scene) error {
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
	var p page
	size := p.draw(title, sheets)
	if _, err := io.WriteString(w, p.document(title, size)); err != nil {
		return fmt.Errorf("picture: writing: %w", err)
	}
	return nil
}

// page is the elements of the picture: links lie under the tree, and both under
// boxes and text.
type page struct {
	under, over, boxes strings.Builder
	elements           int
}

// look is how a box or a link is drawn.
type look struct {
	class              string
	stroke, fill, text string  // colours
	width              float64 // of the stroke; 0: 1
	dashed             bool
	rounded, double    bool // of a box: its corners, its border
}

// The measures of the page, in points.
const (
	titleFont   = 17.0
	headingFont = 13.0
	noteFont    = 10.5
	margin      = 14.0
	padding     = 18.0 // around the page
	borderGap   = 4.0  // between the borders of the root
)

// draw places the parts of the page from the bottom up: legend, the scenes from
// the last to the first, title. It returns the page's size.
func (p *page) draw(title string, sheets []*sheet) point {
	width := max(2*legendColumn(), widest(title, titleFont))
	for _, s := range sheets {
		width = max(width, s.size.x, widest(s.scene.Heading, headingFont))
	}
	y := p.legend(sheets, width)
	for i, s := range slices.Backward(sheets) {
		y += margin
		p.scene(i+1, s, point{(width - s.size.x) / 2, y})
		y += s.size.y + margin
		alarms := s.scene.Alarms[:min(MaxAlarms, len(s.scene.Alarms))]
		if more := len(s.scene.Alarms) - len(alarms); more > 0 {
			y = p.text(fmt.Sprintf("and %d more alarms", more), noteFont, y, width, "alarm", colourCross)
		}
		for _, a := range slices.Backward(alarms) {
			y = p.text("ALARM: "+a.Text, noteFont, y, width, "alarm", colourCross)
		}
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
	return point{width, p.text(title, titleFont, y+2, width, "title", colourInk)}
}

// document returns the SVG. Places on the page count upwards from its lowest left
// corner, those in SVG downwards: they are negative.
func (p *page) document(title string, size point) string {
	w, h, left, top := number(size.x+2*padding), number(size.y+2*padding), number(padding), number(size.y+padding)
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%spt" height="%spt" viewBox="0 0 %s %s" font-family="%s">`+"\n", w, h, w, h, fontName) +
		fmt.Sprintf(`<g transform="translate(%s %s)"><title>%s</title>`+"\n", left, top, escape(title)) +
		fmt.Sprintf(`<rect x="-%s" y="-%s" width="%s" height="%s" fill="white"/>`+"\n", left, top, w, h) +
		p.under.String() + p.over.String() + p.boxes.String() + "</g>\n</svg>\n"
}

// element writes an element of the page, with a tooltip or without.
func (p *page) element(to *strings.Builder, id, class, tooltip, inner string) {
	p.elements++
	if tooltip != "" {
		tooltip = "<title>" + escape(tooltip) + "</title>"
	}
	fmt.Fprintf(to, "<g id=\"%s\" class=\"%s\">%s%s</g>\n", escape(cmp.Or(id, fmt.Sprint("element-", p.elements))), class, tooltip, inner)
}

// box draws a box with its label in the middle.
func (p *page) box(id, tooltip string, at point, w, h float64, l look, size float64, label string) {
	inner := rectangle(at, w, h, l)
	if l.double {
		outer := l
		outer.fill = "none"
		inner = rectangle(at, w+2*borderGap, h+2*borderGap, outer) + inner
	}
	p.element(&p.boxes, id, "node "+l.class, tooltip, inner+lines(strings.Split(label, "\n"), at, 1.2*size, size, "middle", l.text))
}

func rectangle(at point, w, h float64, l look) string {
	radius := 0
	if l.rounded {
		radius = 6
	}
	return fmt.Sprintf(`<rect x="%s" y="%s" width="%s" height="%s" rx="%d" fill="%s"%s/>`,
		number(at.x-w/2), number(-at.y-h/2), number(w), number(h), radius, l.fill, l.border())
}

// border writes how lines are drawn.
func (l *look) border() string {
	text := fmt.Sprintf(` stroke="%s" stroke-width="%s"`, l.stroke, number(cmp.Or(l.width, 1)))
	if l.dashed {
		text += ` stroke-dasharray="5,2"`
	}
	return text
}

// edge draws a line, over those of the links that no tree uses or among them.
func (p *page) edge(over bool, id, tooltip string, path []point, at point, l look) {
	to := &p.under
	if over {
		to = &p.over
	}
	p.element(to, id, "edge "+l.class, tooltip, fmt.Sprintf(`<path fill="none"%s d="%s"/>`, l.border(), curve(path, at)))
}

// lines writes lines of text below each other, their middle at a place, or from
// there to the right.
func lines(text []string, at point, pitch, size float64, anchor, colour string) string {
	var b strings.Builder
	weight := ""
	if size >= headingFont {
		weight = ` font-weight="bold"`
	}
	for i, line := range text {
		down := (float64(i)-float64(len(text)-1)/2)*pitch + 0.35*size
		fmt.Fprintf(&b, `<text x="%s" y="%s" font-size="%s"%s text-anchor="%s" fill="%s">%s</text>`,
			number(at.x), number(down-at.y), number(size), weight, anchor, colour, escape(line))
	}
	return b.String()
}

// text writes lines from height y up, from the left, and returns the height
// above. It breaks what is wider than the page.
func (p *page) text(text string, size, y, width float64, class, colour string) float64 {
	all := wrap(text, size, width)
	h := size * 1.4 * float64(len(all))
	p.element(&p.boxes, "", "node "+class, "", lines(all, point{0, y + h/2}, 1.4*size, size, "start", colour))
	return y + h
}

// scene draws one sheet with its lowest left corner at a place.
func (p *page) scene(number int, s *sheet, at point) {
	for i := range s.boxes {
		b := &s.boxes[i]
		size := switchFont
		if b.isHost {
			size = hostFont
		}
		p.box(fmt.Sprintf("s%d-%s", number, b.name), cmp.Or(b.tip, b.name), b.at.plus(at), b.w, b.h, b.look(), size, b.label)
		if b.role == broken {
			p.cross(b.at.plus(at), b.w, b.h)
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
		l := courses[w.course]
		if w.course == used && len(w.path) > 4 {
			l.width = 2.2 // of a fan, where many lie close
		}
		p.edge(w.course == used, id, name, w.path, at, l)
	}
}

// cross marks what is down at its upper left corner, where its label does not
// reach.
func (p *page) cross(at point, w, h float64) {
	p.box("", "", at.plus(point{-w / 2, h / 2}), crossSize, crossSize,
		look{class: "cross", stroke: colourCross, fill: colourCross, text: "white"}, 0.85*crossSize, "×")
}

// escape writes a text as it stands in XML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder fails at nothing
	return b.String()
}
