package scaling

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables and plots of docs/scaling.md anew, all sizes of them")

const (
	document = "../../docs/scaling.md"
	plots    = "../../docs/scaling"
	startsAt = "<!-- collbench scaling: begin of generated tables -->\n"
	endsAt   = "<!-- collbench scaling: end of generated tables -->"
)

// The tables of docs/scaling.md are those of the simulation. Vectors of 16 MiB take long: their rows are
// compared with -update alone, which writes them.
func TestDocument(t *testing.T) {
	c := DefaultConfig()
	long := func(bytes int) bool { return bytes > 1<<20 }
	if !*update {
		c.Bytes = slices.DeleteFunc(c.Bytes, long)
		c.Table = slices.DeleteFunc(c.Table, func(row Timed) bool { return long(row.Bytes) })
	}
	r, err := Make(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, isBegun := strings.Cut(string(text), startsAt)
	tables, after, isEnded := strings.Cut(rest, endsAt)
	if !isBegun || !isEnded {
		t.Fatal("docs/scaling.md has no place for generated tables")
	}
	if *update {
		text := before + startsAt + "\n" + string(r.Markdown()) + endsAt + after
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.Plot(plots); err != nil {
			t.Fatal(err)
		}
		return
	}
	there := strings.Split(tables, "\n")
	for _, line := range bytes.Split(r.Markdown(), []byte("\n")) {
		if !slices.Contains(there, string(line)) {
			t.Errorf("docs/scaling.md lacks %q: if that is meant, go test ./scaling -run Document -update", line)
		}
	}
}

// The table that the model is to reproduce is that of docs/benchmarks.md.
func TestNamespaceTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range NamespaceTable() {
		name := strings.Replace(sized(row.Bytes), " B", " bytes", 1) + ", " + rated(row.Rate)
		at := slices.IndexFunc(strings.Split(string(text), "\n"), func(line string) bool {
			cells := strings.Split(line, " | ")
			return len(cells) == 8 && cells[0] == "| "+name && cells[3] == timed(row.Median)
		})
		if at < 0 {
			t.Errorf("docs/benchmarks.md has no row %q with %s: if it was measured anew, NamespaceTable changes with it", name, timed(row.Median))
		}
	}
	if got := fmt.Sprint(timed(712e6), timed(1.5e6), timed(999), sized(12)); got != "712 ms1.5 ms0.999 us12 B" {
		t.Error(got)
	}
}
