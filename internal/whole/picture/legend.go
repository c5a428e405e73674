package picture

import "strings"

const (
	fontName = "Helvetica,Arial,sans-serif"
	fontBold = "Helvetica-Bold" // Graphviz knows it, and writes a weight
)

// Colours that people with any kind of colour vision can distinguish; nothing is
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
	colourDrain   = "#b26a00"
	colourDrained = "#fdf1dc"
	colourCross   = "#c62828"
)

// styles are how a box of each role looks.
var styles = [...]style{
	bystander: {"class": "host bystander", "shape": "box", "style": "rounded,filled", "color": colourPale, "fillcolor": "white", "fontcolor": colourText},
	member:    {"class": "host member", "shape": "box", "style": "rounded,filled", "color": colourLeaf, "fillcolor": colourMember, "fontcolor": colourInk},
	crowd:     {"class": "host member crowd", "shape": "box", "style": "rounded,filled", "color": colourLeaf, "fillcolor": colourMember, "fontcolor": colourInk},
	forwarder: {"class": "switch forwards", "shape": "box", "style": "filled", "color": colourPale, "fillcolor": "white", "fontcolor": colourText},
	able:      {"class": "switch able", "shape": "box", "style": "filled", "color": colourTree, "fillcolor": "white", "fontcolor": colourInk},
	busy:      {"class": "switch busy", "shape": "box", "style": "filled", "color": colourTree, "fillcolor": colourReducer, "fontcolor": colourInk, "penwidth": "1.8"},
	drained:   {"class": "switch draining", "shape": "box", "style": "filled,dashed", "color": colourDrain, "fillcolor": colourDrained, "fontcolor": colourInk},
	unready:   {"class": "switch unready", "shape": "box", "style": "filled,dashed", "color": colourText, "fillcolor": "white", "fontcolor": colourText},
	reducer:   {"class": "switch reduces", "shape": "box", "style": "filled", "color": colourTree, "fillcolor": colourReducer, "fontcolor": colourInk, "penwidth": "1.8"},
	root:      {"class": "switch reduces root", "shape": "box", "style": "filled", "color": colourRoot, "fillcolor": colourRoot, "fontcolor": "white", "peripheries": "2", "penwidth": "1.8"},
	broken:    {"class": "down", "shape": "box", "style": "filled,dashed", "color": "#8a8a8a", "fillcolor": colourDown, "fontcolor": "#333333"},
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
	{role: busy, label: "switch", text: "switch that reduces, on trees of groups"},
	{role: able, label: "switch", text: "switch that can reduce"},
	{role: drained, label: "switch", text: "switch that is drained: gets no new tree"},
	{role: unready, label: "switch", text: "switch whose agent cannot serve: gets no new tree"},
	{role: broken, text: "failed switch or host"},
	{role: member, label: "host", text: "member of the group: gives a vector, gets the result"},
	{role: bystander, label: "host", text: "host that is no member"},
	{isLink: true, course: used, text: "link of the collection tree"},
	{isLink: true, course: idle, text: "link that the tree does not use"},
	{isLink: true, course: dead, text: "link that is down, or leads to what has failed"},
}

const moral = "Vectors go up the thick links and are combined in every switch on the way; the root's result goes down the same links to all."

const (
	legendLine   = 21.0
	legendGap    = 8.0 // between a sample and its text, and between the columns
	legendFont   = 9.0 // of the samples
	sampleWidth  = 44.0
	sampleHeight = 14.0
)

// legendColumn is the width of one of the legend's two columns: of all entries,
// so that pictures with few of them look like those with all.
func legendColumn() float64 {
	w := 0.0
	for _, e := range entries {
		w = max(w, extent(e.text, regular, noteFont))
	}
	return sampleWidth + legendGap + w + legendGap
}

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
		p.explain(&list[i], point{float64(column) * legendColumn(), (float64(rows-row) - 0.5) * legendLine})
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
		p.node(name, middle, w, h, asLegend(styles[e.role]).with(style{"label": e.label, "fontsize": number(legendFont)}))
		if e.role == broken {
			p.cross(name, middle, w, h)
		}
	}
	w := legendColumn() - sampleWidth - legendGap
	text := point{at.x + sampleWidth + legendGap + w/2, at.y}
	p.node(name+" text", text, w, 14, style{
		"shape": "plaintext", "label": literal(e.text, "") + `\l`, "fontsize": number(noteFont), "fontcolor": colourInk,
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
// begin an escape sequence. Its lines end in what says how they are aligned.
func literal(text, newline string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "\n", newline)
}
