package picture

import "strings"

const (
	fontName = "Helvetica,Arial,sans-serif"
	fontBold = "Helvetica-Bold" // Graphviz knows it, and writes a weight
)

// Colours that people with any kind of colour vision can tell apart; nothing is
// said by colour alone.
const (
	colourInk     = "#1f2933"
	colourText    = "#5f6b7a"
	colourTree    = "#0b63b0"
	colourReducer = "#d6e8f9"
	colourRoot    = "#0b63b0"
	colourMember  = "#d3efdc"
	colourLeaf    = "#2f8f57"
	colourPale    = "#b9c2cc"
	colourLink    = "#cdd4db"
	colourDown    = "#ececec"
	colourCross   = "#c6282888"
)

// styles are how a box of each role looks.
var styles = [...]style{
	bystander: {"class": "host bystander", "shape": "box", "style": "rounded,filled", "color": colourPale, "fillcolor": "white", "fontcolor": colourText},
	member:    {"class": "host member", "shape": "box", "style": "rounded,filled", "color": colourLeaf, "fillcolor": colourMember, "fontcolor": colourInk},
	crowd:     {"class": "host member crowd", "shape": "box", "style": "rounded,filled", "color": colourLeaf, "fillcolor": colourMember, "fontcolor": colourInk},
	forwarder: {"class": "switch forwards", "shape": "box", "style": "filled", "color": colourPale, "fillcolor": "white", "fontcolor": colourText},
	reducer:   {"class": "switch reduces", "shape": "box", "style": "filled", "color": colourTree, "fillcolor": colourReducer, "fontcolor": colourInk, "penwidth": "1.8"},
	root:      {"class": "switch reduces root", "shape": "box", "style": "filled", "color": colourRoot, "fillcolor": colourRoot, "fontcolor": "white", "peripheries": "2", "penwidth": "1.8"},
	broken:    {"class": "down", "shape": "box", "style": "filled,dashed", "color": "#8a8a8a", "fillcolor": "transparent", "fontcolor": "#333333"},
}

// courses are how a link of each course looks.
var courses = [...]style{
	idle: {"class": "forwarding", "color": colourLink, "penwidth": "1"},
	used: {"class": "tree", "color": colourTree, "penwidth": "3.4"},
	dead: {"class": "down", "color": "#bdbdbd", "penwidth": "1", "style": "dashed"},
}

func (b *box) style() style {
	s := styles[b.role]
	if b.role == broken && b.isHost {
		s = s.with(style{"class": "host down"})
	} else if b.role == broken {
		s = s.with(style{"class": "switch down"})
	}
	size := switchFont
	if b.isHost {
		size = hostFont
	}
	return s.with(style{"fontsize": number(size)})
}

// entry is a line of the legend: a sample box or link, and what it means.
type entry struct {
	role   role
	course course
	isLink bool
	label  string
	text   string
}

var entries = []entry{
	{role: root, label: "root", text: "root switch: reduces to the end result"},
	{role: reducer, label: "switch", text: "switch on the tree: reduces what its children send"},
	{role: forwarder, label: "switch", text: "other switch: only forwards"},
	{role: broken, text: "failed switch or host"},
	{role: member, label: "host", text: "member of the group: gives a vector, gets the result"},
	{role: bystander, label: "host", text: "host that is no member"},
	{isLink: true, course: used, text: "link of the collection tree"},
	{isLink: true, course: idle, text: "link that the tree does not use"},
	{isLink: true, course: dead, text: "link that is down, or leads to what has failed"},
}

const moral = "Vectors go up the thick links and are combined in every switch on the way; the root's result goes down the same links to all."

const (
	legendWidth  = 640.0
	legendLine   = 21.0
	sampleWidth  = 44.0
	sampleHeight = 14.0
)

// shown reports whether what an entry explains is in one of the sheets.
func (e *entry) shown(sheets []*sheet) bool {
	for _, s := range sheets {
		for i := range s.boxes {
			r := s.boxes[i].role
			if r == crowd {
				r = member
			}
			if !e.isLink && r == e.role {
				return true
			}
		}
		for i := range s.wires {
			if e.isLink && s.wires[i].course == e.course {
				return true
			}
		}
	}
	return false
}

// legend draws what explains the sheets, from height 0 on in two columns, and
// returns the height above it.
func (p *page) legend(sheets []*sheet, width float64) float64 {
	var list []entry
	for _, e := range entries {
		if e.shown(sheets) {
			list = append(list, e)
		}
	}
	rows := (len(list) + 1) / 2
	for i := range list {
		column, row := i/rows, i%rows
		p.explain(&list[i], point{float64(column) * legendWidth / 2, (float64(rows-row) - 0.5) * legendLine})
	}
	y := float64(rows)*legendLine + 10
	p.rule(y, width)
	return y
}

// explain draws one entry with the left end of its middle at a place.
func (p *page) explain(e *entry, at point) {
	name := "legend " + e.text
	middle := at.plus(point{sampleWidth/2 - 3, 0})
	if e.isLink {
		p.edge(true, line(at, at.plus(point{sampleWidth - 6, 0})), point{}, asLegend(courses[e.course]))
	} else {
		w, h := sampleWidth-6, sampleHeight
		if e.role == root {
			w, h = w-6, h-6 // room for its second border
		}
		if e.role == broken {
			p.cross(name, middle, w, h)
		}
		p.node(name, middle, w, h, asLegend(styles[e.role]).with(style{"label": e.label, "fontsize": "9"}))
	}
	text := point{at.x + sampleWidth + 8 + (legendWidth/2-sampleWidth-8)/2, at.y}
	p.node(name+" text", text, legendWidth/2-sampleWidth-8, 14, style{
		"shape": "plaintext", "label": literal(e.text) + "\\l", "fontsize": number(noteFont), "fontcolor": colourInk,
		"class": "legend", "margin": "0",
	})
}

// rule draws the line between the legend and the scenes.
func (p *page) rule(y, width float64) {
	p.edge(false, line(point{0, y}, point{width, y}), point{}, asLegend(courses[idle]))
}

// asLegend marks a style as one of the legend's, which is no part of a scene.
func asLegend(s style) style { return s.with(style{"class": "legend"}) }

// literal makes a text that Graphviz takes as it stands: backslashes would
// begin an escape sequence.
func literal(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "\n", `\n`)
}
