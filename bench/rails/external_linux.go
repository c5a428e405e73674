package rails

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
)

// ErrMissing: a program is not installed.
var ErrMissing = errors.New("a program is not installed")

func installed(program, brings string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%w: %s; on Debian: apt install %s", ErrMissing, program, brings)
	}
	return nil
}

// perftest is UCX's own benchmark. Each measurement starts it anew on both hosts.
type perftest struct {
	*site
	devices string
	wait    string // how it waits
}

// ucxPort is where ucx_perftest listens by default.
const ucxPort = 13337

func (p *perftest) close() {}

func (p *perftest) pingpong(ctx context.Context, r Request) (timing.Tail, bool, error) {
	values, err := p.run(ctx, r, "tag_lat", r.Warmup)
	if err != nil {
		return timing.Tail{}, false, err
	}
	// It has one quantile, and no times.
	return timing.Tail{Median: values[1]}, true, nil
}

func (p *perftest) bandwidth(ctx context.Context, r Request) (float64, error) {
	values, err := p.run(ctx, r, "tag_bw", r.Warmup)
	if err != nil {
		return 0, err
	}
	return values[5] * (1 << 20) * 8, nil // overall, in MiB a second
}

// run runs a test, and returns the numbers of its last line: iterations; a quantile, the
// average and the overall time in us; average and overall MiB/s; the same of messages.
func (p *perftest) run(ctx context.Context, r Request, test string, warmup int) ([]float64, error) {
	if err := installed("ucx_perftest", "ucx-utils"); err != nil {
		return nil, err
	}
	args := []string{"-t", test, "-s", strconv.Itoa(r.Bytes), "-n", strconv.Itoa(r.Iterations), "-w", strconv.Itoa(warmup), "-E", p.wait, "-f", "-v"}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, fmt.Errorf("it was not done within %v", r.Limit))
	defer cancel()
	server, err := p.command(Answerer, args)
	if err != nil {
		return nil, err
	}
	if err := p.fabric.Start(Answerer, server); err != nil {
		return nil, err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	}()
	if err := p.listening(ctx); err != nil {
		return nil, err
	}
	client, err := p.command(Asker, append([]string{p.addresses(Answerer, 1)[0]}, args...))
	if err != nil {
		return nil, err
	}
	said, err := output(ctx, p.fabric, client)
	if err != nil {
		return nil, fmt.Errorf("ucx_perftest: %w", err)
	}
	return lastNumbers(said)
}

// command returns the benchmark's process on a side. It takes interfaces from /sys, so
// that it needs that of its namespace.
func (p *perftest) command(side int, args []string) (*exec.Cmd, error) {
	rsh, err := p.shell()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(rsh, p.addresses(side, 1)[0], "exec "+quoted(append([]string{"ucx_perftest"}, args...)))
	cmd.Env = append(os.Environ(), "UCX_TLS=tcp,self", "UCX_NET_DEVICES="+p.devices, "UCX_TCP_PREFER_DEFAULT=n", "UCX_MAX_RNDV_RAILS=2", "UCX_WARN_UNUSED_ENV_VARS=n")
	return cmd, nil
}

// listening waits until the server can be called. It takes one connection, which must be
// the client's: whether it listens is read from the kernel's list.
func (p *perftest) listening(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	want := fmt.Sprintf(":%04X 00000000:0000 0A", ucxPort) // 0A: listening
	for {
		var list []byte
		err := p.fabric.Do(Answerer, func() (err error) {
			list, err = os.ReadFile("/proc/thread-self/net/tcp")
			return err
		})
		if err != nil {
			return err
		}
		if bytes.Contains(list, []byte(want)) {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("ucx_perftest does not listen: %w", context.Cause(ctx))
		}
	}
}

// lastNumbers returns the numbers of the last line of a CSV.
func lastNumbers(text []byte) ([]float64, error) {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	words := strings.Split(lines[len(lines)-1], ",")
	if len(words) < 8 {
		return nil, fmt.Errorf("ucx_perftest has no results: %q", text)
	}
	all := make([]float64, len(words))
	for i, word := range words {
		x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return nil, fmt.Errorf("ucx_perftest: %q: %w", lines[len(lines)-1], err)
		}
		all[i] = x
	}
	return all, nil
}

