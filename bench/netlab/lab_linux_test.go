package netlab

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// patience bounds what a test waits for.
const patience = 20 * time.Second

// TestMain lets this binary be, on demand, the process that is killed with a
// lab, the one that is left in it, one that watches interfaces, or those of TestDiscovery.
func TestMain(m *testing.M) {
	switch os.Getenv("NETLAB_TEST") {
	case "victim":
		victim()
	case "sleeper":
		sleeper()
	case "watcher":
		watcher()
	case "agent":
		stay(switchAgent())
	case "host":
		stay(announcedHost())
	case "manager":
		stay(discoveringManager())
	default:
		os.Exit(m.Run())
	}
}

// stay waits to be killed, unless there is an error.
func stay(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sleeper()
}

// victim builds a lab with a process in it, and waits to be killed.
func victim() {
	lab, err := Build(Config{Prefix: "nlvictim", HostsPerLeaf: 1, Leaves: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	sleeper, _, err := sleep(lab, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pid", sleeper.Process.Pid)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// sleeper waits to be killed. It reads from a pipe whose other end it holds
// itself: an end in the parent is closed when the parent's garbage collector
// finds that nothing refers to it.
func sleeper() {
	in, out, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("here")
	_, _ = in.Read(make([]byte, 1))
	runtime.KeepAlive(out)
}

// sleep starts a process on a node that only ends when it is killed.
func sleep(lab *Lab, n topology.NodeID) (*exec.Cmd, *bufio.Reader, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETLAB_TEST=sleeper")
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := lab.Start(n, cmd); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(said)
	line, err := r.ReadString('\n')
	if err == nil && line != "here\n" {
		err = fmt.Errorf("it said %q", line)
	}
	return cmd, r, err
}

// build returns a lab that ends with the test.
func build(t *testing.T, c Config) *Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	lab, err := Build(c)
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
		if left := spacesOf(t, c.Prefix); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	})
	return lab
}

func spacesOf(t *testing.T, prefix string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(spacesDir, prefix+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// exchange sends a datagram from one host to another's address and back, and
// returns whether it arrived.
func exchange(t *testing.T, lab *Lab, from, to topology.NodeID, size int) error {
	t.Helper()
	var a, b *net.UDPConn
	listen := func(n topology.NodeID, c **net.UDPConn) {
		err := lab.Do(n, func() (err error) {
			*c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(lab.HostAddr(n), 0)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	listen(from, &a)
	defer a.Close()
	listen(to, &b)
	defer b.Close()
	if _, err := a.WriteTo(make([]byte, size), b.LocalAddr()); err != nil {
		return err
	}
	buffer := make([]byte, 2000)
	if err := b.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	n, back, err := b.ReadFromUDP(buffer)
	if err != nil || n != size {
		return fmt.Errorf("%d bytes of %d arrived: %w", n, size, err)
	}
	if back.String() != a.LocalAddr().String() {
		return fmt.Errorf("it came from %v, not %v", back, a.LocalAddr())
	}
	return nil
}

func TestLab(t *testing.T) {
	lab := build(t, Config{Prefix: "nltest", HostsPerLeaf: 2, Leaves: 2, Spines: 2, Rate: 100e6})
	g := lab.Topology()
	before, err := lab.Counts()
	if err != nil {
		t.Fatal(err)
	}
	for from := range topology.NodeID(4) {
		for to := range topology.NodeID(4) {
			if from != to {
				if err := exchange(t, lab, from, to, 1400); err != nil {
					t.Errorf("h%d to h%d: %v", from, to, err)
				}
			}
		}
	}
	after, err := lab.Counts()
	if err != nil {
		t.Fatal(err)
	}
	carried := after.Since(before)
	trunks := uint64(0)
	for l := range g.AllLinks() {
		up := carried[l][0]
		if int(l) < g.Hosts() && (up.Packets < 3 || up.Bytes < 3*1442) {
			t.Errorf("link %s carried %+v, and it carried at least 3 packets", g.LinkName(l), carried[l])
		} else if int(l) >= g.Hosts() {
			trunks += up.Bytes
		}
	}
	if trunks < 8*1442 {
		t.Errorf("the leaves sent %d bytes up, and eight packets went that way", trunks)
	}
	// With all but one way down, that one is taken.
	for _, l := range []topology.LinkID{4, 7} { // of leaf-0 to spine-0, of leaf-1 to spine-1
		if err := lab.SetLink(l, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := lab.SetLink(7, true); err != nil {
		t.Fatal(err)
	}
	before, _ = lab.Counts()
	for range 4 {
		if err := exchange(t, lab, 0, 3, 1000); err != nil {
			t.Error(err)
		}
	}
	after, _ = lab.Counts()
	if got := after.Since(before); got[5][0].Packets < 4 || got[7][1].Packets < 4 || got[6][1].Packets > 2 {
		t.Errorf("with leaf-0 cut off from spine-0: %+v", got)
	}
	if err := lab.SetLink(4, true); err != nil {
		t.Error(err)
	}
	if err := lab.SetLink(99, true); !errors.Is(err, ErrUnknown) {
		t.Errorf("a link that is not there: %v", err)
	}
	if _, err := Build(Config{Prefix: "nltest", HostsPerLeaf: 1, Leaves: 1}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lab of the prefix: %v", err)
	}
}

// TestEdgesPinned sends to the address of a trunk's end: it takes that trunk,
// and comes from the address of its other end.
func TestEdgesPinned(t *testing.T) {
	lab := build(t, Config{Prefix: "nlpin", HostsPerLeaf: 1, Leaves: 2, Spines: 2})
	g := lab.Topology()
	for l := topology.LinkID(g.Hosts()); int(l) < g.Links(); l++ {
		ends := g.Link(l).Ends
		var a, b *net.UDPConn
		open := func(n topology.NodeID, c **net.UDPConn) {
			if err := lab.Do(n, func() (err error) { *c, err = net.ListenUDP("udp4", nil); return err }); err != nil {
				t.Fatal(err)
			}
		}
		open(ends[0].Node, &a)
		open(ends[1].Node, &b)
		before, _ := lab.Counts()
		to := netip.AddrPortFrom(g.AddressAt(l, ends[1].Node), uint16(b.LocalAddr().(*net.UDPAddr).Port))
		if _, err := a.WriteToUDPAddrPort(make([]byte, 100), to); err != nil {
			t.Fatal(err)
		}
		if err := b.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, from, err := b.ReadFromUDPAddrPort(make([]byte, 200))
		if err != nil || from.Addr().Unmap() != g.AddressAt(l, ends[0].Node) {
			t.Errorf("link %s: from %v, %v", g.LinkName(l), from, err)
		}
		after, _ := lab.Counts()
		if got := after.Since(before)[l][0]; got.Bytes < 142 {
			t.Errorf("link %s carried %+v", g.LinkName(l), got)
		}
		a.Close()
		b.Close()
	}
}

// TestDetour sends to the address of a trunk's end over other links.
func TestDetour(t *testing.T) {
	lab := build(t, Config{Prefix: "nldetour", HostsPerLeaf: 1, Leaves: 2, Spines: 2})
	g, p := lab.Topology(), lab.plan
	trunk, around := p.trunk(0, 0), []topology.LinkID{p.trunk(0, 1), p.trunk(1, 1), p.trunk(1, 0)}
	leaf, spine := g.Link(trunk).Ends[0].Node, g.Link(trunk).Ends[1].Node
	if err := lab.Detour(leaf, trunk, around...); err != nil {
		t.Fatal(err)
	}
	before, err := lab.Counts()
	if err != nil {
		t.Fatal(err)
	}
	var to *net.UDPConn
	if err := lab.Do(spine, func() (err error) { to, err = net.ListenUDP("udp4", nil); return err }); err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	err = lab.Do(leaf, func() error {
		from, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: g.AddressAt(trunk, spine).AsSlice(), Port: to.LocalAddr().(*net.UDPAddr).Port})
		if err != nil {
			return err
		}
		_, err = from.Write(make([]byte, 1000))
		return errors.Join(err, from.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, sender, err := to.ReadFromUDPAddrPort(make([]byte, 2000))
	if err != nil || sender.Addr().Unmap() != g.AddressAt(trunk, leaf) {
		t.Errorf("from %v, %v", sender, err)
	}
	after, err := lab.Counts()
	if err != nil {
		t.Fatal(err)
	}
	carried := after.Since(before)
	for i, l := range append(around, trunk) {
		bytes := carried[l][0].Bytes + carried[l][1].Bytes
		if passed := bytes >= 1000; passed != (i < len(around)) {
			t.Errorf("link %s carried %d bytes", g.LinkName(l), bytes)
		}
	}
	if err := lab.Detour(leaf, trunk, around[0]); !errors.Is(err, ErrUnknown) {
		t.Errorf("a detour that ends elsewhere: %v", err)
	}
}

// TestCloseEndsProcesses closes a lab under a process.
func TestCloseEndsProcesses(t *testing.T) {
	lab := build(t, Config{Prefix: "nlproc", HostsPerLeaf: 1, Leaves: 1})
	cmd, _, err := sleep(lab, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended by %v", err)
	}
	if err := lab.Start(0, exec.Command(os.Args[0])); !errors.Is(err, ErrClosed) {
		t.Errorf("a process in a closed lab: %v", err)
	}
}

// TestLeftover kills a process with a lab in the middle of it, and finds
// nothing of it after the next lab.
func TestLeftover(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETLAB_TEST=victim")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(bufio.NewReader(out), "pid %d\n", &pid); err != nil {
		t.Fatalf("the victim did not come up: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(spacesOf(t, "nlvictim")) == 0 {
		t.Error("the victim has left nothing, so this test shows nothing")
	}
	lab := build(t, Config{Prefix: "nlvictim", HostsPerLeaf: 1, Leaves: 1})
	if err := lab.Close(); err != nil {
		t.Error(err)
	}
}

func TestOwned(t *testing.T) {
	for name, want := range map[string]bool{
		"a-h0": true, "a-leaf-12": true, "a-spine-0": true, "a-rail-7": true, "a-station": true,
		"a-b-h0": false, "a-": false, "a": false, "a-hx": false, "b-h0": false, "a-leaf-": false,
	} {
		if owned("a", name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
