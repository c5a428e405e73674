package importgraph

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// public are the folders whose packages programs of others import.
var public = []string{"hostlib", "membership", "pathsel", "ranktree", "reduce", "topology"}

const listing = "testdata/public.txt"

// TestPublicAPI: what public packages export changes together with the listing,
// so that a change of it is seen, and noted in CHANGELOG.md.
func TestPublicAPI(t *testing.T) {
	var lines []string
	for name := range packages(t) {
		if first, _, _ := strings.Cut(name, "/"); slices.Contains(public, first) && !strings.Contains(name+"/", "/internal/") {
			lines = append(lines, exported(t, name)...)
		}
	}
	slices.Sort(lines)
	text := []byte(strings.Join(lines, "\n") + "\n")
	if *update {
		if err := os.WriteFile(listing, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(listing)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(text, want) {
		return
	}
	before := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	for _, line := range before {
		if !slices.Contains(lines, line) {
			t.Errorf("gone:  %s", line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(before, line) {
			t.Errorf("new:   %s", line)
		}
	}
	t.Errorf("what public packages export has changed: if that is meant, go test ./internal/check/importgraph -update, and note it in CHANGELOG.md")
}

// exported lists the exported declarations of a package, a line each.
func exported(t *testing.T, name string) (lines []string) {
	dir := filepath.Join(root, name)
	context := build.Default // one system's, wherever the test runs
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if ok, err := context.MatchFile(dir, f.Name()); err != nil || !ok || strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			for _, line := range declared(d) {
				lines = append(lines, name+": "+line)
			}
		}
	}
	return lines
}

func declared(d ast.Decl) (lines []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
			return nil
		}
		return []string{source(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Tok, n.Name, source(s.Type))))
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					lines = append(lines, typed(s)...)
				}
			}
		}
	}
	return lines
}

// typed lists a type and, of a struct or an interface, what is exported of it.
func typed(s *ast.TypeSpec) []string {
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		head += "[" + strings.TrimSuffix(strings.TrimPrefix(source(&ast.FuncType{Params: s.TypeParams}), "func("), ")") + "]"
	}
	if s.Assign.IsValid() {
		head += " ="
	}
	var kind string
	var fields *ast.FieldList
	switch of := s.Type.(type) {
	case *ast.StructType:
		kind, fields = "struct", of.Fields
	case *ast.InterfaceType:
		kind, fields = "interface", of.Methods
	default:
		return []string{head + " " + source(s.Type)}
	}
	lines := []string{head + " " + kind}
	for _, f := range fields.List {
		if len(f.Names) == 0 { // embedded, or a set of types
			lines = append(lines, head+" "+kind+": "+source(f.Type))
		}
		for _, n := range f.Names {
			if n.IsExported() {
				lines = append(lines, head+" "+kind+": "+n.Name+" "+source(f.Type))
			}
		}
	}
	return lines
}

// source prints a piece of syntax in one line; "" for none.
func source(n any) string {
	if e, ok := n.(ast.Expr); ok && e == nil || n == nil {
		return ""
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
