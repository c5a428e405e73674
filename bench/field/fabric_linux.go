package field

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// The ports of a fabric's processes, each in a namespace of its own.
const (
	managerPort  = 7100
	agentPort    = 7101
	streamPort   = 7102
	hostPort     = 7110 // and those above it, one a group
	processPorts = 100  // by which those of a host's processes differ
)

// What processes are started as: links to the program.
const (
	roleManager = "manager"
	roleSwitch  = "switch"
	roleHost    = "host"
)

// MaxGroups is how many groups can measure at once.
const MaxGroups = 8

// Config says what fabric to run.
type Config struct {
	Lab       netlab.Config
	Program   []string  // the command that runs a process, to which its own arguments are added
	Processes int       // of each host that are members; 0: one
	Env       []string  // of all processes; nil: this one's
	TLS       bool      // hosts have certificates
	Model     string    // file of the manager's cost model; empty: the default
	Loss      float64   // share of the packets of trees that is lost wherever one is sent
	Kernel    bool      // switches reduce in their kernels
	Verbose   bool      // the processes report what they do
	Log       io.Writer // what processes say on standard error, line by line; nil: nobody hears it

	Verify time.Duration // how often the manager holds trees against what links carried; 0: its default
}

// Fabric is a fabric that runs. Its methods are for one goroutine.
type Fabric struct {
	cfg     Config
	lab     *netlab.Lab
	dir     string // of the files that processes read
	talk    sync.Mutex
	manager *process
	agents  map[string]*process // by switch
	stream  *stream             // nil: none
}

// Start builds a lab and starts a manager and agents in it, which find each
// other in their own time. The caller owns the fabric and must Close it.
func Start(c Config) (*Fabric, error) {
	if c.Log == nil {
		c.Log = io.Discard
	}
	lab, err := netlab.Build(c.Lab)
	if err != nil {
		return nil, err
	}
	f := &Fabric{cfg: c, lab: lab, agents: map[string]*process{}}
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fabric) start() (err error) {
	// The lab is the only one of its prefix: what is there was left behind.
	dir := filepath.Join("/run", "tributary-collbench-"+f.cfg.Lab.Prefix)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	f.dir = dir
	program, err := filepath.Abs(f.cfg.Program[0])
	if err != nil {
		return err
	}
	for _, role := range []string{roleManager, roleSwitch, roleHost} {
		if err := os.Symlink(program, filepath.Join(dir, role)); err != nil {
			return err
		}
	}
	g := f.lab.Topology()
	if err := f.write(f.fabricFile(), func(w io.Writer) error { return topology.WriteYAML(w, g) }); err != nil {
		return err
	}
	for group := range MaxGroups {
		if err := f.write(f.memberFile(group), func(w io.Writer) error { return WriteMembers(w, f.members(group)) }); err != nil {
			return err
		}
	}
	if f.cfg.TLS {
		ids := make([]pki.Identity, g.Hosts())
		for n := range ids {
			ids[n] = f.identity(topology.NodeID(n))
		}
		if _, err := pki.Init(f.trustDir(), ids...); err != nil {
			return err
		}
	}
	for i := range g.Switches() {
		if err := f.launchAgent(g.Switch(i)); err != nil {
			return err
		}
	}
	for i := range g.Switches() {
		if err := f.awaitAgent(g.Switch(i)); err != nil {
			return err
		}
	}
	return f.StartManager()
}

func at(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }

func (f *Fabric) fabricFile() string { return filepath.Join(f.dir, "fabric.yaml") }
func (f *Fabric) storeFile() string  { return filepath.Join(f.dir, "manager.db") }
func (f *Fabric) trustDir() string   { return filepath.Join(f.dir, "trust") }

func (f *Fabric) identity(host topology.NodeID) pki.Identity {
	return pki.Identity{Role: pki.Host, Name: f.lab.Topology().Name(host)}
}

func (f *Fabric) memberFile(group int) string {
	return filepath.Join(f.dir, "members-"+strconv.Itoa(group))
}

// Ranks returns the members of a group: all processes of all hosts.
func (f *Fabric) Ranks() int { return f.lab.Topology().Hosts() * max(1, f.cfg.Processes) }

// hostOf returns the host of a rank: those of a host follow each other.
func (f *Fabric) hostOf(rank int) topology.NodeID {
	return topology.NodeID(rank / max(1, f.cfg.Processes))
}

// members returns the members of a group, each at a port that it has for itself.
func (f *Fabric) members(group int) (all []hostlib.Member) {
	g := f.lab.Topology()
	for r := range f.Ranks() {
		n, k := f.hostOf(r), r%max(1, f.cfg.Processes)
		m := hostlib.Member{Host: g.Name(n), Addr: at(f.lab.HostAddr(n), hostPort+uint16(group+processPorts*k))}
		if f.cfg.Processes > 1 {
			m.Process = strconv.Itoa(k)
		}
		all = append(all, m)
	}
	return all
}

