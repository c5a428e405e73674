package examples

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

const module = "github.com/tributary-fabric/tributary/"

// programs are all folders of this one, and what they print, in any order.
var programs = map[string][]string{
	"allreduce": {
		"h0: sum [3 3] by WAY: the fastest way by the cost model",
		"h1: sum [3 3] by WAY: the fastest way by the cost model",
		"h2: sum [3 3] by WAY: the fastest way by the cost model",
	},
	"broadcast": {"7 succeeded, 1 failed", "server-5: code 28: caches: no space left"},
	"elastic":   {"the losses are the same, bit for bit"},
	"members":   {"watcher joined", "h1 joined", "h2 joined", "h1 left (departed, exit code 7)", "h2 left (failed)"},
	"planner":   {"core-1 (root)", "10 links, depth 3", "without core-1:", "core-0 (root)"},
	"service": {
		"server-0 has the sum 6", "server-1 has the sum 6", "server-2 has the sum 6", "server-3 has the sum 6",
		"4 servers ran the job, 0 failed",
	},
}

func TestPrograms(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for name, want := range programs {
		t.Run(name, func(t *testing.T) {
			if name == "allreduce" {
				check(t, want, run(t, filepath.Join(bin, name), "-members", members(t, 3)))
				return
			}
			if name == "elastic" {
				const seed = 7
				out := run(t, filepath.Join(bin, name), "-seed", fmt.Sprint(seed), "-members", members(t, 4), "-spares", strings.ReplaceAll(members(t, 2), "h", "s"))
				check(t, want, out)
				if n := strings.Count(out, "is killed at step"); n != 2 || strings.Count(out, "joined; ") != n {
					t.Errorf("%d processes were killed:\n%s", n, out)
				}
				return
			}
			check(t, want, run(t, filepath.Join(bin, name)))
		})
	}
	t.Run("allreduce in three processes", func(t *testing.T) {
		list := members(t, 3)
		outputs := make(chan string)
		for i := range 3 {
			go func() {
				outputs <- run(t, filepath.Join(bin, "allreduce"), "-name", fmt.Sprintf("h%d", i), "-members", list)
			}()
		}
		check(t, programs["allreduce"], <-outputs+<-outputs+<-outputs)
	})
}

// members returns a list of hosts at addresses that nothing else has.
func members(t *testing.T, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("h%d=%s", i, loopback.Address(t)))
	}
	return strings.Join(all, ",")
}

func run(t *testing.T, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(name), err, out)
	}
	return string(out)
}

// way is by what an operation ran, which depends on the machine's processors.
var way = regexp.MustCompile(`by (?:hosts: by an algorithm of hosts: [a-z-]+, (.*)|host-tree: (.*); this host has no offload manager)`)

func check(t *testing.T, want []string, output string) {
	t.Helper()
	lines := strings.Split(way.ReplaceAllString(output, "by WAY: $1$2"), "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("no line %q in\n%s", line, output)
		}
	}
}

// TestSources: a program is one short file on the public packages, and says how
// it is run.
func TestSources(t *testing.T) {
	files, err := filepath.Glob("*/*")
	if err != nil || len(files) != len(programs) {
		t.Errorf("files %v, want main.go alone in %d folders (%v)", files, len(programs), err)
	}
	for name := range programs {
		path := filepath.Join(name, "main.go")
		source, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if lines, most := strings.Count(string(source), "\n"), maxLines(name); lines > most {
			t.Errorf("%s has %d lines, want at most %d", path, lines, most)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "\tgo run ./examples/" + name + "\n"; !strings.Contains(file.Doc.Text(), want) {
			t.Errorf("%s does not say %q", path, want)
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			rest, own := strings.CutPrefix(imported, module)
			if own && (slices.Contains(strings.Split(rest, "/"), "internal") || strings.HasPrefix(rest, "api/")) {
				t.Errorf("%s imports %s, which is not public", path, imported)
			} else if first, _, _ := strings.Cut(imported, "/"); !own && strings.Contains(first, ".") && first != "gonum.org" {
				t.Errorf("%s imports %s: examples need nothing else", path, imported)
			}
		}
	}
}

func maxLines(name string) int {
	switch name {
	case "service":
		return 140 // three services, each of which is started by itself
	case "elastic":
		return 260 // a model, its training, and who starts and kills the processes
	}
	return 90
}
