package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Bounds of links.
const (
	maxLinks       = 1024     // of the zone, that others have opened
	maxTierLinks   = 4096     // of the hierarchy, likewise: two of each zone that a supervisor has
	maxStrangers   = 512      // that others have opened, and of which nothing valid has come yet
	maxLinksOfPeer = 64       // that one host has opened
	maxEarly       = 4 << 20  // bytes of a link that came before others which were sent before them
	maxEarlyOfAll  = 64 << 20 // of all links
)

// smallMost are the most bytes of a message in class Control. Larger ones travel in class
// Large, so that a view does not delay a suspicion, or what other services send.
const smallMost = 16 << 10

// What a frame is. It begins with this byte and its number on the link and way, 4 bytes:
// frames of different classes overtake each other, and are taken in order.
const (
	openZone  byte = 1 + iota // then the zone's number, 4 bytes, and 1 in a management zone
	openTier                  // of the hierarchy
	opened                    // the link is taken
	message                   // then a packet
	closeLink                 // nothing more comes
	reset                     // there is no such link; its number does not count
)

const frameHead = 5

// A link is numbered by who opens it; frames to that one have this bit in their stream.
const (
	toOpener  = 1 << 23
	numberMod = 1 << 23
)

// errFrame: the other end does not speak the protocol.
var errFrame = errors.New("membership: malformed frame")

// linkKey is what a link's frames say of it.
type linkKey struct {
	peer   string // the host at the other end; empty: it is not known, or cannot be reached
	number uint32
	ours   bool // this node has opened it
}

// link is a sequence of messages each way between two nodes: of the zone, or of the
// hierarchy. It is the loop's. Its frames travel on the connections of the two hosts, and
// it ends with them.
type link struct {
	linkKey
	zone member.Link
	at   string         // the other end's address; empty: others have opened it
	tier bool           // it is one of the hierarchy:
	up   hierarchy.Link // in place of zone

	incarnation uint64 // of the other end; 0: not known yet
	conn        uint64 // the connection of class Control on which it depends; 0: not known yet
	isOpen      bool   // both ends have it
	isHeard     bool   // a valid message has come; the core knows of a link that others have opened
	isClosing   bool   // this end has closed it
	isLarge     bool   // something was sent or has come in class Large

	sent, next uint32 // numbers of the next frames
	early      map[uint32][]byte
	earlyBytes int
}

func (l *link) stream() uint32 {
	if l.ours {
		return l.number
	}
	return l.number | toOpener
}

// opening returns the number of the frame that opens it.
func (l *link) opening() uint64 { return uint64(l.number) + 1 }

// keyOf returns the link that a frame of another host is of.
func keyOf(from string, stream uint32) linkKey {
	return linkKey{from, stream &^ toOpener, stream&toOpener != 0}
}

// links are all links of a node. They are the loop's.
type links struct {
	n         *Node
	all       map[linkKey]*link
	zone      map[member.Link]*link
	strangers []*link         // that others have opened, and that are not heard, the oldest first
	of        map[string]int  // how many there are, by peer
	others    int             // of the zone that others have opened
	number    uint32          // of the last one that was opened
	early     int             // bytes
	next      member.Link     // of who opens next: an odd number
	channels  []*peer.Channel // to be flushed
	ends      []item          // of links that have failed while something was sent
}

func newLinks(n *Node) links {
	return links{
		n: n, all: map[linkKey]*link{}, zone: map[member.Link]*link{}, of: map[string]int{}, next: 1,
	}
}

// open opens a link to a host at an address.
func (k *links) open(to string, at netip.AddrPort, l *link) {
	for {
		k.number = (k.number + 1) % numberMod
		if l.linkKey = (linkKey{to, k.number, true}); k.all[l.linkKey] == nil {
			break
		}
	}
	l.at = at.String()
	k.add(l)
	kind, body := openZone, k.n.zoneMark()
	if l.tier {
		kind, body = openTier, nil
	}
	k.put(l, kind, body, peer.Control, l.opening())
}

// add notes a link, and has its host be connected as long as there is one.
func (k *links) add(l *link) {
	k.all[l.linkKey] = l
	k.of[l.peer]++
	k.n.host.Hold(l.peer, peer.Control, l.at)
	if !l.tier && !l.ours {
		k.others++
	}
}

// remove forgets a link.
func (k *links) remove(l *link) {
	k.hide(l)
	if k.all[l.linkKey] != l {
		return
	}
	delete(k.all, l.linkKey)
	k.early -= l.earlyBytes
	l.early, l.earlyBytes = nil, 0
	k.n.host.Release(l.peer, peer.Control, l.at)
	if k.of[l.peer]--; k.of[l.peer] == 0 {
		delete(k.of, l.peer)
	}
	if !l.tier && !l.ours {
		k.others--
	}
}

