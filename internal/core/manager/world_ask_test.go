package manager

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

func (w *world) wait(d time.Duration) {
	w.now = w.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		if a := w.known[name]; a.core.Deadline() <= w.now {
			w.stepSwitch(a, nil)
		}
	}
	w.step()
}

// create makes a group of the hosts with these numbers.
func (w *world) create(name string, window uint32, hosts ...int) Reply {
	return w.createFor(pathsel.Purpose{}, name, window, hosts...)
}

// createFor makes one for a purpose.
func (w *world) createFor(purpose pathsel.Purpose, name string, window uint32, hosts ...int) Reply {
	return w.createIn(Bundle{}, purpose, name, window, hosts...)
}

// createIn makes one of a bundle.
func (w *world) createIn(bundle Bundle, purpose pathsel.Purpose, name string, window uint32, hosts ...int) Reply {
	in := Create{
		Purpose: purpose, Bundle: bundle, Name: name, ChunkBytes: 1024, Window: window,
		Functions: topology.AllFunctions(), Types: topology.AllTypes(), Secret: [32]byte{1, byte(len(name))},
	}
	for _, h := range hosts {
		in.Members = append(in.Members, w.hostNames[h])
	}
	in.Owner = in.Members[0]
	return w.ask(in)
}

// ask numbers a Create, Release or Drain, and returns its answer after the
// store has done its work.
func (w *world) ask(in Input) Reply {
	w.nextReq++
	switch m := in.(type) {
	case Create:
		m.Req = w.nextReq
		in = m
	case Turn:
		m.Req = w.nextReq
		in = m
	case Release:
		m.Req = w.nextReq
		in = m
	case Drain:
		m.Req = w.nextReq
		in = m
	}
	w.step(in)
	w.store()
	r, ok := w.replies[w.nextReq]
	if _, waits := in.(Turn); !ok && !waits {
		w.fail("no answer to %+v", in)
	}
	return r
}

// watch has a member listen on a new stream.
func (w *world) watch(group, rank uint32) {
	key := [2]uint32{group, rank}
	m := w.members[key]
	if m == nil {
		m = &fakeMember{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, byte(group), byte(rank)}), 5000)}
		w.members[key] = m
	}
	w.stream++
	m.stream, m.watching = w.stream, true
	w.step(Watch{Group: group, Rank: rank, DataAddr: m.addr, Proven: m.addr.Addr(), Stream: m.stream, Entered: m.entered, Rails: m.rails, OnlyRails: len(m.rails) > 0})
}

// unwatch ends a member's stream; over: because its communicator is revoked.
func (w *world) unwatch(group, rank uint32, over bool) {
	m := w.members[[2]uint32{group, rank}]
	m.watching = false
	w.step(Unwatch{Group: group, Rank: rank, Stream: m.stream, Over: over})
	if g := w.core.groups[group]; over && g != nil && !g.released {
		w.fail("rank %d reports that group %d is over, and it goes on", rank, group)
	}
}

func (w *world) watchAll(group uint32) {
	if g := w.core.groups[group]; g != nil {
		for rank := range g.members {
			w.watch(group, uint32(rank))
		}
	}
}

// enter has a member go over to an epoch, and say so.
func (w *world) enter(group, rank, epoch uint32) {
	m := w.members[[2]uint32{group, rank}]
	if m == nil || epoch <= m.entered {
		return
	}
	m.entered = epoch
	transport := Offload
	if epoch%2 == 1 {
		transport = HostTree
	}
	w.step(Report{Group: group, Rank: rank, Entered: epoch, Transport: transport})
}

// settle lets all that is under way arrive, without letting time pass.
func (w *world) settle() {
	for busy := true; busy && w.fault == nil; {
		busy = len(w.plans) > 0 || len(w.toStore) > 0 && !w.full
		w.plan()
		w.store()
		for i, a := range w.agents {
			busy = busy || len(a.requests) > 0 || len(a.answers) > 0 || len(a.unbound) > 0
			w.deliver(i, 0)
			w.bind(i)
			w.answer(i)
		}
	}
}

// run settles, and lets time pass until nothing happens for so long.
func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); w.fault == nil; {
		w.settle()
		next := w.core.Deadline()
		for _, a := range w.agents {
			next = next.Earlier(a.core.Deadline())
		}
		if next > end {
			w.wait(end.Sub(w.now))
			w.settle()
			return
		}
		w.wait(max(0, next.Sub(w.now)))
	}
}

// addPort returns the next address of the same host.
func addPort(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), a.Port()+1) }
