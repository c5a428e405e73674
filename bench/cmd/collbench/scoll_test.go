package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

// scollTrees are one of each kind.
const scollTrees = "binomial,3-nomial,2-ary,flat,fabric,offload"

// TestScollEmbedded: three rows a tree, of which only the first has receipts.
func TestScollEmbedded(t *testing.T) {
	out, _, err := commandText(t, "embedded", "--function", scollFunction, "--fabric", "leaf-spine:2,2,1",
		"--trees", scollTrees, "--lasting", "20ms", "--per-second", "50", "--at-once", "1,4")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 1+3*6 {
		t.Fatalf("%d lines, want a header and 18 rows:\n%s", len(lines), out)
	}
	for i, line := range lines[1:] {
		words := strings.Fields(line)
		tree := strings.Split(scollTrees, ",")[i/3]
		if words[0] != tree || words[1] != "4" || (words[7] == "-") != (i%3 > 0) {
			t.Errorf("row %d: %s", i, line)
		}
	}
}

func TestScollFlagsThatAreWrong(t *testing.T) {
	for _, flags := range [][]string{
		{"--trees", "oak"},
		{"--per-second", "0"},
		{"--at-once", "1,0"},
		{"--lasting", "0s"},
		{"--payload", "-1"},
	} {
		args := append([]string{"embedded", "--function", scollFunction, "--fabric", "leaf-spine:2,1,1"}, flags...)
		if _, _, err := commandText(t, args...); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v, want %v", flags, err, errUsage)
		}
	}
}

// TestScollRun: three members, each as a command of its own.
func TestScollRun(t *testing.T) {
	members := make([]hostlib.Member, 3)
	for i := range members {
		members[i] = hostlib.Member{Host: fmt.Sprintf("h%d", i), Addr: loopback.Address(t)}
	}
	list := filepath.Join(t.TempDir(), "members")
	var b bytes.Buffer
	if err := errors.Join(field.WriteMembers(&b, members), os.WriteFile(list, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			out, _, err := commandText(t, "run", "--function", scollFunction, "--host", m.Host, "--listen", m.Addr, "--members", list,
				"--trees", "binomial,flat", "--lasting", "20ms", "--per-second", "50", "--at-once", "1,4")
			if lines := strings.Count(out, "\n"); err != nil || i == 0 && lines != 1+3*2 || i > 0 && lines != 0 {
				t.Errorf("%s: %v\n%s", m.Host, err, out)
			}
		})
	}
	all.Wait()
	_, _, err := commandText(t, "run", "--function", scollFunction, "--host", "h0", "--listen", "127.0.0.1:0", "--members", list)
	if !errors.Is(err, errUsage) {
		t.Errorf("offload without a manager: %v, want %v", err, errUsage)
	}
}
