package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/turn"
	"github.com/tributary-fabric/tributary/topology"
)

// killAfter is the time that a job has to end in by itself.
const killAfter = 3 * time.Second

// site is a fabric that contestants are started on.
type site struct {
	fabric *field.Fabric
	prefix string
	dir    string   // of the files that processes share
	node   []string // the command that is collbench
	tables int      // laid so far
}

// hosts returns the number of hosts.
func (s *site) hosts() int { return s.fabric.Lab().Topology().Hosts() }

// addresses returns the addresses of all hosts' links.
func (s *site) addresses() (all []string) {
	for n := range s.hosts() {
		all = append(all, s.fabric.Lab().HostAddr(topology.NodeID(n)).String())
	}
	return all
}

// device returns the name of the interface at the end of a host's link, which is
// the same at all hosts.
func (s *site) device() (name string, err error) {
	want := s.fabric.Lab().HostAddr(0)
	err = s.fabric.Lab().Do(0, func() error {
		interfaces, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range interfaces {
			addresses, err := i.Addrs()
			if err != nil {
				return err
			}
			for _, a := range addresses {
				if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == want {
					name = i.Name
				}
			}
		}
		return nil
	})
	if err == nil && name == "" {
		err = fmt.Errorf("no interface of the first host has the address %v", want)
	}
	return name, err
}

// shell writes what launchers of MPI take for a remote shell: a script, for some
// of them take no arguments for it. It returns its path.
func (s *site) shell() (string, error) {
	var namespaces strings.Builder
	for n, a := range s.addresses() {
		fmt.Fprintf(&namespaces, "%s %s-%s\n", a, s.prefix, s.fabric.Lab().Topology().Name(topology.NodeID(n)))
	}
	list, script := filepath.Join(s.dir, "namespaces"), filepath.Join(s.dir, "rsh")
	text := "#!/bin/sh\nexec"
	text += " " + quoted(slices.Concat(s.node, []string{"node", "shell", "--namespaces", list, "--"})) + " \"$@\"\n"
	return script, errors.Join(os.WriteFile(list, []byte(namespaces.String()), 0o600), os.WriteFile(script, []byte(text), 0o700))
}

// quoted returns words as a shell takes them for what they are.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(all, " ")
}

// crew is a job that plays.
type crew struct {
	table *turn.Table
	job   *field.Job
}

// seat starts a job by start, which is given the table's socket, and waits until
// all of its ranks sit.
func (s *site) seat(ctx context.Context, name string, start func(socket string) (*field.Job, error)) (*crew, error) {
	socket := filepath.Join(s.dir, strconv.Itoa(s.tables)) // short: a socket's path may have 107 bytes
	s.tables++
	table, err := turn.Lay(socket, s.fabric.Ranks())
	if err != nil {
		return nil, err
	}
	job, err := start(socket)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), table.Close())
	}
	c := &crew{table, job}
	if err := c.whileAlive(ctx, table.Seat); err != nil {
		c.leave()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return c, nil
}

// play takes one turn.
func (c *crew) play(ctx context.Context, r turn.Request) (o turn.Outcome, err error) {
	err = c.whileAlive(ctx, func(ctx context.Context) error {
		o, err = c.table.Play(ctx, r)
		return err
	})
	return o, err
}

// whileAlive runs f under a context that also ends with the job.
func (c *crew) whileAlive(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.job.Gone():
			cancel(errors.Join(errors.New("its processes have ended"), c.job.Err()))
		case <-done:
		}
	}()
	err := f(ctx)
	close(done)
	<-watched
	return err
}

// leave sends the ranks away, and ends what is left of them.
func (c *crew) leave() {
	_ = c.table.Close() // what may be wrong with it matters to nobody any more
	c.job.End(killAfter)
}

// own starts Tributary's members.
func (s *site) own(args []string) func(string) (*field.Job, error) {
	return func(socket string) (*field.Job, error) { return s.fabric.Players(socket, args) }
}

// guests returns what starts a job of a peer, whose program has been compiled.
func (s *site) guests(p *peer, j *job, program string) (func(string) (*field.Job, error), error) {
	device, err := s.device()
	if err != nil {
		return nil, err
	}
	if p.name == gloo {
		return s.glooRanks(program, device)
	}
	rsh, err := s.shell()
	if err != nil {
		return nil, err
	}
	return func(socket string) (*field.Job, error) {
		launcher := openMPICommand
		if p.name == mpich {
			launcher = mpichCommand
		}
		args := append(launcher(j, s.addresses(), s.fabric.Ranks()/s.hosts(), device, rsh), program, socket)
		cmd := exec.Command(rsh, s.addresses()[0], quoted(args)) // as the ranks are that it starts elsewhere
		cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "UCX_TLS=tcp,self", "UCX_NET_DEVICES="+device, "FI_PROVIDER=tcp", "FI_TCP_IFACE="+device)
		return s.fabric.Guests(j.name, []*exec.Cmd{cmd})
	}, nil
}

// openMPICommand returns the launcher's command: TCP over the hosts' links, and
// no binding to processors, which all hosts share.
func openMPICommand(j *job, addresses []string, processes int, device, rsh string) []string {
	slots, transports := ":"+strconv.Itoa(processes), "tcp,self"
	if processes > 1 {
		transports = "tcp,vader,self" // shared memory
	}
	args := []string{
		"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe",
		"-np", strconv.Itoa(len(addresses) * processes), "-H", strings.Join(addresses, slots+",") + slots,
	}
	settings := append([]string{
		"plm", "rsh", "plm_rsh_agent", rsh, "pml", "ob1", "btl", transports, "mpi_yield_when_idle", "1",
		"btl_tcp_if_include", device, "oob_tcp_if_include", device,
	}, j.mca...)
	for i := 0; i < len(settings); i += 2 {
		args = append(args, "--mca", settings[i], settings[i+1])
	}
	return args
}

func mpichCommand(_ *job, addresses []string, _ int, device, rsh string) []string {
	return []string{
		"mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", rsh, "-iface", device,
		"-hosts", strings.Join(addresses, ","), "-ppn", "1", "-n", strconv.Itoa(len(addresses)),
	}
}

// glooRanks starts Gloo's ranks, which need no launcher.
func (s *site) glooRanks(program, device string) (func(string) (*field.Job, error), error) {
	store, err := os.MkdirTemp(s.dir, "store-")
	if err != nil {
		return nil, err
	}
	return func(socket string) (*field.Job, error) {
		var commands []*exec.Cmd
		for n := range s.hosts() {
			commands = append(commands, exec.Command(program, socket, strconv.Itoa(n), strconv.Itoa(s.hosts()), store, device))
		}
		return s.fabric.Guests(gloo, commands)
	}, nil
}
