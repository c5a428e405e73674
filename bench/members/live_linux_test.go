package members_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/topology"
)

// nodeVariable has this test's binary be a node; it holds its Config as JSON.
const nodeVariable = "MEMBERSHIP_TEST_NODE"

// TestMain lets this binary be a node of a zone, in a process of its own.
func TestMain(m *testing.M) {
	text := os.Getenv(nodeVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := beNode(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beNode joins, and writes its view, by name, after every change, until its
// standard input ends.
func beNode(text string) error {
	var c membership.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Encrypt { // JSON has no secrets
		c.Keys = []membership.Key{{Number: 1, Secret: [32]byte{7}}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n, err := membership.Join(ctx, c)
	if err != nil {
		return err
	}
	defer n.Close(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	w := n.Watcher()
	defer w.Close()
	view := map[string]bool{}
	for {
		all, err := w.Next(ctx)
		if err != nil {
			return nil
		}
		for _, x := range all {
			if x.Kind == membership.Joined {
				view[x.Member.Name] = true
			} else {
				delete(view, x.Member.Name)
			}
		}
		names := make([]string, 0, len(view))
		for name := range view {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Println(strings.Join(names, " "))
	}
}

// process is a node in a namespace.
type process struct {
	name  string
	cmd   *exec.Cmd
	views chan string // as it writes them; closed when it ends
}

// start starts a node on a host of the lab.
func start(t *testing.T, lab *netlab.Lab, host int, c membership.Config) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: c.Name, cmd: exec.Command(os.Args[0]), views: make(chan string, 4096)}
	p.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(topology.NodeID(host), p.cmd); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.views)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.views <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-read
		_ = p.cmd.Wait() // of those killed an error
	})
	return p
}

// sees waits until a node's view is that.
func (p *process) sees(ctx context.Context, want string) error {
	last := ""
	for {
		select {
		case view, alive := <-p.views:
			if !alive {
				return fmt.Errorf("%s has ended", p.name)
			}
			if last = view; view == want {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("%s sees %q, want %q", p.name, last, want)
		}
	}
}

// town is a zone of processes on a fabric of namespaces, one in each.
type town struct {
	t         *testing.T
	lab       *netlab.Lab
	processes []*process
}

// newTown starts a process on each host, and waits until they agree.
func newTown(t *testing.T) *town {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	lab, err := netlab.Build(netlab.Config{Prefix: "mbtest", HostsPerLeaf: 4, Leaves: 4, Spines: 2})
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("root may not make network namespaces here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	town := &town{t, lab, make([]*process, lab.Topology().Hosts())}
	for i := range town.processes {
		town.start(i)
	}
	town.agree(everybody)
	return town
}

// start starts the process of a host.
func (v *town) start(i int) {
	v.t.Helper()
	address := func(i int) string { return fmt.Sprintf("%v:7946", v.lab.HostAddr(topology.NodeID(i))) }
	v.processes[i] = start(v.t, v.lab, i, membership.Config{
		Name: fmt.Sprintf("h%02d", i), Listen: address(i), Bootstrap: []string{address(0), address(1), address(2)},
		Monitor: i == 2, Encrypt: true,
	})
}

// signal sends a signal to some.
func (v *town) signal(to func(i int) bool, s syscall.Signal) {
	v.t.Helper()
	for i, p := range v.processes {
		if !to(i) {
			continue
		}
		if err := p.cmd.Process.Signal(s); err != nil {
			v.t.Fatal(err)
		}
	}
}

// agree waits until some see each other and nobody else.
func (v *town) agree(some func(i int) bool) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	var names []string
	for i, p := range v.processes {
		if some(i) {
			names = append(names, p.name)
		}
	}
	want := strings.Join(names, " ")
	for i, p := range v.processes {
		if !some(i) {
			continue
		}
		if err := p.sees(ctx, want); err != nil {
			v.t.Fatal(err)
		}
	}
}

func everybody(int) bool { return true }

func odd(i int) bool { return i%2 == 1 }

func even(i int) bool { return !odd(i) }

// TestHalfKilled kills half of the processes of a zone at once, and waits until
// the others agree on who is left; then it starts them again.
func TestHalfKilled(t *testing.T) {
	v := newTown(t)
	v.signal(odd, syscall.SIGKILL)
	v.agree(even)
	for i := range v.processes {
		if odd(i) {
			v.start(i)
		}
	}
	v.agree(everybody)
}

// TestHalfKilledQuarterStopped kills half of the processes of a zone, and stops
// half of the others until the rest holds them for dead, too. Then these go on, and
// nobody stays dead who is alive.
func TestHalfKilledQuarterStopped(t *testing.T) {
	v := newTown(t)
	stopped := func(i int) bool { return i%4 == 0 }
	t.Cleanup(func() { v.signal(stopped, syscall.SIGCONT) }) // or nobody sees its end
	v.signal(odd, syscall.SIGKILL)
	v.signal(stopped, syscall.SIGSTOP)
	v.agree(func(i int) bool { return even(i) && !stopped(i) })
	v.signal(stopped, syscall.SIGCONT)
	v.agree(even)
}
