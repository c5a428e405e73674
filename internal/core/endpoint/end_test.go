package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

func allreduce(id uint64, f reduce.Function, t reduce.Type, elements int) session.Operation {
	b := make([]byte, elements*reduce.ElementSize(f, t))
	return session.Operation{ID: id, Collective: wire.Allreduce, Function: f, Element: t, Elements: elements, In: b, Out: b}
}

func broadcast(id uint64, rank, root uint32, elements int) session.Operation {
	o := session.Operation{ID: id, Collective: wire.Broadcast, Element: reduce.Int32, Root: root, Elements: elements}
	if o.Source(rank) {
		o.In = make([]byte, 4*elements)
	} else {
		o.Out = make([]byte, 4*elements)
	}
	return o
}

// pieceOf returns o as a piece of an operation on so many elements.
func pieceOf(elements int, o session.Operation) session.Operation {
	o.Whole = session.Whole{IsSet: true, Elements: elements}
	return o
}

// disagreements are plans of one rank, the odd one, against those of the others.
var disagreements = map[string]struct {
	one, other func(rank uint32) []session.Operation
}{
	"count": {
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 9)}
		},
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 8)}
		},
	},
	"whole": {
		func(uint32) []session.Operation {
			return []session.Operation{pieceOf(17, allreduce(0, reduce.Sum, reduce.Int32, 8))}
		},
		func(uint32) []session.Operation {
			return []session.Operation{pieceOf(16, allreduce(0, reduce.Sum, reduce.Int32, 8))}
		},
	},
	"type": {
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 8)}
		},
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Uint32, 8)}
		},
	},
	"function": {
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Max, reduce.Int32, 8)}
		},
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 8)}
		},
	},
	"root": {
		func(r uint32) []session.Operation { return []session.Operation{broadcast(0, r, 0, 8)} },
		func(r uint32) []session.Operation { return []session.Operation{broadcast(0, r, 1, 8)} },
	},
	"order": {
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 8), allreduce(1, reduce.Sum, reduce.Int32, 100)}
		},
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(1, reduce.Sum, reduce.Int32, 100), allreduce(0, reduce.Sum, reduce.Int32, 8)}
		},
	},
	"barrier": {
		func(uint32) []session.Operation { return []session.Operation{{Collective: wire.Barrier}} },
		func(uint32) []session.Operation {
			return []session.Operation{allreduce(0, reduce.Sum, reduce.Int32, 8)}
		},
	},
}

// TestDisagreement: "Two signatures, or two sources, make it an error that names
// both ranks ... the first reported stands, and the communicator has ended."
func TestDisagreement(t *testing.T) {
	for name, plans := range disagreements {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(2, 9).Draw(t, "members")
				n := newNetwork(t, rapid.Uint64().Draw(t, "seed"), Config{Size: size, ChunkBytes: chunkBytes, Window: 4})
				odd := uint32(rapid.IntRange(0, size-1).Draw(t, "odd one"))
				for _, m := range n.members {
					if m.plan = plans.other(m.rank); m.rank == odd {
						m.plan = plans.one(m.rank)
					}
				}
				n.faults = true
				if rapid.Bool().Draw(t, "over switches") {
					n.offer()
				}
				for range rapid.IntRange(0, 500).Draw(t, "steps with faults") {
					n.run()
				}
				n.finish()
				for _, m := range n.members {
					switch {
					case m.ended == nil || m.ended.Kind != wire.FailDisagree:
						t.Fatalf("rank %d was notified %+v: %s", m.rank, m.ended, n)
					case *m.ended != *n.members[0].ended:
						t.Fatalf("rank %d was notified %+v, rank 0 %+v", m.rank, m.ended, n.members[0].ended)
					case !slices.Contains(m.ended.Error.Rank[:], odd) && !n.above(m.ended.Error.Rank, odd):
						t.Fatalf("the error names ranks %v, the odd one is %d", m.ended.Error.Rank, odd)
					}
				}
			})
		})
	}
}

// above reports whether the odd one's signature reached the disagreement by one
// of the ranks named: an error names the lowest rank beneath a child, and where
// a child stands for several, all of them have said the same.
func (n *network) above(ranks [2]uint32, odd uint32) bool {
	for _, r := range ranks {
		lo, hi := n.cfg.Tree().Subtree(int(r))
		if int(odd) >= lo && int(odd) < hi || r/leafSize == odd/leafSize {
			return true
		}
	}
	return false
}

