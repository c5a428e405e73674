package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/demo"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// execute runs the command line and returns what it wrote.
func execute(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestDemoAsJSONWithPicture(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "fabric.svg")
	out, progress, err := execute(t, "demo", "--bytes", "64KiB", "--format", "json", "--picture", svg)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Fabric          string
		Hosts, Switches int
		Operations      []struct {
			Transport string
			Correct   bool
		}
	}
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&report); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("something stands after the object: %v", err)
	}
	if report.Fabric != "fat-tree:4" || report.Hosts != 16 || report.Switches != 20 || len(report.Operations) < 2 {
		t.Fatalf("the report is %+v", report)
	}
	if report.Operations[0].Transport != "offload" {
		t.Errorf("the first operation ran by %s", report.Operations[0].Transport)
	}
	for i, o := range report.Operations {
		if !o.Correct {
			t.Errorf("operation %d is not correct", i+1)
		}
	}
	for _, want := range []string{"starting fabric fat-tree:4", "the manager has all 20 switches", "16 hosts have joined", "killing root switch", "is correct"} {
		if !strings.Contains(progress, want) {
			t.Errorf("no progress says %q", want)
		}
	}
	picture, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(picture, new(struct{ XMLName xml.Name })); err != nil || !bytes.Contains(picture, []byte("After the death of ")) {
		t.Errorf("the picture: %v, %d bytes", err, len(picture))
	}
}

func TestDemoAsText(t *testing.T) {
	out, _, err := execute(t, "demo", "--fabric", "leaf-spine:2,2,2", "--type", "int64", "--function", "max", "--bytes", "8192")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"leaf-spine:2,2,2: 4 hosts, 4 switches", "1024 of int64, reduced by max", "(root)", "correct"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q in:\n%s", want, out)
		}
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"demo", "--topology", "thin-tree:4"}, "neither a file nor one of fat-tree:K"},
		{[]string{"demo", "--function", "mean"}, "one of sum, product, min"},
		{[]string{"demo", "--type", "int7"}, "one of int32, int64"},
		{[]string{"demo", "--function", "bxor"}, "bxor is not defined on float32, but on int32"},
		{[]string{"demo", "--bytes", "6"}, "8 would be"},
		{[]string{"demo", "--bytes", "-4"}, "must not be negative"},
		{[]string{"demo", "--bytes", "0"}, "from 4 on"},
		{[]string{"demo", "--bytes", "four"}, "alone or with KiB, MiB or GiB"},
		{[]string{"demo", "--picture", "/nowhere/to/be/found.svg"}, "picture"},
		{[]string{"demo", "--format", "xml"}, "possible are text, json, svg"},
		{[]string{"demo", "--timeout", "0s"}, "must be positive"},
		{[]string{"demo", "--topology", "fat-tree:32", "--bytes", "15GiB"}, "take shorter vectors or fewer hosts"},
		{[]string{"demo", "everything"}, "everything"},
		{[]string{"dmeo"}, "dmeo"},
		{[]string{"check", "/nowhere/manager.yaml"}, "/nowhere/manager.yaml"},
		{[]string{"topology", "check", "fat-tree:5"}, "fat-tree:5"},
		{[]string{"topology", "check", "fat-tree:999999999999"}, "999999999999 is more than 1073741824"},
		{[]string{"topology", "check", "fat-tree:4x"}, `"4x" is not a number`},
		{[]string{"plan", "--topology", "fat-tree:4", "--window", "3"}, "a window is a power of two up to 4096"},
		{[]string{"group", "create", "job", "a", "b", "--window", "3"}, "a window is a power of two up to 4096"},
		{[]string{"plan", "--topology", "fat-tree:4", "--chunk", "-1"}, "chunks of -1 bytes, want "},
		{[]string{"plan", "--colour"}, `unknown flag: --colour; "offload-manager plan --help" lists the flags`},
		{[]string{"topology", "check", "/nowhere/fabric.yaml"}, "/nowhere/fabric.yaml"},
		{[]string{"store", "check", "/nowhere/manager.db"}, "/nowhere/manager.db"},
		{[]string{"group", "lst"}, "possible are create, delete, explain, list, show"},
		{[]string{"group", "list", "--format", "svg"}, "possible are text, json"},
		{[]string{"group", "list", "--manager", "here"}, "host:port"},
		{[]string{"group", "list", "--timeout", "0s"}, "must be positive"},
		{[]string{"group", "list", "--key", "key.pem"}, "needed together"},
		{[]string{"group", "create", "job"}, "HOST is missing; usage: offload-manager group create NAME HOST..."},
		{[]string{"group", "create", "job", "a", "b", "--functions", "mean"}, "one of sum, product, min"},
		{[]string{"group", "create", "job", "a", "b", "--types", "int7"}, "one of int32, int64"},
		{[]string{"switch", "drain"}, "SWITCH is missing"},
		{[]string{"switch", "list", "--certificate", "a", "--key", "b", "--authority", "c"}, "unusable file"},
		{[]string{"version", "2"}, "2"},
		{[]string{"check", "."}, ". is a directory, and a file is wanted"},
		{[]string{"serve", "--config", "."}, ". is a directory, and a file is wanted"},
		{[]string{"members", "join", "--config", "."}, ". is a directory, and a file is wanted"},
		{[]string{"members", "check", "."}, ". is a directory, and a file is wanted"},
		{[]string{"members", "join", "--listen", "[::1]:0", "--bootstrap", "127.0.0.1:7946"}, "IPv4 and IPv6 do not reach each other"},
		{[]string{"certs", "init", "/nowhere/at/all", "--manager", ""}, "--manager: a name is wanted"},
		{[]string{"plan", "--topology", "fat-tree:4", "--hosts", "h0"}, "name two at least"},
	} {
		out, progress, err := execute(t, c.args...)
		switch {
		case err == nil:
			t.Errorf("%v: no error", c.args)
		case !strings.Contains(process.OneLine(err), c.says) || strings.Contains(process.OneLine(err), "\n"):
			t.Errorf("%v: %q, want a line with %q", c.args, process.OneLine(err), c.says)
		case out != "" || progress != "":
			t.Errorf("%v: it wrote %q and %q", c.args, out, progress)
		}
	}
}

