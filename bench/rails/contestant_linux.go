package rails

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
)

// contestant is an implementation on some of the rails.
type contestant interface {
	// pingpong returns how the times of messages one way are distributed, and whether
	// what came back was right.
	pingpong(ctx context.Context, r Request) (timing.Tail, bool, error)
	// bandwidth returns the bit/s of a stream of r.Iterations messages.
	bandwidth(ctx context.Context, r Request) (float64, error)
	close()
}

// site is a fabric with what contestants need on it.
type site struct {
	fabric  *netlab.Rails
	program []string // the command that is collbench
	kinds   []string
	trust   string // directory; empty: plaintext
	dir     string
	log     io.Writer
}

// addresses returns those of a host's first n rails.
func (s *site) addresses(host, n int) (all []string) {
	for rail := range n {
		all = append(all, s.fabric.Addr(host, rail).String())
	}
	return all
}

// devices returns the names of the first n rails' interfaces.
func devices(n int) string {
	all := make([]string, n)
	for rail := range all {
		all[rail] = netlab.RailInterface(rail)
	}
	return strings.Join(all, ",")
}

// start starts a contestant.
func (s *site) start(ctx context.Context, name string) (contestant, error) {
	rails := s.fabric.Rails()
	kind, one := strings.CutSuffix(name, "/1")
	if one {
		rails = 1
	}
	switch kind {
	case Plain, Messages, Reduce, Conn:
		p, err := startPair(ctx, s.fabric, func(side int) *exec.Cmd { return s.end(name, side, rails) })
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", name, err)
		}
		return processes{p}, nil
	case UCX, UCXSleep:
		p := &perftest{site: s, devices: devices(rails), wait: "poll"}
		if kind == UCXSleep {
			p.wait = "sleep"
		}
		return p, nil
	case OpenMPI:
		return s.startMPI(ctx, rails)
	}
	return nil, fmt.Errorf("%w: contestant %q", ErrConfig, name)
}

// firstPort is where the first contestant listens, each host in a namespace of its own.
const firstPort = 7300

// end returns the process that is an end of a pair.
func (s *site) end(name string, side, rails int) *exec.Cmd {
	kind, _, _ := strings.Cut(name, "/")
	port := firstPort + slices.Index(Contestants(), name) // all run at once
	args := append(s.program[1:len(s.program):len(s.program)], "node", "rail", "--port", kind, "--side", fmt.Sprint(side),
		"--own", strings.Join(s.addresses(side, rails), ","), "--peer", strings.Join(s.addresses(1-side, rails), ","),
		"--kind", strings.Join(s.kinds[:min(rails, len(s.kinds))], ","), "--trust", s.trust, "--listen", fmt.Sprint(port))
	cmd := exec.Command(s.program[0], args...)
	cmd.Stderr = s.log
	return cmd
}

// processes is a pair as a contestant.
type processes struct{ *pair }

func (p processes) pingpong(ctx context.Context, r Request) (timing.Tail, bool, error) {
	replies, err := p.ask(ctx, r)
	if err != nil {
		return timing.Tail{}, false, err
	}
	return timing.TailOf(micros(replies[Asker].Times)), replies[Asker].Right, nil
}

func (p processes) bandwidth(ctx context.Context, r Request) (float64, error) {
	flow, err := p.flow(ctx, r)
	if err == nil && !flow.Exact() {
		err = fmt.Errorf("%w: %v", ErrWrong, flow.Ledger)
	}
	return flow.rate(), err
}

// flow is what became of a stream.
type flow struct {
	*Ledger
	*Meter
	begun time.Duration
}

// rate returns the bit/s of all of it.
func (f flow) rate() float64 { return f.Mean(f.begun) }

// flow runs a stream from now on.
func (p processes) flow(ctx context.Context, r Request) (flow, error) {
	replies, err := p.ask(ctx, r)
	l, m := replies[Answerer].Ledger, replies[Answerer].Meter
	if l == nil || m == nil {
		return flow{&Ledger{}, &Meter{}, 0}, err
	}
	l.End(replies[Asker].Sent)
	return flow{l, m, replies[Asker].Begun}, err
}

func micros(times []time.Duration) []float64 {
	all := make([]float64, len(times))
	for i, t := range times {
		all[i] = float64(t) / float64(time.Microsecond)
	}
	return all
}

// shell writes what mpirun takes for a remote shell, and returns its path.
func (s *site) shell() (string, error) {
	var namespaces strings.Builder
	for host := range s.fabric.Hosts() {
		fmt.Fprintf(&namespaces, "%v %s\n", s.fabric.Addr(host, 0), s.fabric.Namespace(host))
	}
	list, script := filepath.Join(s.dir, "namespaces"), filepath.Join(s.dir, "rsh")
	if err := os.WriteFile(list, []byte(namespaces.String()), 0o600); err != nil {
		return "", err
	}
	return script, os.WriteFile(script, []byte("#!/bin/sh\nexec "+quoted(append(s.program[:len(s.program):len(s.program)], "node", "shell", "--namespaces", list, "--"))+" \"$@\"\n"), 0o700)
}

// quoted returns words as a shell takes them for what they are.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(all, " ")
}
