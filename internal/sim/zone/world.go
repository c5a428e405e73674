package zone

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/sim/agenda"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// World is a zone. Its methods are not safe for concurrent use.
type World struct {
	cfg    Config
	dir    *member.Directory
	rand   *rand.Rand
	now    core.Time
	queue  agenda.Agenda[event]
	events uint64
	hash   uint64

	nodes []node
	conns []conn
	free  []int32
	out   member.Output
	one   [1]member.Input

	blocked map[[2]int32]bool // from, to

	expected gossip.Life // census of all that are up
	up       int
	agreeing int // of those, whose view is expected

	Traffic Traffic
}

// Traffic counts what was sent, in messages and entries of them.
type Traffic struct {
	Beats, Packets, Frames, Entries uint64
	ByType                          [64]uint64
}

// node is the world's side of a node.
type node struct {
	core  *member.Core
	step  Stepper
	index member.Index
	life  uint32 // starts so far
	up    bool   // its process runs
	dead  bool   // its host says nothing
	side  int32  // of the partition

	impaired Impairment
	agree    bool

	deadline core.Time
	timer    core.Time // that is in the queue
	busy     core.Time
	checks   core.Time // until it has checked the births that have come
	inbox    []item
	head     int
	waiting  bool // a readyDue is in the queue
	accepted member.Link
	links    []plug
}

// plug is the end of a connection.
type plug struct {
	link member.Link
	conn int32
	side uint8
}

// New returns a world of nodes that have not started.
func New(cfg Config) (*World, error) {
	if err := cfg.Settings.Validate(); err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, dir: member.NewDirectory(), rand: rand.New(rand.NewPCG(cfg.Seed, 1)), nodes: make([]node, cfg.Nodes)}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.index = w.dir.Add(w.id(i))
		w.dir.Hold(n.index)
		n.timer, n.deadline = core.Never, core.Never
	}
	return w, nil
}

// id returns the ID of a node.
func (w *World) id(i int) gossip.ID {
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7946)
	return gossip.ID(fmt.Sprintf("node-%04d@%v", i, address))
}

// Now returns the virtual time.
func (w *World) Now() core.Time { return w.now }

// Events returns how many events have happened.
func (w *World) Events() uint64 { return w.events }

// Hash returns a hash of all that has happened.
func (w *World) Hash() uint64 { return w.hash }

// Core returns a node's core, nil if it has not started.
func (w *World) Core(i int) *member.Core { return w.nodes[i].core }

// Node returns which node an index is of; indices and nodes are the same where
// nobody else was added.
func (w *World) Node(i member.Index) int { return int(i) }

// Up reports whether a node's process runs.
func (w *World) Up(i int) bool { return w.nodes[i].up }

// At calls do at a time.
func (w *World) At(at core.Time, do func()) {
	w.queue.Push(max(at, w.now), event{kind: callDue, call: do})
}

// RunUntil runs until the time at.
func (w *World) RunUntil(at core.Time) {
	for w.queue.Next() <= at {
		w.happen()
	}
	w.now = max(w.now, at)
}

// RunFor runs for d.
func (w *World) RunFor(d time.Duration) { w.RunUntil(w.now.Add(d)) }

// Await runs until done, which is asked after every event, and returns how long
// that took; ok is false if it was not done within limit.
func (w *World) Await(limit time.Duration, done func() bool) (took time.Duration, ok bool) {
	from := w.now
	for !done() {
		if w.queue.Next() > from.Add(limit) {
			w.now = from.Add(limit)
			return limit, false
		}
		w.happen()
	}
	return w.now.Sub(from), true
}

// Agreed reports whether everybody who is up has a view of just these.
func (w *World) Agreed() bool { return w.agreeing == w.up }

// Equal reports whether all views are the same, with all versions.
func (w *World) Equal() bool {
	var digest uint64
	for i, first := 0, true; i < len(w.nodes); i++ {
		n := &w.nodes[i]
		switch {
		case !n.up:
		case first:
			digest, first = n.core.Digest(), false
		case n.core.Digest() != digest:
			return false
		}
	}
	return w.Agreed()
}

func (w *World) happen() {
	w.now = w.queue.Next()
	e := w.queue.Pop()
	w.events++
	w.mix(uint64(w.now) ^ uint64(e.kind)<<56 ^ uint64(uint32(e.node))<<32 ^ uint64(uint32(e.conn)))
	switch e.kind {
	case timerDue:
		w.timer(e.node)
	case readyDue:
		w.ready(e.node)
	case packetDue:
		if e.life == 0 || e.life == w.nodes[e.node].life {
			w.arrive(e.node, e.item)
		}
	case pulseDue:
		w.pulse(&e)
	case dialDue, answerDue:
		w.dialled(&e)
	case streamDue:
		w.stream(&e)
	case callDue:
		e.call()
	}
}

func (w *World) mix(x uint64) { w.hash = (w.hash ^ x) * 0x9e3779b97f4a7c15; w.hash ^= w.hash >> 29 }

// delay draws how long something travels.
func (w *World) delay() time.Duration {
	if w.cfg.Jitter == 0 {
		return w.cfg.Delay
	}
	return w.cfg.Delay + time.Duration(w.rand.Uint64N(uint64(w.cfg.Jitter)))
}

func (w *World) lost() bool { return w.cfg.Loss > 0 && w.rand.Float64() < w.cfg.Loss }

// cut reports whether nothing passes between two nodes.
func (w *World) cut(a, b int32) bool {
	return w.nodes[a].dead || w.nodes[b].dead || w.nodes[a].side != w.nodes[b].side
}
