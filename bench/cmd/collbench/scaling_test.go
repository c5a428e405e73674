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
	if len(report.Rows) != 2*2*2*2 || len(report.Reproduction) != 1 || report.Reproduction[0].Simulated <= 0 || len(report.Variants) != 4 {
		t.Errorf("%d rows, reproduction %+v, variants %+v", len(report.Rows), report.Reproduction, report.Variants)
	}
	for _, row := range report.Rows {
		if row.CutThrough <= 0 || row.StoreForward < row.CutThrough || row.HostTime <= 0 || row.Algorithm == "" || row.Share <= 0 || row.Share >= 1 {
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
	negative, other := filepath.Join(dir, "negative.json"), filepath.Join(dir, "other.json")
	if err := errors.Join(os.WriteFile(negative, bytes.Replace(measured, []byte(`"look":`), []byte(`"look":-`), 1), 0o600), os.WriteFile(other, []byte(`{"costs":{}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		args  []string
		want  error
		names string
	}{
		{[]string{"--hosts", "3", "--ports", "4"}, scaling.ErrModel, "3 hosts; possible are powers of two from 2 to 16"},
		{[]string{"--hosts", "1"}, scaling.ErrModel, "1 hosts; possible"}, {[]string{"--hosts", "32", "--ports", "4"}, scaling.ErrModel, "switches of 4 ports"},
		{[]string{"--ports", "6"}, scaling.ErrModel, "6 ports; possible are powers of two"}, {[]string{"--ports", "0"}, scaling.ErrModel, "0 ports"},
		{[]string{"--bytes", "7"}, scaling.ErrModel, "7 bytes; possible are multiples of 4"}, {[]string{"--bytes", "1073741824"}, scaling.ErrModel, "to 268435456"},
		{[]string{"--against", costs}, scaling.ErrTable, "collbench peers"}, {[]string{"--costs", dir + "/none"}, os.ErrNotExist, "none"},
		{[]string{"--costs", negative}, scaling.ErrModel, "negative.json"}, {[]string{"--costs", other}, nil, "collbench scaling measure writes"},
		{[]string{"--plots", costs}, nil, "--plots"}, {[]string{"--format", "csv"}, errUsage, "text, markdown, json"}, {[]string{"measure", "--rounds", "0"}, errUsage, "--rounds 0"},
	} {
		if _, _, err := commandText(t, append([]string{"scaling"}, bad.args...)...); err == nil || bad.want != nil && !errors.Is(err, bad.want) || !strings.Contains(err.Error(), bad.names) {
			t.Errorf("%v: %v, want %v with %q", bad.args, err, bad.want, bad.names)
		}
	}
}