func TestDemoGivesUpInTime(t *testing.T) {
	_, _, err := execute(t, "demo", "--timeout", "1ns")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "--timeout") {
		t.Errorf("%v, want %v that names --timeout", err, context.DeadlineExceeded)
	}
}

func TestWithin(t *testing.T) {
	if n, err := within(t.Context(), func() (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := within(ctx, func() (int, error) { cancel(why); return 0, ctx.Err() }); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct{ kind, path, says string }{
		{"check", "../../docs/examples/manager.yaml", "fabric example, 8 hosts, 4 switches, 4 agents: valid"},
		{"topology", "../../docs/examples/leaf-spine.yaml", "fabric example, 8 hosts, 4 switches of which 4 can reduce, 12 links: valid"},
	} {
		args := map[string][]string{"check": {"check", c.path}, "topology": {"topology", "check", c.path}}[c.kind]
		if out, _, err := execute(t, args...); err != nil || out != c.path+": "+c.says+"\n" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "manager.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\ntopology: 5\nstores: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := execute(t, "check", bad)
	if err == nil || err.Error() != bad+": 2 errors" || out != "" || !strings.Contains(errs, bad+":3: stores: ") || !strings.Contains(errs, bad+":2: topology: ") {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	if out, _, err := execute(t, "group"); err != nil || !strings.Contains(out, "explain") {
		t.Errorf("group alone: %q, %v", out, err)
	}
}

func TestVersion(t *testing.T) {
	out, _, err := execute(t, "version")
	if err != nil || !strings.HasPrefix(out, "offload-manager ") || strings.Count(out, "\n") != 1 {
		t.Errorf("%q, %v", out, err)
	}
}

func TestDefaultsAreThoseOfThePackage(t *testing.T) {
	f := newDemo().Flags()
	d := demo.DefaultConfig()
	for name, want := range map[string]string{
		"topology": d.Fabric, "function": d.Function.String(), "type": d.Type.String(), "bytes": "4MiB", "timeout": time.Minute.String(),
	} {
		if got := f.Lookup(name).DefValue; got != want {
			t.Errorf("--%s is %s by default, want %s", name, got, want)
		}
	}
}

// The flag's former name is still taken.
func TestDemoByItsFormerFlag(t *testing.T) {
	_, _, err := execute(t, "demo", "--fabric", "thin-tree:4")
	if err == nil || !strings.Contains(err.Error(), "neither a file nor one of fat-tree:K") {
		t.Errorf("%v", err)
	}
}

// An import that cannot be written leaves the file that was there.
func TestImportLeavesWhatWasThere(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "x.yaml")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"topology", "import", "--output", path, "../../topology/importer/testdata/labels.gml"}
	// The process may write no byte to any file.
	full := exec.Command("sh", append([]string{"-c", `trap '' XFSZ; ulimit -f 0; exec "$0" "$@"`, binary(t, "offload-manager")}, arguments...)...)
	if said, err := full.CombinedOutput(); err == nil || !strings.Contains(string(said), "file too large") {
		t.Errorf("%s, %v", said, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("it left %q, %v", text, err)
	}
	if all, err := os.ReadDir(directory); err != nil || len(all) != 1 {
		t.Errorf("beside it are %v, %v", all, err)
	}
	if _, _, err := execute(t, arguments...); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "Aarhus") {
		t.Errorf("it wrote %q, %v", text, err)
	}
}

// check refuses, as serve does, the certificate of another role.
func TestCheckLooksAtTheCertificate(t *testing.T) {
	directory := t.TempDir()
	if _, _, err := execute(t, "certs", "init", directory, "--manager", "m", "--host", "h"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "manager.yaml")
	for who, refused := range map[string]bool{"manager-m": false, "host-h": true} {
		text := "version: 1\ntopology: fat-tree:4\ntls: {certificate: " + who + ".pem, key: " + who + "-key.pem, authority: ca.pem}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, _, err := execute(t, "check", path); (err != nil) != refused || refused && !strings.Contains(err.Error(), "host/h") {
			t.Errorf("%s: %q, %v", who, out, err)
		}
	}
}

// check refuses what serve refuses on this machine, and leaves nothing behind.
func TestCheckTriesWhatServeDoes(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "manager.yaml")
	const listen = "listen: 127.0.0.1:0\n"
	for _, c := range []struct{ text, says string }{
		{listen + "store: manager.db\nadmin: {listen: '127.0.0.1:0'}\n", ""},
		{"listen: 0.0.0.0:0\n", "listening on 0.0.0.0:0"},
		{"plaintext: true\nlisten: 192.0.2.1:0\n", "listen tcp 192.0.2.1:0"},
		{listen + "store: nowhere/manager.db\n", "nowhere/manager.db"},
		{listen + "store: .\n", "is a directory"},
		{listen + "admin: {listen: '0.0.0.0:0'}\n", "admin"},
		{listen + "admin: {listen: '192.0.2.1:0', remote: true}\n", "listen tcp 192.0.2.1:0"},
		{listen + "membership: {name: m, listen: '127.0.0.1:0'}\n", ""},
		{listen + "membership: {name: m, listen: '192.0.2.1:0'}\n", "m: listening at 192.0.2.1:0"},
		{listen + "membership: {name: m, listen: '0.0.0.0:0'}\n", "others need one address (Advertise)"},
		{listen + "membership: {name: m, listen: '127.0.0.1:0', state: nowhere/m}\n", "nowhere/m"},
	} {
		if err := os.WriteFile(path, []byte("version: 1\ntopology: fat-tree:4\n"+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"check", path}, {"serve", "--config", path}} {
			if c.says == "" && command[0] == "serve" {
				continue
			}
			if out, _, err := execute(t, command...); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of %q: %q, %v, want %q", command[0], c.text, out, err, c.says)
			}
		}
		if all, err := os.ReadDir(directory); err != nil || len(all) != 1 {
			t.Errorf("%q left %v, %v", c.text, all, err)
		}
	}
}
