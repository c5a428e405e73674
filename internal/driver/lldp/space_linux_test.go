package lldp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// space is a network namespace that lives as long as its process.
type space struct {
	t       testing.TB
	process *os.Process
	at      netns.NsHandle
	net     *netlink.Handle
}

// needSpaces skips a test where there are no namespaces.
func needSpaces(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
}

// enter starts a process as the first of namespaces of its own, network and processes: with
// it ends whatever it has started.
func enter(t testing.TB, cmd *exec.Cmd) *space {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	s := &space{t: t, process: cmd.Process}
	var err error
	if s.at, err = netns.GetFromPid(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.at.Close() })
	if s.net, err = netlink.NewHandleAt(s.at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.net.Close)
	return s
}

// cable connects two spaces. The ends' MAC addresses are 02:00:00:00:00:N.
func cable(a *space, here string, mac byte, b *space, there string, other byte) {
	a.t.Helper()
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: here, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, mac}}, PeerName: there,
		PeerHardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, other}, PeerNamespace: netlink.NsFd(b.at),
	}
	if err := a.net.LinkAdd(pair); err != nil {
		a.t.Fatal(err)
	}
	a.set(here, a.net.LinkSetUp)
	b.set(there, b.net.LinkSetUp)
}

// set changes a port.
func (s *space) set(name string, change func(netlink.Link) error) {
	s.t.Helper()
	l, err := s.net.LinkByName(name)
	if err == nil {
		err = change(l)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
}

// address gives a port an address.
func (s *space) address(name, prefix string) {
	s.t.Helper()
	a, err := netlink.ParseAddr(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(name, func(l netlink.Link) error { return s.net.AddrAdd(l, a) })
}

// node is a process with a Service, in a space of its own.
type node struct {
	*space
	orders io.Writer
	lines  *json.Decoder
	ports  map[string]Port
}

// newNode starts one.
func newNode(t testing.TB, name string, role lldpdu.Role) *node {
	t.Helper()
	return newNodeEvery(t, slow, name, role)
}

func newNodeEvery(t testing.TB, interval time.Duration, name string, role lldpdu.Role) *node {
	t.Helper()
	n := idleNode(t, interval, name, role)
	n.order("start")
	return n
}

// idleNode makes a node that waits for the order "start": it takes its chassis from the ports that it has then.
func idleNode(t testing.TB, interval time.Duration, name string, role lldpdu.Role) *node {
	t.Helper()
	needSpaces(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LLDP_TEST="+name, "LLDP_ROLE="+fmt.Sprint(byte(role)), "LLDP_INTERVAL="+interval.String())
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{space: enter(t, cmd), orders: orders, lines: json.NewDecoder(said)}
	give := time.AfterFunc(patience, func() { _ = n.process.Kill() })
	t.Cleanup(func() { give.Stop() })
	return n
}

// await waits until the ports of a node are as is.
func (n *node) await(what string, is func(map[string]Port) bool) {
	n.t.Helper()
	for !is(n.ports) {
		var now map[string]Port
		if err := n.lines.Decode(&now); err != nil {
			n.t.Fatalf("%s: %v; the ports were %+v", what, err, n.ports)
		}
		n.ports = now
	}
}

// order has a node do something.
func (n *node) order(format string, args ...any) {
	n.t.Helper()
	if _, err := fmt.Fprintf(n.orders, format+"\n", args...); err != nil {
		n.t.Fatal(err)
	}
}

// TestMain lets this binary be a node.
func TestMain(m *testing.M) {
	if name := os.Getenv("LLDP_TEST"); name != "" {
		if err := beNode(name, lldpdu.Role(os.Getenv("LLDP_ROLE")[0]-'0')); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// slow is the interval of nodes: on a machine that is busy with other tests no neighbour
// ages. News is announced at once.
const slow = 5 * time.Second

// beNode is a node: it writes its ports when they change, and obeys.
func beNode(name string, role lldpdu.Role) error {
	changed := make(chan struct{}, 1)
	interval, err := time.ParseDuration(os.Getenv("LLDP_INTERVAL"))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	if !lines.Scan() {
		return lines.Err()
	}
	s, err := Start(Config{
		Interval: interval,
		Own: lldpdu.Announcement{SystemDescription: "a node of a test", Tributary: lldpdu.Tributary{Role: role, Name: name, AgentPort: 7410},
			Capabilities: lldpdu.Bridge | lldpdu.Router, Enabled: lldpdu.Router},
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines.Scan() {
			orders <- lines.Text()
		}
	}()
	for {
		select {
		case <-changed:
			if err := json.NewEncoder(os.Stdout).Encode(s.Ports()); err != nil {
				return err
			}
		case order, ok := <-orders:
			if !ok || order == "close" {
				s.Close()
				return nil
			}
			if err := forge(order); err != nil {
				return err
			}
		}
	}
}

// forge sends frames from a port, without or with a VLAN tag: "forge PORT COUNT TAG".
func forge(order string) error {
	var port, tag string
	var count int
	if _, err := fmt.Sscanf(order, "forge %s %d %q", &port, &count, &tag); err != nil {
		return fmt.Errorf("%q: %w", order, err)
	}
	i, err := net.InterfaceByName(port)
	if err != nil {
		return err
	}
	c, err := kernel{}.port(i.Index)
	if err != nil {
		return err
	}
	defer c.close()
	for n := range count {
		a := lldpdu.Announcement{
			Chassis: lldpdu.ChassisID{Subtype: lldpdu.ChassisLocal, Value: fmt.Sprint("forged", n)}, Port: lldpdu.PortID{Subtype: lldpdu.PortMAC, Value: "\x02\x07abcd"},
			TTL: 65535, SystemName: fmt.Sprint("forged", n), Tributary: lldpdu.Tributary{Role: lldpdu.Switch, Name: "leaf0"},
		}
		pdu, err := a.Append(nil)
		if err == nil {
			f := padded(append(header(nil, [6]byte{2, 7, 4: byte(n >> 8), 5: byte(n)}), pdu...))
			err = c.write(slices.Insert(f, 12, []byte(tag)...))
		}
		if err != nil && !errors.Is(err, syscall.ENOBUFS) {
			return err
		}
	}
	return nil
}

// debian is a running lldpd, in a space of its own.
type debian struct {
	*space
	socket string
}

// newDebian starts lldpd.
func newDebian(t testing.TB) *debian {
	t.Helper()
	needSpaces(t)
	for _, program := range []string{"lldpd", "lldpcli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("it takes %s (Debian: lldpd): %v", program, err)
		}
	}
	dir, err := os.MkdirTemp("", "lldpd") // short: a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &debian{socket: filepath.Join(dir, "s")}
	// It changes its root directory to one in /run, which is this test's own.
	cmd := exec.Command("sh", "-ec", "mount --make-rprivate /; mount -t tmpfs none /run; mkdir /run/lldpd; hostname debian; exec lldpd -d -u "+d.socket+" -S 'Debian as it is' -O /dev/null")
	log, err := os.CreateTemp(dir, "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	t.Cleanup(func() {
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("lldpd said:\n%s", text)
		}
	})
	d.space = enter(t, cmd)
	d.await("lldpd answers", func() bool { return exec.Command("lldpcli", "-u", d.socket, "show", "configuration").Run() == nil })
	d.cli("configure", "system", "hostname", "debian")
	return d
}

// cli gives lldpd an order, and returns what it says.
func (d *debian) cli(words ...string) string {
	d.t.Helper()
	out, err := exec.Command("lldpcli", append([]string{"-u", d.socket}, words...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("lldpcli %s: %v: %s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// await asks until what it waits for is there.
func (d *debian) await(what string, is func() bool) {
	d.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			d.t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
