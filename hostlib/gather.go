package hostlib

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/forming"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// stillWaiting is the time after which the log says for whom the forming of a
// group waits, and then again.
const stillWaiting = 10 * time.Second

// callBackAfter is the time after which a member calls the children that have not called.
const callBackAfter = time.Second

// gathering is what the loop knows of who is there.
type gathering struct {
	core   *forming.Core
	inputs []forming.Input
	out    forming.Output
}

// neighbours returns those in the tree of hosts.
func (c *Communicator) neighbours() (parent int, children []int) {
	parent = forming.NoParent
	for peer, l := range c.links {
		if l.calls {
			parent = peer
		} else {
			children = append(children, peer)
		}
	}
	slices.Sort(children)
	return parent, children
}

// gather returns what a communicator begins with, whose links are made.
func (c *Communicator) gather() gathering {
	parent, children := c.neighbours()
	return gathering{core: forming.New(parent, children, uint64(c.own), c.wanted().coded)}
}

// takes reports whether an item is for the gathering, and notes it.
func (g *gathering) takes(it *item) bool {
	if it.in.Kind != endpoint.Frame || len(it.in.Bytes) == 0 || wire.FrameKind(it.in.Bytes[0]) != wire.FrameMissing {
		return false
	}
	read, err := wire.ReadFrame(it.in.Bytes)
	if err != nil {
		return false // the member's core ends the communicator for it
	}
	m := read.(*wire.Missing)
	if isFromAbove := m.Life != 0; isFromAbove && len(m.Ranks) == 0 && !isPolicy(m.Setting) {
		return false
	}
	g.inputs = append(g.inputs, forming.Input{From: it.in.Rank, Missing: m})
	return true
}

// gathers steps the gathering, if there is anything to do.
func (s *stepper) gathers(now core.Time, out *endpoint.Output) {
	g := &s.gathered
	if len(g.inputs) == 0 && now < g.core.Deadline() {
		return
	}
	g.out.Reset()
	g.core.Step(now, g.inputs, &g.out)
	g.inputs = g.inputs[:0]
	for _, m := range g.out.Sends {
		out.Messages = append(out.Messages, endpoint.Message{To: m.To, Head: m.Frame})
	}
	s.mu.Lock()
	s.absent = g.core.Missing()
	s.mu.Unlock()
	if g.out.Formed {
		s.messaging.begin(g.core.Life())
		s.beginDirect(g.core.Life())
		s.agreesFirst()
		s.beginRecovery(g.core.Life())
		s.revokes(revoke.Input{Kind: revoke.Formed, Life: g.core.Life()})
		close(s.formed)
	}
}

// allThere waits until every member has come. If ctx ends before that, it gives
// the group up for all.
func (c *Communicator) allThere(ctx context.Context) error {
	waiting := time.NewTicker(stillWaiting)
	defer waiting.Stop()
	late := time.NewTimer(callBackAfter)
	defer late.Stop()
	for {
		select {
		case <-c.formed:
			return nil
		case <-c.done:
			if other := c.other.Load(); other != nil {
				return fmt.Errorf("%w: %w; %s %s", ErrFormation, c.Err(), *other, calledOther)
			}
			return fmt.Errorf("%w: %w", ErrFormation, c.Err())
		case <-late.C:
			for _, l := range c.links {
				l.callBack()
			}
		case <-waiting.C:
			c.host.cfg.Log.Warn("a communicator waits for its members", slog.String("communicator", c.name),
				slog.Int("members", len(c.members)), slog.String("missing", c.missing()))
		case <-ctx.Done():
			missing := c.missing()
			if missing != "" {
				missing = "; " + missing
			}
			c.abort("it gave up forming the group" + missing)
			<-c.done
			return fmt.Errorf("%w: %w%s", ErrFormation, ctx.Err(), missing)
		}
	}
}

// missing reports which members are not there, as far as is known here, and of
// neighbours why.
func (c *Communicator) missing() string {
	var all []string
	other := c.other.Load()
	say := func(rank int, why string) {
		m, at := c.members[rank], ""
		if other != nil && *other == m.process() {
			why, other = calledOther, nil
		}
		if m.Addr != "" {
			at = " at " + m.Addr
		}
		all = append(all, fmt.Sprintf("rank %d (%s)%s %s", rank, m.process(), at, why))
	}
	for _, peer := range slices.Sorted(maps.Keys(c.links)) {
		if why := c.links[peer].missing(); why != "" {
			say(peer, why)
		}
	}
	c.mu.Lock()
	m := c.absent
	c.mu.Unlock()
	for _, rank := range m.Ranks {
		if l := c.links[int(rank)]; int(rank) < len(c.members) && (l == nil || l.missing() == "") {
			say(int(rank), notCalled)
		}
	}
	if m.More {
		all = append(all, "and others")
	}
	if other != nil {
		all = append(all, *other+" "+calledOther)
	}
	return strings.Join(all, "; ")
}
