package managerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/ground/version"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrOtherSwitch is logged of an agent that says that it is another switch's.
var ErrOtherSwitch = errors.New("managerd: the agent is another switch's")

// errUnreached ends an attempt to reach an agent.
var errUnreached = errors.New("managerd: the agent did not answer")

// The wait after an agent was lost, which doubles with each failure up to the
// cap, and is drawn between half of it and all.
const (
	minLinkRetry = 20 * time.Millisecond
	maxLinkRetry = 2 * time.Second
	steadyLink   = time.Second // a connection that ends sooner leaves the pauses as long as they are
)

// maxRequests is the requests that wait for one agent at most; what is beyond
// is lost, and repeated by the core.
const maxRequests = 1 << 14

// request is one of its fields.
type request struct {
	prepare *agent.Prepare
	commit  *agent.Commit
	remove  *agent.Remove
	refresh bool // ask for the state
	routes  bool // give it its routes
}

// link is the connection to one switch's agent.
type link struct {
	daemon  *Daemon
	name    string
	address string
	client  *rpc.AgentClient
	log     *slog.Logger
	box     atomic.Pointer[runner.Mailbox[request]] // nil while the agent is away
	runs    atomic.Value                            // string: the agent's version, as it reported last
	lacks   atomic.Value                            // string: why it can reserve nothing, as it reported last
	routed  atomic.Bool                             // it takes routes
	// capability is what the agent reported last; nil: nothing yet.
	capability atomic.Pointer[topology.Capability]

	stop  context.CancelFunc // ends run
	after <-chan struct{}    // run begins when this is closed: the link before has ended; nil: there was none
	done  chan struct{}      // closed when run has ended

	// Guarded by Daemon.fabric:
	ports *rpc.Interfaces           // as the agent reported them last; nil: not, or they cannot be had
	found map[topology.Port]linkEnd // by port: the last link whose end had an interface of the switch
}

func newLink(d *Daemon, name, address string, client *rpc.AgentClient) *link {
	return &link{
		daemon: d, name: name, address: address, client: client, done: make(chan struct{}),
		log:   d.log.With(slog.String("switch", name), slog.String("agent", address)),
		found: map[topology.Port]linkEnd{},
	}
}

// put hands a request over. It is lost while the agent is away.
func (l *link) put(r request) {
	if box := l.box.Load(); box != nil {
		box.Put(r)
	}
}

// run meets the agent again and again until the context ends.
func (l *link) run(ctx context.Context) {
	defer close(l.done)
	defer func() { _ = l.client.Close() }() // its only error is that it was closed
	if l.after != nil {
		<-l.after // or the core would hear of its end after this one's begin
	}
	reported := ""
	for wait := minLinkRetry; ; wait = min(2*wait, maxLinkRetry) {
		began := time.Now()
		met, err := l.meet(ctx)
		if ctx.Err() != nil {
			return
		}
		if met {
			wait, reported = retryAfter(wait, time.Since(began)), ""
			l.daemon.counts.lost.Add(1)
			l.log.Warn("agent lost", slog.Any("error", err))
		} else if text := err.Error(); text != reported {
			reported = text
			l.log.Warn("waiting for agent", slog.Any("error", err))
		}
		if runner.Pause(ctx, wait/2+rand.N(wait/2)) != nil {
			return
		}
	}
}

// retryAfter returns the pause after a connection that has lasted: one that ends soon, as
// while an agent shuts down, does not begin the pauses anew.
func retryAfter(wait, lasted time.Duration) time.Duration {
	if lasted < steadyLink {
		return wait
	}
	return minLinkRetry
}

// meet is one life of the connection, and reports whether there was one.
func (l *link) meet(ctx context.Context) (met bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(l.daemon.cfg.Connect, func() {
		cancel(fmt.Errorf("%w within %v", errUnreached, l.daemon.cfg.Connect))
	})
	defer patience.Stop()
	box := &runner.Mailbox[request]{Limit: maxRequests}
	var calling sync.WaitGroup
	err = l.client.Watch(ctx, l.daemon.cfg.Heartbeat, func(e rpc.AgentEvent) error {
		switch {
		case e.Ended != nil:
			return l.daemon.post(manager.Ended{Switch: l.name, End: *e.Ended})
		case met && e.Interfaces != nil:
			return l.interfaces(e.Interfaces)
		case met:
			box.Put(request{refresh: true})
			return nil
		case e.State == nil:
			return fmt.Errorf("%w: its first word is not its state", errUnreached)
		}
		if !patience.Stop() {
			return context.Cause(ctx) // too late: the connection is being broken off
		}
		if e.State.Switch != l.name {
			return fmt.Errorf("%w: it says that it is %q", ErrOtherSwitch, e.State.Switch)
		}
		met = true
		l.log.Info("agent met", slog.Uint64("incarnation", e.State.Incarnation), slog.Int("holds", len(e.State.Holds)),
			slog.String("version", e.State.Version))
		l.compare(e.State.Version)
		l.box.Store(box)
		calling.Go(func() { l.call(ctx, box, e.State.Incarnation) })
		calling.Go(func() { l.verify(ctx) })
		if l.routed.Store(e.State.TakesRoutes); e.State.TakesRoutes {
			box.Put(request{routes: true}) // first: trees need them
		} else {
			l.homeless(e.State.Interfaces)
		}
		if err := l.interfaces(e.State.Interfaces); err != nil { // before the switch is used
			return err
		}
		return l.up(e.State)
	})
	l.box.Store(nil)
	cancel(err)
	calling.Wait()
	if met {
		// An error says that the manager ends.
		err = errors.Join(err, l.daemon.post(manager.SwitchDown{Switch: l.name, Why: err.Error()}))
	}
	return met, err
}