// release gives up what is left, once the loop has ended.
func (k *links) release() {
	for _, l := range k.all {
		k.n.host.Release(l.peer, peer.Control, l.at)
	}
}

// hide takes a link from what the core knows of.
func (k *links) hide(l *link) {
	if k.zone[l.zone] == l {
		delete(k.zone, l.zone)
	}
	k.known(l)
}

// known takes a link out of the strangers: something valid has come, or it ends.
func (k *links) known(l *link) {
	k.strangers = slices.DeleteFunc(k.strangers, func(o *link) bool { return o == l })
}

// put has a frame be sent with the next flush.
func (k *links) put(l *link, kind byte, body []byte, class peer.Class, number uint64) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, l.sent)
	l.sent++
	channel := k.n.host.Channel(l.peer, class)
	err := channel.Send(&peer.Send{Service: peer.Membership, Stream: l.stream(), Head: head, Body: body, Number: number})
	if err != nil {
		if errors.Is(err, peer.ErrFull) {
			k.n.counts.stuck.Add(1)
		}
		k.ends = append(k.ends, item{kind: linkFailed, link: l, err: err})
		return
	}
	k.n.counts.streamBytesOut.Add(uint64(frameHead + len(body)))
	if len(k.channels) == 0 || k.channels[len(k.channels)-1] != channel {
		k.channels = append(k.channels, channel)
	}
}

// send sends the packets of a message.
func (k *links) send(l *link, packets [][]byte) {
	size := 0
	for _, p := range packets {
		size += len(p)
	}
	class := peer.Control
	if size > smallMost {
		class, l.isLarge = peer.Large, true
	}
	for _, p := range packets {
		k.n.counts.framesOut.Add(1)
		k.put(l, message, p, class, 0)
	}
}

// close closes a link after what was sent on it. It is known until the other end has
// closed it, too.
func (k *links) close(l *link) {
	if l.isClosing {
		return
	}
	l.isClosing = true
	k.hide(l)
	if l.peer == "" {
		return
	}
	k.put(l, closeLink, nil, peer.Control, 0)
	if k.of[l.peer] > maxLinksOfPeer {
		k.remove(l) // it does not answer
	}
}

// reset answers a frame of a link that is not there, or is no frame.
func (k *links) reset(key linkKey) { k.put(&link{linkKey: key}, reset, nil, peer.Control, 0) }

// flush sends what was put, and returns which links have failed.
func (k *links) flush() []item {
	for _, l := range k.channels {
		l.Flush(peer.Membership, nil)
	}
	clear(k.channels)
	k.channels = k.channels[:0]
	ends := k.ends
	k.ends = nil
	return ends
}

// order takes a frame that has come on a link, and calls take for each that is the next
// one now, until the link ends.
func (k *links) order(l *link, b []byte, take func(kind byte, body []byte)) error {
	number := binary.BigEndian.Uint32(b[1:])
	if number != l.next {
		return k.keep(l, number, b)
	}
	for {
		l.next++
		take(b[0], b[frameHead:])
		next, ok := l.early[l.next]
		if !ok || k.all[l.linkKey] != l {
			return nil
		}
		delete(l.early, l.next)
		l.earlyBytes -= len(next)
		k.early -= len(next)
		b = next
	}
}

// keep keeps a frame that has overtaken others.
func (k *links) keep(l *link, number uint32, b []byte) error {
	switch _, twice := l.early[number]; {
	case number < l.next || twice:
		return fmt.Errorf("%w: number %d twice", errFrame, number)
	case l.earlyBytes+len(b) > maxEarly || k.early+len(b) > maxEarlyOfAll:
		return fmt.Errorf("%w: more than %d bytes wait for number %d", errFrame, l.earlyBytes, l.next)
	}
	if l.early == nil {
		l.early = map[uint32][]byte{}
	}
	l.early[number] = append([]byte(nil), b...)
	l.earlyBytes += len(b)
	k.early += len(b)
	return nil
}

// speaksFor reports whether the other end of a link may say that it is a node: it is the
// one of its host, in its incarnation.
func (l *link) speaksFor(id gossip.ID, incarnation uint64) error {
	if id.Name() != l.peer || incarnation != l.incarnation {
		return fmt.Errorf("%w: it is %q in incarnation %d, and says that it is %s in %d", errFrame, l.peer, l.incarnation, id, incarnation)
	}
	return nil
}
