package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

const deployPage = "../../docs/deploy.md"

// Machines as the page speaks of them, and the one that it does not set up.
const builder = "a machine with Go"

var (
	onMachine = regexp.MustCompile(`\b[Oo]n (every machine|every host|m1 and leaf-1|m1|leaf-1|` + builder + `)\b`)
	named     = map[string][]string{
		"every machine": {"m1", "leaf-1", "h1", "h2", "h3"}, "every host": {"h1", "h2", "h3"}, "m1 and leaf-1": {"m1", "leaf-1"},
	}
	filePath = regexp.MustCompile("`(/[^`]+)` on [^`]*:$")
)

// block is one of a page's blocks: a file, or commands.
type block struct {
	line  int
	on    []string // machines
	path  string   // of a file; empty: commands
	text  string
	above string // the paragraph before
}

// commands returns a block's lines, those that go on joined.
func (b *block) commands() []string {
	lines := strings.Split(strings.ReplaceAll(b.text, "\\\n", ""), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// readPage returns the blocks of a page, each with the machines of which the
// paragraph above it speaks last.
func readPage(t *testing.T, path string) (all []*block) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b *block
	fenced, above, ended := false, "", true
	for i, line := range strings.Split(string(data), "\n") {
		indented := strings.HasPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced = !fenced; fenced {
				b = &block{line: i + 1, above: above}
				all = append(all, b)
			}
			ended = true
		case fenced:
			b.text += line + "\n"
		case indented && ended:
			b, ended = &block{line: i + 1, above: above, text: line[4:] + "\n"}, false
			all = append(all, b)
		case indented:
			b.text += line[4:] + "\n"
		case line != "":
			above, ended = line, true
		}
	}
	for _, b := range all {
		if m := filePath.FindStringSubmatch(b.above); m != nil {
			b.path = m[1]
		}
		who := onMachine.FindAllStringSubmatch(b.above, -1)
		if len(who) == 0 {
			t.Fatalf("%s:%d: nothing says on which machine this is: %q", path, b.line, b.above)
		}
		last := who[len(who)-1][1]
		if b.on = named[last]; b.on == nil {
			b.on = []string{last}
		}
	}
	return all
}

// deployed is a fabric that a page has built.
type deployed struct {
	*testing.T
	machines map[string]*machine
	said     map[string]string // what each command line wrote, on the first of its machines
}

// do does what a block says.
func (d *deployed) do(b *block) {
	d.Helper()
	switch {
	case b.path != "":
		for _, name := range b.on {
			d.machines[name].write(b.path, b.text, 0o644)
		}
	case b.on[0] == builder:
		d.build(b)
	default:
		for _, line := range b.commands() {
			if args := strings.Fields(line); args[0] == "systemctl" {
				for _, name := range b.on {
					d.machines[name].systemctl(args[1:])
				}
				continue
			}
			d.run(b, line)
			d.repeat(b, line)
		}
	}
}