// TestDeath: "The death of a member, the lowest rank included, is not a change
// of epoch but an error to all that names it."
func TestDeath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		if n.cfg.Size < 2 {
			t.Skip("nobody is left to be reported")
		}
		n.plan(4)
		// One operation more, for which the dead one is missed.
		for _, m := range n.members {
			m.plan = append(m.plan, session.Operation{ID: 99, Collective: wire.Barrier})
		}
		n.faults = true
		dead := n.members[rapid.IntRange(0, n.cfg.Size-1).Draw(t, "dead")]
		for range rapid.IntRange(0, 300).Draw(t, "steps before") {
			if n.run(); len(dead.done) == len(dead.plan)-1 {
				break
			}
		}
		dead.dead = true
		for _, m := range n.members {
			if e := m.edges[dead.rank]; e != nil {
				for side := range e.queue {
					e.queue[side], e.open[side] = nil, false
				}
				n.step(m, Input{Kind: Dead, Rank: dead.rank, News: &News{Reason: "test"}})
			}
		}
		for range 200 {
			n.run()
		}
		n.finish()
		for _, m := range n.members {
			if m.dead || m.ended != nil && m.ended.Kind == wire.FailDead && m.ended.Rank == dead.rank {
				continue
			}
			if len(m.done) < len(m.plan) {
				t.Fatalf("rank %d is dead, and rank %d was notified %+v: %s", dead.rank, m.rank, m.ended, n)
			}
		}
	})
}

// endsForAll has an input come to one member in mid-operation, which ends the
// communicator, and checks that all are reported want, which names that member if it
// gives up. It returns it.
func endsForAll(t *rapid.T, n *network, in Input, want wire.Fail) *node {
	n.plan(3)
	one := n.members[rapid.IntRange(0, n.cfg.Size-1).Draw(t, "one")]
	for _, m := range n.members {
		m.plan = append(m.plan, session.Operation{ID: 99, Collective: wire.Barrier})
	}
	one.plan = one.plan[:rapid.IntRange(0, 3).Draw(t, "operations of it")]
	n.faults = true
	for range rapid.IntRange(0, 300).Draw(t, "steps before") {
		n.run()
	}
	n.step(one, in)
	for range 200 {
		n.run()
	}
	n.finish()
	if want.Kind == wire.FailCancel {
		want.Rank = one.rank
	}
	for _, m := range n.members {
		if m.ended == nil || *m.ended != want {
			t.Fatalf("rank %d was notified %+v: %s", m.rank, m.ended, n)
		}
	}
	return one
}

// TestCancel: a member that gives up ends the communicator for all, and names
// itself.
func TestCancel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		quits := endsForAll(t, n, Input{Kind: Cancel, News: &News{Reason: "enough"}},
			wire.Fail{Kind: wire.FailCancel, Reason: "enough"})
		n.step(quits, Input{Kind: Start, Operation: &session.Operation{ID: 7, Collective: wire.Barrier}})
		if !errors.Is(quits.refused[7], ErrEnded) {
			t.Fatalf("an operation after the end: %v", quits.refused[7])
		}
	})
}

// TestFailedElsewhere: what ended another communicator of the members ends this
// one for all, whoever hears of it.
func TestFailedElsewhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		why := wire.Fail{Kind: wire.FailDead, Rank: uint32(n.cfg.Size - 1), Reason: "struck by lightning"}
		endsForAll(t, n, Input{Kind: Failed, News: &News{Fail: why}}, why)
	})
}

