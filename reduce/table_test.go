package reduce

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for e := Int32; e.Valid(); e++ {
		if got, err := ParseType(e.String()); got != e || err != nil {
			t.Errorf("ParseType(%q) = %v, %v", e, got, err)
		}
	}
	for f := Sum; f.Valid(); f++ {
		if got, err := ParseFunction(f.String()); got != f || err != nil {
			t.Errorf("ParseFunction(%q) = %v, %v", f, got, err)
		}
	}
}

func TestParseUnknown(t *testing.T) {
	for _, s := range []string{"", "none", "Sum", "int", "type(10)", " sum"} {
		e, err := ParseType(s)
		if e != NoType || !errors.Is(err, ErrUnknownName) || !strings.Contains(err.Error(), "one of int32, int64, uint32, uint64, float32, float64, float16, bfloat16, block32") {
			t.Errorf("ParseType(%q) = %v, %v", s, e, err)
		}
		f, err := ParseFunction(s)
		if f != NoFunction || !errors.Is(err, ErrUnknownName) || !strings.Contains(err.Error(), "one of sum, product, min, max, band, bor, bxor, land, lor, lxor, minloc, maxloc") {
			t.Errorf("ParseFunction(%q) = %v, %v", s, f, err)
		}
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	if Type(10).String() != "type(10)" || Function(13).String() != "function(13)" {
		t.Errorf("got %v and %v", Type(10), Function(13))
	}
	if Type(10).Size() != 0 || ElementSize(MinLoc, Type(10)) != 0 || ElementSize(MinLoc, NoType) != 0 {
		t.Error("elements of no type have a size")
	}
}

func TestElementSize(t *testing.T) {
	for f := Sum; f.Valid(); f++ {
		for e := Int32; e.Valid(); e++ {
			want := map[Type]int{Int32: 4, Int64: 8, Uint32: 4, Uint64: 8, Float32: 4, Float64: 8, Float16: 2, BFloat16: 2, Block32: 4}[e]
			if f == MinLoc || f == MaxLoc {
				want = 16
			}
			if got := ElementSize(f, e); got != want {
				t.Errorf("ElementSize(%v, %v) = %d, want %d", f, e, got, want)
			}
		}
	}
}

// TestTableInDocument compares the table of defined pairs in docs/functions.md
// with Defined: a row for each function, a column for each type.
func TestTableInDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/functions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Defined pairs\n")
	if !found {
		t.Fatal("no section on defined pairs")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		if line, found := strings.CutPrefix(strings.TrimSpace(line), "|"); found {
			row := strings.Split(strings.TrimSuffix(line, "|"), "|")
			for i := range row {
				row[i] = strings.Trim(row[i], " `")
			}
			rows = append(rows, row)
		}
	}
	if want := int(MaxLoc) + 2; len(rows) != want { // with the head and the rule below it
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i, f := 2, Sum; f.Valid(); i, f = i+1, f+1 {
		if len(rows[i]) != int(Block32)+1 || rows[i][0] != f.String() {
			t.Fatalf("row %d is %q, want that of %v", i, rows[i], f)
		}
		for e := Int32; e.Valid(); e++ {
			if rows[0][e] != e.String() {
				t.Fatalf("column %d is of %q, want %v", e, rows[0][e], e)
			}
			if want := map[bool]string{true: "yes", false: "no"}[Defined(f, e)]; rows[i][e] != want {
				t.Errorf("%v of %v: the document says %q, the code %q", f, e, rows[i][e], want)
			}
		}
	}
}
