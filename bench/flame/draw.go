package flame

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
)

// Measures of a drawing in pixels.
const (
	width   = 1200
	margin  = 10
	row     = 17
	head    = 52   // title and legend
	letter  = 6.7  // of a name, about
	least   = 0.6  // boxes that are narrower are left out
	padding = 3    // of a name in its box
	square  = 11   // of the legend
	column  = 190  // of the legend
	text    = "12" // size of letters
)

// Draw writes a tree as an SVG, with a title above it. The same tree gives the
// same bytes.
func Draw(w io.Writer, root *Frame, title string) error {
	d := drawing{height: head + row*(root.Depth()+1) + margin, scale: float64(width-2*margin) / float64(root.Value), total: root.Value}
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="Verdana, DejaVu Sans, sans-serif" font-size="%s">`+"\n",
		width, d.height, width, d.height, text)
	fmt.Fprintf(&d.out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, d.height)
	fmt.Fprintf(&d.out, `<text x="%d" y="20" font-size="15">%s</text>`+"\n", margin, escaped(title))
	for k, look := range looks {
		x := margin + column*k
		fmt.Fprintf(&d.out, `<rect x="%d" y="30" width="%d" height="%d" fill="%s"/><text x="%d" y="40">%s</text>`+"\n",
			x, square, square, look.colour, x+square+4, look.words)
	}
	d.frame(root, margin, 0)
	d.out.WriteString("</svg>\n")
	_, err := w.Write(d.out.Bytes())
	return err
}

type drawing struct {
	out    bytes.Buffer
	height int
	scale  float64 // pixels of a unit of value
	total  int64
}

// frame draws a box, and those that stand on it, from x on.
func (d *drawing) frame(f *Frame, x float64, level int) {
	wide := float64(f.Value) * d.scale
	if wide < least {
		return
	}
	y := d.height - margin - row*(level+1)
	colour := looks[kindOf(f.Name)].colour
	if level == 0 {
		colour = "#e4e4e4"
	}
	fmt.Fprintf(&d.out, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="#ffffff" stroke-width="0.5"/>`,
		escaped(short(f.Name)), 100*float64(f.Value)/float64(d.total), x, y, wide, row-1, colour)
	if name := fitting(short(f.Name), wide-2*padding); name != "" {
		fmt.Fprintf(&d.out, `<text x="%.1f" y="%d">%s</text>`, x+padding, y+12, escaped(name))
	}
	d.out.WriteString("</g>\n")
	for _, c := range f.Children {
		d.frame(c, x, level+1)
		x += float64(c.Value) * d.scale
	}
}

// fitting returns as much of a name as fits: its end tells more than its
// beginning.
func fitting(name string, wide float64) string {
	letters := []rune(name)
	room := int(wide / letter)
	switch {
	case len(letters) <= room:
		return name
	case room < 4:
		return ""
	}
	return ".." + string(letters[len(letters)-room+2:])
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // to memory
	return b.String()
}
