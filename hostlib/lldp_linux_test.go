package hostlib

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestLLDPOnALink: a host announces itself on its links. It runs again as a process in a
// network namespace of its own, in which both ends of a link are the host's.
func TestLLDPOnALink(t *testing.T) {
	const inside = "HOSTLIB_LLDP_TEST"
	if os.Getenv(inside) == "" {
		if os.Geteuid() != 0 {
			t.Skip("network namespaces take root")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestLLDPOnALink$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth1"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	other, err := netlink.LinkByName("eth1")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []netlink.Link{lo, pair, other} {
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	out, in := io.Pipe()
	h, err := Join(t.Context(), Config{Name: "h0", LLDP: true, Log: slog.New(slog.NewTextHandler(in, nil))})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for want := map[string]bool{"h0 eth0": true, "h0 eth1": true}; len(want) > 0; {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		for name := range want {
			if strings.Contains(lines.Text(), "msg=neighbours") && strings.Contains(lines.Text(), name) {
				delete(want, name)
			}
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // what it still logs
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
