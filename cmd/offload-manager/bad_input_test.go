package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// badInputs names what can go wrong with daemons on a real network, and the
// tests that have it go wrong, by package. Tests of this package do it with
// real processes.
var badInputs = map[string][]string{
	"a port in use": {"cmd/offload-manager.TestPortsInUse", "cmd/offload-manager.TestWhatKeepsAManagerFromStarting"},
	"a second manager of the store": {
		"cmd/offload-manager.TestWhatKeepsAManagerFromStarting", "internal/daemon/store.TestHeldByAnotherProcess", "internal/daemon/store.TestOneManagerAtATime",
	},
	"a second manager of the agents": {"cmd/offload-manager.TestSecondManagerOfTheAgents", "internal/driver/rpc.TestSecondManager"},
	"an agent that claims another's name": {
		"cmd/offload-manager.TestAgentWithAnothersName", "cmd/offload-manager.TestCertificates",
		"internal/daemon/managerd.TestAgentOfAnotherSwitch", "internal/daemon/managerd.TestAnAgentWithAnothersNameIsNotMet",
	},
	"a certificate that has expired, at the start": {"cmd/offload-manager.TestCertificateExpires", "internal/driver/pki.TestLoadSaysWhatIsWrong"},
	"a certificate that expires while it is used":  {"cmd/offload-manager.TestCertificateExpires", "internal/driver/pki.TestTimePasses"},
	"a full disk under the store":                  {"cmd/offload-manager.TestFullDisk", "internal/daemon/store.TestFullDisk", "internal/daemon/managerd.TestStoreFailsForAWhile"},
	"a clock that jumps, beneath deadlines":        {"internal/driver/runner.TestClockDoesNotJump"},
	"a clock that jumps, beneath certificates":     {"internal/driver/pki.TestTimePasses", "internal/driver/pki.TestLoadSaysWhatIsWrong"},
	"a configuration that changes": {
		"cmd/offload-manager.TestConfigurationChanges", "internal/whole/command/process.TestHangUp", "internal/daemon/managerd.TestAgentKnowsBetterThanTheTopology",
	},
	"a topology that changes": {
		"cmd/offload-manager.TestRootLeavesTheTopology", "cmd/offload-manager.TestTopologyChangesUnderTheStore", "internal/daemon/managerd.TestTopologyChanges",
	},
	"an agent of another version": {
		"cmd/offload-manager.TestAgentOfAnotherVersion", "internal/driver/rpc.TestAgentOfALaterVersion", "internal/driver/rpc.TestReasonsOfALaterVersion",
	},
	"a member of another version": {
		"internal/driver/rpc.TestMemberOfALaterVersion", "internal/driver/peer.TestVersions", "hostlib.TestParentOfALaterVersion",
	},
	"a data plane of another version": {"hostlib.TestDataPlaneOfAnotherVersion"},
	"a store of another version":      {"internal/daemon/store.TestVersions"},
	"a damaged store":                 {"cmd/offload-manager.TestWhatKeepsAManagerFromStarting", "internal/daemon/store.TestFlippedBits", "internal/daemon/store.TestTruncated"},
}

func TestBadInputsHaveTests(t *testing.T) {
	sources := map[string]string{}
	for what, tests := range badInputs {
		for _, test := range tests {
			i := strings.LastIndex(test, ".")
			directory, name := test[:i], test[i+1:]
			if sources[directory] == "" {
				sources[directory] = testsOf(t, filepath.Join("../..", directory))
			}
			if !strings.Contains(sources[directory], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s: %s has no %s", what, directory, name)
			}
		}
	}
}

// testsOf returns the text of a package's tests.
func testsOf(t *testing.T, directory string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// fails runs a command that is to fail, with a line that says so much.
func fails(t *testing.T, says string, name string, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	path := binary(t, name) // the first call builds it, which may take a while
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if last := lines[len(lines)-1]; err == nil || !strings.HasPrefix(last, name+": ") || !strings.Contains(last, says) {
		t.Errorf("%s %v: %v, %q, want %q", name, args, err, last, says)
	}
}

func TestPortsInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().String()
	says := taken + ": bind: address already in use"
	d := &deployment{T: t, directory: t.TempDir()}
	fails(t, says, "offload-manager", "serve", "--config", d.write("m.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: "+taken+"\n"))
	fails(t, says, "offload-manager", "serve", "--config",
		d.write("m.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\nadmin: {listen: '"+taken+"'}\n"))
	fails(t, says, "switch-agent", "run", "--config", d.write("a.yaml", "version: 1\nswitch: leaf-0\nlisten: "+taken+"\n"))
	fails(t, says, "switch-agent", "run", "--config",
		d.write("a.yaml", "version: 1\nswitch: leaf-0\nlisten: 127.0.0.1:0\nadmin: {listen: '"+taken+"'}\n"))
	fails(t, says, "collbench", "run", "--host", "h0", "--listen", taken, "--members", d.write("members", "h0 "+taken+"\n"))
}

