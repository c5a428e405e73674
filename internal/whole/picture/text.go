package picture

import "strings"

// A picture names several fonts, and the reader's machine may have none of
// them. So room is left for the widest of the common ones, DejaVu Sans; text in
// Helvetica or Arial is narrower.

// regular and bold are how far the letters from space to tilde reach in DejaVu
// Sans and in its bold, in thousandths of the font's size.
var regular = [95]uint16{
	318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337,
	637, 637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531,
	1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863, 749, 788,
	604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500,
	500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612,
	635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
}

var bold = [95]uint16{
	349, 457, 521, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366,
	696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 581,
	1000, 774, 763, 734, 831, 684, 684, 821, 837, 373, 373, 775, 638, 996, 837, 851,
	733, 851, 771, 721, 683, 813, 774, 1104, 771, 725, 726, 458, 366, 458, 838, 500,
	500, 675, 716, 593, 716, 679, 436, 716, 712, 343, 343, 666, 343, 1042, 712, 688,
	716, 716, 494, 596, 479, 712, 652, 924, 646, 652, 583, 712, 366, 712, 838,
}

// foreign is how far any other letter reaches at most, but for a few ligatures.
const foreign = 1100

// extent returns the width of a line in a font, in points.
func extent(line string, font [95]uint16, size float64) float64 {
	sum := 0
	for _, r := range line {
		if r >= ' ' && int(r-' ') < len(font) {
			sum += int(font[r-' '])
		} else {
			sum += foreign
		}
	}
	return float64(sum) * size / 1000
}

// fontOf returns the measures of the font for a line of text: titles and headings
// are bold.
func fontOf(size float64) [95]uint16 {
	if size >= headingFont {
		return bold
	}
	return regular
}

// widest returns the width of the widest word of a text: no line can be narrower.
func widest(text string, size float64) float64 {
	font := fontOf(size)
	w := 0.0
	for word := range strings.SplitSeq(text, " ") {
		w = max(w, extent(word, font, size))
	}
	return w
}

// wrap breaks a text at spaces into lines no wider than width, as far as its
// words let it.
func wrap(text string, size, width float64) []string {
	font := fontOf(size)
	var lines []string
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch longer := line + " " + word; {
		case i == 0:
			line = word
		case extent(longer, font, size) > width:
			lines = append(lines, line)
			line = word
		default:
			line = longer
		}
	}
	return append(lines, line)
}
