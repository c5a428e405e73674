package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a network namespace and a mount namespace that stand for a
// machine: its own network, name, and directories below.
type machine struct {
	*testing.T
	name    string
	root    string // where its directories are
	pid     int    // of the process that keeps the namespaces
	session string // what its shell remembers: where it is, and what it has exported
	daemons map[string]*child
}

// own are the directories that are a machine's own; all others are those of
// the machine that the test runs on, and only read.
var own = []string{"/etc", "/root", "/var/lib", "/usr/local/bin"}

// known are the files that a machine has from the beginning: what programs of
// the system need.
var known = []string{"passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf", "ld.so.cache"}

// needMachines skips a test where there are none.
func needMachines(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces take root")
	}
	for _, program := range []string{"ip", "unshare", "nsenter", "setpriv", "useradd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("it takes %s (Debian: iproute2, util-linux, passwd): %v", program, err)
		}
	}
}

// newMachine makes a machine, with its directories in all; it is gone, with all
// its processes, when the test ends or is killed.
func newMachine(t *testing.T, all, name string) *machine {
	t.Helper()
	m := &machine{T: t, name: name, root: filepath.Join(all, name), daemons: map[string]*child{}}
	script := "hostname " + name + "\nip link set lo up\n"
	for _, directory := range own {
		if err := os.MkdirAll(m.root+directory, 0o755); err != nil {
			t.Fatal(err)
		}
		script += fmt.Sprintf("mount --bind %s %s\n", m.root+directory, directory)
	}
	for _, file := range known {
		if data, err := os.ReadFile("/etc/" + file); err == nil { // shadow passwords, say, need not be there
			m.write("/etc/"+file, string(data), 0o644)
		}
	}
	holder := exec.Command("unshare", "--net", "--mount", "--uts", "sh", "-ec", script+"echo ready\nexec sleep infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs bytes.Buffer
	holder.Stderr = &errs
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill() // it may have ended
		_ = holder.Wait()
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "ready\n" {
		t.Fatalf("machine %s: %v: %s", name, err, &errs)
	}
	m.pid = holder.Process.Pid
	return m
}

// write writes a file of the machine.
func (m *machine) write(path, text string, mode os.FileMode) {
	m.Helper()
	path = m.root + path
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.Fatal(err)
	}
}

// command returns a command on the machine.
func (m *machine) command(args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(m.pid), "--net", "--mount", "--uts", "--wd=/"}
	cmd := exec.CommandContext(m.Context(), "nsenter", append(enter, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// shell runs a script in the machine's session, and returns what it writes.
func (m *machine) shell(script string) (string, error) {
	var out, errs bytes.Buffer
	cmd := m.command("sh", "-ec", m.session+script)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("on %s: %w: %s%s\n%s", m.name, err, &out, &errs, script)
	}
	return out.String(), nil
}

func (m *machine) must(script string) string {
	m.Helper()
	out, err := m.shell(script)
	if err != nil {
		m.Fatal(err)
	}
	return out
}

// forShell is a line that is for the shell itself.
var forShell = regexp.MustCompile(`^(cd |export |[a-z]+=)`)

// remember keeps for the session what a line says to the shell.
func (m *machine) remember(line string) {
	if forShell.MatchString(line) {
		m.session += line + "\n"
	}
}

// wire joins two machines by a link, each with an address on it.
func (m *machine) wire(other *machine, here, there netip.Addr) {
	m.Helper()
	out, err := exec.Command("ip", "link", "add", "name", other.name, "netns", strconv.Itoa(m.pid), "type", "veth",
		"peer", "name", m.name, "netns", strconv.Itoa(other.pid)).CombinedOutput()
	if err != nil {
		m.Fatalf("%v: %s", err, out)
	}
	m.must(fmt.Sprintf("ip address add %v/24 dev %s && ip link set %s up", here, other.name, other.name))
	other.must(fmt.Sprintf("ip address add %v/24 dev %s && ip link set %s up", there, m.name, m.name))
}

// unit is a service as its file describes it.
type unit struct {
	command, user, state string
	capability           string // beside those of the user
	private, strict      bool
	privileges           bool
	notifies             bool // when it serves
}

// readUnit reads the part of a service's file that says how it runs.
func (m *machine) readUnit(service string) (u unit) {
	m.Helper()
	data, err := os.ReadFile(m.root + "/etc/systemd/system/" + service + ".service")
	if err != nil {
		m.Fatal(err)
	}
	u.privileges = true
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case section != "[Service]" || line == "":
		case line == "Type=notify":
			u.notifies = true
		case name == "ExecStart":
			u.command = value
		case name == "User":
			u.user = value
		case name == "AmbientCapabilities":
			u.capability = strings.ToLower(strings.TrimPrefix(value, "CAP_"))
		case name == "StateDirectory":
			u.state = "/var/lib/" + value
		case line == "NoNewPrivileges=yes":
			u.privileges = false
		case line == "ProtectSystem=strict":
			u.strict = true
		case line == "PrivateTmp=yes":
			u.private = true
		case name == "Restart" || name == "RestartSec": // nothing here ends that would be restarted
		default:
			m.Fatalf("%s: %s is not what this test can do", service, line)
		}
	}
	return u
}

