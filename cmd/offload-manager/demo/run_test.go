package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// limit ends a test that would hang.
const limit = 60 * time.Second

func run(t *testing.T, c Config) *Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func small() Config {
	c := DefaultConfig()
	c.Bytes = 64 << 10
	return c
}

func TestSurvivesTheRootsDeath(t *testing.T) {
	for name, c := range map[string]Config{
		"too short to be watched": small(),
		"watched":                 {Fabric: "leaf-spine:2,2,2", Function: reduce.Sum, Type: reduce.Float64, Bytes: 2 << 20, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			c.Progress = func(line string) { lines = append(lines, line) }
			r := run(t, c)
			if len(r.Operations) != 3 {
				t.Fatalf("%d operations, want 3", len(r.Operations))
			}
			first, second, third := r.Operations[0], r.Operations[1], r.Operations[2]
			if first.Transport != "offload" || third.Transport != "host-tree" {
				t.Errorf("the ways are %s, %s, %s; want offload first, host-tree last", first.Transport, second.Transport, third.Transport)
			}
			// A tree whose window grows is the same one in a later epoch.
			if last := first.Epochs[len(first.Epochs)-1]; len(second.Epochs) < 2 || second.Epochs[0] < last || second.Epochs[0]%2 != 0 {
				t.Errorf("epochs %v and then %v: the second operation did not outlive the first's tree", first.Epochs, second.Epochs)
			}
			if len(r.trees) != 2 || r.trees[0].tree.Root() == r.trees[1].tree.Root() {
				t.Errorf("%d trees, want two with different roots", len(r.trees))
			}
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "killing root switch") }) {
				t.Errorf("nobody was killed:\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

func TestEveryKindOfElement(t *testing.T) {
	for _, c := range []Config{
		{Function: reduce.MaxLoc, Type: reduce.Float32},
		{Function: reduce.Product, Type: reduce.BFloat16},
		{Function: reduce.LXor, Type: reduce.Uint64},
	} {
		c.Fabric, c.Bytes = "leaf-spine:2,2,2", 16<<10
		if r := run(t, c); r.Operations[0].Transport != "offload" {
			t.Errorf("%s of %s ran by %s", c.Function, c.Type, r.Operations[0].Transport)
		}
	}
}

// writeFile writes a file for a test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const incapable = `version: 1
name: two hosts on a switch that cannot reduce
hosts: [left, right]
switches:
  - {name: middle, functions: none, types: none, slots: 0, children: 0}
links:
  - between: [left, middle]
  - between: [right, middle]
`

func TestFabricThatCannotReduce(t *testing.T) {
	c := small()
	c.Fabric = writeFile(t, "fabric.yaml", incapable)
	r := run(t, c)
	if len(r.Operations) != 2 {
		t.Fatalf("%d operations, want 2: there is no root to kill", len(r.Operations))
	}
	for i, o := range r.Operations {
		if o.Transport != "host-tree" || o.Reason == "" {
			t.Errorf("operation %d ran by %s because %q, want host-tree and a reason", i+1, o.Transport, o.Reason)
		}
	}
	var svg bytes.Buffer
	if err := r.SVG(&svg); err != nil || !bytes.Contains(svg.Bytes(), []byte("middle")) {
		t.Errorf("the picture: %v, %d bytes", err, svg.Len())
	}
}

func TestReportAsJSON(t *testing.T) {
	r := run(t, small())
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Fabric     string `json:"fabric"`
		Hosts      int    `json:"hosts"`
		Switches   int    `json:"switches"`
		Operations []struct {
			Function  string   `json:"function"`
			Bytes     int      `json:"bytes"`
			Transport string   `json:"transport"`
			Reason    string   `json:"reason"`
			Correct   bool     `json:"correct"`
			Seconds   float64  `json:"seconds"`
			Ratio     float64  `json:"host_link_ratio"`
			Epochs    []uint32 `json:"epochs"`
		} `json:"operations"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("more than one object")
	}
	if got.Fabric != "fat-tree:4" || got.Hosts != 16 || got.Switches != 20 || len(got.Operations) != len(r.Operations) {
		t.Errorf("got %+v", got)
	}
	for i, o := range got.Operations {
		if o.Function != "sum" || o.Bytes != 64<<10 || !o.Correct || o.Seconds <= 0 || o.Ratio <= 0 || o.Reason == "" || len(o.Epochs) == 0 {
			t.Errorf("operation %d: %+v", i+1, o)
		}
	}
}

func TestReportAsText(t *testing.T) {
	r := run(t, small())
	r.Operations[2].Correct, r.Operations[2].wrong = false, errors.New("bit 7 is tired")
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fat-tree:4: 16 hosts, 20 switches, 48 links", "(root)", "h15 (rank 15)", "Collection tree of epoch 2",
		"1   allreduce ", "2   allreduce, root", "3   allreduce over hosts alone", "offload", "correct", "WRONG: bit 7 is tired",
		"1 ran that way because: ", "SPEEDUP OVER HOST TREE", "of the vector",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("nothing says %q in:\n%s", want, b.String())
		}
	}
	if err := r.Err(); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "operation 3: bit 7 is tired") {
		t.Errorf("the report's error is %v", err)
	}
}

func TestWhatCannotBeDemonstrated(t *testing.T) {
	lone := writeFile(t, "lone.yaml", "version: 1\nhosts: [h]\nswitches:\n  - name: s\nlinks:\n  - between: [h, s]\n")
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"undefined pair":       {func(c *Config) { c.Function = reduce.BAnd }, "band is not defined on float32, but on int32, int64, uint32, uint64"},
		"block floating point": {func(c *Config) { c.Type = reduce.Block32 }, "block32 is a form of float32"},
		"half an element":      {func(c *Config) { c.Bytes = 6 }, "6 bytes are not a multiple of the 4 of an element (sum of float32); 8 would be"},
		"no element":           {func(c *Config) { c.Bytes = 0 }, "takes a multiple of 4, from 4 on"},
		"fewer than none":      {func(c *Config) { c.Bytes = -4 }, "vectors of -4 bytes"},
		"unknown fabric":       {func(c *Config) { c.Fabric = "thin-tree:4" }, `"thin-tree:4" is neither a file nor one of fat-tree:K, leaf-spine:`},
		"impossible fabric":    {func(c *Config) { c.Fabric = "fat-tree:3" }, "fat-tree:3"},
		"fabric of one host":   {func(c *Config) { c.Fabric = lone }, "has 1 hosts, and it takes 2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small()
			c.change(&cfg)
			cfg.Progress = func(line string) { t.Errorf("it began: %s", line) }
			if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v that says %q", err, ErrConfig, c.says)
			}
		})
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := small()
	c.Progress = func(line string) {
		if strings.HasPrefix(line, "killing") {
			cancel()
		}
	}
	if r, err := Run(ctx, c); !errors.Is(err, context.Canceled) || !reflect.DeepEqual(r, (*Report)(nil)) {
		t.Errorf("%v, %v; want no report and %v", r, err, context.Canceled)
	}
}
