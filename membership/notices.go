package membership

import (
	"fmt"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// causes are those of the core.
var causes = map[member.Cause]Cause{member.Suspected: Failed, member.Departed: Departed, member.Restarted: Replaced}

// leaves makes n a notice of its member's leave.
func (n *Notice) leaves(why member.Cause, exit gossip.Exit) {
	if n.Kind, n.Cause = Left, causes[why]; exit.Given {
		n.Exit = &exit.Code
	}
}

// notify gives the core's notices to all that read them.
func (s *stepper) notify(all []member.Notice, stopped bool) {
	for i := range all {
		x := &all[i]
		switch x.Kind {
		case member.Superseded:
			s.why = ErrSuperseded
			continue
		case member.Namesake:
			s.namesake(x, stopped)
			continue
		}
		s.reindex(x)
		n := Notice{Zone: s.n.cfg.Zone, Member: s.memberAt(x.Node, x.Version, x.Deaths), Kind: Joined}
		if x.Kind == member.Leave {
			n.leaves(x.Cause, x.Exit)
			s.n.counts.leaves[n.Cause].Add(1)
		} else {
			s.n.counts.joins.Add(1)
		}
		s.n.log.Debug("notice", slog.String("kind", n.Kind.String()), slog.String("member", n.Member.Name), slog.Any("version", n.Member.Version), slog.Any("cause", n.Cause))
		s.moved(x) // before readers of notices may ask
		s.n.deliver(false, n)
	}
}

// deliver gives a notice to all watchers of the node's own zone, or of those below.
func (n *Node) deliver(isBelow bool, x Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		if w.isBelow == isBelow {
			w.take(x)
		}
	}
}

// namesake reports another node of this one's name, to which it may have given way.
func (s *stepper) namesake(x *member.Notice, stopped bool) {
	err := fmt.Errorf("%w: %q is at %v, and this one at %v", ErrName, s.n.cfg.Name, s.address(x.Node), s.n.addr)
	if stopped {
		s.why = err
		return
	}
	s.n.log.Warn("another node has this one's name; one of both should have another", slog.Any("error", err))
}
