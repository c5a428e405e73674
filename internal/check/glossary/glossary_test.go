package glossary

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scanned are the endings of the files that are checked.
var scanned = []string{".go", ".md", ".py", ".p4", ".proto"}

func projectRules(t *testing.T) []Rule {
	f, err := os.Open("../../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rules, err := Rules(f)
	if err != nil {
		t.Fatalf("docs/glossary.md: %v", err)
	}
	if len(rules) < 20 {
		t.Fatalf("docs/glossary.md has %d words that must not be used, want more: are its tables read?", len(rules))
	}
	return rules
}

// except returns the exception that holds for a file, "" if there is none.
func except(file string) string {
	for e := range exceptions {
		if e == file || strings.HasSuffix(e, "/") && strings.HasPrefix(file, e) {
			return e
		}
	}
	return ""
}

// TestRepository: no file has a word that the glossary forbids, but for the
// exceptions; those that are not needed any more are logged.
func TestRepository(t *testing.T) {
	rules := projectRules(t)
	root := filepath.Join("..", "..", "..")
	used := map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // a file of another program that runs
			}
			return err
		}
		base := path.Base(file)
		if entry.IsDir() {
			if file != "." && (base[0] == '.' || base == "testdata" || base == "shared") {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(scanned, path.Ext(file)) || strings.HasSuffix(file, ".pb.go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		found := Check(file, text, rules)
		if e := except(file); e != "" {
			used[e] = used[e] || len(found) > 0
			return nil
		}
		for _, f := range found {
			t.Error(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for e, reason := range exceptions {
		if !used[e] {
			t.Logf("exception %q (%s) is not needed any more: remove it", e, reason)
		}
	}
}

func TestCheck(t *testing.T) {
	rules, err := Rules(strings.NewReader("| Term | Who | Definition | Not |\n|---|---|---|---|\n" +
		"| empty poll | DPDK | a poll that finds nothing | `in vain`, `vain-look` |\n" +
		"| report | | | `told` |\n" +
		"| floor | | | `house` in a/b, c |\n" +
		"| view | SWIM | who is there | |\n"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		file, text string
		want       string
	}{
		{"x.go", "a value\n", ""},
		{"x.go", "one\n// it is told\n", `x.go:2: "told": say report`},
		{"x.go", "wasTold()", `x.go:1: "told": say report`},
		{"x.go", "TOLDError", `x.go:1: "told": say report`},
		{"x.go", "was_told", `x.go:1: "told": say report`},
		{"x.go", "untold toldest", ""},
		{"x.go", "polls in\n\t// vain\n", `x.go:1: "in vain": say empty poll`},
		{"x.go", "pollInVain", `x.go:1: "in vain": say empty poll`},
		{"x.go", "in, vain", ""},
		{"x.go", "a vain look, vain-look", `x.go:1: "vain look": say empty poll`},
		{"told.go", "", `told.go:0: "told": say report`},
		{"a/b/x.md", "the house", `a/b/x.md:1: "house": say floor`},
		{"a/x.md", "the house", ""},
		{"c", "the house", `c:1: "house": say floor`},
	}
	for _, test := range tests {
		var got string
		if found := Check(test.file, []byte(test.text), rules); len(found) > 0 {
			got = found[0].String()
		}
		if got != test.want {
			t.Errorf("%s %q: found %q, want %q", test.file, test.text, got, test.want)
		}
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, row := range []string{"| a | b | c | told |", "| a | b |", "| a | b | c | `told` `tell` |"} {
		if _, err := Rules(strings.NewReader(row + "\n")); err == nil {
			t.Errorf("%s is taken", row)
		}
	}
}