// TestRevoked: a member that is notified of a revoke ends at once, whatever is in flight, and although the
// lowest rank is dead.
func TestRevoked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		n.plan(3)
		n.faults = true
		isDead := rapid.Bool().Draw(t, "lowest rank dead")
		revoked := wire.Fail{Kind: wire.FailRevoked, Rank: uint32(n.rng.IntN(n.cfg.Size))}
		for range rapid.IntRange(0, 300).Draw(t, "steps before") {
			n.run()
		}
		n.members[0].dead = isDead
		for _, i := range n.rng.Perm(n.cfg.Size) {
			m := n.members[i]
			if n.step(m, Input{Kind: Failed, News: &News{Fail: revoked}}); m.dead {
				continue
			}
			if m.ended == nil || *m.ended != revoked || m.core.Deadline() != core.Never {
				t.Fatalf("rank %d was notified %+v: %s", m.rank, m.ended, n)
			}
			done := len(m.done)
			n.step(m, Input{Kind: Start, Operation: &session.Operation{ID: 99, Collective: wire.Barrier}})
			for range n.rng.IntN(30) {
				n.run()
			}
			if !errors.Is(m.refused[99], ErrEnded) || len(m.done) > done {
				t.Fatalf("rank %d was revoked; the next operation: %v; %d done, and %d before: %s", m.rank, m.refused[99], len(m.done), done, n)
			}
		}
	})
}

// TestLeavingIsNotABarrier: who leaves while another runs a barrier disagrees
// with it. That cannot hang the one that stays.
func TestLeavingIsNotABarrier(t *testing.T) {
	for stays := range 4 {
		t.Run(fmt.Sprint(stays), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := newNetwork(t, rapid.Uint64().Draw(t, "seed"), Config{Size: 4, ChunkBytes: chunkBytes, Window: 2})
				for _, m := range n.members {
					m.plan = []session.Operation{{Collective: wire.Barrier, Last: int(m.rank) != stays}}
				}
				n.finish()
				for _, m := range n.members {
					if int(m.rank) == stays && m.ended == nil || int(m.rank) != stays && m.ended == nil && !m.left {
						t.Fatalf("rank %d: %s", m.rank, n)
					}
				}
			})
		})
	}
}

// TestLeavingWhileAnotherLags: all leave, and no datagram reaches one of them
// any more: "A goodbye counts as its report and completes the last barrier", or
// the member finds the tree lost before.
func TestLeavingWhileAnotherLags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 9).Draw(t, "members")
		n := newNetwork(t, rapid.Uint64().Draw(t, "seed"), Config{Size: size, ChunkBytes: chunkBytes, Window: 4})
		n.offer()
		n.finish()
		lags := n.members[rapid.IntRange(0, size-1).Draw(t, "lags")]
		n.leave()
		for lags.next < len(lags.plan) {
			n.run()
		}
		for range 2000 {
			n.packets = slices.DeleteFunc(n.packets, func(d datagram) bool { return d.to == memberAddr(lags.rank) })
			n.run()
		}
		for _, m := range n.members {
			if !m.left || !m.gone || m.ended != nil {
				t.Fatalf("rank %d: %s", m.rank, n)
			}
		}
	})
}

// TestIdleChanges: trees come and go while the group does nothing, often, and
// then it works over hosts.
func TestIdleChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNetwork(t, rapid.Uint64().Draw(t, "seed"), Config{Size: 4, ChunkBytes: chunkBytes, Window: 2})
		for range 10 {
			n.offer()
			n.finish()
			for _, m := range n.members {
				n.step(m, Input{Kind: Withdraw, News: &News{Epoch: n.newest}})
			}
			n.finish()
		}
		if e := n.latest(); e != 21 {
			t.Fatalf("epoch %d after 10 trees", e)
		}
		inputs := n.plan(3)
		n.finish()
		for _, m := range n.members {
			if len(m.done) != 3 {
				t.Fatalf("rank %d: %s", m.rank, n)
			}
		}
		n.check(inputs)
	})
}

// TestGroupOfOne completes locally, in one step, and needs no memory for it but
// that of a window.
func TestGroupOfOne(t *testing.T) {
	c, err := New(Config{Size: 1, ChunkBytes: 1024, Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	vector := bytes.Repeat([]byte{1, 2, 3, 4}, 1<<20)
	want := bytes.Clone(vector)
	o := allreduce(1, reduce.Sum, reduce.Int32, 0)
	o.Elements, o.In, o.Out = len(vector)/4, vector, vector
	var out Output
	c.Step(0, []Input{{Kind: Start, Operation: &o}}, &out)
	if len(out.Completions) != 1 || !bytes.Equal(vector, want) || len(out.Messages)+len(out.Datagrams) > 0 {
		t.Errorf("%d completions, %d messages, %d datagrams", len(out.Completions), len(out.Messages), len(out.Datagrams))
	}
	for _, a := range []*arena{&c.up, &c.down, &c.frames} {
		bytes := 0
		for _, b := range a.blocks {
			bytes += cap(b)
		}
		if bytes > 2*lastBlock {
			t.Errorf("%d bytes are kept for packets of 1 KiB in a window of 4", bytes)
		}
	}
}

// TestNotice: the manager's word to the lowest rank reaches every member once.
func TestNotice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		n.step(n.members[0], Input{Kind: Notice, News: &News{Notice: wire.Notice{Group: 7}}})
		n.faults = true
		for range 100 {
			n.run()
		}
		n.finish()
		for _, m := range n.members {
			if m.notice == nil || m.notice.Group != 7 {
				t.Fatalf("rank %d was notified %+v", m.rank, m.notice)
			}
		}
	})
}

