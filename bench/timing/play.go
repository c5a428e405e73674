package timing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/bench/turn"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// Variants of turns beside "default" and the names of hostlib.Algorithms, by which they run alone.
const (
	Hosts       = "hosts"  // by algorithms of hosts
	Chosen      = "chosen" // as the host library chooses
	Tree        = "tree"   // as "default", on a communicator of its own
	TreeOfHosts = "tree-of-hosts"

	Authenticated = "authenticated" // as Tree, with packets that are so
	Encrypted     = "encrypted"

	Int32        = "int32"        // as "default", of vectors of int32
	Block32      = "block32"      // as Tree, in block floating point
	Reproducible = "reproducible" // as Tree, with sums that are so
	BFloat16     = "bfloat16"     // as Tree, with sums of float32 compressed to that
)

// overTree are those that must run as the configuration has it.
var overTree = []string{"default", Tree, Authenticated, Encrypted, Reproducible, BFloat16, Int32, Block32}

// options returns the options of a variant's communicator.
func options(variant string) ([]hostlib.GroupOption, error) {
	switch variant {
	case Hosts:
		return []hostlib.GroupOption{hostlib.OnHosts()}, nil
	case Chosen:
		return nil, nil
	case Tree:
		return []hostlib.GroupOption{hostlib.OnTree()}, nil
	case Authenticated:
		return []hostlib.GroupOption{hostlib.OnTree(), hostlib.Authenticated()}, nil
	case Encrypted:
		return []hostlib.GroupOption{hostlib.OnTree(), hostlib.Encrypted()}, nil
	case Block32:
		return []hostlib.GroupOption{hostlib.OnTree(), hostlib.BlockFloat()}, nil
	case Reproducible:
		return []hostlib.GroupOption{hostlib.OnTree(), hostlib.Reproducible()}, nil
	case BFloat16:
		return []hostlib.GroupOption{hostlib.OnTree(), hostlib.Compressed(reduce.BFloat16)}, nil
	case TreeOfHosts:
		return []hostlib.GroupOption{hostlib.OnTreeOfHosts()}, nil
	}
	a, err := hostlib.ParseAlgorithm(variant)
	return []hostlib.GroupOption{hostlib.OnHosts(a)}, err
}

// Former forms a communicator of the same members for a variant.
type Former func(variant string, options ...hostlib.GroupOption) (*hostlib.Communicator, error)

// Player returns what takes a member's turns beside other implementations: it
// does what their programs do, no more and no less.
//
// The variant of a turn is "default", for comm, or another, whose communicator is formed when it is
// first needed; or one of these, a colon and a collective. Before each operation is a barrier of comm; with
// Hosts, which is compared with other implementations, one of its own communicator.
func Player(ctx context.Context, comm *hostlib.Communicator, form Former, c Config) func(turn.Request) (turn.Reply, error) {
	formed := map[string]*hostlib.Communicator{"default": comm, Int32: comm}
	return func(r turn.Request) (turn.Reply, error) {
		c := c
		c.Bytes, c.Iterations, c.Pace = []int{r.Bytes}, []int{max(1, r.Iterations)}, Steady
		variant, of, isOther := strings.Cut(r.Variant, ":")
		if isOther {
			c.Collective = Collective(of)
		}
		if slices.Contains(ofPieces, c.Collective) || !slices.Contains(overTree, variant) {
			c.Transport = Auto
		}
		switch variant {
		case Int32:
			c.Type = reduce.Int32
		case Block32:
			c.Type = reduce.Block32
		}
		if err := c.Validate(); err != nil {
			return turn.Reply{}, err
		}
		if formed[variant] == nil {
			all, err := options(variant)
			if err != nil {
				return turn.Reply{}, err
			}
			if formed[variant], err = form(variant, all...); err != nil {
				return turn.Reply{}, err
			}
		}
		m := &member{comm: formed[variant], gate: formed[variant], cfg: c}
		if variant != Hosts { // ways are compared with each other: all after the same barrier, on another communicator
			m.gate = comm
		}
		return m.play(ctx, r)
	}
}

// play takes one turn. The vectors of the timed operations differ from those of
// the ones before, so that the last result depends on these.
func (m *member) play(ctx context.Context, r turn.Request) (reply turn.Reply, err error) {
	t, err := newTask(place{m.comm, m.comm.Rank(), m.comm.Size()}, m.cfg, r.Bytes)
	if err != nil {
		return reply, err
	}
	s := series{times: make([]float64, r.Iterations), spans: make([]Span, r.Iterations)}
	t.prepare(period)
	for i := range r.Warmup {
		if err := m.once(ctx, t, i-r.Warmup, false, &s); err != nil {
			return reply, err
		}
	}
	reply.Right = r.Warmup == 0 || t.right()
	t.prepare(period + 1)
	if _, err := hostlib.Barrier(ctx, m.comm); err != nil {
		return reply, err
	}
	user, system := gauge.Usage()
	for i := range r.Iterations {
		if err := m.once(ctx, t, i, false, &s); err != nil {
			return reply, err
		}
	}
	untilUser, untilSystem := gauge.Usage()
	reply.User, reply.System = untilUser-user, untilSystem-system
	reply.Right = reply.Right && (r.Iterations == 0 || t.right())
	reply.Transport = transportOf(s.transports[:]).String()
	reply.Times = make([]time.Duration, len(s.spans))
	for i, us := range s.times {
		reply.Times[i] = time.Duration(us * float64(time.Microsecond))
	}
	if r.Iterations > 0 && !m.cfg.fits(transportOf(s.transports[:])) {
		return reply, errors.Join(ErrTransport, errors.New(m.reason))
	}
	return reply, nil
}
