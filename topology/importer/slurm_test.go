package importer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// TestSlurm has keys of either case, a line that goes on, a host at two leaves,
// and leaves below two roots.
func TestSlurm(t *testing.T) {
	importCase{
		text: `
# A comment
SwitchName=leaf0 Nodes=n[00-01],login LinkSpeed=900
switchname=leaf1 NODES="n[02]x,n2y" # another
SwitchName=leaf2 \
   Nodes=n00,n00,n[00-00] Other=3
SwitchName=root[1] Switches=leaf[0-2]
SwitchName=root2 Switches=leaf[0-1],leaf1
BlockName=b1 Nodes=n[00-03]
`,
		fabric: `
switch leaf0
switch leaf1
switch leaf2
switch root-1
switch root2
host n00
host n01
host login
host n02x
host n2y
n00:1--leaf0:1 100 Gbit/s 500ns
n01:1--leaf0:2 100 Gbit/s 500ns
login:1--leaf0:3 100 Gbit/s 500ns
n02x:1--leaf1:1 100 Gbit/s 500ns
n2y:1--leaf1:2 100 Gbit/s 500ns
n00:2--leaf2:1 100 Gbit/s 500ns
leaf0:4--root-1:1 100 Gbit/s 500ns
leaf1:3--root-1:2 100 Gbit/s 500ns
leaf2:2--root-1:3 100 Gbit/s 500ns
leaf0:5--root2:1 100 Gbit/s 500ns
leaf1:4--root2:2 100 Gbit/s 500ns
`,
		report: `
f:3: skipped LinkSpeed: nothing in a fabric depends on it
f:5: skipped "n00": it is there already (2 times)
f:5: skipped key "other": not known in this format
f:8: skipped "leaf1": it is there already
f:9: skipped line of "blockname": not known in this format
f: assumed one link between a switch and each of what is below it for cables: the file gives the hierarchy, not the cables
f: assumed 100 Gbit/s for links: the file gives no bandwidth
f: assumed 500ns for links: the file gives no latency
f:7: changed name "root[1]" to root-1: the name has other signs than letters, digits and . _ - /
`,
	}.run(t, Slurm)
}

func TestSlurmErrors(t *testing.T) {
	for _, test := range []errorCase{
		{"dangling", "SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n", ErrReference, `f:2: b stands above "c", which no line describes: add a line SwitchName=c, or`},
		{"a cycle", "SwitchName=a Switches=b Nodes=n1\nSwitchName=b Switches=c\nSwitchName=c Switches=a\nSwitchName=d Switches=a\n", ErrCycle, `f:1: a stands above "b" and, by other lines, below it`},
		{"itself", "SwitchName=a Switches=a\n", ErrCycle, `f:1: a stands above "a"`},
		{"duplicate", "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=a Nodes=n3\n", ErrDuplicate, `f:3: "a" is there already, on line 1: rename or remove`},
		{"a host and a switch", "SwitchName=a Nodes=b\nSwitchName=b Nodes=c\n", ErrDuplicate, `f:1: "b" is a host here and a switch on line 2`},
		{"no value", "SwitchName=a Nodes\n", ErrSyntax, `f:1: "Nodes" is not written Key=Value`},
		{"a key twice", "SwitchName=a Nodes=b nodes=c\n", ErrDuplicate, `f:1: nodes is there twice`},
		{"an open bracket", "SwitchName=a Nodes=b[0-3\n", ErrSyntax, `f:1: "b[0-3" leaves a bracket open`},
		{"a closed bracket", "SwitchName=a Nodes=b0-3]\n", ErrSyntax, `f:1: "b0-3]" closes a bracket that is not open`},
		{"a backward range", "\nSwitchName=a Nodes=b[3-0]\n", ErrValue, `f:2: "b[3-0]": the range 3-0 begins above its end`},
		{"no range", "SwitchName=a Nodes=b[x]\n", ErrSyntax, `f:1: "b[x]": "x" is not a range`},
		{"a bomb", "SwitchName=a Nodes=b[0-999999999]\n", ErrTooLarge, `f:1: "b[0-999999999]": the range`},
		{"a bomb of brackets", "SwitchName=a Nodes=b" + strings.Repeat("[0-99]", 10) + "\n", ErrTooLarge, `f:1: "b[0-99]`},
		{"more ports than a switch has", "\nSwitchName=a Nodes=b[0-65535]\n", topology.ErrNoPort, "f:2: a: a node has no port left"},
		{"nothing linked", "SwitchName=a\nSwitchName=b\n", ErrEmpty, "f: none of its "},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, Slurm) })
	}
}

func TestHostlist(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"a", []string{"a"}},
		{"a,b", []string{"a", "b"}},
		{"n[8-11]", []string{"n8", "n9", "n10", "n11"}},
		{"n[08-11,3]", []string{"n08", "n09", "n10", "n11", "n3"}},
		{"r[0-1]n[0-1]s,x", []string{"r0n0s", "r0n1s", "r1n0s", "r1n1s", "x"}},
	} {
		if got, err := hostlist(test.text); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("hostlist(%q) = %q, %v", test.text, got, err)
		}
	}
	for _, text := range []string{"", "a,", "a[]", "a[1-]", "a[1,]", "a[[1]]", "]", "a[-1]"} {
		if got, err := hostlist(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("hostlist(%q) = %q, %v", text, got, err)
		}
	}
}
