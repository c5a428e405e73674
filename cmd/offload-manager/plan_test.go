package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/whatif"
	"github.com/tributary-fabric/tributary/topology"
)

func TestPlanOffline(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(groups, []byte("groups:\n  - {name: job-1, hosts: [h0, h15]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"plan", "--topology", "fat-tree:4", "--hosts", "h0,h5,h9,h13", "--bytes", "4MiB", "--groups", groups, "--down", "core-0", "--down", "core-1"}
	out, _, err := execute(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Beside group job-1", "by load (default), since nothing else was asked for", "as 4194304 bytes", "h5 (rank 1)", "lost by"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _, err = execute(t, append(args, "--format", "json")...)
	var report whatif.Report
	if jsonErr := json.Unmarshal([]byte(out), &report); err != nil || jsonErr != nil || len(report.Tree.Leaves) != 4 || report.Tree.Figures.Hops != 12 {
		t.Errorf("%v, %v: %+v", err, jsonErr, report.Tree)
	}
	out, _, err = execute(t, append(args, "--format", "svg")...)
	if err != nil || !strings.HasPrefix(strings.TrimSpace(out), "<?xml") {
		t.Errorf("%v: %.80s", err, out)
	}
}

func TestPlanRefusesBadQuestions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte("rows: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		is   error
		says string
	}{
		{[]string{"--hosts", "h0"}, errUsage, "--topology"},
		{[]string{"--topology", "leaf-spine:1,2,1", "--format", "png"}, errUsage, "png"},
		{[]string{"--topology", "leaf-spine:1,2,1", "--stripes", "-1"}, errUsage, "--stripes"},
		{[]string{"--topology", "leaf-spine:1,2,1", "--hosts", "h7"}, whatif.ErrConfig, `"h7"`},
		{[]string{"--topology", "leaf-spine:1,2,1", "--down", "h0--h1"}, whatif.ErrConfig, "h0--h1"},
		{[]string{"--topology", "leaf-spine:1,2,1", "--chunk", "16384"}, errNoPlan, "chunk"},
		{[]string{"--topology", "leaf-spine:1,2,1", "--groups", "nowhere.yaml"}, os.ErrNotExist, "nowhere.yaml"},
		{[]string{"--topology", "leaf-spine:0,0,0"}, topology.ErrShape, "leaf-spine"},
		{[]string{"--measured", file}, nil, "0 rows"},
	} {
		_, _, err := execute(t, append([]string{"plan"}, test.args...)...)
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}

func TestModelIsFittedAndUsed(t *testing.T) {
	dir := t.TempDir()
	rows, model := filepath.Join(dir, "rows.yaml"), filepath.Join(dir, "model.yaml")
	const measured = "rows:\n" +
		"  - {transport: switches, members: 8, depth: 2, children: 4, bytes: 1000, took: 60us}\n" +
		"  - {transport: switches, members: 8, depth: 2, children: 4, bytes: 10000000, took: 1200ms}\n" +
		"  - {transport: hosts, members: 8, depth: 2, bytes: 10000000, took: 30ms}\n"
	if err := os.WriteFile(rows, []byte(measured), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := execute(t, "plan", "--measured", rows)
	if err != nil || !strings.Contains(out, "# fitted to 3 rows") {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(model, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err = execute(t, "plan", "--topology", "leaf-spine:4,2,1", "--bytes", "8MiB", "--model", model, "--or-hosts")
	if err != nil || !strings.Contains(out, "hosts are faster") {
		t.Errorf("%v\n%s", err, out)
	}
}
