package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/broadcast"
)

// TestScollFabric: a process for each host, in namespaces.
func TestScollFabric(t *testing.T) {
	needRoot(t)
	t.Parallel()
	out, log, err := commandText(t, "fabric", "--function", scollFunction, "--prefix", "cbscoll", "--hosts-per-leaf", "2",
		"--trees", scollTrees, "--lasting", "20ms", "--per-second", "50", "--at-once", "1,4", "--format", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	rows := 0
	for line := range strings.Lines(out) {
		var r broadcast.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Nodes != 4 || r.Broadcasts == 0 || r.Complete.Median <= 0 || (r.Reached.Median > 0) != (rows%3 == 0) {
			t.Errorf("row %d: %s", rows, line)
		}
		rows++
	}
	if rows != 3*6 {
		t.Errorf("%d rows, want 18", rows)
	}
}
