package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/rails"
)

// railRows runs a command, and returns its rows.
func railRows(t *testing.T, args ...string) (rows []rails.Row) {
	t.Helper()
	out, log, err := commandText(t, append(args, "--format", "json", "--rounds", "1", "--turn", "1ms", "--limit", "20s")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for line := range strings.Lines(out) {
		var r rails.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if strings.Contains(r.Left, rails.ErrMissing.Error()) {
			t.Logf("left out: %s", r.Left)
			continue
		}
		if r.Left != "" || r.Median <= 0 {
			t.Errorf("%+v", r)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestPingpong(t *testing.T) {
	needRoot(t)
	rows := railRows(t, "pingpong", "--prefix", "cbping", "--rails", "unshaped,unshaped", "--sizes", "1,4KiB", "--contestants", "tcp,conn,rail,allreduce,openmpi", "--tls")
	if len(rows) < 2 || rows[0].Contestant != rails.Plain || rows[1].Contestant != rails.Conn || rows[0].Ratio != 1 || len(rows[0].Shares) != 2 || rows[0].Shares[0] < 0.9 {
		t.Errorf("%+v", rows)
	}
	if left, err := filepath.Glob("/run/netns/cbping-*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestBandwidth(t *testing.T) {
	needRoot(t)
	rows := railRows(t, "bandwidth", "--prefix", "cbband", "--rails", "unshaped,unshaped", "--sizes", "64KiB", "--in-flight", "20", "--contestants", "tcp,rail,conn,conn/1,openmpi")
	if len(rows) < 1 || rows[0].Ratio != 1 {
		t.Errorf("%+v", rows)
	}
}

// TestBandwidthCut has a rail fail under a stream over it, which TCP survives: what was
// lost is sent again when the rail is back.
func TestBandwidthCut(t *testing.T) {
	needRoot(t)
	for _, options := range [][]string{{"--cut", "rail0 down@100ms up@200ms; h1.rail1 slow:20mbit@150ms up@300ms"}, {"--cut", "random", "--fault-least", "1ms", "--fault-longest", "2ms", "--fault-pause", "10ms", "--lasting", "1100ms", "--tls"}} {
		rows := railRows(t, append([]string{"bandwidth", "--prefix", "cbcut", "--rails", "200mbit,200mbit", "--sizes", "4KiB", "--contestants", "tcp,conn", "--lasting", "400ms"}, options...)...)
		if len(rows) != 2 {
			t.Errorf("%v: %+v", options, rows)
		}
		for _, r := range rows {
			if r.Cut == nil || !r.Cut.Ledger.Exact() || r.Cut.Ledger.Arrived == 0 || r.Cut.Gap <= 0 {
				t.Errorf("%v: %+v", options, r)
			}
		}
	}
}

// TestSoak has collectives and membership run at once on rails that do not fail.
func TestSoak(t *testing.T) {
	needRoot(t)
	out, log, err := commandText(t, "rails", "--prefix", "cbsoak", "--soak", "300ms", "--no-cuts", "--hosts", "3", "--tls", "--grace", "1m", "--every", "1m", "--limit", "50s")
	var sum rails.SoakSum
	if err := errors.Join(err, json.Unmarshal([]byte(out), &sum)); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if sum.Allreduces == 0 || sum.Broadcasts == 0 || sum.Runs != 3*sum.Broadcasts || sum.Messages == 0 || len(sum.Carried) != 2 || !strings.Contains(log, "allreduces") {
		t.Errorf("%+v\n%s", sum, log)
	}
}

func TestRailsInterrupted(t *testing.T) {
	needRoot(t)
	interrupt(t, "cbrint", "round 1 of 1000", "pingpong", "--sizes", "8", "--rounds", "1000", "--turn", "1ms", "--contestants", "tcp")
}

func TestSoakInterrupted(t *testing.T) {
	needRoot(t)
	interrupt(t, "cbsint", "allreduces", "rails", "--no-cuts", "--hosts", "2", "--grace", "1m", "--every", "1ms", "--limit", "50s")
}

func TestRailsBadFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want error
		text string
	}{
		"rails":      {[]string{"pingpong", "--rails", "fast"}, errUsage, "fast"},
		"sizes":      {[]string{"pingpong", "--sizes", "8MB"}, errUsage, "8MB"},
		"small":      {[]string{"bandwidth", "--sizes", "4"}, rails.ErrConfig, "4 bytes"},
		"kind":       {[]string{"pingpong", "--kind", "ipx"}, rails.ErrConfig, "ipx"},
		"contestant": {[]string{"pingpong", "--contestants", "nccl"}, rails.ErrConfig, "openmpi/1"},
		"pinned":     {[]string{"pingpong", "--pin"}, rails.ErrConfig, "openmpi"},
		"streams":    {[]string{"bandwidth", "--contestants", "allreduce/1"}, rails.ErrConfig, "no streams"},
		"in flight":  {[]string{"bandwidth", "--in-flight", "-1"}, rails.ErrConfig, "-1 messages"},
		"cut":        {[]string{"bandwidth", "--cut", "rail7 down@1s"}, rails.ErrSchedule, "rail7"},
		"late cut":   {[]string{"bandwidth", "--cut", "rail1 down@11s"}, errUsage, "11s"},
		"one rail":   {[]string{"bandwidth", "--cut", "random", "--rails", "unshaped"}, rails.ErrSchedule, "two rails"},
		"soak":       {[]string{"rails", "--soak", "0s"}, rails.ErrConfig, "soak of 0s"},
		"last":       {[]string{"rails", "--last", "up"}, errUsage, "up"},
		"soak rails": {[]string{"rails", "--rails", "unshaped"}, rails.ErrSchedule, "1 rails"},
		"soak node":  {[]string{"node", "rail-soak"}, errUsage, "--addresses"},
		"node":       {[]string{"node", "rail", "--port", "tcp"}, errUsage, "--own"},
		"other port": {[]string{"node", "rail", "--port", "ipx", "--own", "x", "--peer", "y"}, errUsage, "ipx"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := commandText(t, test.args...)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v, want %v with %q", err, test.want, test.text)
			}
		})
	}
}
