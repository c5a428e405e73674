package importgraph

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A Violation is one rule that one line breaks.
type Violation struct {
	Position token.Position // of the offending line; the file is relative to the module
	Package  string         // relative to the module
	Rule     string         // what is wrong and why
}

// String returns the violation as file:line: rule.
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s", v.Position.Filename, v.Position.Line, v.Rule)
}

// Check reads every Go file of the module whose root is fsys and returns all
// violations, in order of files. Directories named testdata and those whose
// name begins with a dot or an underscore are not part of the module, nor are
// directories with a go.mod of their own, except bench. The error is of reading or parsing.
func Check(fsys fs.FS) ([]Violation, error) {
	var found []Violation
	homeless := map[string]bool{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(fsys, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		violations, err := checkFile(fsys, name, homeless)
		found = append(found, violations...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	return found, nil
}

// enter returns fs.SkipDir for directories that are not part of the module.
func enter(fsys fs.FS, name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); !errors.Is(err, fs.ErrNotExist) && !ownModules[name] {
		return fs.SkipDir
	}
	return nil
}

func checkFile(fsys fs.FS, name string, homeless map[string]bool) ([]Violation, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	c := checker{files: files, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go")}
	if _, ok := FloorOf(c.pkg); !ok && !homeless[c.pkg] {
		homeless[c.pkg] = true
		c.report(file.Package, "package %s is in no folder of internal/check/importgraph/floors.go", c.pkg)
	}
	for _, spec := range file.Imports {
		if err := c.imported(spec); err != nil {
			return nil, err
		}
	}
	c.body(file)
	return c.found, nil
}

// A checker collects the violations of one file.
type checker struct {
	files *token.FileSet
	pkg   string
	test  bool
	found []Violation
}

func (c *checker) report(at token.Pos, format string, args ...any) {
	c.found = append(c.found, Violation{c.files.Position(at), c.pkg, fmt.Sprintf(format, args...)})
}

func (c *checker) imported(spec *ast.ImportSpec) error {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return err
	}
	inside := false
	if rest, ok := strings.CutPrefix(target, Module+"/"); ok {
		target, inside = rest, true
	}
	for i := range bans {
		if bans[i].forbids(c.pkg, target, c.test) {
			c.report(spec.Pos(), "%s must not import %s: %s", c.pkg, target, bans[i].reason)
		}
	}
	if !inside || c.test {
		return nil
	}
	from, to := folderOf(c.pkg), folderOf(target)
	if to >= 0 && to < from {
		c.report(spec.Pos(), "%s (%s) imports %s (%s): imports go downward only, by the list of folders", c.pkg, folders[from].floor, target, folders[to].floor)
	}
	return nil
}

// body checks what imports cannot report: clocks and goroutines in pure
// packages, and sleeping anywhere.
func (c *checker) body(file *ast.File) {
	clock := clockName(file)
	isPure := anyHolds(pure, c.pkg) && !c.test
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if isPure {
				c.report(n.Pos(), "%s starts a goroutine: %s", c.pkg, purity)
			}
		case *ast.SelectorExpr:
			name, ok := n.X.(*ast.Ident)
			if !ok || clock == "" || name.Name != clock {
				break
			}
			if isPure && clocks[n.Sel.Name] {
				c.report(n.Pos(), "%s uses time.%s: %s", c.pkg, n.Sel.Name, purity)
			} else if n.Sel.Name == "Sleep" {
				c.report(n.Pos(), "%s uses time.Sleep: wait for a condition, or use virtual time", c.pkg)
			}
		}
		return true
	})
}

// clockName returns the name by which file knows package time; "" if it does
// not import it.
func clockName(file *ast.File) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "time"
	}
	return ""
}
