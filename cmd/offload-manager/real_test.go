package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience is how long a test waits for what must happen; it is never waited
// for in full where it does.
const patience = 60 * time.Second

// binaries are built by the first test that needs them, and removed by
// TestMain.
var binaries struct {
	once      sync.Once
	directory string
	err       error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binaries.directory != "" {
		_ = os.RemoveAll(binaries.directory)
	}
	os.Exit(code)
}

// builds is how docs/deploy.md builds all commands; bin/ is where tests want it.
var builds = []string{"go build -o bin/ ./cmd/...", "go build -C bench -o ../bin/ ./cmd/..."}

// binary returns the path of a command of this module.
func binary(t *testing.T, name string) string {
	t.Helper()
	binaries.once.Do(func() {
		if binaries.directory, binaries.err = os.MkdirTemp("", "offload-manager-test-"); binaries.err != nil {
			return
		}
		directory := " " + filepath.Join(binaries.directory, "bin") + "/"
		for _, build := range builds {
			args := strings.Fields(strings.NewReplacer(" bin/", directory, " ../bin/", directory).Replace(build))
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = "../.."
			if out, err := cmd.CombinedOutput(); err != nil {
				binaries.err = fmt.Errorf("%w: %s", err, out)
				return
			}
		}
	})
	if binaries.err != nil {
		t.Fatal(binaries.err)
	}
	return filepath.Join(binaries.directory, "bin", name)
}

// child is a command that runs, and what it has logged.
type child struct {
	*testing.T
	cmd   *exec.Cmd
	lines chan string // of its standard error output
	last  []string
}

// launch starts a command, which is killed at the end of the test.
func launch(t *testing.T, name string, args ...string) *child {
	t.Helper()
	return follow(t, exec.Command(binary(t, name), args...))
}

// follow starts a process, and reads what it logs; it is killed at the end of
// the test.
func follow(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	p := &child{T: t, cmd: cmd, lines: make(chan string, 10000)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-read
		_ = p.cmd.Wait()
	})
	return p
}

// await waits for a line with all of these texts.
func (p *child) await(texts ...string) string {
	p.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.Fatalf("it ended without saying %q, but:\n%s", texts, strings.Join(p.last, "\n"))
			}
			p.last = append(p.last, line)
			if containsAll(line, texts) {
				return line
			}
		case <-timer.C:
			p.Fatalf("it did not say %q, but:\n%s", texts, strings.Join(p.last, "\n"))
		}
	}
}