// A second manager of the same switches gets none of them, and says who has
// them; the first one's groups do not notice. When the first is gone, they are
// the second's.
func TestSecondManagerOfTheAgents(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	first := c.allreduce()
	text, err := os.ReadFile(filepath.Join(d.directory, "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := d.write("second.yaml", strings.Replace(string(text), "store: manager.db", "store: second.db", 1))
	second := launch(t, "offload-manager", "serve", "--config", config, "--listen", "127.0.0.1:0")
	for range d.at {
		second.await("waiting for agent", "the switch has another manager, at 127.0.0.1:")
	}
	d.agents["leaf-0"].await("a second manager is refused")
	if o := c.allreduce(); o.Transport != hostlib.Offload || o.Epochs[0] != first.Epochs[0] {
		t.Errorf("it ran by %v in %v since %s, before in %v", o.Transport, o.Epochs, o.Reason, first.Epochs)
	}
	d.manager.end(syscall.SIGKILL)
	for range d.at {
		second.await("agent met")
	}
}

func TestAgentWithAnothersName(t *testing.T) {
	d := &deployment{T: t, directory: t.TempDir(), at: map[string]string{"leaf-1": "127.0.0.1:0"}, agents: map[string]*child{}}
	d.startAgent("leaf-1")
	config := d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\nagents: {leaf-0: '"+d.at["leaf-1"]+"'}\n")
	launch(t, "offload-manager", "serve", "--config", config).await("waiting for agent", "switch=leaf-0", "another switch's", `it says that it is \"leaf-1\"`)
}

// issue writes a certificate of an identity, in place of the one before.
func issue(t *testing.T, a *pki.Authority, directory string, i pki.Identity, until time.Time) {
	t.Helper()
	cert, key, err := a.Issue(i, time.Now().Add(-time.Hour), until)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{pki.CertFile(i): cert, pki.KeyFile(i): key, pki.AuthorityFile: a.PEM()} {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent's certificate expires: a connection that stands ends with it, none begins any
// more, and the manager says why; until there is a new one.
func TestCertificateExpires(t *testing.T) {
	d := &deployment{T: t, directory: t.TempDir(), agents: map[string]*child{}}
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	agent, m := pki.Identity{Role: pki.Agent, Name: "leaf-0"}, pki.Identity{Role: pki.Manager, Name: "m"}
	with := func(i pki.Identity) string {
		return fmt.Sprintf("tls: {certificate: %s, key: %s, authority: %s}\n", pki.CertFile(i), pki.KeyFile(i), pki.AuthorityFile)
	}
	agentConfig := d.write("leaf-0.yaml", "version: 1\nswitch: leaf-0\nlisten: 127.0.0.1:0\n"+with(agent))

	issue(t, a, d.directory, m, time.Now().Add(time.Hour))
	issue(t, a, d.directory, agent, time.Now().Add(-time.Minute))
	fails(t, "agent-leaf-0.pem: pki: the certificate has expired", "switch-agent", "run", "--config", agentConfig)

	var p *child
	address := ""
	for lasts := 2 * time.Second; address == ""; lasts *= 2 { // longer, where it expires before the agent has begun
		issue(t, a, d.directory, agent, time.Now().Add(lasts))
		p = launch(t, "switch-agent", "run", "--config", agentConfig)
		for line := ""; address == "" && !strings.Contains(line, "the certificate has expired"); {
			line = p.await("leaf-0")
			address = attribute(line, "address")
		}
	}
	config := d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\nperiods: {connect: 100ms}\nagents: {leaf-0: '"+address+"'}\n"+with(m))
	manager := launch(t, "offload-manager", "serve", "--config", config)
	line := ""
	for !strings.Contains(line, "the certificate has expired") {
		line = manager.await("switch=leaf-0")
	}
	if !strings.Contains(line, "agent/leaf-0") {
		t.Errorf("the manager says %s", line)
	}
	issue(t, a, d.directory, agent, time.Now().Add(time.Hour))
	manager.await("agent met", "switch=leaf-0")
	p.await("changed certificate files are in use")
}

// laterAgent is an agent of another version, which can do nothing.
type laterAgent struct{ rpc.Agent }

func (laterAgent) State(context.Context) (rpc.AgentState, error) {
	return rpc.AgentState{}, rpc.ErrUnsupported
}

func (laterAgent) Counters(context.Context) (rpc.AgentCounters, error) {
	return rpc.AgentCounters{}, rpc.ErrUnsupported
}

func (laterAgent) Watch(ctx context.Context, _ time.Duration, event func(rpc.AgentEvent) error) error {
	state := rpc.AgentState{Switch: "leaf-0", Incarnation: 1, Capability: topology.DefaultCapability(), Version: "v9.9.9"}
	if err := event(rpc.AgentEvent{State: &state}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAgentOfAnotherVersion(t *testing.T) {
	listener, err := rpc.Listen("127.0.0.1:0", rpc.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.Serve(listener, rpc.Services{Agent: laterAgent{}}, rpc.ServerConfig{})
	t.Cleanup(s.Kill)
	d := &deployment{T: t, directory: t.TempDir()}
	config := d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\nagents: {leaf-0: '"+s.Addr().String()+"'}\n")
	m := launch(t, "offload-manager", "serve", "--config", config)
	d.address = attribute(m.await("manager started"), "address")
	own := strings.Fields(d.ask("version"))[1]
	m.ever("the agent is of another version", "switch=leaf-0", "version=", own, "theirs=v9.9.9")
	if out := d.ask("switch", "list"); !strings.Contains(out, "v9.9.9") {
		t.Errorf("it lists\n%s", out)
	}
}
