package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/topology"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
}

// TestFabric measures, and holds the links' counters against the tree.
func TestFabric(t *testing.T) {
	needRoot(t)
	rows, log, err := command(t, "fabric", "--prefix", "cbtest", "--hosts-per-leaf", "2", "--rate", "200mbit",
		"--bytes", "8,64KiB,1MiB", "--iterations", "10,5,2", "--transport", "offload")
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %q\n%s", err, rows, log)
	}
	for _, row := range rows {
		if row[colTransport] != "offload" || row[colResult] != "right" {
			t.Errorf("%q", row)
		}
	}
	if strings.Contains(log, "ALARM") || strings.Count(log, "tree with root spine-") != 3 {
		t.Errorf("%s", log)
	}
}

// TestFabricRails has a host lose one of its two links to leaves in each way, and get it back:
// all results are right.
func TestFabricRails(t *testing.T) {
	needRoot(t)
	for _, fault := range []string{"unplug", "disable", "down", "out", "in"} {
		rows, log, err := command(t, "fabric", "--prefix", "cbrails", "--hosts-per-leaf", "3", "--leaves", "2", "--spines", "0", "--host-rails", "2",
			"--rate", "200mbit", "--bytes", "1MiB", "--iterations", "60", "--stripes", "-1", "--transport", "auto",
			"--cut", "h1.rail0 "+fault+"@200ms up@700ms; h2.rail1 "+fault+"@900ms up@1s")
		if err != nil || len(rows) != 1 || rows[0][colResult] != "right" || rows[0][colTransport] == "host-tree" {
			t.Errorf("%s: %v, %q\n%s", fault, err, rows, log)
		}
		if !strings.Contains(log, "h1.rail0 "+fault+"@200ms: rail0 ") {
			t.Errorf("nothing is said of the cut:\n%s", log)
		}
	}
	_, _, err := command(t, "fabric", "--prefix", "cbrails", "--host-rails", "2", "--cut", "h0.rail0 delete@1s")
	if !errors.Is(err, errUsage) {
		t.Error(err)
	}
}

// TestForm measures the forming of communicators, and what runs over hosts, with
// certificates.
func TestForm(t *testing.T) {
	needRoot(t)
	for _, args := range [][]string{{"--function", "form", "--bytes", "0", "--tls"}, {"--function", "form", "--bytes", "0"}, {"--bytes", "1MiB", "--tls"}} {
		rows, log, err := command(t, append([]string{
			"fabric", "--prefix", "cbform", "--hosts-per-leaf", "2", "--iterations", "3", "--transport", "host",
		}, args...)...)
		if err != nil || len(rows) != 1 || rows[0][colTransport] != "host-tree" || rows[0][colResult] != "right" {
			t.Errorf("%q: %v, %q\n%s", args, err, rows, log)
		}
	}
}

// TestSeveralTrees measures with two trees, over trunks that are narrower than the
// hosts' links.
func TestSeveralTrees(t *testing.T) {
	needRoot(t)
	for _, flag := range []string{"--stripes", "--roots"} {
		rows, log, err := command(t, "fabric", "--prefix", "cbtrees", "--hosts-per-leaf", "2", "--rate", "200mbit", "--trunk-rate", "100mbit",
			flag, "2", "--bytes", "8,1MiB", "--iterations", "5,2", "--transport", "offload")
		if err != nil || len(rows) != 2 {
			t.Fatalf("%s: %v, %q\n%s", flag, err, rows, log)
		}
		for _, row := range rows {
			if row[colTransport] != "offload" || row[colResult] != "right" {
				t.Errorf("%s: %q", flag, row)
			}
		}
	}
}

