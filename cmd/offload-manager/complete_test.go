package main

import (
	"strings"
	"testing"
)

// Shells complete the values of flags, and the names that the manager knows.
func TestCompletion(t *testing.T) {
	d := deploy(t)
	for _, name := range []string{"job-17/abc", "job-18/def", "other"} {
		d.ask("group", "create", name, "h0", "h1")
	}
	for _, c := range []struct {
		line string // the last word is completed
		want string
	}{
		{"demo --format=", "text json svg"},
		{"group list --format=", "text json"},
		{"group explain job-", "job-17/abc job-18/def"},
		{"group delete ", "job-17/abc job-18/def other"},
		{"group show other ", ""},
		{"switch drain leaf-", "leaf-0 leaf-1"},
		{"plan --criterion=", "auto hops latency bandwidth load capability"},
		{"plan --topology=fat", "fat-tree: leaf-spine: clos: rail: dragonfly: torus: hyperx: four-switches:"},
		{"serve --log-level=", "debug info warn error"},
	} {
		words := strings.Split(c.line, " ")
		out := d.ask(append([]string{"__complete"}, words...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := strings.Join(lines[:len(lines)-1], " "); got != c.want {
			t.Errorf("%q is completed by %q, want %q", c.line, got, c.want)
		}
	}
	d.address = "127.0.0.1:1" // nobody listens
	if out := d.ask("__complete", "group", "explain", ""); strings.TrimSpace(out) != ":4" {
		t.Errorf("without a manager it says %q", out)
	}
}
