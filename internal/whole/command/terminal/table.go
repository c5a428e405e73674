package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Table takes lines whose cells are separated by tabs, and writes them as columns.
// Lines without a tab end a table; they are written as they are.
type Table struct {
	out   io.Writer
	gap   int // between columns, at most
	lines bytes.Buffer
}

// NewTable returns a table with so many blanks between columns, or fewer on a
// terminal that has no room for them. Flush writes it.
func NewTable(out io.Writer, gap int) *Table { return &Table{out: out, gap: gap} }

// Is reports whether a file is a terminal.
func Is(file any) bool {
	_, is := size(file)
	return is
}

// Write takes a part of the table.
func (t *Table) Write(p []byte) (int, error) { return t.lines.Write(p) }

// Flush writes what was taken.
func (t *Table) Flush() error {
	columns, on := size(t.out)
	var b strings.Builder
	var rows [][]string
	end := func() {
		write(&b, rows, t.gap, columns)
		rows = nil
	}
	for line := range strings.Lines(t.lines.String()) {
		if line = strings.TrimSuffix(line, "\n"); strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		end()
		b.WriteString(line + "\n")
	}
	end()
	t.lines.Reset()
	coloured := on && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	_, err := io.WriteString(t.out, paint(b.String(), coloured))
	return err
}

// write writes rows, the gap as wide as fits into so many columns; 0: any.
func write(b *strings.Builder, rows [][]string, gap, columns int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for gap > 1 && columns > 0 && sum+gap*(len(widths)-1) > columns {
		gap--
	}
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+gap))
			}
		}
		b.WriteByte('\n')
	}
}

// Width returns how many columns a terminal shows a text in.
func Width(text string) (columns int) {
	for _, r := range text {
		switch {
		case r == alertBegins || r == alertEnds || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			columns += 2
		default:
			columns++
		}
	}
	return columns
}

func wide(r rune) bool {
	k := width.LookupRune(r).Kind()
	return k == width.EastAsianWide || k == width.EastAsianFullwidth
}

// Marks around what is wrong, until a table is written. They are of no script.
const (
	alertBegins = '\uf8f0'
	alertEnds   = '\uf8f1'
)

// Alert marks a text of a Table as reporting that something is wrong.
func Alert(text string) string { return string(alertBegins) + text + string(alertEnds) }

// paint puts colour, or nothing, in place of the marks.
func paint(text string, coloured bool) string {
	begins, ends := "", ""
	if coloured {
		begins, ends = "\x1b[31m", "\x1b[0m"
	}
	return strings.NewReplacer(string(alertBegins), begins, string(alertEnds), ends).Replace(text)
}
