package kernel_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/kernel"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// isAgent is the variable that makes the test binary an agent that waits to be killed.
const isAgent = "TRIBUTARY_TEST_KERNEL_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(isAgent) == "" {
		os.Exit(m.Run())
	}
	if err := agent(); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// agent attaches the program, begins an epoch, prints what it has of the kernel, and waits.
func agent() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "s0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "n0"}); err != nil {
		return err
	}
	o, err := kernel.New(kernel.Config{Data: netip.IPv4Unspecified(), Interfaces: nic.System(), Log: slog.Default()})
	if err != nil {
		return err
	}
	if _, err := o.Install(4711, config(2, 3, true)); err != nil {
		return err
	}
	o.Begin(4711, 2)
	all, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		return err
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // that of Glob
		}
		for line := range strings.Lines(string(text)) {
			if of, id, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && slices.Contains([]string{"prog_id", "map_id", "link_id"}, of) {
				fmt.Println(of, strings.TrimSpace(id))
			}
		}
	}
	fmt.Println("ready")
	_, err = os.Stdin.Read(make([]byte, 1))
	return err
}

// isThere reports whether the kernel still has an object.
func isThere(of string, id uint32) (bool, error) {
	var err error
	switch of {
	case "prog_id":
		p, e := ebpf.NewProgramFromID(ebpf.ProgramID(id))
		if err = e; e == nil {
			err = p.Close()
			return true, err
		}
	case "map_id":
		m, e := ebpf.NewMapFromID(ebpf.MapID(id))
		if err = e; e == nil {
			err = m.Close()
			return true, err
		}
	case "link_id":
		l, e := link.NewFromID(link.ID(id))
		if err = e; e == nil {
			err = l.Close()
			return true, err
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return false, err
}

// TestKilledLeavesNothing: with an agent that is killed go its programs, maps and
// attachments.
func TestKilledLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), isAgent+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	had := map[string][]uint32{}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		of, id, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			t.Fatal(lines.Text())
		}
		had[of] = append(had[of], uint32(n))
	}
	if len(had["prog_id"]) == 0 || len(had["link_id"]) == 0 || len(had["map_id"]) < 6 {
		t.Fatal("the agent has too little: ", had)
	}
	for of, ids := range had {
		for _, id := range ids {
			if there, err := isThere(of, id); err != nil || !there {
				t.Fatal(of, id, there, err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until := time.Now().Add(20 * time.Second)
	for of, ids := range had {
		for _, id := range ids {
			// The kernel frees them soon after.
			for there := true; there; {
				if there, err = isThere(of, id); err != nil {
					t.Fatal(of, id, err)
				}
				if there && time.Now().After(until) {
					t.Fatalf("%s %d is still there", of, id)
				}
			}
		}
	}
}

// TestVerifier keeps the program far from the verifier's limit of a million instructions,
// on this kernel and others.
func TestVerifier(t *testing.T) {
	r := newRig(t, 1)
	info, err := r.offload.Program().Info()
	r.check(err)
	n, ok := info.VerifiedInstructions()
	if !ok || n > 500_000 {
		t.Errorf("%d instructions were verified, %t", n, ok)
	}
	t.Log(n)
}