// build does what the page has done where the source is. The one thing that
// differs is where bin/ is.
func (d *deployed) build(b *block) {
	d.Helper()
	lines := b.commands()
	if len(lines) < len(builds) || !slices.Equal(lines[:len(builds)], builds) {
		d.Fatalf("%s:%d: it builds by %q, and the tests by %q", deployPage, b.line, lines, builds)
	}
	cmd := exec.CommandContext(d.Context(), "sh", "-ec", strings.Join(lines[len(builds):], "\n"))
	cmd.Dir = filepath.Dir(filepath.Dir(binary(d.T, "offload-manager")))
	cmd.Env = append(os.Environ(), "PATH="+d.machines["m1"].root+"/usr/local/bin:"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
}

// run runs a line on its machines at once.
func (d *deployed) run(b *block, line string) {
	d.Helper()
	said, errs := make([]string, len(b.on)), make([]error, len(b.on))
	var all sync.WaitGroup
	for i, name := range b.on {
		all.Go(func() { said[i], errs[i] = d.machines[name].shell(line) })
	}
	all.Wait()
	for i, name := range b.on {
		if errs[i] != nil {
			d.Fatalf("%s:%d: %v", deployPage, b.line, errs[i])
		}
		d.machines[name].remember(line)
		if i > 0 && strings.HasPrefix(line, "collbench") && strings.Contains(said[i], "\n") {
			d.Errorf("%s wrote %s", name, said[i])
		}
	}
	d.said[line] = said[0]
}

// again is a comment by which a line is to be repeated, and what it says in the
// end.
const again, untilItSays = "# again, until it carries no tree", " 0 of "

// repeat runs a line as often as its comment says.
func (d *deployed) repeat(b *block, line string) {
	d.Helper()
	if !strings.HasSuffix(line, again) {
		return
	}
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	defer cancel()
	for !strings.Contains(d.said[line], untilItSays) {
		if ctx.Err() != nil {
			d.Fatalf("%s: it still says\n%s", line, d.said[line])
		}
		d.run(b, line)
	}
}

// connect joins the machines as the page's files say.
func (d *deployed) connect(blocks []*block) {
	d.Helper()
	file := func(name string) string {
		i := slices.IndexFunc(blocks, func(b *block) bool { return filepath.Base(b.path) == name })
		if i < 0 {
			d.Fatalf("the page has no %s", name)
		}
		return blocks[i].text
	}
	g, err := topology.Read(strings.NewReader(file("fabric.yaml")), "fabric.yaml")
	if err != nil {
		d.Fatal(err)
	}
	for l, link := range g.AllLinks() {
		host, leaf := link.Ends[0].Node, link.Ends[1].Node
		d.machines[g.Name(leaf)].wire(d.machines[g.Name(host)], g.AddressAt(l, leaf), g.AddressAt(l, host))
		d.machines[g.Name(host)].must(fmt.Sprintf("ip route add default via %v", g.AddressAt(l, leaf)))
	}
	listen := regexp.MustCompile(`(?m)^listen: (.*)$`)
	manager := netip.MustParseAddrPort(listen.FindStringSubmatch(file("manager.yaml"))[1]).Addr()
	agent := netip.MustParseAddrPort(listen.FindStringSubmatch(file("agent.yaml"))[1]).Addr()
	d.machines["leaf-1"].wire(d.machines["m1"], agent, manager)
	d.machines["leaf-1"].must("echo 1 > /proc/sys/net/ipv4/ip_forward")
	d.machines["m1"].must(fmt.Sprintf("ip route add default via %v", agent))
}

// wants checks what a command wrote.
func (d *deployed) wants(begins string, says ...string) {
	d.Helper()
	for line, said := range d.said {
		if strings.HasPrefix(line, begins) {
			if !containsAll(said, says) {
				d.Errorf("%s says\n%s\nwithout one of %q", line, said, says)
			}
			return
		}
	}
	d.Errorf("nothing on the page begins %q", begins)
}

// TestDeployPage does all that docs/deploy.md says, on machines that are
// namespaces: every file is written where it says, every command runs as it
// stands, as root or, of services, as its unit says. What stands in for
// programs that need more of a machine are two: scp, which copies between the
// machines' directories, and systemctl, which runs a unit's ExecStart with the
// unit's user, directories and restrictions.
func TestDeployPage(t *testing.T) {
	needMachines(t)
	blocks, all := readPage(t, deployPage), t.TempDir()
	d := &deployed{T: t, machines: map[string]*machine{}, said: map[string]string{}}
	for _, name := range named["every machine"] {
		d.machines[name] = newMachine(t, all, name)
		d.machines[name].write("/usr/local/bin/scp", copier(all), 0o755)
	}
	d.connect(blocks)
	leaf, m1 := d.machines["leaf-1"], d.machines["m1"]
	var measure *block
	for _, b := range blocks {
		if strings.HasPrefix(b.text, "export ") {
			m1.daemons["offload-manager"].await("agent met", "leaf-1")
		}
		if strings.HasPrefix(b.text, "collbench run") {
			measure = b
		}
		d.do(b)
	}

	d.wants("offload-manager topology check", "fabric five-machines, 3 hosts, 1 switches of which 1 can reduce, 3 links: valid")
	d.wants("offload-manager certs init", "/root/authority/ca.pem", "host-h3-key.pem", "operator-admin.pem")
	d.wants("setpriv --reuid tributary --regid tributary --clear-groups offload-manager check", "1 agents: valid")
	d.wants("setpriv --reuid tributary --regid tributary --clear-groups switch-agent check", "switch leaf-1", "valid")
	d.wants("offload-manager switch list ", "up, draining", "0 of ") // the one with a comment
	d.wants("offload-manager topology show", "3 hosts (0 down), 1 switches, 3 links", "connected")
	d.wants("offload-manager switch drain leaf-1", "Switch leaf-1: draining")
	d.wants("offload-manager switch undrain leaf-1", "Switch leaf-1: in use")
	d.wants("collbench run", "tributary,3,float32,8,", "tributary,3,float32,1048576,", "offload,right")

	// As it was before, all runs again; and all ends in good order.
	m1.daemons["offload-manager"].await("agent met", "leaf-1")
	d.do(measure)
	d.wants("collbench run", "tributary,3,float32,8,", "tributary,3,float32,1048576,", "offload,right")
	if out := m1.must("offload-manager switch list"); !containsAll(out, []string{"leaf-1", "connected"}) || strings.Contains(out, "draining") {
		t.Errorf("in the end:\n%s", out)
	}
	for _, host := range named["every host"] {
		leaf.daemons["switch-agent"].ever(`"neighbours"`, `"port":"`+host+`"`, host+" leaf-1")
		d.machines[host].daemons["tributary-lldp"].ever(`"neighbours"`, "leaf-1 "+host)
		d.machines[host].stop("tributary-lldp")
	}
	leaf.stop("switch-agent")
	m1.stop("offload-manager")
}
