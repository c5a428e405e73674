package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/peers"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
)

// TestPeers has all peers that are installed, and Tributary, take a turn on the
// smallest fabric, and makes a table of that.
func TestPeers(t *testing.T) {
	needRoot(t)
	rows, log, err := commandText(t, "peers", "--prefix", "cbpeers", "--hosts-per-leaf", "1", "--rows", "8@unshaped,4KiB@unshaped",
		"--rounds", "1", "--turn", "1ms", "--limit", "20s", "--skip-missing", "--format", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	var contestants []string
	for line := range strings.Lines(rows) {
		var c report.Comparison
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		contestants = nil
		for _, x := range c.Contestants {
			contestants = append(contestants, x.Name)
			if x.Iterations < 1 || !x.Right || x.Median <= 0 || x.Left != "" {
				t.Errorf("%d bytes: %+v", c.Bytes, x)
			}
		}
		if own := c.Own(); own == nil || own.Transport != "offload" {
			t.Errorf("%d bytes: Tributary: %+v", c.Bytes, own)
		}
	}
	if n := strings.Count(rows, "\n"); n != 2 || contestants[0] != timing.Implementation {
		t.Errorf("%d rows of %v", n, contestants)
	}
	if len(contestants) == 1 {
		t.Skipf("no peers beside Tributary:\n%s", log)
	}
	file := filepath.Join(t.TempDir(), "peers.json")
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, log, err := commandText(t, "report", file); err != nil || !strings.Contains(table, "| 8 bytes, unshaped |") {
		t.Errorf("%v\n%s\n%s", err, table, log)
	}
	if left, err := filepath.Glob("/run/netns/cbpeers-*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestPeersInterrupted interrupts turns in the middle.
func TestPeersInterrupted(t *testing.T) {
	needRoot(t)
	interrupt(t, "cbpeersint", "round 1 of 1000", "peers", "--hosts-per-leaf", "1", "--rows", "8@unshaped", "--rounds", "1000", "--turn", "1ms", "--skip-missing")
}

func TestPeersBadFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want error
		text string
	}{
		"rows":   {[]string{"--rows", "8"}, peers.ErrConfig, "like 64KiB@200mbit"},
		"size":   {[]string{"--rows", "8MB@unshaped"}, peers.ErrConfig, "8MB"},
		"peers":  {[]string{"--peers", "nccl"}, peers.ErrConfig, "openmpi, mpich, gloo"},
		"rounds": {[]string{"--rounds", "0"}, peers.ErrConfig, "0 rounds"},
		"format": {[]string{"--format", "html"}, errUsage, "html"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := commandText(t, slices.Concat([]string{"peers", "--prefix", "cbflags"}, test.args)...)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestCostsBadFlags: what cannot be is refused before a fabric is built.
func TestCostsBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"open no-such-file":     {"--model", "no-such-file"},
		"[from rows] were all":  {"--from", os.DevNull, "--rows", "8@unshaped"},
		"[from save] were all":  {"--from", os.DevNull, "--save", "rows.json"},
		`"foo" is no number of`: {"--rows", "foo@200mbit"},
	} {
		if _, log, err := commandText(t, append([]string{"costs"}, args...)...); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(log, "building") {
			t.Errorf("%q: %v, %s", args, err, log)
		}
	}
}
