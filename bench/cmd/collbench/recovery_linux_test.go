package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/recovery"
)

// revokeRows runs the command on the smallest fabric, and returns its rows.
func revokeRows[R any](t *testing.T, args ...string) (rows []R) {
	t.Helper()
	text, log, err := commandText(t, append([]string{"revoke", "--prefix", "cbrevoke", "--hosts-per-leaf", "1", "--processes", "2", "--rounds", "1", "--format", "json"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if left, err := filepath.Glob("/run/netns/cbrevoke-*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	return rows
}

// TestRevoke measures a revoke in the middle of each collective.
func TestRevoke(t *testing.T) {
	needRoot(t)
	rows := revokeRows[recovery.PlansRow](t, "--bytes", "8,64KiB")
	if len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.Interrupted.Median <= 0 || len(r.After) != 5 || r.Hosts != 2 || r.Processes != 2 {
			t.Errorf("%+v", r)
		}
		for _, x := range r.After {
			if x.Slowest() <= 0 || x.Last() <= 0 {
				t.Errorf("%s: %+v", r.Collective, x)
			}
		}
	}
}

// TestRevokeAgree measures agreements.
func TestRevokeAgree(t *testing.T) {
	needRoot(t)
	rows := revokeRows[recovery.AgreeRow](t, "--measure", "agree")
	if len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.Rounds != 10 || r.Agree.Median <= 0 || r.Allreduce.Median <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestRevokeKill kills a leaf and the root, whose survivors go on over switches.
func TestRevokeKill(t *testing.T) {
	needRoot(t)
	rows := revokeRows[recovery.KillRow](t, "--measure", "kill", "--kill=-1,0")
	if len(rows) != 2 || rows[0].Rank != 3 || rows[1].Rank != 0 {
		t.Fatalf("%+v", rows)
	}
	for _, r := range rows {
		if r.Kills != 1 || r.Parts["all"].Median <= 0 || len(r.Parts) != len(recovery.Parts) {
			t.Errorf("%+v", r)
		}
	}
}

// TestRevokeInterrupted interrupts recoveries in the middle.
func TestRevokeInterrupted(t *testing.T) {
	needRoot(t)
	interrupt(t, "cbrevokeint", "kill 1 of rank 1", "revoke", "--measure", "kill", "--kill", "1", "--hosts-per-leaf", "1", "--processes", "2", "--rounds", "1000")
}

func TestRevokeBadFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want error
		text string
	}{
		"rounds":     {[]string{"--rounds", "0"}, recovery.ErrConfig, "0 rounds"},
		"rank":       {[]string{"--measure", "kill", "--kill", "8"}, recovery.ErrConfig, "rank 8 of 8"},
		"alone":      {[]string{"--measure", "kill", "--hosts-per-leaf", "1"}, recovery.ErrConfig, "2 members"},
		"bytes":      {[]string{"--bytes", "12"}, recovery.ErrConfig, "12 bytes"},
		"collective": {[]string{"--collectives", "scan"}, recovery.ErrConfig, "scan"},
		"way":        {[]string{"--way", "air"}, errUsage, "air"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := commandText(t, append([]string{"revoke", "--prefix", "cbflags"}, test.args...)...)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
		})
	}
}
