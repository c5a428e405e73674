package importgraph

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTree(t *testing.T) {
	found, err := Check(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestEveryRuleIsSeen(t *testing.T) {
	const own = `"` + Module + `/`
	tests := []struct {
		name, file, source string
		want               string // part of the only violation; "" for none
	}{
		{"downward", "hostlib/a.go", `import _ ` + own + `internal/driver/runner"`, ""},
		{"sideways", "internal/core/session/a.go", `import _ ` + own + `internal/core/switchreduce"`, ""},
		{"upward", "internal/driver/runner/a.go", `import _ ` + own + `hostlib"`, "runner (drivers) imports hostlib (host)"},
		{"ground to core", "internal/wire/a.go", `import _ ` + own + `internal/core/session"`, "wire (ground) imports internal/core/session (cores)"},
		{"tests look upward", "internal/wire/a_test.go", `import _ ` + own + `internal/core/session"`, ""},
		{"no floor", "shed/a.go", ``, "shed is in no folder"},
		{"beside folders", "internal/shed/a.go", ``, "internal/shed is in no folder"},
		{"same floor, higher folder", "membership/a.go", `import _ ` + own + `hostlib"`, "membership (host) imports hostlib (host)"},
		{"same floor, lower folder", "hostlib/a.go", `import _ ` + own + `membership"`, ""},
		{"from a folder in another", "hostlib/a.go", `import _ ` + own + `hostlib/scoll"`, "hostlib (host) imports hostlib/scoll (services)"},
		{"mutex in a core", "internal/core/session/a.go", `import _ "sync"`, "must not import sync:"},
		{"atomic in a core", "internal/core/session/a.go", `import _ "sync/atomic"`, "must not import sync/atomic"},
		{"socket in a core", "internal/core/session/a.go", `import _ "net"`, "must not import net:"},
		{"address in a core", "internal/core/session/a.go", `import _ "net/netip"`, ""},
		{"files in a core's test", "internal/core/session/a_test.go", `import _ "os"`, ""},
		{"files in a decision", "pathsel/a.go", `import _ "os"`, "must not import os:"},
		{"randomness in a core", "internal/core/session/a.go", `import _ "math/rand/v2"`, "must not import math/rand/v2"},
		{"old randomness in a test", "hostlib/a_test.go", `import _ "math/rand"`, "must not import math/rand:"},
		{"slog on the ground", "topology/a.go", `import _ "log/slog"`, "must not import log/slog"},
		{"slog in a driver", "internal/driver/rpc/a.go", `import _ "log/slog"`, ""},
		{"log in a driver", "internal/driver/rpc/a.go", `import _ "log"`, "must not import log:"},
		{"generated types in a daemon", "internal/daemon/managerd/a.go", `import _ ` + own + `api/offload/v1"`, "must not import api/offload/v1"},
		{"generated types in rpc", "internal/driver/rpc/a.go", `import _ ` + own + `api/offload/v1"`, ""},
		{"gRPC in the host library", "hostlib/a.go", `import _ "google.golang.org/grpc/codes"`, "must not import google.golang.org/grpc/codes"},
		{"core in the engine", "internal/sim/a.go", `import _ ` + own + `internal/core/session"`, "must not import internal/core/session"},
		{"core in the world", "internal/sim/world/a.go", `import _ ` + own + `internal/core/session"`, ""},
		{"goroutine in a core", "internal/core/session/a.go", `func f() { go f() }`, "starts a goroutine"},
		{"goroutine in a core's test", "internal/core/session/a_test.go", `func f() { go f() }`, ""},
		{"clock in a core", "internal/core/session/a.go", `import "time"; var t = time.Now()`, "uses time.Now"},
		{"renamed clock", "internal/core/session/a.go", `import clock "time"; var t = clock.Now()`, "uses time.Now"},
		{"duration in a core", "internal/core/session/a.go", `import "time"; var t time.Duration`, ""},
		{"sleep in a test", "hostlib/a_test.go", `import "time"; func f() { time.Sleep(1) }`, "uses time.Sleep"},
		{"other directories", "hostlib/testdata/a.go", `import _ "log"`, ""},
		{"bench looks downward", "bench/a.go", `import _ ` + own + `internal/driver/nic"`, ""},
		{"bench from a test", "hostlib/a_test.go", `import _ ` + own + `bench/timing"`, "must not import bench/timing: what only measures"},
		{"library to compare with", "hostlib/a_test.go", `import _ "github.com/hashicorp/memberlist"`, "must not import github.com/hashicorp/memberlist"},
		{"library to compare with in bench", "bench/members/a.go", `import _ "github.com/hashicorp/memberlist"`, ""},
		{"rules of bench", "bench/a.go", `import _ "math/rand"`, "must not import math/rand:"},
		{"other module", "nested/deep/a.go", `import _ "log"`, ""},
		{"hidden", "_gen/a.go", `import _ "log"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Check(fstest.MapFS{
				"go.mod":        {},
				"nested/go.mod": {},
				"bench/go.mod":  {},
				tt.file:         {Data: []byte("package p\n" + tt.source + "\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if len(found) > 0 {
					t.Fatalf("got %v, want none", found)
				}
				return
			}
			if len(found) != 1 || !strings.Contains(found[0].String(), tt.want) {
				t.Fatalf("got %v, want one that says %q", found, tt.want)
			}
			if !strings.HasPrefix(found[0].String(), tt.file+":") {
				t.Errorf("%v does not name %s", found[0], tt.file)
			}
		})
	}
}

func TestUnreadableSource(t *testing.T) {
	if _, err := Check(fstest.MapFS{"hostlib/a.go": {Data: []byte("package")}}); err == nil {
		t.Error("no error for a file that is no Go")
	}
}

// TestFoldersAreEven: no folder holds more than two fifths of the house.
func TestFoldersAreEven(t *testing.T) {
	lines, all := make([]int, len(folders)), 0
	fsys := os.DirFS("../../..")
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(fsys, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if i := folderOf(path.Dir(name)); i >= 0 {
			n := bytes.Count(source, []byte("\n"))
			lines[i] += n
			all += n
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range folders {
		if lines[i] == 0 || 5*lines[i] > 2*all {
			t.Errorf("%s holds %d of %d lines", f.path, lines[i], all)
		}
	}
}

func TestFloorOf(t *testing.T) {
	tests := map[string]Floor{
		"bench/timing":               Bench,
		"cmd/offload-manager":        Commands,
		"hostlib":                    Host,
		"ranktree":                   Ground,
		"internal/core":              Cores,
		"internal/core/switchreduce": Cores,
		"internal/sim/world":         Simulation,
		"api/offload/v1":             Ground,
	}
	for path, want := range tests {
		if got, ok := FloorOf(path); !ok || got != want {
			t.Errorf("FloorOf(%q) = %v, %v; want %v", path, got, ok, want)
		}
	}
	for _, path := range []string{"", "internal", "internal/corex", "hostlibrary"} {
		if got, ok := FloorOf(path); ok {
			t.Errorf("FloorOf(%q) = %v, want none", path, got)
		}
	}
}
