package gap

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
	"github.com/tributary-fabric/tributary/pathsel"
)

var (
	instances = flag.String("stp", "", "folder of .stp files for TestInstances; optima are read from its optima.solu")
	budget    = flag.Int64("budget", pathsel.DefaultConfig().Work, "work units an instance, for TestInstances; the planner's by default")
)

// TestInstances prints the gaps on instances that the caller has, SteinLib's
// for example:
//
//	go test -C bench ./gap -run TestInstances -v -stp DIR
//
// A file optima.solu in DIR may have lines of "=opt= name cost".
func TestInstances(t *testing.T) {
	if *instances == "" {
		t.Skip("no folder of .stp files: -stp DIR")
	}
	cases := load(t, *instances)
	rows, err := Run(cases, steiner.Options{Budget: *budget}, 0, func(r Row) error {
		t.Logf("%-12s nodes %6d edges %6d terminals %5d cost %10v bound %10v floor %10v gap %.2f %% to the bound %.2f %% work %9d %v",
			r.Case, r.Nodes, r.Edges, r.Terminals, r.Cost, r.Bound, r.Floor, 100*r.Gap(), 100*(r.Cost/r.Bound-1), r.Work, r.Elapsed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", Summarize(rows))
	for i, r := range rows {
		if optimum := cases[i].Floor; optimum > 0 && (r.Cost < optimum || r.Bound > optimum) {
			t.Errorf("%s: cost %v and bound %v about the optimum %v", r.Case, r.Cost, r.Bound, optimum)
		}
	}
}

// load reads the instances of a folder, and their optima.
func load(t *testing.T, dir string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.stp"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .stp file in %s (%v)", dir, err)
	}
	optima := loadOptima(t, filepath.Join(dir, "optima.solu"))
	var cases []Case
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := readSTP(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		short := strings.TrimSuffix(filepath.Base(name), ".stp")
		cases = append(cases, Case{Name: short, Problem: in.problem, Floor: optima[strings.ToLower(short)]})
	}
	return cases
}

func loadOptima(t *testing.T, name string) map[string]float64 {
	t.Helper()
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	optima := make(map[string]float64)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kind, name string
		var cost float64
		if n, _ := fmt.Sscan(lines.Text(), &kind, &name, &cost); n == 3 && kind == "=opt=" {
			optima[strings.ToLower(name)] = cost
		}
	}
	return optima
}
