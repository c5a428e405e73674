package picture

import "slices"

const fontName = "Helvetica,Arial,sans-serif"

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

// looks are how a box of each role is drawn.
var looks = [...]look{
	bystander: {class: "host bystander", rounded: true, stroke: colourPale, fill: "white", text: colourText},
	member:    {class: "host member", rounded: true, stroke: colourLeaf, fill: colourMember, text: colourInk},
	crowd:     {class: "host member crowd", rounded: true, stroke: colourLeaf, fill: colourMember, text: colourInk},
	forwarder: {class: "switch forwards", stroke: colourPale, fill: "white", text: colourText},
	able:      {class: "switch able", stroke: colourTree, fill: "white", text: colourInk},
	busy:      {class: "switch busy", stroke: colourTree, fill: colourReducer, text: colourInk, width: 1.8},
	drained:   {class: "switch draining", dashed: true, stroke: colourDrain, fill: colourDrained, text: colourInk},
	unready:   {class: "switch unready", dashed: true, stroke: colourText, fill: "white", text: colourText},
	reducer:   {class: "switch reduces", stroke: colourTree, fill: colourReducer, text: colourInk, width: 1.8},
	root:      {class: "switch reduces root", double: true, stroke: colourRoot, fill: colourRoot, text: "white", width: 1.8},
	broken:    {class: "down", dashed: true, stroke: "#8a8a8a", fill: colourDown, text: "#333333"},
}

// courses are how a link of each course is drawn.
var courses = [...]look{
	idle: {class: "forwarding", stroke: colourLink},
	used: {class: "tree", stroke: colourTree, width: 3.4},
	dead: {class: "down", stroke: "#bdbdbd", dashed: true},
}

func (b *box) look() look {
	l := looks[b.role]
	if b.role == broken && b.isHost {
		l.class = "host down"
	} else if b.role == broken {
		l.class = "switch down"
	}
	return l
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
	hasTree := slices.ContainsFunc(sheets, func(s *sheet) bool { return len(s.scene.Tree.Vertices) > 0 })
	for _, e := range entries {
		if e.shown(sheets) {
			if e.isLink && e.course == idle && !hasTree {
				e.text = "link"
			}
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
	middle := at.plus(point{sampleWidth/2 - 3, 0})
	if e.isLink {
		p.edge(true, "", "", line(at, at.plus(point{sampleWidth - 6, 0})), point{}, asLegend(courses[e.course]))
	} else {
		w, h := sampleWidth-6, sampleHeight
		if e.role == root {
			w, h = w-6, h-6 // room for its second border
		}
		p.box("", "", middle, w, h, asLegend(looks[e.role]), legendFont, e.label)
		if e.role == broken {
			p.cross(middle, w, h)
		}
	}
	p.element(&p.boxes, "", "node legend", "", lines([]string{e.text}, at.plus(point{sampleWidth + legendGap, 0}), 0, noteFont, "start", colourInk))
}

// rule draws the line between the legend and the scenes.
func (p *page) rule(y, width float64) {
	p.edge(false, "", "", line(point{0, y}, point{width, y}), point{}, asLegend(courses[idle]))
}

// asLegend marks a look as one of the legend's, which is no part of a scene.
func asLegend(l look) look {
	l.class = "legend"
	return l
}