func (f *Fabric) write(path string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// command returns a process of the program that speaks by a name. To ps and perf
// it is known by its role.
func (f *Fabric) command(role, name string, args ...string) *exec.Cmd {
	all := append(slices.Clone(f.cfg.Program[1:]), args...)
	if f.cfg.Verbose {
		all = append(all, "--verbose")
	}
	cmd := exec.Command(filepath.Join(f.dir, role), all...)
	cmd.Env = f.cfg.Env
	cmd.Stderr = &speaker{name: name, mu: &f.talk, w: f.cfg.Log}
	return cmd
}

func (f *Fabric) managerAddr() string { return at(f.lab.StationAddr(), managerPort) }

// StartManager starts the manager, which knows an earlier one's groups by its
// store, as one that is deployed does.
func (f *Fabric) StartManager() (err error) {
	g := f.lab.Topology()
	args := []string{"node", "manager", "--topology", f.fabricFile(), "--store", f.storeFile(), "--listen", f.managerAddr(), "--verify", f.cfg.Verify.String()}
	for i := range g.Switches() {
		args = append(args, "--agent", g.Name(g.Switch(i))+"="+at(f.lab.AloofAddr(g.Switch(i)), agentPort))
	}
	if f.cfg.Model != "" {
		args = append(args, "--model", f.cfg.Model)
	}
	f.manager, err = launch("manager", f.command(roleManager, "manager", args...), f.lab.StartAtStation)
	return err
}

// KillManager ends the manager as kill -9 does.
func (f *Fabric) KillManager() { f.manager.kill() }

// StartAgent starts the agent of a switch.
func (f *Fabric) StartAgent(name string) error {
	n, ok := f.lab.Topology().Lookup(name)
	if !ok || !f.lab.Topology().IsSwitch(n) {
		return fmt.Errorf("%w: switch %q", netlab.ErrUnknown, name)
	}
	if err := f.launchAgent(n); err != nil {
		return err
	}
	return f.awaitAgent(n)
}

func (f *Fabric) launchAgent(n topology.NodeID) (err error) {
	name := f.lab.Topology().Name(n)
	cmd := f.command(roleSwitch, name, "node", "agent", "--topology", f.fabricFile(), "--switch", name,
		"--listen", at(f.lab.AloofAddr(n), agentPort), "--loss", f.loss(), fmt.Sprintf("--kernel=%t", f.cfg.Kernel))
	f.agents[name], err = launchMeasured(name, cmd, func(c *exec.Cmd) error { return f.lab.Start(n, c) })
	return err
}

// awaitAgent waits until a switch's agent listens, if its kernel is to reduce: to load the
// program takes longer than members wait for a tree.
func (f *Fabric) awaitAgent(n topology.NodeID) error {
	if !f.cfg.Kernel {
		return nil
	}
	const patience, pause = 30 * time.Second, 10 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	return f.lab.Do(n, func() error {
		for until := time.Now().Add(patience); ; <-tick.C {
			conn, err := net.DialTimeout("tcp", at(f.lab.AloofAddr(n), agentPort), patience)
			if err == nil {
				return conn.Close()
			}
			if time.Now().After(until) {
				return fmt.Errorf("the agent of switch %s does not listen: %w", f.lab.Topology().Name(n), err)
			}
		}
	})
}

// KillAgent ends a switch's agent as kill -9 does.
func (f *Fabric) KillAgent(name string) error {
	p := f.agents[name]
	if p == nil {
		return fmt.Errorf("%w: switch %q", netlab.ErrUnknown, name)
	}
	p.kill()
	return nil
}

func (f *Fabric) loss() string { return strconv.FormatFloat(f.cfg.Loss, 'g', -1, 64) }

// Lab returns the lab that the fabric runs in.
func (f *Fabric) Lab() *netlab.Lab { return f.lab }

// Tree asks the manager where the tree of the group that measures is.
func (f *Fabric) Tree(ctx context.Context) (pathsel.Tree, error) {
	var said bytes.Buffer
	cmd := f.command(roleManager, "look", "node", "tree", "--manager", f.managerAddr(), "--name", Communicator)
	cmd.Stdout = &said
	p, err := launch("look", cmd, f.lab.StartAtStation)
	if err != nil {
		return pathsel.Tree{}, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return pathsel.Tree{}, ctx.Err()
	}
	if p.err != nil {
		return pathsel.Tree{}, fmt.Errorf("%w: %w", ErrNoTree, p.err)
	}
	var t rpc.TreeState
	if err := json.Unmarshal(said.Bytes(), &t); err != nil {
		return pathsel.Tree{}, fmt.Errorf("%w: %w", ErrNoTree, err)
	}
	return t.In(f.lab.Topology())
}

// Close ends all processes, and removes the lab and the files.
func (f *Fabric) Close() error {
	if f.manager != nil {
		stop([]*process{f.manager}) // first: it would report every agent that goes
	}
	var all []*process
	for _, p := range f.agents {
		if p != nil {
			all = append(all, p)
		}
	}
	if f.stream != nil {
		all = append(all, f.stream.source, f.stream.sink)
	}
	stop(all)
	err := f.lab.Close()
	if f.dir != "" {
		err = errors.Join(err, os.RemoveAll(f.dir))
	}
	return err
}
