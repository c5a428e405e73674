package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

func TestFind(t *testing.T) {
	groups := []manager.Summary{{Group: 1, Name: "job-17/abc"}, {Group: 2, Name: "job-17/def"}, {Group: 3, Name: "job-170/x"}, {Group: 4, Name: "7"}, {Group: 7, Name: "solo/1"}, {Group: 8, Name: "solo-2"}}
	for which, want := range map[string]uint32{
		"job-17/abc": 1, "job-17/d": 2, "job-170": 3, "job-170/x": 3, "2": 2, "7": 4, "8": 8, "solo": 7, "solo-": 8,
	} {
		if g, err := find(groups, which); err != nil || g.Group != want {
			t.Errorf("%s: %+v, %v, want group %d", which, g, err, want)
		}
	}
	for which, want := range map[string]error{"job-17": errAmbiguous, "job": errAmbiguous, "job-18": manager.ErrUnknownGroup, "": manager.ErrUnknownGroup, "9": manager.ErrUnknownGroup} {
		if g, err := find(groups, which); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v, want %v", which, g, err, want)
		}
	}
}

// Commands take the beginning of a group's name if it is that of one, and do
// nothing if it is not.
func TestGroupsByTheBeginningOfTheirNames(t *testing.T) {
	d := deploy(t)
	for _, name := range []string{"job-17/abc", "job-17/def", "job-18/abc"} {
		d.ask("group", "create", name, "h0", "h1")
	}
	for _, command := range []string{"show", "explain", "delete"} {
		out, err := d.try("group", command, "job-17")
		if err == nil || !containsAll(err.Error(), []string{errAmbiguous.Error(), "1 (job-17/abc), 2 (job-17/def)"}) || out != "" {
			t.Errorf("%s of two: %q, %v", command, out, err)
		}
		if _, err := d.try("group", command, "job-19"); err == nil || !strings.Contains(err.Error(), `no such group "job-19"`) || strings.Contains(err.Error(), "explain group") {
			t.Errorf("%s of none: %v", command, err)
		}
	}
	if out := d.ask("group", "explain", "job-18"); !strings.HasPrefix(out, "Group 3, job-18/abc") {
		t.Errorf("it explains %s", out)
	}
	if out := d.ask("group", "delete", "job-18"); out != "Group 3, job-18/abc: released\n" {
		t.Errorf("it says %s", out)
	}
	if out := d.ask("group", "list"); !containsAll(strings.Join(strings.Fields(out), " "), []string{"1 job-17/abc waiting", "2 job-17/def waiting"}) || strings.Contains(out, "job-18/abc   waiting") {
		t.Errorf("there are\n%s", out)
	}
	for _, how := range []string{"--down", "--up", "--down"} {
		d.ask("topology", "edit", how, "h0")
	}
	d.manager.end(syscall.SIGKILL)
	path := filepath.Join(d.directory, "manager.db")
	if _, err := d.try("store", "remove", path, "job-17", "--yes"); err == nil || !strings.Contains(err.Error(), errAmbiguous.Error()) {
		t.Errorf("remove of two: %v", err)
	}
	if out := d.ask("store", "remove", path, "job-17/d", "--yes"); !strings.HasPrefix(out, "Group 2, job-17/def: ") {
		t.Errorf("it says %s", out)
	}
	d.startManager()
	if out := d.ask("topology", "history"); strings.Count(out, "an operator has edited") != 3 {
		t.Errorf("the map's history is\n%s", out)
	}
}
