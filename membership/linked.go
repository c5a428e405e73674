package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// What the stepper does with links.

// zoneMark is what a link of the zone is opened with.
func (n *Node) zoneMark() []byte {
	b := binary.BigEndian.AppendUint32(nil, n.cfg.Zone)
	if n.cfg.Management {
		return append(b, 1)
	}
	return append(b, 0)
}

// connected takes that there is a connection with a host: what there was before is lost.
func (s *stepper) connected(c *peer.Conn) {
	if c.Class() == peer.Control {
		s.cut(c.Peer().Name, peering.ErrSuperseded, func(l *link) bool { return l.conn != 0 && l.conn != c.ID() })
	}
}

// disconnected takes the end of a connection, with which links end.
func (s *stepper) disconnected(c *peer.Conn, why error) {
	switch c.Class() {
	case peer.Control:
		s.cut(c.Peer().Name, why, func(l *link) bool { return l.conn == 0 || l.conn == c.ID() })
	case peer.Large:
		if !errors.Is(why, peering.ErrDone) && !errors.Is(why, peering.ErrIdle) {
			s.cut(c.Peer().Name, why, func(l *link) bool { return l.isLarge })
		}
	default:
	}
}

// cut ends links with a host.
func (s *stepper) cut(host string, why error, fits func(*link) bool) {
	if s.links.of[host] == 0 {
		return
	}
	for _, l := range s.links.all {
		if l.peer == host && fits(l) {
			s.lost(l, why)
		}
	}
}

// lost forgets a link, and reports that to its core if that knows of it.
func (s *stepper) lost(l *link, why error) {
	if l.peer != "" && s.links.all[l.linkKey] != l {
		return
	}
	s.n.log.Debug("a link has ended", slog.String("with", l.peer), slog.Bool("closed", l.isClosing), slog.Any("error", why))
	s.links.remove(l)
	if l.isClosing {
		return
	}
	l.isClosing = true
	if l.tier {
		delete(s.tier.links, l.up)
	}
	switch {
	case l.tier && (l.ours || l.isHeard):
		s.tier.input(hierarchy.Input{Kind: hierarchy.Failed, Link: l.up})
	case l.tier:
	case l.ours && !l.isOpen:
		s.input(member.Input{Kind: member.ConnectFailed, Link: l.zone})
	case l.ours || l.isHeard:
		s.input(member.Input{Kind: member.Failed, Link: l.zone})
	}
}

// frame takes a frame that came on a connection.
func (s *stepper) frame(it *item) {
	key := keyOf(it.conn.Peer().Name, it.stream)
	l := s.links.all[key]
	if it.raw == nil || len(*it.raw) < frameHead {
		s.refuse(key, l, fmt.Errorf("%w: of no size that is valid", errFrame))
		return
	}
	b := *it.raw
	if b[0] == reset {
		if l != nil {
			s.lost(l, fmt.Errorf("%w: the other end knows of no such link", errFrame))
		}
		return
	}
	if l == nil {
		if l = s.accept(key, it, b); l == nil {
			return
		}
	}
	if it.conn.Class() == peer.Control {
		l.conn, l.incarnation = it.conn.ID(), it.conn.Peer().Incarnation
	} else {
		l.isLarge = true
	}
	if err := s.links.order(l, b, func(kind byte, body []byte) { s.next(l, kind, body) }); err != nil {
		s.refuse(key, l, err)
	}
}

// refuse ends a link whose other end does not keep to the protocol.
func (s *stepper) refuse(key linkKey, l *link, err error) {
	s.malformed(err, key.peer)
	s.links.reset(key)
	if l != nil {
		s.lost(l, err)
	}
}

// accept takes a link that another node opens; it returns nil if it does not. Who says
// nothing valid has to make room for those who come after: nobody keeps others out.
func (s *stepper) accept(key linkKey, it *item, b []byte) *link {
	if key.ours || b[0] != openZone && b[0] != openTier || binary.BigEndian.Uint32(b[1:]) != 0 || s.left {
		if b[0] != closeLink {
			s.links.reset(key)
		}
		return nil
	}
	l := &link{linkKey: key, tier: b[0] == openTier, conn: it.conn.ID(), isOpen: true}
	switch {
	case !l.tier && string(b[frameHead:]) != string(s.n.zoneMark()), l.tier && s.tier == nil:
		s.malformed(fmt.Errorf("%w: of another zone", errFrame), key.peer)
		s.links.reset(key)
		return nil
	case s.links.of[key.peer] >= maxLinksOfPeer,
		!l.tier && s.links.others-len(s.links.strangers) >= maxLinks,
		l.tier && len(s.tier.links) >= maxTierLinks:
		s.n.counts.turnedAway.Add(1)
		s.links.reset(key)
		return nil
	}
	s.links.add(l)
	if l.tier {
		s.tier.next += 2
		l.up = s.tier.next
		s.tier.links[l.up] = l
	} else {
		s.links.next += 2
		l.zone = s.links.next
		s.links.zone[l.zone] = l
		if s.links.strangers = append(s.links.strangers, l); len(s.links.strangers) > maxStrangers {
			s.n.counts.turnedAway.Add(1)
			oldest := s.links.strangers[0]
			s.links.reset(oldest.linkKey)
			s.lost(oldest, fmt.Errorf("%w: it has said nothing", errFrame))
		}
	}
	s.links.put(l, opened, nil, peer.Control, 0)
	return l
}

// next takes the next frame of a link.
func (s *stepper) next(l *link, kind byte, body []byte) {
	var err error
	switch {
	case kind == closeLink:
		if !l.isClosing {
			s.links.put(l, closeLink, nil, peer.Control, 0)
		}
		s.lost(l, errClosedByPeer)
	case l.isClosing:
	case kind == opened && l.ours && !l.isOpen:
		l.isOpen = true
		if l.tier {
			s.tier.input(hierarchy.Input{Kind: hierarchy.Connected, Link: l.up})
		} else {
			s.input(member.Input{Kind: member.Connected, Link: l.zone})
		}
	case kind == message && l.isOpen && l.tier:
		err = s.tier.frame(l, body)
	case kind == message && l.isOpen:
		err = s.zoneFrame(l, body)
	case (kind == openZone || kind == openTier) && !l.ours && !l.isHeard && l.next == 1:
	default:
		err = fmt.Errorf("%w: kind %d", errFrame, kind)
	}
	if err != nil {
		s.refuse(l.linkKey, l, err)
	}
}

// errAbsent is why links have ended with a host that is no node, or no more.
var errAbsent = errors.New("membership: its host is in no zone")

// errClosedByPeer is why a link has ended that the other end has closed.
var errClosedByPeer = errors.New("membership: the other end has closed it")

// zoneFrame takes a message of the zone's.
func (s *stepper) zoneFrame(l *link, b []byte) error {
	in, err := s.wire.take(b)
	if err != nil {
		return err
	}
	if m := in.Message; m != nil {
		switch m.Type {
		case gossip.Hello, gossip.Welcome, gossip.Probe, gossip.Relay:
			if err := l.speaksFor(s.directory.ID(m.From.Node), m.From.Version.Incarnation); err != nil {
				return err
			}
		default:
		}
	}
	if !l.isHeard {
		l.isHeard = true
		s.links.known(l)
		if !l.ours {
			s.input(member.Input{Kind: member.Accepted, Link: l.zone})
		}
	}
	in.Link = l.zone
	s.input(in)
	return nil
}

// leaving ends the node that has left once all links are closed at both ends.
func (s *stepper) leaving() {
	if s.left && len(s.links.all) == 0 && !s.drained {
		s.drained = true
		close(s.n.drained)
	}
}
