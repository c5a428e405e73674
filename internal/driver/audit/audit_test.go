package audit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/audit"
)

func lines(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, x)
	}
	return all
}

// TestRecords are whole lines, also from many at once and over a rotation; a second log
// appends; others cannot read the file.
func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Record(audit.Record{
		Request: "a-1", Role: "host", Name: "h0", Address: "10.0.0.1:5", Method: "CreateGroup", Group: 7, Object: "job\n\"x", Detail: "members=2",
		Outcome: audit.Quota, Err: errors.New("used up"),
	})
	first := lines(t, path)[0]
	for key, want := range map[string]any{
		"msg": "CreateGroup", "request": "a-1", "role": "host", "name": "h0", "address": "10.0.0.1:5", "group": 7.0, "object": "job\n\"x",
		"detail": "members=2", "outcome": "quota", "error": "used up",
	} {
		if first[key] != want {
			t.Errorf("%s is %v, want %v", key, first[key], want)
		}
	}
	if first["time"] == nil || first["level"] != nil {
		t.Errorf("record %v", first)
	}
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for range 100 {
				l.Record(audit.Record{Method: "m", Outcome: audit.Done})
			}
		})
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	if n := len(lines(t, path)) + len(lines(t, path+".1")); n != 401 {
		t.Errorf("%d records", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Record(audit.Record{Method: "late"})
	if l.Failures() != 1 {
		t.Errorf("%d failures", l.Failures())
	}
	again, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	before := len(lines(t, path))
	again.Record(audit.Record{Method: "m"})
	if n := len(lines(t, path)); n != before+1 {
		t.Errorf("%d records, before %d", n, before)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	var none *audit.Log
	none.Record(audit.Record{})
	if none.Reopen() != nil || none.Close() != nil || none.Failures() != 0 {
		t.Error("no log does something")
	}
	if _, err := audit.Open(filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("a log in no directory")
	}
}