// output runs a process on the asker's host, and returns what it writes.
func output(ctx context.Context, f *netlab.Rails, cmd *exec.Cmd) ([]byte, error) {
	var said, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &errs
	cmd.WaitDelay = time.Second
	if err := f.Start(Asker, cmd); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return nil, errors.Join(context.Cause(ctx), err, errors.New(strings.TrimSpace(errs.String())))
	}
	return said.Bytes(), nil
}

//go:embed programs/messages_mpi.c
var mpiSource []byte

// mpi is Open MPI over TCP. Each measurement starts it anew, as UCX's.
type mpi struct {
	*site
	devices, program, rsh string
}

func (s *site) startMPI(ctx context.Context, rails int) (contestant, error) {
	for _, program := range []string{"mpicc.openmpi", "mpirun.openmpi"} {
		if err := installed(program, "openmpi-bin libopenmpi-dev gcc"); err != nil {
			return nil, err
		}
	}
	rsh, err := s.shell()
	if err != nil {
		return nil, err
	}
	m := &mpi{s, devices(rails), filepath.Join(s.dir, "messages_mpi"), rsh}
	if _, err := os.Stat(m.program); err == nil {
		return m, nil
	}
	if err := os.WriteFile(m.program+".c", mpiSource, 0o600); err != nil {
		return nil, err
	}
	if said, err := exec.CommandContext(ctx, "mpicc.openmpi", "-O2", "-o", m.program, m.program+".c").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the program of Open MPI: %w: %s", err, said)
	}
	return m, nil
}

func (m *mpi) close() {}

func (m *mpi) pingpong(ctx context.Context, r Request) (timing.Tail, bool, error) {
	right, times, err := m.run(ctx, r, "latency")
	for i := range times {
		times[i] /= 1000
	}
	return timing.TailOf(times), right, err
}

func (m *mpi) bandwidth(ctx context.Context, r Request) (float64, error) {
	_, rate, err := m.run(ctx, r, "bandwidth", strconv.Itoa(r.Window))
	if err == nil && len(rate) != 1 {
		err = errors.New("Open MPI has no result")
	}
	if err != nil {
		return 0, err
	}
	return rate[0], nil
}

// run runs the program, and returns its numbers.
func (m *mpi) run(ctx context.Context, r Request, what string, more ...string) (right bool, all []float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, fmt.Errorf("it was not done within %v", r.Limit))
	defer cancel()
	hosts := []string{m.addresses(Asker, 1)[0], m.addresses(Answerer, 1)[0]}
	words := []string{"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-np", "2", "-H", strings.Join(hosts, ":1,") + ":1"}
	for _, setting := range [][2]string{
		{"plm", "rsh"}, {"plm_rsh_agent", m.rsh}, {"pml", "ob1"}, {"btl", "tcp,self"}, {"mpi_yield_when_idle", "1"},
		{"btl_tcp_if_include", m.devices}, {"oob_tcp_if_include", netlab.RailInterface(0)},
	} {
		words = append(words, "--mca", setting[0], setting[1])
	}
	words = append(words, m.program, what, strconv.Itoa(r.Bytes), strconv.Itoa(r.Warmup), strconv.Itoa(r.Iterations))
	cmd := exec.Command(m.rsh, hosts[0], quoted(append(words, more...)))
	cmd.Env = append(os.Environ(), "TMPDIR="+m.dir)
	said, err := output(ctx, m.fabric, cmd)
	if err != nil {
		return false, nil, fmt.Errorf("Open MPI: %w", err)
	}
	fields := strings.Fields(string(said))
	if len(fields) < 2 || fields[0] != "right" && fields[0] != "wrong" {
		return false, nil, fmt.Errorf("Open MPI has no result: %q", said)
	}
	for _, word := range fields[1:] {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return false, nil, fmt.Errorf("Open MPI: %w", err)
		}
		all = append(all, x)
	}
	return fields[0] == "right", all, nil
}
