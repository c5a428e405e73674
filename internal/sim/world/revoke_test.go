package world

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// revoked is how many communicators TestRevokes revokes.
//
//	go test ./internal/sim/world -run TestRevokes -revokes 100000 -timeout 60m
//	go test ./internal/sim/world -run TestRevokes -story SEED [-deaths] -v
var revoked = flag.Int("revokes", 300, "communicators that TestRevokes revokes")

// revokes is a member's part in the revocation of its communicator, as hostlib has it. Notices go over
// the connections of the tree of hosts, and over those that are made for them.
type revokes struct {
	core       *revoke.Core
	neighbours []uint32 // in the tree of hosts
	in         []revoke.Input
	out        revoke.Output
}

// noticeMark is before a notice; no frame begins by it.
const noticeMark = 0xff

func newRevokes(cfg endpoint.Config) *revokes {
	c, err := revoke.New(revoke.Config{Rank: cfg.Rank, Size: cfg.Size, Group: [32]byte{byte(cfg.Group)}})
	if err != nil {
		panic(err)
	}
	v := &revokes{core: c, in: []revoke.Input{{Kind: revoke.Formed, Life: uint64(cfg.Group)}}}
	t := cfg.Tree()
	for _, child := range t.Children(int(cfg.Rank)) {
		v.neighbours = append(v.neighbours, uint32(child))
	}
	if parent, ok := t.Parent(int(cfg.Rank)); ok {
		v.neighbours = append(v.neighbours, uint32(parent))
	}
	return v
}

// takes notes what comes from another member, and reports whether it is for nobody else.
func (v *revokes) takes(from uint32, d *sim.Delivery) bool {
	switch {
	case d.Kind == sim.Message && d.Bytes[0] == noticeMark:
		v.in = append(v.in, revoke.Input{Kind: revoke.Message, From: from, Bytes: d.Bytes[1:]})
		return true
	case d.Kind == sim.Up:
		v.in = append(v.in, revoke.Input{Kind: revoke.Connected, From: from})
	case d.Kind == sim.Dead, d.Kind == sim.Refused, d.Kind == sim.Closed:
		v.in = append(v.in, revoke.Input{Kind: revoke.Dead, From: from})
	default: // a frame
	}
	return !slices.Contains(v.neighbours, from)
}

// revoke steps the member's part.
func (m *Host) revoke(h sim.Handle) {
	v := m.revokes
	if len(v.in) == 0 {
		return
	}
	v.out.Reset()
	v.core.Step(v.in, &v.out)
	clear(v.in)
	v.in = v.in[:0]
	for _, s := range v.out.Sends {
		if to := m.place.nodes[s.To]; !h.Write(to, []byte{noticeMark}, s.Bytes) {
			h.Dial(to)
		}
	}
	if v.out.Delivered {
		n, _ := v.core.Notice()
		m.in = append(m.in, endpoint.Input{Kind: endpoint.Failed, News: &endpoint.News{Fail: wire.Fail{Kind: wire.FailRevoked, Rank: n.By}}})
	}
}

// revocation is what a story revokes.
type revocation struct {
	by []int     // ranks that have, while they lived
	at core.Time // the first
}

// revokesAtEvent has a story revoke a communicator at a random event, by one member or by two.
func (s *story) revokesAtEvent(r *rand.Rand) {
	c := s.crews[r.IntN(len(s.crews))]
	c.revocation = &revocation{at: core.Never}
	event := r.Uint64N(400 << r.IntN(7))
	for range 1 + r.IntN(2) {
		by := r.IntN(len(c.Hosts))
		s.railFaults = append(s.railFaults, fmt.Sprintf("rank %d revokes at event %d", by, event))
		s.world.AtEvent(event, "a revoke", func() {
			if h := c.Hosts[by]; s.world.Alive(c.Nodes[by]) && h.Ended == nil && !h.Left {
				c.revocation.by = append(c.revocation.by, by)
				c.revocation.at = min(c.revocation.at, s.world.Now())
				s.world.Command(c.Nodes[by], revoke.Input{Kind: revoke.Revoke, From: uint32(by)})
			}
		})
		event += r.Uint64N(200)
	}
}

// isRevoked reports whether a failure says so of a communicator that was revoked.
func (c *crew) isRevoked(f *wire.Fail) bool {
	return f.Kind == wire.FailRevoked && c.revocation != nil && slices.Contains(c.revocation.by, int(f.Rank))
}

// checkRevoked checks that if a survivor is notified all are, unless more have died than the graph
// bears; those who have left in good order need not be. Where nobody has died, all have ended by that,
// and soon.
func (s *story) checkRevoked(c *crew) error {
	if c.revocation == nil {
		return nil
	}
	dead := 0
	for _, id := range c.Nodes {
		if !s.world.Alive(id) {
			dead++
		}
	}
	isNotified := func(h *Host) bool { _, is := h.revokes.core.Notice(); return is }
	bound := c.revocation.at.Add(detection + time.Duration(len(s.plan)+1)*longest)
	anybody := false
	for r, h := range c.Hosts {
		anybody = anybody || s.world.Alive(c.Nodes[r]) && h.Ended != nil && h.Ended.Kind == wire.FailRevoked
	}
	for r, h := range c.Hosts {
		switch {
		case !s.world.Alive(c.Nodes[r]) || !anybody || h.Left:
		case h.Ended == nil:
			return fmt.Errorf("rank %d has not ended, but others are notified of a revoke", r)
		case dead < revoke.Degree(len(c.Hosts)) && !isNotified(h):
			return fmt.Errorf("rank %d is not notified of a revoke, and %d have died", r, dead)
		case dead == 0 && c.severed == nil && (!c.isRevoked(h.Ended) || h.EndedAt > bound):
			return fmt.Errorf("rank %d has ended at %v by %+v, and the first revoke was at %v", r, time.Duration(h.EndedAt), *h.Ended, time.Duration(c.revocation.at))
		}
	}
	return nil
}

// TestRevokes: communicators are revoked at random events, in the middle of operations over switches, the
// tree of hosts and messages, while members, switches, links, agents and the manager die or not. Who
// lives ends, by the revoke or by a death; all are notified; nothing that was completed is wrong, no
// switch keeps anything, and other communicators go on.
func TestRevokes(t *testing.T) {
	begin := func(seed uint64, deaths bool, v *verdict, trace io.Writer) (*story, error) {
		s := newEverything(seed, deaths, trace)
		s.revokesAtEvent(rand.New(rand.NewPCG(seed, 0x7e0c)))
		return s, s.run(v)
	}
	if *one > 0 {
		if _, err := begin(*one, *deaths, &verdict{}, trace()); err != nil {
			t.Fatal(err)
		}
		return
	}
	var v verdict
	done, notified, failed, left, others := 0, 0, 0, 0, 0
	for seed := *first; done < *revoked; seed++ {
		for _, deaths := range []bool{false, true} {
			s, err := begin(seed, deaths, &v, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range s.crews {
				if c.revocation == nil {
					others++
					continue
				}
				if len(c.revocation.by) > 0 {
					done++
				}
				for r, h := range c.Hosts {
					switch {
					case !s.world.Alive(c.Nodes[r]):
					case h.Ended != nil && h.Ended.Kind == wire.FailRevoked:
						notified++
					case h.Ended != nil:
						failed++
					default:
						left++
					}
				}
			}
		}
	}
	t.Logf("%d revokes: %d members have ended by them, %d by a death, %d had left; %d other communicators", done, notified, failed, left, others)
	if notified == 0 || failed == 0 || left == 0 || others == 0 {
		t.Error("the stories have not seen everything")
	}
}
