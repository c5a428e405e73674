package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// readmeProgram makes a program of one of README.md's snippets.
type readmeProgram struct {
	begins  string   // how the snippet does
	imports []string // of this module
	before  string
	after   string
	says    string // in a line that it writes
}

var readmePrograms = []readmeProgram{
	{"host, err := hostlib.Join", []string{"hostlib", "reduce"}, `
	var trust *hostlib.TLS
	h0, err := hostlib.Join(ctx, hostlib.Config{Name: "h0", Listen: "10.0.0.10:7500"})
	check(err)
	members, gradients := []hostlib.Member{h0.Member(), {Host: "h3", Addr: "10.0.0.3:7500"}}, []float32{1, 2, 3}
	go func() {
		comm, err := h0.Communicator(ctx, "job-17", members)
		check(err)
		_, err = hostlib.Allreduce(ctx, comm, reduce.Sum, []float32{1, 2, 3}, make([]float32, 3))
		check(err)
	}()`, "fmt.Println(gradients)", "[2 4 6]"},
	{"host, err := hostlib.Join(ctx, hostlib.Config{Name: \"oss3\"", []string{"hostlib", "hostlib/scoll", "hostlib/scoll/aggregate"}, `
	var trust *hostlib.TLS
	address := func(_ context.Context, host string) (string, error) { return map[string]string{"oss1": "10.0.0.1:7600", "oss3": "10.0.0.3:7600"}[host], nil }
	flush := func(*scoll.Request) (uint32, string) { return 0, "" }
	servers := []scoll.Target{{Node: "oss1", Tags: []scoll.Tag{{}}}, {Node: "oss3", Tags: []scoll.Tag{{}}}}
	h1, err := hostlib.Join(ctx, hostlib.Config{Name: "oss1", Listen: "10.0.0.1:7600", Resolve: address})
	check(err)
	other, err := scoll.On(h1, scoll.Config{})
	check(err)
	_, err = other.Register(7, scoll.Statuses(0, flush, func(*scoll.Request, *aggregate.Statuses) {}))
	check(err)`, "select {}", "2 flushed, 0 failed: []"},
	{"zone := &membership.Config", []string{"hostlib", "membership"}, `
	var trust *hostlib.TLS
	keys := []membership.Key{{Number: 1, Secret: [32]byte{1, 2, 3}}}
	h7, err := hostlib.Join(ctx, hostlib.Config{Name: "h7", Listen: "10.0.0.1:7500", Membership: &membership.Config{Keys: keys}})
	check(err)
	defer h7.Close(ctx)`, "", "h7 joined"},
	{"node, err := rail.On", []string{"hostlib", "hostlib/rail"}, `
	tag, data, buffer := rail.Tag(7), []byte("checkpoint"), make([]byte, 64)
	address := func(_ context.Context, host string) (string, error) { return map[string]string{"oss1": "10.0.0.1:7700", "oss3": "10.0.0.3:7700"}[host], nil }
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "oss1", Listen: "10.0.0.1:7700", Resolve: address})
	check(err)
	h3, err := hostlib.Join(ctx, hostlib.Config{Name: "oss3", Listen: "10.0.0.3:7700", Resolve: address})
	check(err)
	other, err := rail.On(h3, rail.Config{})
	check(err)
	go func() {
		peer, err := other.Peer("oss1")
		check(err)
		got := make([]byte, 64)
		status, err := peer.Recv(ctx, tag, got)
		check(err)
		check(peer.Send(ctx, tag, got[:status.Size]))
	}()`, "fmt.Printf(\"%s\\n\", buffer[:status.Size])", "checkpoint"},
}

// checked has a check behind every statement that sets err.
var checked = regexp.MustCompile(`(?m)^(.*\berr :?= .*\)(?: *//.*)?|\}\)+)$`)

func (p *readmeProgram) text(snippet string) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n")
	for _, path := range p.imports {
		fmt.Fprintf(&b, "\t%q\n", "github.com/tributary-fabric/tributary/"+path)
	}
	b.WriteString(")\n\nfunc check(err error) {\n\tif err != nil {\n\t\tpanic(err)\n\t}\n}\n\nfunc main() {\n\tctx := context.Background()\n")
	b.WriteString(p.before + "\n{\n" + checked.ReplaceAllString(snippet, "$1\ncheck(err)") + "\n" + p.after + "\n_, _ = ctx, err\n}\n}\n")
	// The addresses are this process's own.
	at := fmt.Sprintf("127.%d.%d.", 1+os.Getpid()>>7&127, 1+os.Getpid()&127)
	return strings.ReplaceAll(b.String(), "10.0.0.", at)
}

// TestReadme builds and runs every piece of Go in README.md.
func TestReadme(t *testing.T) {
	if l, err := net.Listen("tcp", "127.9.9.9:0"); err != nil {
		t.Skip("only one loopback address: ", err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(snippets) != len(readmePrograms) {
		t.Errorf("README.md has %d snippets, and %d are known here", len(snippets), len(readmePrograms))
	}
	for i, s := range snippets {
		if i < len(readmePrograms) {
			t.Run(readmePrograms[i].imports[0], func(t *testing.T) { readmePrograms[i].run(t, string(s[1])) })
		}
	}
}

func (p *readmeProgram) run(t *testing.T, snippet string) {
	if !strings.HasPrefix(snippet, p.begins) {
		t.Fatalf("it begins otherwise than %q:\n%s", p.begins, snippet)
	}
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(p.text(snippet)), 0o600); err != nil {
		t.Fatal(err)
	}
	// Within the module, as far as the compiler knows.
	directory, err := filepath.Abs("testdata/readme")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(directory, "main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source+".json", overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", source+".json", "-o", binary, "./testdata/readme").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, p.text(snippet))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a program that hangs says nothing
	defer cancel()
	program := exec.CommandContext(ctx, binary)
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), p.says) {
			return
		}
	}
	t.Errorf("it said %q, and not %q", said, p.says)
}
