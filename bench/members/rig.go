package members

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// ErrRig is wrapped by the errors of a Rig.
var ErrRig = errors.New("members: rig")

// A System starts nodes of one membership service.
type System interface {
	Name() string
	// Start starts a node at its seat. It comes back before the node knows
	// others.
	Start(ctx context.Context, seat Seat) (Node, error)
}

// Seat is what a node is given.
type Seat struct {
	Name  string
	Addr  netip.AddrPort   // of the node, for UDP and TCP
	Seeds []netip.AddrPort // nodes that it asks first, perhaps itself among them
	Meter *Meter           // for what it sends
	// Changed is to be called for every node that joins the view, or leaves it,
	// with the size of the view afterwards, the node itself counted.
	Changed func(name string, there bool, size int)
}

// Node is one node of a System.
type Node interface {
	// Kill ends it as the end of its process would: its sockets are closed, and
	// nothing is said.
	Kill()
	// Mute loses every packet that it sends, and every one to it, from now on.
	Mute()
	// Close ends it.
	Close()
}

// Blow is a way to lose a node.
type Blow string

// The ways.
const (
	Killed Blow = "killed" // the process is gone, its connections break
	Silent Blow = "silent" // no packet comes from it any more
)

// Rig is nodes of one System, all in this process.
type Rig struct {
	system System
	nodes  []Node
	meters []Meter

	mu     sync.Mutex
	index  map[string]int
	sizes  []int  // of views, by node
	struck []bool // nodes that are dead
	victim int    // whose death is waited for; -1: sizes are
	heard  []time.Time
	want   int // size of views that is waited for
	fit    int // living nodes that have it, or have heard
	done   chan struct{}
	wrong  int // times that a living node was taken for dead
}

// port is that of all nodes; each has an address of its own on the loopback.
const port = 7946

// seat returns the address of node i of a net of 127.0.0.0/8.
func seat(net byte, i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, net, byte(i >> 8), byte(i)}), port)
}

// Boot starts n nodes at once, each with the first seeds of them to ask, and
// returns the time until all views had all nodes. Net, 1 to 255, is the second
// byte of their addresses.
func Boot(ctx context.Context, system System, n, seeds int, net byte) (*Rig, time.Duration, error) {
	r := &Rig{
		system: system, nodes: make([]Node, n), meters: make([]Meter, n), index: map[string]int{},
		sizes: make([]int, n), struck: make([]bool, n), victim: -1, heard: make([]time.Time, n),
		want: n, done: make(chan struct{}),
	}
	var known []netip.AddrPort
	for i := range seeds {
		known = append(known, seat(net, i))
	}
	for i := range n {
		r.index[name(i)] = i
	}
	begun := time.Now()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r.nodes[i], errs[i] = system.Start(ctx, Seat{
				Name: name(i), Addr: seat(net, i), Seeds: known, Meter: &r.meters[i],
				Changed: func(who string, there bool, size int) { r.changed(i, who, there, size) },
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Close()
		return nil, 0, fmt.Errorf("%w: %w", ErrRig, err)
	}
	if err := r.wait(ctx, "all views to have all nodes"); err != nil {
		r.Close()
		return nil, 0, err
	}
	return r, time.Since(begun), nil
}

func name(i int) string { return fmt.Sprintf("node-%04d", i) }

// changed takes what changed in the view of node i.
func (r *Rig) changed(i int, who string, there bool, size int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	about, known := r.index[who]
	if !known || r.struck[i] {
		return
	}
	was := r.sizes[i]
	r.sizes[i] = size
	if !there && !r.struck[about] {
		r.wrong++
	}
	switch {
	case r.victim < 0 && size != was:
		if was == r.want {
			r.fit--
		}
		if size == r.want {
			r.fit++
		}
	case r.victim == about && !there && r.heard[i].IsZero():
		r.heard[i] = now
		r.fit++
	default:
		return
	}
	r.settle()
}

// settle ends the wait when nothing is waited for any more.
func (r *Rig) settle() {
	if r.fit >= r.living() && r.done != nil {
		close(r.done)
		r.done = nil
	}
}

func (r *Rig) living() int {
	dead := 0
	for _, d := range r.struck {
		if d {
			dead++
		}
	}
	return len(r.nodes) - dead
}

func (r *Rig) wait(ctx context.Context, what string) error {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Errorf("%w: %s: waiting for %s: %d of %d nodes are that far: %w",
		ErrRig, r.system.Name(), what, r.fit, r.living(), context.Cause(ctx))
}

// Knowledge is when the survivors knew of a death, from the blow on.
type Knowledge struct {
	First  time.Duration `json:"first_ns"`
	Median time.Duration `json:"median_ns"`
	Last   time.Duration `json:"last_ns"`
}

// Strike loses a node, and returns when the survivors knew.
func (r *Rig) Strike(ctx context.Context, victim int, how Blow) (Knowledge, error) {
	r.mu.Lock()
	r.victim, r.struck[victim], r.fit, r.done = victim, true, 0, make(chan struct{})
	clear(r.heard)
	r.mu.Unlock()
	begun := time.Now()
	if how == Killed {
		r.nodes[victim].Kill()
	} else {
		r.nodes[victim].Mute()
	}
	if err := r.wait(ctx, "the survivors to know of a death"); err != nil {
		return Knowledge{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var times []time.Duration
	for _, t := range r.heard {
		if !t.IsZero() {
			times = append(times, t.Sub(begun))
		}
	}
	slices.Sort(times)
	return Knowledge{First: times[0], Median: times[len(times)/2], Last: times[len(times)-1]}, nil
}

// Traffic returns what the living nodes have sent so far, and how many they are.
func (r *Rig) Traffic() (sum Traffic, nodes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.nodes {
		if !r.struck[i] {
			sum = sum.Add(r.meters[i].Read())
			nodes++
		}
	}
	return sum, nodes
}

// Wrong returns how often a living node was taken for dead.
func (r *Rig) Wrong() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}

// Close ends all nodes.
func (r *Rig) Close() {
	r.mu.Lock()
	for i := range r.struck {
		r.struck[i] = true // what they see of each other's end is no news
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, n := range r.nodes {
		if n != nil {
			all.Go(n.Close)
		}
	}
	all.Wait()
}
