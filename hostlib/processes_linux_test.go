package hostlib

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// TestProcessesApart: processes of a host with other users, or in other network namespaces, do not share
// memory: their operations run, and Transport, Outcome and Explain say why and who.
func TestProcessesApart(t *testing.T) {
	if _, err := exec.LookPath("ip"); os.Getuid() != 0 || err != nil {
		t.Skip("it needs root and iproute2")
	}
	t.Run("user", func(t *testing.T) {
		child := exec.Command(copyOf(t, os.Args[0]))
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		testApart(t, child, nil, "", "", "of user")
	})
	t.Run("namespace", func(t *testing.T) {
		ip := func(line string) {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v %s", line, err, out)
			}
		}
		inSpace := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		try := exec.Command("true")
		if try.SysProcAttr = inSpace; try.Run() != nil {
			t.Skip("there are no namespaces")
		}
		// The namespace has a name nowhere, and ends with the child, as the interfaces do.
		pid := os.Getpid()
		at := func(host int) string { return fmt.Sprintf("198.18.%d.%d", pid>>6&255, pid&63<<2+host) }
		script := fmt.Sprintf(`read go && ip addr add %s/30 dev eth0 && ip link set eth0 up && exec "$0" "$@"`, at(2))
		child := exec.Command("sh", "-c", script, os.Args[0])
		child.SysProcAttr = inSpace
		testApart(t, child, func(of int) {
			link := fmt.Sprint("trb", pid)
			ip(fmt.Sprintf("link add %s type veth peer name eth0 netns %d", link, of))
			ip(fmt.Sprintf("addr add %s/30 dev %s", at(1), link))
			ip("link set " + link + " up")
		}, at(1)+":0", at(2)+":0", "network namespace")
	})
}

// testApart runs operations with a child that is apart.
func testApart(t *testing.T, child *exec.Cmd, prepare func(pid int), own, childs, want string) {
	m, begin := startChild(t, child, prepare, childVariable+"=one", listenVariable+"="+childs)
	h := joinOne(t, "h0", func(c *Config) { c.Listen, c.AllowPlaintext = own, true })
	members := []Member{h.Member(), m}
	begin(members)
	c := form(t, "test", []*Host{h}, members)[0]
	o := sumOf(t, c)
	_, why := c.Transport()
	e, err := c.Explain(Question{Collective: "allreduce", Elements: 1, Type: reduce.Int64, Operator: reduce.Sum})
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{o.Reason, why, e.String()} {
		if !strings.Contains(text, want) || !strings.Contains(text, "rank ") {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	leave(t, []*Communicator{c})
}

// copyOf copies a program to where every user may run it.
func copyOf(t *testing.T, program string) string {
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	to, err := os.OpenFile(filepath.Join(dir, "child"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}