func TestConfigValidate(t *testing.T) {
	good := Config{Size: 4, Rank: 3, ChunkBytes: 64, Window: 8}
	for name, row := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"good":     {func(*Config) {}, true},
		"no size":  {func(c *Config) { c.Size = 0 }, false},
		"large":    {func(c *Config) { c.Size = wire.MaxRank + 2 }, false},
		"rank":     {func(c *Config) { c.Rank = 4 }, false},
		"radix 1":  {func(c *Config) { c.Radix = 1 }, false},
		"radix":    {func(c *Config) { c.Radix = MaxRadix + 1 }, false},
		"radix ok": {func(c *Config) { c.Radix = MaxRadix }, true},
		"cookie":   {func(c *Config) { c.Cookie = wire.CookieMask + 1 }, false},
		"window":   {func(c *Config) { c.Window = 3 }, false},
	} {
		c := good
		row.change(&c)
		if _, err := New(c); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	c.Step(0, []Input{{Kind: Start, Operation: &session.Operation{ID: 5, Collective: wire.Broadcast, Element: reduce.Int32, Root: 4, Elements: 0}}}, &out)
	if len(out.Refused) != 1 || !errors.Is(out.Refused[0].Err, session.ErrOperation) {
		t.Errorf("a root that is no member: %+v", out.Refused)
	}
}

// TestGoneIsSilent: a member that is gone renews no lease of its tree, however often it is stepped.
func TestGoneIsSilent(t *testing.T) {
	own, parent := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	c, err := New(Config{Size: 1, ChunkBytes: 64, Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	device, deviceOut := switchreduce.New(), switchreduce.Output{}
	device.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: &switchreduce.Config{
		Group: 1, Epoch: 2, Window: 4, ChunkBytes: 64, Children: []switchreduce.Child{{Addr: own, Cookie: 3}},
	}}}, &deviceOut)
	link := session.Link{Group: 1, Epoch: 2, Cookie: 3, Window: 4, Parent: parent, Idle: time.Millisecond}
	last := session.Operation{ID: 1, Collective: wire.Barrier, Last: true}
	var out Output
	c.Step(0, []Input{{Kind: Offer, News: &News{Link: link}}, {Kind: Start, Operation: &last}}, &out)
	idle := 0
	for now := core.Time(0); now < core.Time(10*time.Millisecond); now += core.Time(time.Millisecond) {
		deviceOut.Reset()
		for i := range out.Datagrams {
			d := &out.Datagrams[i]
			device.Step(now, []switchreduce.Input{{Kind: switchreduce.Packet, From: own, Packet: slices.Concat(d.Head[:], d.Body)}}, &deviceOut)
		}
		var in []Input
		for i := range deviceOut.Sends {
			s := &deviceOut.Sends[i]
			in = append(in, Input{Kind: Packet, From: parent, Bytes: slices.Concat(s.Head[:], s.Body)})
		}
		isGone := c.gone
		out.Reset()
		if c.Step(now, in, &out); isGone {
			idle++
			if len(out.Datagrams) > 0 {
				t.Fatalf("it is gone, and sends %d datagrams", len(out.Datagrams))
			}
		}
	}
	if idle == 0 {
		t.Error("it is never gone")
	}
	out.Reset()
	if c.Step(0, []Input{{Kind: Start, Operation: &last}}, &out); len(out.Refused) != 1 || out.Refused[0].ID != 1 || !errors.Is(out.Refused[0].Err, ErrEnded) {
		t.Errorf("an operation afterwards: %+v", out.Refused)
	}
}
