package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/planbench"
)

func TestPlan(t *testing.T) {
	out, progress, err := commandText(t, "plan", "--repaired", "4", "--largest", "8", "--online", "4", "--groups", "10", "--members", "5",
		"--runs", "1", "--fabrics", "1", "--cases", "2", "--format", "json")
	var report planbench.Report
	if jsonErr := json.Unmarshal([]byte(out), &report); err != nil || jsonErr != nil || len(report.Rows) < 15 {
		t.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	if !strings.Contains(progress, "irregular fabrics") || !strings.Contains(progress, "sparse") {
		t.Errorf("progress:\n%s", progress)
	}
	if _, _, err := commandText(t, "plan", "--online", "5"); !errors.Is(err, planbench.ErrConfig) {
		t.Error(err)
	}
	if _, _, err := commandText(t, "plan", "--format", "csv"); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}