// TestCosts measures two groups at once beside a TCP stream, with profiles.
func TestCosts(t *testing.T) {
	needRoot(t)
	t.Parallel()
	dir := t.TempDir()
	out, log, err := commandText(t, "fabric", "--prefix", "cbcosts", "--hosts-per-leaf", "1", "--rate", "100mbit", "--groups", "2", "--beside-tcp",
		"--bytes", "256KiB", "--iterations", "12", "--transport", "offload", "--cpuprofile", dir, "--format", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	var r report.Records
	if err := r.Read(strings.NewReader(out), "stdout"); err != nil || len(r.Measurements) != 2 || len(r.Contentions) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range r.Measurements {
		if !m.Right || m.Groups != 2 || m.Pace != "stream" || m.Hosts.Processor() <= 0 || m.Switches.Processor() <= 0 ||
			m.Hosts.PacketsOut < 2*4*4 || m.Switches.PacketsIn < m.Hosts.PacketsOut/2 {
			t.Errorf("%+v", m)
		}
	}
	c := r.Contentions[0]
	if len(c.Shares) != 3 || c.Jain <= 0 || c.Jain > 1 {
		t.Errorf("%+v", c)
	}
	for i, s := range c.Shares {
		// In the beginning a bucket may have been full; of the stream, which is
		// the last, also the buffer of a reader that was held up.
		if s.Link <= 0 || s.Link > 1.2 && i < 2 {
			t.Errorf("%+v", s)
		}
	}
	for _, name := range []string{"hosts-262144-h0", "hosts-262144-h1+1", "switches-262144-leaf-0"} {
		out, err := exec.Command("go", "tool", "pprof", "-raw", filepath.Join(dir, name+".pprof")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "cpu/nanoseconds") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestRoles: perf distinguishes hosts from switches by the names of the processes.
func TestRoles(t *testing.T) {
	needRoot(t)
	t.Parallel()
	newTrial(t, "cbroles", field.Config{})
	own := map[string]int{}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may have ended
		if strings.HasPrefix(string(line), "/run/tributary-collbench-cbroles/") {
			comm, _ := os.ReadFile(filepath.Join(p, "comm"))
			own[strings.TrimSpace(string(comm))]++
		}
	}
	if own["manager"] != 1 || own["switch"] != 4 || len(own) != 2 {
		t.Errorf("%v", own)
	}
}

// TestFabricLoss loses packets of trees at every sender.
func TestFabricLoss(t *testing.T) {
	needRoot(t)
	t.Parallel()
	for _, loss := range []string{"0.01", "0.1"} {
		t.Run(loss, func(t *testing.T) {
			t.Parallel()
			rows, log, err := command(t, "fabric", "--prefix", "cbloss"+strings.ReplaceAll(loss, ".", "-"), "--hosts-per-leaf", "2",
				"--rate", "200mbit", "--loss", loss, "--bytes", "8,128KiB", "--iterations", "2")
			if err != nil || len(rows) != 2 {
				t.Fatalf("%v, %q\n%s", err, rows, log)
			}
			for _, row := range rows {
				if row[colResult] != "right" {
					t.Errorf("%q", row)
				}
			}
		})
	}
}

// trial is a fabric in which something happens in the middle of an operation.
type trial struct {
	*field.Fabric
	t   *testing.T
	ctx context.Context
	log *logtest.Log
}

// newTrial starts a fabric of four hosts, which goes with the test.
func newTrial(t *testing.T, prefix string, c field.Config) *trial {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	tr := &trial{t: t, ctx: ctx, log: new(logtest.Log)}
	c.Lab = netlab.Config{Prefix: prefix, HostsPerLeaf: 2, Leaves: 2, Spines: 2, Rate: 50e6}
	c.Program, c.Log = []string{os.Args[0]}, tr.log
	var err error
	if tr.Fabric, err = field.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// size is the vector's in a trial: it takes a third of a second at 50 Mbit/s.
const size = 2 << 20

// measure runs two operations of so many bytes, in the second of which strike is
// called when a quarter of it has passed, and returns the way and the result.
func (tr *trial) measure(size int, strike func() error) (transport, result string) {
	tr.t.Helper()
	args := []string{"--bytes", fmt.Sprint(size), "--iterations", "1", "--rate", "50mbit", "--type", "int32", "--offer-wait", "30s"}
	struck := make(chan error, 1)
	var rows []timing.Row
	mark := func(_ int, begins bool) error {
		if !begins {
			return <-struck
		}
		before, err := tr.Lab().Counts()
		if err != nil {
			return err
		}
		go func() { struck <- tr.inTheMiddle(before, uint64(size/4), strike) }()
		return nil
	}
	take := func(s field.Sample) error { rows = append(rows, s.Row); return nil }
	if err := tr.Measure(tr.ctx, field.Run{Args: args, Mark: mark, Take: take}); err != nil || len(rows) != 1 {
		tr.t.Fatalf("%v, %v\n%s", err, rows, tr.log)
	}
	tr.t.Logf("by %s in %.0f us", rows[0].Transport, rows[0].Median)
	if !rows[0].Right {
		return rows[0].Transport, "wrong"
	}
	return rows[0].Transport, "right"
}

// inTheMiddle calls strike when host h0 has sent so many bytes.
func (tr *trial) inTheMiddle(before netlab.Counts, sent uint64, strike func() error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := tr.Lab().Counts()
		if err != nil {
			return err
		}
		if now.Since(before)[0][0].Bytes > sent {
			return strike()
		}
		select {
		case <-tick.C:
		case <-tr.ctx.Done():
			return tr.ctx.Err()
		}
	}
}

// root returns the name of the root of the tree, by asking for it until there
// is one.
func (tr *trial) root() (string, error) {
	tree, err := tr.Tree(tr.ctx)
	if err != nil {
		return "", err
	}
	return tr.Lab().Topology().Name(tree.Root()), nil
}

// TestFabricFaults lets things happen in the middle of an operation: the
// result is right, the way is reported, and when all is well again the next group
// runs over switches.
func TestFabricFaults(t *testing.T) {
	t.Parallel()
	testFabricFaults(t, false)
}

// TestFabricFaultsInKernels: likewise where switches reduce in their kernels. It runs alone:
// each agent's program is verified first, which takes half a second of a processor.
func TestFabricFaultsInKernels(t *testing.T) { testFabricFaults(t, true) }

func testFabricFaults(t *testing.T, kernel bool) {
	needRoot(t)
	// A new tree may be there before the hosts have begun anew over their own.
	const anotherTree, noTree, untouched = "offload or mixed", "mixed", "offload"
	for name, test := range map[string]struct {
		prefix     string
		strike     func(*trial) (restore func() error, err error)
		transports string
	}{
		"the root's agent is killed": {"cbroot", func(tr *trial) (func() error, error) {
			root, err := tr.root()
			if err != nil {
				return nil, err
			}
			return func() error { return tr.StartAgent(root) }, tr.KillAgent(root)
		}, anotherTree},
		"a leaf's agent is killed": {"cbleaf", func(tr *trial) (func() error, error) {
			return func() error { return tr.StartAgent("leaf-1") }, tr.KillAgent("leaf-1")
		}, noTree},
		"the manager is killed": {"cbmanager", func(tr *trial) (func() error, error) {
			tr.KillManager()
			return tr.StartManager, nil
		}, untouched},
		"a trunk is down": {"cbtrunk", func(tr *trial) (func() error, error) {
			tree, err := tr.Tree(tr.ctx)
			if err != nil {
				return nil, err
			}
			var trunk topology.LinkID
			for _, v := range tree.Vertices {
				if v.Parent >= 0 {
					trunk = v.Up
				}
			}
			return func() error { return tr.Lab().SetLink(trunk, true) }, tr.Lab().SetLink(trunk, false)
		}, anotherTree},
		"a host's link is down for a while": {"cbhost", func(tr *trial) (func() error, error) {
			lab := tr.Lab()
			link := lab.Topology().Adjacent(1)[0]
			if err := lab.SetLink(link, false); err != nil {
				return nil, err
			}
			for { // until the manager has taken the tree back
				if _, err := tr.Tree(tr.ctx); errors.Is(err, field.ErrNoTree) {
					break
				} else if err != nil {
					return nil, err
				}
			}
			return func() error { return nil }, lab.SetLink(link, true)
		}, anotherTree},
	} {
		t.Run(name, func(t *testing.T) {
			if !kernel {
				t.Parallel()
			}
			tr := newTrial(t, fmt.Sprintf("%s%t", test.prefix, kernel)[:len(test.prefix)+1], field.Config{Kernel: kernel})
			var restore func() error
			transport, result := tr.measure(size, func() (err error) { restore, err = test.strike(tr); return err })
			if !strings.Contains(test.transports, transport) || result != "right" {
				t.Errorf("it ran by %s, and the result is %s\n%s", transport, result, tr.log)
			}
			if err := restore(); err != nil {
				t.Fatal(err)
			}
			if transport, result = tr.measure(size, func() error { return nil }); transport != "offload" || result != "right" {
				t.Errorf("afterwards it ran by %s, and the result is %s\n%s", transport, result, tr.log)
			}
		})
	}
}

// detoured is the bytes of a vector of which a quarter is more than may be on its
// way, two windows of full packets, and the quarter of what was sent that a queue may
// drop: half as much again. So the detour may be made late, on a busy machine: when
// three quarters of the vector have passed.
const detoured = hostlib.DefaultWindow * 1500 * (2 * 4 * 4 * 3) / (3 * 2)

// TestMisplacedTree has the manager hold a tree against what the links carry:
// while all is well, and while packets are lost, there is no alarm; once a
// route leads an edge of the tree over other links, the alarm names the link
// that it was planned on. The results are right all the time.
func TestMisplacedTree(t *testing.T) {
	t.Parallel()
	testMisplacedTree(t, false)
}

// TestMisplacedTreeInKernels: likewise where switches reduce in their kernels.
func TestMisplacedTreeInKernels(t *testing.T) { testMisplacedTree(t, true) }

func testMisplacedTree(t *testing.T, kernel bool) {
	needRoot(t)
	const alarm = "tree is not where it was planned"
	for name, test := range map[string]struct {
		loss   float64
		detour bool
	}{"well": {}, "loss": {loss: 0.02}, "detour": {detour: true}} {
		t.Run(name, func(t *testing.T) {
			if !kernel {
				t.Parallel()
			}
			tr := newTrial(t, "cbplace-"+name, field.Config{Loss: test.loss, Kernel: kernel, Verify: 20 * time.Millisecond})
			divert, size := func() error { return nil }, size
			if test.detour {
				size = detoured
				divert = func() error {
					trunk, err := tr.divert()
					if err != nil {
						return err
					}
					// The group stays until this returns, and with it its counts.
					for _, direction := range []string{"sent", "received"} {
						link := tr.Lab().Topology().LinkName(trunk)
						if !tr.says(alarm, "link="+link+" ", "direction="+direction+" ") {
							return fmt.Errorf("no alarm about what was %s over link %s", direction, link)
						}
					}
					return nil
				}
			}
			transport, result := tr.measure(size, divert)
			if result != "right" || transport != "offload" && test.loss == 0 {
				t.Errorf("it ran by %s, and the result is %s\n%s", transport, result, tr.log)
			}
			if said := tr.log.String(); !test.detour && strings.Contains(said, alarm) {
				t.Errorf("a false alarm:\n%s", said)
			}
		})
	}
}

// says waits for a line of the processes' logs with all of these texts, and
// reports whether it came.
func (tr *trial) says(texts ...string) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for line := range strings.Lines(tr.log.String()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		select {
		case <-tick.C:
		case <-tr.ctx.Done():
			return false
		}
	}
}

// divert leads what a leaf sends to the root of the tree over other links, and
// returns the one that it was planned on.
func (tr *trial) divert() (topology.LinkID, error) {
	tree, err := tr.Tree(tr.ctx)
	if err != nil {
		return topology.NoLink, err
	}
	g := tr.Lab().Topology()
	leaf, trunk := tree.Vertices[1].Switch, tree.Vertices[1].Up
	root := g.Across(trunk, leaf)
	for _, first := range g.Adjacent(leaf) {
		other := g.Across(first, leaf)
		if first == trunk || !g.IsSwitch(other) {
			continue
		}
		for _, second := range g.Adjacent(other) {
			for _, third := range g.Adjacent(root) {
				if second != first && g.Across(second, other) == g.Across(third, root) {
					return trunk, tr.Lab().Detour(leaf, trunk, first, second, third)
				}
			}
		}
	}
	return trunk, errors.New("there is no way around")
}

// interrupt interrupts the command when it has said something, and finds nothing
// of it.
func interrupt(t *testing.T, prefix, when string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], append(args, "--prefix", prefix)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	said, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = theirs
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	buffer, log := make([]byte, 4096), ""
	for !strings.Contains(log, when) {
		n, err := said.Read(buffer)
		if log += string(buffer[:n]); err != nil {
			t.Fatalf("it ended before it said %q: %v; %s", when, err, log)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// What it says until its end is read, lest it wait for that.
	if _, err := io.Copy(io.Discard, said); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted measurement ended well")
	}
	for _, pattern := range []string{"/run/netns/" + prefix + "-*", "/run/tributary-collbench-" + prefix, dir + "/*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	needRoot(t)
	interrupt(t, "cbint", "measuring", "fabric", "--hosts-per-leaf", "1", "--bytes", "64KiB", "--iterations", "1000000")
}

// TestHostWay keeps off the switches.
func TestHostWay(t *testing.T) {
	needRoot(t)
	rows, log, err := command(t, "fabric", "--prefix", "cbway", "--hosts-per-leaf", "2", "--leaves", "1", "--spines", "0",
		"--bytes", "1KiB", "--iterations", "2", "--transport", "host")
	if err != nil || len(rows) != 1 || rows[0][colTransport] != "host-tree" || !strings.Contains(log, "no tree") {
		t.Errorf("%v, %q\n%s", err, rows, log)
	}
}
