package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// execute runs the command line until ctx ends.
func execute(ctx context.Context, stderr io.Writer, args ...string) (out string, err error) {
	var stdout bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(stderr)
	err = root.ExecuteContext(ctx)
	return stdout.String(), err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckTakesTheExamples(t *testing.T) {
	for file, says := range map[string]string{
		"agent.yaml":    "switch leaf-0, pipeline soft, 32768 slots, 64 children: valid\n",
		"agent-p4.yaml": "switch leaf-0, pipeline p4, 4096 slots, 32 children: valid\n",
	} {
		out, err := execute(t.Context(), io.Discard, "check", "../../docs/examples/"+file)
		if err != nil || !strings.HasSuffix(out, file+": "+says) {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// TestRunBesideATarget has a target that is not there: the agent runs all the
// same, and says so.
func TestRunBesideATarget(t *testing.T) {
	file := write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\nports: [{number: 1, address: 127.0.1.1, mac: '02:00:00:00:00:01'}]\n")
	ctx, cancel := context.WithCancel(t.Context())
	log := &ender{text: "the target cannot be reached", end: cancel}
	if _, err := execute(ctx, log, "run", "--config", file, "--pipeline", "p4", "--p4runtime", "unix:"+filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.all.String(), "agent closed") {
		t.Errorf("it logged\n%s", log.all.String())
	}
}

// ender ends a context when it is reported a text.
type ender struct {
	text string
	end  context.CancelFunc
	all  strings.Builder
}

func (e *ender) Write(p []byte) (int, error) {
	if strings.Contains(string(p), e.text) {
		e.end()
	}
	return e.all.Write(p)
}

func TestRunUntilReportedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log := &ender{text: "waiting for a manager to call", end: cancel}
	if _, err := execute(ctx, log, "run", "--config", write(t, "version: 1\nswitch: s\n"), "--listen", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	// Whether it can report the machine's interfaces or not, it says so.
	for _, said := range []string{"interfaces are ", "agent closed"} {
		if !strings.Contains(log.all.String(), said) {
			t.Errorf("it did not log %q, but\n%s", said, log.all.String())
		}
	}
}

func TestBadInput(t *testing.T) {
	good := write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\n")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run"}, "--config is missing"},
		{[]string{"run", "--config", "/nowhere/agent.yaml"}, "/nowhere/agent.yaml"},
		{[]string{"run", "--config", good, "--listen", "here"}, "host:port"},
		{[]string{"run", "--config", good, "--log-level", "loud"}, "one of [debug info warn error]"},
		{[]string{"run", "--config", good, "--log-format", "xml"}, "text and json are possible"},
		{[]string{"run", "--config", write(t, "version: 1\nswitch: s\ndata: 192.0.2.1\n")}, "192.0.2.1"},
		{[]string{"run", "--config", write(t, "version: 1\nswitch: s\ntls: {certificate: a, key: b, authority: c}\n")}, "unusable file"},
		{[]string{"check", write(t, "version: 1\nswitch: s\nslots: 3\n")}, "agent.yaml:3: slots: unknown field"},
		{[]string{"check", write(t, "version: 1\nswitch: s\ndata: 192.0.2.1\n")}, "data address 192.0.2.1"},
		{[]string{"check", write(t, "version: 1\nswitch: s\nlisten: 0.0.0.0:0\n")}, "listening on 0.0.0.0:0"},
		{[]string{"check", write(t, "version: 1\nswitch: s\ndata: 192.0.2.1\nplaintext: true\n")}, "data address 192.0.2.1"},
		{[]string{"run", "--config", write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\ndata: 192.0.2.1\nplaintext: true\n")}, "data address 192.0.2.1"},
		{[]string{"check", write(t, "version: 1\nswitch: s\nlisten: 192.0.2.1:0\nplaintext: true\n")}, "listen tcp 192.0.2.1:0"},
		{[]string{"check", write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\nadmin: {listen: '192.0.2.1:0', remote: true}\n")}, "listen tcp 192.0.2.1:0"},
		{[]string{"check", write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\nadmin: {listen: '0.0.0.0:0'}\n")}, "admin"},
		{[]string{"check"}, "FILE is missing; usage: switch-agent check FILE"},
		{[]string{"run", "--config", good, "--pipeline", "p5"}, `"p5" is not one of auto, soft, kernel, p4`},
		{[]string{"run", "--config", good, "--pipeline", "p4"}, "no p4runtime.address"},
		{[]string{"run", "--config", good, "--pipeline", "p4", "--p4runtime", "127.0.0.1:1"}, "the file has no ports"},
		{[]string{"run", "--config", good, "--p4runtime", "here"}, "want host:port, or unix:/path"},
		{[]string{"check", write(t, "version: 1\nswitch: s\npipeline: p4\np4runtime: {address: 'unix:/s'}\n")}, "the file has no ports"},
		{[]string{"walk"}, "walk"},
	} {
		_, err := execute(t.Context(), io.Discard, c.args...)
		if err == nil || !strings.Contains(process.OneLine(err), c.says) {
			t.Errorf("%v: %v, want a line with %q", c.args, err, c.says)
		}
	}
}
