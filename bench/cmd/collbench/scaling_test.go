package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/scaling"
)

func TestScaling(t *testing.T) {
	dir := t.TempDir()
	const peers = `{"kind":"comparison","fabric":{"hosts":8,"rate":0},"bytes":8,"contestants":[{"name":"tributary","median_us":100}]}`
	against, costs := filepath.Join(dir, "peers.json"), filepath.Join(dir, "costs.json")
	measured, err := json.Marshal(scaling.Measured())
	if err := errors.Join(err, os.WriteFile(against, []byte(peers), 0o600), os.WriteFile(costs, measured, 0o600)); err != nil {
		t.Fatal(err)
	}
	args := []string{"scaling", "--hosts", "4,16", "--ports", "4", "--bytes", "8,4096", "--against", against, "--costs", costs}
	out, _, err := commandText(t, append(args, "--format", "json", "--plots", dir)...)
	var report scaling.Report
	if jsonErr := json.Unmarshal([]byte(out), &report); err != nil || jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	if len(report.Rows) != 2*2*2*2*2 || len(report.Reproduction) != 1 || report.Reproduction[0].Simulated <= 0 || len(report.Software) != 2 {
		t.Errorf("%d rows, reproduction %+v, software %+v", len(report.Rows), report.Reproduction, report.Software)
	}
	for _, row := range report.Rows {
		if row.Tree <= 0 || row.HostTime <= 0 || row.Algorithm == "" || row.Share <= 0 || row.Share >= 1 {
			t.Errorf("%+v", row)
		}
	}
	for _, name := range []string{"latency", "bandwidth", "reproduction"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s.svg: %v", name, err)
			}
		}
	}
	out, _, err = commandText(t, args...)
	if err != nil || !strings.Contains(out, "8 B, unshaped") || !strings.Contains(out, "best of hosts") {
		t.Errorf("%v: %s", err, out)
	}
	for _, bad := range []struct {
		args []string
		want error
	}{
		{[]string{"--hosts", "3", "--ports", "4"}, scaling.ErrModel}, {[]string{"--bytes", "7"}, scaling.ErrModel},
		{[]string{"--against", costs}, scaling.ErrTable}, {[]string{"--costs", dir + "/none"}, os.ErrNotExist}, {[]string{"--format", "csv"}, errUsage},
	} {
		if _, _, err := commandText(t, append([]string{"scaling"}, bad.args...)...); !errors.Is(err, bad.want) {
			t.Errorf("%v: %v, want %v", bad.args, err, bad.want)
		}
	}
}