// compare keeps the agent's version, and reports if it is not this manager's.
func (l *link) compare(theirs string) {
	l.runs.Store(theirs)
	if own := version.String(); theirs != own {
		l.log.Warn("the agent is of another version", slog.String("version", own), slog.String("theirs", cmp.Or(theirs, "unknown")))
	}
}

// version returns the agent's version, as it reported last; empty: it has not.
func (l *link) version() string {
	v, _ := l.runs.Load().(string)
	return v
}

// judge keeps why the agent can reserve nothing, and reports if that is news.
func (l *link) judge(unusable string) {
	if before := l.unusable(); before != unusable {
		l.lacks.Store(unusable)
		if unusable != "" {
			l.log.Warn("the switch can reserve nothing", slog.String("reason", unusable))
		}
	}
}

// unusable returns why the agent can reserve nothing, as it reported last; empty:
// it can, or has reported nothing yet.
func (l *link) unusable() string {
	v, _ := l.lacks.Load().(string)
	return v
}

// up gives the core what the agent has said of itself.
func (l *link) up(s *rpc.AgentState) error {
	l.judge(s.Unusable)
	l.capability.Store(&s.Capability)
	can, err := l.daemon.capable(l.name, s.Capability)
	if err != nil {
		return err
	}
	return l.daemon.post(manager.SwitchUp{
		Switch: l.name, Incarnation: s.Incarnation, Capability: can, Draining: s.Draining, Outlives: s.Outlives,
		Holds: s.Holds,
	})
}

// capable notes what a switch can do, as its agent says, and returns it: of a speed that
// the agent does not say the topology's counts.
func (d *Daemon) capable(name string, c topology.Capability) (topology.Capability, error) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	view := d.overlay.View()
	n, ok := view.Graph().Lookup(name)
	if !ok || !view.Graph().IsSwitch(n) {
		return c, nil
	}
	if c = withSpeed(c, view.Graph(), n); view.Capability(n) == c {
		return c, nil
	}
	return c, d.change(nil, topology.SwitchCapability(n, c))
}

func withSpeed(c topology.Capability, g *topology.Graph, n topology.NodeID) topology.Capability {
	if !c.Speed.Known() {
		c.Speed = g.Speed(n)
	}
	return c
}

// call makes the calls to one incarnation of the agent until the context ends.
func (l *link) call(ctx context.Context, box *runner.Mailbox[request], incarnation uint64) {
	var routes portmap.Assignment
	for {
		requests, err := box.Take(ctx)
		if err != nil {
			return
		}
		for _, r := range requests {
			if err := l.do(ctx, r, incarnation, &routes); err != nil {
				if ctx.Err() != nil {
					return
				}
				// The core repeats it, or gives it up in time.
				l.log.Warn("call failed", slog.Any("error", err))
			}
		}
	}
}

// do makes one call and hands its answer to the core. The error is that there
// was none.
func (l *link) do(ctx context.Context, r request, incarnation uint64, routes *portmap.Assignment) error {
	ctx, cancel := context.WithTimeout(ctx, l.daemon.cfg.Call)
	defer cancel()
	answer := agent.Reply{Incarnation: incarnation}
	var err error
	switch {
	case r.routes:
		return l.route(ctx, routes)
	case r.prepare != nil:
		answer.Kind, answer.Group, answer.Epoch = agent.Prepared, r.prepare.Group, r.prepare.Epoch
		answer.Addr, err = l.client.Prepare(ctx, *r.prepare)
	case r.commit != nil:
		c := &r.commit.Config
		answer.Kind, answer.Group, answer.Epoch = agent.Committed, c.Group, c.Epoch
		answer.Reducer, err = l.client.Commit(ctx, *r.commit)
	case r.remove != nil:
		answer.Kind, answer.Group, answer.Epoch = agent.Removed, r.remove.Group, r.remove.Epoch
		err = l.client.Remove(ctx, *r.remove)
	default:
		s, err := l.client.State(ctx)
		if err != nil {
			return err
		}
		return l.up(&s)
	}
	if err != nil && !errors.As(err, &answer.Refusal) {
		return err
	}
	if err != nil {
		answer.Kind = agent.Refused
		l.daemon.counts.refusal(answer.Refusal)
		l.log.Info("refused", slog.Uint64("group", uint64(answer.Group)), slog.Any("error", err))
	}
	return l.daemon.post(manager.Answer{Switch: l.name, Reply: answer})
}
