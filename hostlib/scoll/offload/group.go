package offload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/reduce"
)

// Spec is what a group is made of, the same at all members.
//
// In the switches there is one root, the member Root: no other can broadcast over
// the group. Members see no children there, and the root one that stands for all
// others. They lend the switches as much as two communicators with Config.Ahead
// operations under way, from when they join until the group is closed.
type Spec struct {
	Name    string
	Members []hostlib.Member // each host's name is that of its scoll node
	Root    int              // index of the member that broadcasts
	Tree    scoll.Tree       // over hosts; the zero Tree: the node's default
}

// Group is a group of a service.
type Group[T reduce.Element] struct {
	service *Service[T]
	name    string
	spec    Spec
	number  uint64
	rank    int
	memory  *memory

	down, up *hostlib.Communicator // nil: all goes over hosts
	over     *scoll.Group          // the root's
	ctx      context.Context       // of the member's credits; ends with Close
	stop     context.CancelFunc
	served   chan struct{} // closed when the member takes nothing from the switches any more

	// The root's. A request is launched by who has order, and holds the slot of
	// its number modulo their count until it has ended: none is launched before
	// all have ended that are so many older, which is what members remember.
	order    lock
	slots    []lock
	sequence uint64 // guarded by order

	mu     sync.Mutex
	lost   string // why nothing goes through the switches any more
	closed bool
}

// Join makes a group, or takes part in it: all members call it with the same
// Spec. It returns when the group can be used. On the root it fails where a
// member does not have the service, or cannot be reached.
func (s *Service[T]) Join(ctx context.Context, spec Spec) (*Group[T], error) {
	g := &Group[T]{
		service: s, name: spec.Name, spec: spec, number: numberOf(spec.Name, spec.Members), rank: -1,
		memory: newMemory(2 * s.cfg.Ahead), order: newLock(), slots: make([]lock, s.cfg.Ahead), served: make(chan struct{}),
	}
	for i := range g.slots {
		g.slots[i] = newLock()
	}
	for i, m := range spec.Members {
		if m.Host == s.node.Name() {
			g.rank = i
		}
	}
	if g.rank < 0 || spec.Root < 0 || spec.Root >= len(spec.Members) {
		return nil, fmt.Errorf("join %q: %w: this node, %s, or root %d is not among its %d members", spec.Name, ErrConfig, s.node.Name(), spec.Root, len(spec.Members))
	}
	s.mu.Lock()
	_, twice := s.groups[g.number]
	if !twice {
		s.groups[g.number] = g
	}
	s.mu.Unlock()
	if twice {
		return nil, fmt.Errorf("join %q: %w: it was joined already", spec.Name, ErrConfig)
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	if err := g.form(ctx); err != nil {
		g.lose("the group was not formed")
		g.leave()
		return nil, fmt.Errorf("join %q: %w", spec.Name, err)
	}
	if g.rank != spec.Root && g.down != nil {
		go g.serve()
	} else {
		close(g.served)
	}
	return g, nil
}

// form makes what requests go over.
func (g *Group[T]) form(ctx context.Context) error {
	if host := g.service.host; host != nil {
		var failed error
		var both sync.WaitGroup
		both.Go(func() {
			g.down, failed = host.Communicator(ctx, g.name+"/down", g.spec.Members, hostlib.OnlyFunctions(), hostlib.OnlyTypes(reduce.Uint32))
		})
		var err error
		g.up, err = host.Communicator(ctx, g.name+"/up", g.spec.Members, hostlib.OnlyFunctions(g.service.cfg.Function), hostlib.OnlyTypes(reduce.TypeOf[T]()))
		both.Wait()
		if err = errors.Join(failed, err); err != nil {
			return err
		}
	}
	if g.rank != g.spec.Root {
		return nil
	}
	targets := make([]scoll.Target, len(g.spec.Members))
	for i, m := range g.spec.Members {
		targets[i] = scoll.Target{Node: m.Host, Tags: []scoll.Tag{{1}}}
	}
	made := make(chan error, 1)
	err := g.service.over.CreateGroup(scoll.GroupSpec{Name: g.name, Targets: targets, Tree: g.spec.Tree}, func(over *scoll.Group, err error) {
		g.over = over
		made <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-made:
		return err
	case <-ctx.Done():
		go func() { // it may still be made; nobody else would free it then
			if <-made == nil {
				_ = g.over.Destroy(context.Background()) // until the node is closed
			}
		}()
		return ctx.Err()
	}
}

// Transport reports how a request broadcast now would go, and why.
func (g *Group[T]) Transport() (hostlib.Transport, string) {
	g.mu.Lock()
	lost := g.lost
	g.mu.Unlock()
	switch {
	case g.down == nil:
		return hostlib.HostTree, "this node has no place in a fabric"
	case lost != "":
		return hostlib.HostTree, lost
	}
	for _, c := range []*hostlib.Communicator{g.down, g.up} {
		if transport, why := c.Transport(); transport != hostlib.Offload {
			return hostlib.HostTree, why
		}
	}
	return hostlib.Offload, "both trees are active"
}

// lose has nothing go through the switches any more, at any member.
func (g *Group[T]) lose(why string) {
	g.mu.Lock()
	first := g.lost == ""
	if first {
		g.lost = why
	}
	g.mu.Unlock()
	if !first {
		return
	}
	for _, c := range []*hostlib.Communicator{g.down, g.up} {
		if c != nil {
			c.Abort(why)
		}
	}
}

func (g *Group[T]) isLost() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost != ""
}

// leave forgets the group here.
func (g *Group[T]) leave() {
	g.stop()
	s := g.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[g.number] == g {
		delete(s.groups, g.number)
	}
}

// Close ends the group when what is under way has ended. All members call it;
// they wait for the root's. When ctx ends first the group is cut off, for all of
// them.
func (g *Group[T]) Close(ctx context.Context) error {
	g.mu.Lock()
	again := g.closed
	g.closed = true
	g.mu.Unlock()
	if again {
		return nil
	}
	defer g.leave()
	err := g.close(ctx)
	if err != nil {
		g.lose("the group was cut off: " + err.Error())
		g.stop()
		<-g.served
		return fmt.Errorf("close %q: %w", g.name, err)
	}
	return nil
}

func (g *Group[T]) close(ctx context.Context) error {
	if g.rank == g.spec.Root {
		for _, l := range append([]lock{g.order}, g.slots...) { // for ever
			if err := g.acquire(ctx, l); err != nil {
				return err
			}
		}
		if err := g.shutdown(ctx); err != nil {
			return err
		}
	}
	select {
	case <-g.served:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.down != nil && !g.isLost() {
		if err := errors.Join(g.down.Leave(ctx), g.up.Leave(ctx)); err != nil {
			return err
		}
	}
	if g.over != nil {
		return g.over.Destroy(ctx)
	}
	return nil
}

// lock is held by who has taken its only element.
type lock chan struct{}

func newLock() lock {
	l := make(lock, 1)
	l.release()
	return l
}

func (l lock) release() { l <- struct{}{} }

// acquire takes a lock of the group's, unless ctx or the group ends first.
func (g *Group[T]) acquire(ctx context.Context, l lock) error {
	select {
	case <-l:
		return nil
	case <-g.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
