package zone

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Start starts a node's process, with an incarnation that is newer than all
// before.
func (w *World) Start(i int) {
	n := &w.nodes[i]
	w.stop(int32(i))
	n.life++
	n.dead = false
	cfg := member.Config{
		Settings: w.cfg.Settings, Self: w.dir.ID(n.index), Incarnation: uint64(n.life),
		Seed: w.cfg.Seed<<32 ^ uint64(i)<<12 ^ uint64(n.life),
	}
	for b := range w.cfg.Bootstrap {
		cfg.Bootstrap = append(cfg.Bootstrap, w.dir.ID(w.nodes[b].index))
	}
	if w.cfg.Proofs {
		cfg.Identity = newIdentity(w, i, cfg.Self, cfg.Incarnation)
	}
	c, err := member.New(cfg, w.dir, w.now)
	if err != nil {
		panic(err) // the settings were valid
	}
	n.core, n.step, n.up = c, c, true
	if w.cfg.Wrap != nil {
		n.step = w.cfg.Wrap(i, c, w.now)
	}
	n.deadline, n.timer, n.busy = n.step.Deadline(), core.Never, w.now
	w.up++
	w.expect(w.Life(i))
	w.arm(int32(i))
}

// Life returns a node's present life.
func (w *World) Life(i int) gossip.Life {
	return w.dir.Key(w.nodes[i].index).Life(uint64(w.nodes[i].life))
}

// Kill ends a node's process; its host closes its connections.
func (w *World) Kill(i int) {
	n := &w.nodes[i]
	for len(n.links) > 0 {
		p := n.links[0]
		w.close(int32(i), w.now, p.link)
	}
	w.stop(int32(i))
}

// Silence has a node's host say and hear nothing any more, for good: what others
// know of it is that it does not answer.
func (w *World) Silence(i int) {
	w.nodes[i].dead = true
	w.stop(int32(i))
}

// Leave has a node leave in order.
func (w *World) Leave(i int, exit gossip.Exit) {
	w.arrive(int32(i), &item{input: member.Input{Kind: member.Depart, Exit: exit}, from: -1})
}

// Notify gives a node an input.
func (w *World) Notify(i int, in member.Input) { w.arrive(int32(i), &item{input: in, from: -1}) }

// end is what becomes of a node whose core has stopped.
func (w *World) end(i int32) { w.Kill(int(i)) }

// stop ends a process, with all that it has.
func (w *World) stop(i int32) {
	n := &w.nodes[i]
	if !n.up {
		return
	}
	life := w.Life(int(i))
	n.up = false
	w.up--
	n.inbox, n.head = nil, 0
	for len(n.links) > 0 {
		w.unplug(n.links[0].conn, n.links[0].side)
	}
	w.expect(life)
}

// Partition puts nodes on sides; nothing passes between two of them.
func (w *World) Partition(side func(node int) int) {
	for i := range w.nodes {
		w.nodes[i].side = int32(side(i))
	}
}

// Heal ends a partition.
func (w *World) Heal() { w.Partition(func(int) int { return 0 }) }

// Impairment is what does not get through between a node and all others.
type Impairment uint8

// The impairments; a node may have several.
const (
	DeafToDatagrams Impairment = 1 << iota
	MuteInDatagrams
	DeafToStreams
	MuteInStreams
)

// NoDatagrams is a node whose connections work and whose datagrams do not.
const NoDatagrams = DeafToDatagrams | MuteInDatagrams

// Impair gives a node impairments in the place of those that it has.
func (w *World) Impair(i int, what Impairment) { w.nodes[i].impaired = what }

// Block has nothing pass from one node to another, or pass again; what passes
// the other way does so.
func (w *World) Block(from, to int, on bool) {
	if w.blocked == nil {
		w.blocked = map[[2]int32]bool{}
	}
	w.blocked[[2]int32{int32(from), int32(to)}] = on
}

// dropped reports whether a datagram from a node to another is lost.
func (w *World) dropped(from, to int32) bool {
	return w.cut(from, to) || w.blocked[[2]int32{from, to}] ||
		w.nodes[from].impaired&MuteInDatagrams != 0 || w.nodes[to].impaired&DeafToDatagrams != 0
}

// held reports whether what is sent on a connection does not arrive now.
func (w *World) held(from, to int32) bool {
	return w.cut(from, to) || w.blocked[[2]int32{from, to}] ||
		w.nodes[from].impaired&MuteInStreams != 0 || w.nodes[to].impaired&DeafToStreams != 0
}