// script returns what starts the service as systemd does.
func (u unit) script() string {
	var b strings.Builder
	if u.state != "" {
		fmt.Fprintf(&b, "mkdir -p %[1]s\nchown %[2]s: %[1]s\nmount --bind %[1]s %[1]s\n", u.state, u.user)
	}
	if u.private {
		b.WriteString("mount -t tmpfs tmpfs /tmp\n")
	}
	if u.strict {
		for _, directory := range append([]string{"/"}, own...) {
			fmt.Fprintf(&b, "mount -o remount,bind,ro %s\n", directory)
		}
	}
	b.WriteString("exec setpriv --pdeathsig KILL")
	if u.user != "" {
		fmt.Fprintf(&b, " --reuid %[1]s --regid %[1]s --init-groups", u.user)
	}
	if u.capability != "" {
		fmt.Fprintf(&b, " --inh-caps +%[1]s --ambient-caps +%[1]s", u.capability)
	}
	if !u.privileges {
		b.WriteString(" --no-new-privs")
	}
	return b.String() + " " + u.command
}

// systemctl stands in for the program of that name, which there is none of in
// a namespace.
func (m *machine) systemctl(args []string) {
	m.Helper()
	service := args[len(args)-1]
	switch verb := strings.Join(args[:len(args)-1], " "); verb {
	case "restart":
		m.stop(service)
	case "enable --now":
	default:
		m.Fatalf("systemctl %s is not what this test can do", verb)
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		if out, err := m.shell("systemd-analyze verify /etc/systemd/system/" + service + ".service 2>&1"); err != nil || out != "" {
			m.Errorf("systemd-analyze: %v: %s", err, out)
		}
	}
	u := m.readUnit(service)
	start := m.command("unshare", "--mount", "sh", "-ec", u.script())
	if !u.notifies {
		m.daemons[service] = follow(m.T, start)
		return
	}
	path := "/etc/systemd/notify-" + service
	_ = os.Remove(m.root + path) // there is none at the first start
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.root + path, Net: "unixgram"})
	if err == nil {
		defer socket.Close()
		err = errors.Join(os.Chmod(m.root+path, 0o777), socket.SetReadDeadline(time.Now().Add(patience)))
	}
	if err != nil {
		m.Fatal(err)
	}
	start.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	m.daemons[service] = follow(m.T, start)
	said := make([]byte, 100)
	if n, err := socket.Read(said); err != nil || string(said[:n]) != "READY=1" {
		m.Fatalf("%s reported systemd %q, %v; it logged %s", service, said[:n], err, strings.Join(m.daemons[service].last, "\n"))
	}
}

// stop ends a service as systemd does.
func (m *machine) stop(service string) {
	m.Helper()
	p := m.daemons[service]
	if p == nil {
		m.Fatalf("%s: no service %s runs", m.name, service)
	}
	if status := p.end(terminate); status != 0 {
		m.Errorf("%s: status %d: %s", service, status, strings.Join(p.last[max(0, len(p.last)-5):], "\n"))
	}
	delete(m.daemons, service)
}

// copier is scp for these machines, whose directories are beneath one.
func copier(all string) string {
	return fmt.Sprintf(`#!/bin/sh -e
for to; do :; done
while [ $# -gt 1 ]; do cp -p "$1" %q/"${to%%%%:*}/${to#*:}"; shift; done
`, all)
}
