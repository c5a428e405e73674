package importgraph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Who uses a public package can read the documentation of all that it exports: no
// exported name is another name for a type of an internal package.
func TestPublicPackagesHaveTypesOfTheirOwn(t *testing.T) {
	seen := 0
	for _, root := range []string{"../../../hostlib", "../../../membership", "../../../ranktree", "../../../topology", "../../../pathsel", "../../../reduce"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "internal":
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			seen++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, name := range internalAliases(file) {
				t.Errorf("%s: %s is an alias of a type of an internal package", path, name)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if seen < 50 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// internalAliases returns the exported names of a file that stand for a type of an
// internal package.
func internalAliases(file *ast.File) (names []string) {
	internal := map[string]bool{}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || !strings.Contains(path, "/internal/") {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		internal[name] = true
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
				continue
			}
			ast.Inspect(spec.Type, func(n ast.Node) bool {
				if x, ok := n.(*ast.SelectorExpr); ok {
					if of, ok := x.X.(*ast.Ident); ok && internal[of.Name] {
						names = append(names, spec.Name.Name)
					}
				}
				return true
			})
		}
	}
	return names
}
