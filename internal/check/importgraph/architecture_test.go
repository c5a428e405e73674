package importgraph

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/floors.svg and the map of packages in docs/architecture.md")

const (
	root    = "../../.."
	page    = root + "/docs/architecture.md"
	picture = root + "/docs/floors.svg"
	begin   = "<!-- packages -->\n"
	end     = "<!-- end of packages -->\n"
)

// A described is what the page may say of a package.
type described struct {
	doc   string
	names map[string]bool // functions, "Type.method" and types
}

// packages returns the module's packages by their paths in it, those that are
// tests alone aside.
func packages(t *testing.T) map[string]*described {
	found := map[string]*described{}
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(fsys, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(entry.Name(), "_") {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := found[path.Dir(name)]
		if p == nil {
			p = &described{names: map[string]bool{}}
			found[path.Dir(name)] = p
		}
		if text := file.Doc.Text(); len(text) > len(p.doc) {
			p.doc = text
		}
		for _, d := range file.Decls {
			p.declare(d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p *described) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		p.names[name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				p.names[s.Name.Name] = true
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	inside = regexp.MustCompile(`^(api|bench|cmd|examples|hostlib|internal|membership|mininet|p4|pathsel|ranktree|reduce|topology)(/[a-z0-9/]+)?$`)
)

// TestArchitectureNamesWhatExists: every row of the page's tables, "what |
// package | functions | what happens", is true of the code.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := packages(t)
	functions := 0
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if inside.MatchString(m[1]) && all[m[1]] == nil {
				t.Errorf("architecture.md:%d: there is no package %s", i+1, m[1])
			}
		}
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || !strings.Contains(cells[2], "`") {
			continue
		}
		name := strings.Trim(cells[2], " `")
		p := all[name]
		if p == nil {
			t.Errorf("architecture.md:%d: there is no package %s", i+1, name)
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			if functions++; !p.names[m[1]] {
				t.Errorf("architecture.md:%d: package %s has no %s", i+1, name, m[1])
			}
		}
	}
	if functions < 150 {
		t.Errorf("the page's tables name %d functions: are they still read?", functions)
	}
}

// TestArchitectureIsComplete: the picture and the map are those of the table of
// floors and of the packages' documentation.
func TestArchitectureIsComplete(t *testing.T) {
	floors := make([][]string, len(floorNames))
	all := packages(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		floor, ok := FloorOf(name)
		if !ok {
			t.Fatalf("package %s stands on no floor", name)
		}
		floors[floor] = append(floors[floor], name)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	whole := slices.Concat(head, []byte(begin+packageMap(t, floors, all)+end), tail)
	compare(t, page, whole)
	compare(t, picture, draw(floors))
}

func compare(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not that of this code (%v): go test ./internal/check/importgraph -update", name, err)
	}
}

var subject = regexp.MustCompile(`^(Package|Command) \S+ `)

// packageMap lists the packages of each floor with the first sentence of their
// documentation.
func packageMap(t *testing.T, floors [][]string, all map[string]*described) string {
	var b strings.Builder
	for floor, names := range slices.Backward(floors) {
		fmt.Fprintf(&b, "\n### %s\n\n| | |\n|---|---|\n", floorNames[floor])
		for _, name := range names {
			sentence := new(doc.Package).Synopsis(all[name].doc)
			sentence = subject.ReplaceAllString(sentence, "")
			if sentence == "" {
				t.Errorf("package %s says nothing of itself", name)
			}
			fmt.Fprintf(&b, "| [`%s`](../%[1]s) | %s |\n", name, strings.ReplaceAll(sentence, "|", `\|`))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// draw draws the floors, the ground at the bottom.
func draw(floors [][]string) []byte {
	const width, left, row, letter, gap = 980, 120, 20, 6.6, 14
	var boxes bytes.Buffer
	y := 16
	for floor, names := range slices.Backward(floors) {
		x, line := float64(left), 0
		var texts bytes.Buffer
		for _, name := range names {
			if w := letter * float64(len(name)); x > left && x+w > width-20 {
				x, line = left, line+1
			}
			fmt.Fprintf(&texts, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", x, y+22+row*line, html.EscapeString(name))
			x += letter*float64(len(name)) + gap
		}
		height := row*(line+1) + 14
		fmt.Fprintf(&boxes, "<rect x=\"8\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" stroke=\"#bdbdbd\"/>\n", y, width-16, height, colours[floor%len(colours)])
		fmt.Fprintf(&boxes, "<text x=\"20\" y=\"%d\" font-weight=\"bold\">%s</text>\n%s", y+22, floorNames[floor], texts.Bytes())
		y += height + 6
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"Menlo, Consolas, monospace\" font-size=\"11\">\n", width, y+10)
	fmt.Fprintf(&b, "<title>The floors of Tributary's code: packages import from their own floor and from lower ones</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n%s</svg>\n", width, y+10, boxes.Bytes())
	return b.Bytes()
}

var colours = [...]string{"#f5f5f5", "#e8f5e9", "#e3f2fd", "#ede7f6", "#fff8e1"}

var link = regexp.MustCompile(`\]\(([^)#:]*[./][^)#:]*)(#[^)]*)?\)`)

// TestLinks: what documents link to is there.
func TestLinks(t *testing.T) {
	links := 0
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			if _, err := fs.Stat(fsys, path.Join(path.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 100 {
		t.Errorf("%d links were found: are they still read?", links)
	}
}
