package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/members"
)

// membership runs collbench membership.
func membership(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"membership"}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestMembership(t *testing.T) {
	out, progress, err := membership(t, "--rows", "boot,idle", "--nodes", "64", "--seed", "3")
	if err != nil || !strings.HasPrefix(out, "ROW ") || strings.Count(out, " reached") != 2 || !strings.Contains(progress, "idle begins") {
		t.Errorf("%v\n%s\n%s", err, out, progress)
	}
	out, _, err = membership(t, "--rows", "boot", "--nodes", "64", "--format", "json")
	var r members.Row
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	if err != nil || r.Key != "boot" || !r.Reached || r.Figures["stable_ms"] <= 0 {
		t.Errorf("%v: %+v\n%s", err, r, out)
	}
}

func TestMembershipFlags(t *testing.T) {
	for _, test := range []struct{ flag, value string }{
		{"--rows", "speed"}, {"--format", "xml"}, {"--nodes", "4"}, {"--real", "1"}, {"--rounds", "0"}, {"--window", "0s"},
	} {
		if _, _, err := membership(t, test.flag, test.value); !errors.Is(err, errUsage) {
			t.Errorf("%s %s: %v", test.flag, test.value, err)
		}
	}
}