// ever is await for a line that may have come before the last one that was awaited.
func (p *child) ever(texts ...string) string {
	p.Helper()
	for _, line := range p.last {
		if containsAll(line, texts) {
			return line
		}
	}
	return p.await(texts...)
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// end sends a signal, waits until the process has ended, and returns its status.
func (p *child) end(s os.Signal) int {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
	for line := range p.lines {
		p.last = append(p.last, line)
	}
	_ = p.cmd.Wait() // the status reports
	return p.cmd.ProcessState.ExitCode()
}

// attribute returns the value of an attribute in a line of a log.
func attribute(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// deployment is a manager, its agents and hosts, each as users start them; the
// hosts are in the test's process.
type deployment struct {
	settings string // of all agents, beyond names and addresses
	*testing.T
	directory string
	manager   *child
	address   string            // of the manager
	agents    map[string]*child // by switch
	at        map[string]string // agents' addresses
	client    *rpc.ManagerClient
}

const fabricSpec = "leaf-spine:2,2,2"

// deploy starts agents and then a manager.
func deploy(t *testing.T) *deployment {
	t.Helper()
	return deployWith(t, "measure: false\n") // a speed that is measured changes what is shown
}

// deployWith is deploy with further settings of all agents.
func deployWith(t *testing.T, settings string) *deployment {
	t.Helper()
	d := &deployment{T: t, settings: settings, directory: t.TempDir(), agents: map[string]*child{}, at: map[string]string{}, address: loopback.Address(t)}
	for _, name := range []string{"leaf-0", "leaf-1", "spine-0", "spine-1"} {
		d.at[name] = loopback.Address(t)
		d.startAgent(name)
	}
	var agents strings.Builder
	for name, address := range d.at {
		fmt.Fprintf(&agents, "  %s: %s\n", name, address)
	}
	d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nstore: manager.db\nadmin: {listen: 127.0.0.1:0}\nlimits: {first-window: 256}\nperiods: {heartbeat: 1m, connect: 100ms, release-grace: 100ms}\nagents:\n"+agents.String())
	d.startManager()
	d.connected()
	return d
}

// connected waits until the manager has all agents.
func (d *deployment) connected() {
	d.Helper()
	d.eventually("all agents are met", func(ctx context.Context) (bool, error) {
		fabric, err := d.client.Topology(ctx)
		for _, n := range fabric.Nodes {
			if n.Switch != nil && !n.Switch.Connected {
				return false, err
			}
		}
		return err == nil, err
	})
}

func (d *deployment) write(name, text string) string {
	d.Helper()
	path := filepath.Join(d.directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	return path
}

// startAgent starts an agent, at its former address if it had one.
func (d *deployment) startAgent(name string) {
	d.Helper()
	path := d.write(name+".yaml", "version: 1\nswitch: "+name+"\nlisten: 127.0.0.1:0\n"+d.settings)
	p := launch(d.T, "switch-agent", "run", "--config", path, "--listen", d.at[name])
	d.at[name] = attribute(p.await("waiting for a manager to call", "switch="+name), "address")
	d.agents[name] = p
}

// startManager starts the manager, at its former address if it had one.
func (d *deployment) startManager() {
	d.Helper()
	d.manager = launch(d.T, "offload-manager", "serve", "--config", filepath.Join(d.directory, "manager.yaml"), "--listen", d.address)
	d.address = attribute(d.manager.await("manager started"), "address")
	if d.client == nil {
		var err error
		if d.client, err = rpc.DialManager(d.address, rpc.ClientConfig{}); err != nil {
			d.Fatal(err)
		}
		d.Cleanup(func() { _ = d.client.Close() })
	}
}

// ask runs a command that asks the manager.
func (d *deployment) ask(args ...string) string {
	d.Helper()
	out, err := d.try(args...)
	if err != nil {
		d.Fatalf("%v: %v", args, err)
	}
	return out
}

func (d *deployment) try(args ...string) (string, error) {
	d.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(d.Context(), binary(d.T, "offload-manager"), args...)
	cmd.Env = append(os.Environ(), "TRIBUTARY_MANAGER="+d.address)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), err
}

// eventually asks the manager again and again until the answer is yes. Each
// question waits for the manager's answer.
func (d *deployment) eventually(what string, ask func(context.Context) (bool, error)) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	defer cancel()
	for {
		ok, err := ask(ctx)
		if ok {
			return
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, rpc.ErrUnavailable) {
			d.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// crew is a group whose members run in the test.
type crew struct {
	*deployment
	comms []*hostlib.Communicator
}

// gather joins all hosts of the fabric and makes a communicator of them.
func (d *deployment) gather(name string) *crew {
	d.Helper()
	g, err := topology.Parse(fabricSpec)
	if err != nil {
		d.Fatal(err)
	}
	var hosts []*hostlib.Host
	var members []hostlib.Member
	for n := range topology.NodeID(g.Nodes()) {
		if !g.IsHost(n) {
			continue
		}
		h, err := hostlib.Join(d.Context(), hostlib.Config{Name: g.Name(n), Manager: d.address, OfferWait: patience})
		if err != nil {
			d.Fatal(err)
		}
		d.Cleanup(func() { _ = h.Close(context.Background()) })
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	c := &crew{deployment: d, comms: make([]*hostlib.Communicator, len(hosts))}
	c.each(func(rank int) (err error) {
		c.comms[rank], err = hosts[rank].Communicator(d.Context(), name, members)
		return err
	})
	return c
}

// each does something at all members at once.
func (c *crew) each(do func(rank int) error) {
	c.Helper()
	errs := make([]error, len(c.comms))
	var all sync.WaitGroup
	for rank := range c.comms {
		all.Go(func() { errs[rank] = do(rank) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.Fatal(err)
	}
}

// allreduce sums vectors, checks the results, and returns how it went at the
// lowest rank.
func (c *crew) allreduce() hostlib.Outcome {
	c.Helper()
	const elements = 20000
	var first hostlib.Outcome
	c.each(func(rank int) error {
		v := make([]int64, elements)
		for i := range v {
			v[i] = int64(rank+1) * int64(i)
		}
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		outcome, err := hostlib.Allreduce(ctx, c.comms[rank], reduce.Sum, v, v)
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		if rank == 0 {
			first = outcome
		}
		n := int64(len(c.comms))
		for i := range v {
			if v[i] != int64(i)*n*(n+1)/2 {
				return fmt.Errorf("rank %d: element %d is %d", rank, i, v[i])
			}
		}
		return nil
	})
	return first
}

// root returns the root of the active tree of the group that is the only one,
// and its number and epoch; no root while there is no such tree.
func (d *deployment) root(ctx context.Context) (root string, group, epoch uint32, err error) {
	groups, err := d.client.Groups(ctx)
	if err != nil || len(groups) != 1 {
		return "", 0, 0, err
	}
	e, err := d.client.Explain(ctx, rpc.GroupRef{Group: groups[0].Group})
	if err != nil {
		return "", 0, 0, err
	}
	for _, t := range e.Trees {
		if t.Epoch == e.Epoch {
			return t.Switches[0].Switch, e.Group, e.Epoch, nil
		}
	}
	return "", e.Group, 0, nil
}

// terminate ends a process as an operator would.
const terminate = syscall.SIGTERM
