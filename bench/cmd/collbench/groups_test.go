package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/crowd"
)

// crowdOf runs groups, and returns its rows.
func crowdOf(t *testing.T, args ...string) ([]crowd.Row, error) {
	t.Helper()
	out, log, err := commandText(t, append([]string{"groups", "--format", "json", "--iterations", "2", "--settle", "0s"}, args...)...)
	var rows []crowd.Row
	for line := range strings.Lines(out) {
		var r crowd.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v; %s", line, err, log)
		}
		rows = append(rows, r)
	}
	return rows, err
}

func TestGroups(t *testing.T) {
	for _, transport := range crowd.Transports {
		rows, err := crowdOf(t, "--groups", "1,4", "--transport", transport, "--bytes", "8,4096")
		if err != nil || len(rows) != 2 {
			t.Fatalf("%s: %v, %+v", transport, err, rows)
		}
		for i, n := range []int{1, 4} {
			r, offloaded := rows[i], n
			if transport != crowd.Transports[0] {
				offloaded = 0
			}
			if r.Groups != n || r.Members != 4 || r.Offloaded != offloaded || r.Later != offloaded || len(r.Runs) != 2 || r.Runs[1].Bytes != 4096 ||
				r.Runs[0].Wrong+r.Runs[1].Wrong != 0 || r.Runs[0].Best <= 0 || r.Runs[1].Median < r.Runs[1].Best || r.Formed <= 0 {
				t.Errorf("%s: %+v", transport, r)
			}
			if r.Idle.Hosts.Live == 0 || (r.Slots > 0) != (offloaded > 0) || (r.Idle.Switches.Live > 0) != (offloaded > 0) {
				t.Errorf("%s: %+v", transport, r)
			}
		}
	}
}

// TestGroupsElsewhere: a switch of no use leaves groups on their hosts, and that
// is an error.
func TestGroupsElsewhere(t *testing.T) {
	rows, err := crowdOf(t, "--groups", "1", "--slots", "8", "--bytes", "8")
	if !errors.Is(err, errElsewhere) || len(rows) != 1 || rows[0].Why == "" || rows[0].Later != 0 {
		t.Errorf("%v, %+v", err, rows)
	}
	for _, wrong := range [][]string{{"--groups", "0"}, {"--transport", "air"}, {"--bytes", "6"}, {"--iterations", "0"}} {
		if _, err := crowdOf(t, wrong...); !errors.Is(err, crowd.ErrPlan) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
