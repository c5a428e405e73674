package revoke

import (
	"fmt"
	"slices"
	"strings"
)

// scene is members of a group with notices on their way.
type scene struct {
	members   []*Core
	isDead    []bool
	delivered []int
	isCut     map[[2]uint32]bool // connections, by their lower and their higher end
	flight    []flying
	refused   int
	trace     func(format string, args ...any)
}

type flying struct {
	from, to uint32
	bytes    []byte
}

var group = [32]byte{1, 2, 3}

func newScene(n int) *scene {
	s := &scene{isDead: make([]bool, n), delivered: make([]int, n), isCut: map[[2]uint32]bool{}, trace: func(string, ...any) {}}
	for rank := range n {
		c, err := New(Config{Rank: uint32(rank), Size: n, Group: group})
		if err != nil {
			panic(err)
		}
		s.members = append(s.members, c)
	}
	return s
}

func ends(a, b uint32) [2]uint32 { return [2]uint32{min(a, b), max(a, b)} }

// noticeOf returns a notice of a communicator of the group.
func noticeOf(life uint64, by uint32) Notice {
	return Notice{Of: Identity{group, life}, By: by, Reason: 100 + by}
}

// step gives a member an input. The error is a violated invariant.
func (s *scene) step(rank uint32, in Input) error {
	if s.isDead[rank] {
		return nil
	}
	c, n := s.members[rank], len(s.members)
	_, was := c.Notice()
	var out Output
	c.Step([]Input{in}, &out)
	s.refused += out.Refused
	notice, is := c.Notice()
	if out.Delivered != (is && !was) {
		return fmt.Errorf("rank %d has delivered: %v, it was revoked: %v, and is: %v", rank, out.Delivered, was, is)
	}
	if most := 1; !out.Delivered && len(out.Sends) > most || !is && len(out.Sends) > 0 || len(out.Sends) > Degree(n) {
		return fmt.Errorf("rank %d sends %d notices", rank, len(out.Sends))
	}
	var to places
	for _, x := range out.Sends {
		s.trace("%d > %d", rank, x.To)
		m, err := Read(x.Bytes)
		if err != nil {
			return fmt.Errorf("rank %d sends %d: %w", rank, x.To, err)
		}
		if m != notice || !AreNeighbours(n, rank, x.To) || to&placeOf(n, rank, x.To) != 0 {
			return fmt.Errorf("rank %d sends %d %+v", rank, x.To, m)
		}
		to |= placeOf(n, rank, x.To)
		if !s.isDead[x.To] && !s.isCut[ends(rank, x.To)] {
			s.flight = append(s.flight, flying{rank, x.To, x.Bytes})
		} else {
			s.trace(", which is lost")
		}
		s.trace("\n")
	}
	if out.Delivered {
		s.delivered[rank]++
		s.trace("%d delivers: by %d, reason %d\n", rank, notice.By, notice.Reason)
	}
	if out.Settled {
		s.trace("%d is settled\n", rank)
	}
	if out.Refused > 0 {
		s.trace("%d refuses it\n", rank)
	}
	return nil
}

// deliver hands over notice i.
func (s *scene) deliver(i int) error {
	f := s.flight[i]
	s.flight = slices.Delete(s.flight, i, i+1)
	return s.step(f.to, Input{Kind: Message, From: f.from, Bytes: f.bytes})
}

// cut breaks a connection.
func (s *scene) cut(a, b uint32) {
	s.isCut[ends(a, b)] = true
	s.flight = slices.DeleteFunc(s.flight, func(f flying) bool { return ends(f.from, f.to) == ends(a, b) })
}

// connect makes it anew: one end knows first.
func (s *scene) connect(a, b uint32) error {
	delete(s.isCut, ends(a, b))
	if err := s.step(a, Input{Kind: Connected, From: b}); err != nil {
		return err
	}
	return s.step(b, Input{Kind: Connected, From: a})
}

// kill ends a member: of its notices on their way those that keep rejects are lost.
func (s *scene) kill(rank uint32, keep func() bool) {
	s.isDead[rank] = true
	s.flight = slices.DeleteFunc(s.flight, func(f flying) bool { return f.to == rank || f.from == rank && !keep() })
}

// key identifies a state: two scenes with the same key go on the same way.
func (s *scene) key(left ...int) string {
	flight := make([]string, len(s.flight))
	for i, f := range s.flight {
		flight[i] = fmt.Sprintf("%d>%d %x", f.from, f.to, f.bytes)
	}
	slices.Sort(flight)
	return fmt.Sprint(left, s.members, s.isDead, s.delivered, flight)
}

// String describes a member's state.
func (c *Core) String() string {
	var b strings.Builder
	n := c.cfg.Size
	list := func(what string, set places) {
		var ranks []uint32
		for rank := range Neighbours(n, c.cfg.Rank, 0) {
			if set&c.place(rank) != 0 {
				ranks = append(ranks, rank)
			}
		}
		if slices.Sort(ranks); len(ranks) > 0 {
			fmt.Fprintf(&b, "; %s %v", what, ranks)
		}
	}
	switch c.state {
	case forming:
		b.WriteString("forming")
		for _, e := range c.early {
			if e.notice.Of.Life != 0 {
				list(fmt.Sprintf("of life %d by %d has sent", e.notice.Of.Life, e.notice.By), e.heard)
			}
		}
	case idle:
		b.WriteString("idle")
	case revoked:
		fmt.Fprintf(&b, "revoked by %d", c.notice.By)
		if c.settled {
			b.WriteString(", settled")
		}
	}
	list("heard", c.heard)
	list("dead", c.dead)
	return b.String()
}
