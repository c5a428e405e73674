package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
	"github.com/tributary-fabric/tributary/topology/importer"
)

// slurmFile writes a small topology.conf with something to skip.
func slurmFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "topology.conf")
	const text = "SwitchName=l0 Nodes=n[0-3] LinkSpeed=1\nSwitchName=l1 Nodes=n[4-7]\nSwitchName=root Switches=l[0-1]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTopologyImport(t *testing.T) {
	path := slurmFile(t)
	for _, args := range [][]string{{}, {"--format", "slurm"}, {"--as", "json"}, {"--name", "of the lab"}} {
		out, notes, err := execute(t, append([]string{"topology", "import", path}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		g, err := topology.Read(strings.NewReader(out), "out")
		if err != nil || g.Hosts() != 8 || g.Switches() != 3 || g.Links() != 10 {
			t.Errorf("%v: %v", args, err)
		}
		if !strings.HasPrefix(notes, path+": slurm: 8 hosts, 3 switches, 10 links\n"+path+":1: skipped LinkSpeed: ") {
			t.Errorf("%v: the report is %q", args, notes)
		}
	}
	output := filepath.Join(t.TempDir(), "fabric.yaml")
	_, notes, err := execute(t, "topology", "import", "--report", "json", "--output", output, "--switches", "^n0$", path)
	if err != nil {
		t.Fatal(err)
	}
	var report importer.Report
	if err := json.Unmarshal([]byte(notes), &report); err != nil || report.Hosts != 7 || report.Count(importer.Changed, importer.Pattern) != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	if g, err := topology.ReadFile(output); err != nil || g.Switches() != 4 {
		t.Errorf("%v", err)
	}
}

func TestTopologyImportFromStandardInput(t *testing.T) {
	var out, notes bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"topology", "import", "-"})
	root.SetIn(strings.NewReader("SwitchName=s Nodes=n[0-1]\n"))
	root.SetOut(&out)
	root.SetErr(&notes)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := topology.Read(&out, "out"); err != nil || g.Hosts() != 2 || !strings.HasPrefix(notes.String(), "standard input: slurm: ") {
		t.Errorf("%v, %q", err, notes.String())
	}
}

func TestTopologyImportErrors(t *testing.T) {
	path := slurmFile(t)
	broken := filepath.Join(t.TempDir(), "broken.conf")
	if err := os.WriteFile(broken, []byte("SwitchName=a Switches=b\nSwitchName=c Switches=d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  []string
		want  error // nil: any
		says  string
		notes string
	}{
		{[]string{path + ".absent"}, fs.ErrNotExist, path + ".absent", ""},
		{[]string{"--format", "csv", path}, errUsage, "none of ibnetdiscover", ""},
		{[]string{"--format", "gml", path}, importer.ErrFormat, "it looks like slurm and not like gml", ""},
		{[]string{"--as", "xml", path}, errUsage, "possible are yaml, json", ""},
		{[]string{"--report", "xml", path}, errUsage, "possible are text, json", ""},
		{[]string{"--hosts", "(", path}, errUsage, "--hosts", ""},
		{[]string{"--hosts-per-switch", "-1", path}, importer.ErrConfig, "-1 hosts", ""},
		{[]string{broken}, nil, "2 errors", broken + `:2: c stands above "d"`},
		{[]string{"--output", filepath.Join(path, "x"), path}, nil, "not a directory", ""},
	} {
		out, notes, err := execute(t, append([]string{"topology", "import"}, test.args...)...)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || out != "" {
			t.Errorf("%v: %v", test.args, err)
		}
		if !strings.Contains(notes, test.notes) {
			t.Errorf("%v: it says %q", test.args, notes)
		}
	}
}

func TestTopologyCheckImports(t *testing.T) {
	path := slurmFile(t)
	out, notes, err := execute(t, "topology", "check", "slurm:"+path)
	if err != nil || !strings.Contains(out, "8 hosts, 3 switches of which 3 can reduce, 10 links: valid") || !strings.Contains(notes, "skipped LinkSpeed") {
		t.Errorf("%q, %q, %v", out, notes, err)
	}
	for _, spec := range []string{"clos:2,2,2,2,2", "rail:4,2,2,2", "dragonfly:1,2,1,3", "torus:1,3,3", "hyperx:1,3,3"} {
		if out, notes, err := execute(t, "topology", "check", spec); err != nil || !strings.Contains(out, "fabric "+spec) || notes != "" {
			t.Errorf("%s: %q, %v", spec, out, err)
		}
	}
}
