package hostlib

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// lead is the bytes before a frame: its first byte is its kind, and behind that the
// payload of a packet is aligned.
const lead = 7

var leading [lead]byte

// frameBytes returns what a frame takes on its connection.
func frameBytes(n int) int { return peer.HeadSize + (lead+n+7)&^7 }

// divertAfter is how many bytes of packets a link carries among small messages before it
// has a stream among large ones: a vector is not to hold up other groups' small ones.
const divertAfter = 64 << 10

const (
	retryMin = 20 * time.Millisecond // after a stream that was closed; doubles
	retryMax = 500 * time.Millisecond
)

// restartGrace is the time in which a neighbour that is in a later incarnation opens its
// links again if it is the same process.
const restartGrace = time.Second

// link is one neighbour in the tree of hosts. It has a stream on the connection of class
// Control between the two hosts, and once much has passed one on that of class Data, for
// all frames but those of forming. A stream ends with its connection, and is made anew by
// the child.
type link struct {
	c     *Communicator
	peer  int
	name  string // of the neighbour's process
	calls bool   // this member is the child

	// Of the loop.
	unsent  [2]*peer.Conn // that frames wait on, by class
	scratch []byte

	mu           sync.Mutex
	isShut       bool
	isOver       bool        // the neighbour has said its last word
	isDiverted   bool        // Data is in use: what comes on Control are packets, of before, or of forming
	passed       int         // bytes of packets on Control
	met          attempt     // the neighbour's, once the two have agreed
	life         uint64      // the incarnation in which it was met
	hasRestarted bool        // it is in a later one, and has not opened the link again
	trouble      error       // of the last call for a connection; nil: the neighbour has not answered yet
	held         [2]bool     // connections
	streams      [2]stream   // by class
	retry        *time.Timer // of a stream that was closed; nil: none was
	pause        time.Duration
}

// stream is one direction's numbers of a link on one connection, and the other's.
type stream struct {
	link  *link
	class peer.Class

	conn   *peer.Conn // nil: there is none
	mine   uint32     // number of frames to this member
	theirs uint32     // and to the neighbour; 0: it has not answered yet
	isUp   bool       // the two have agreed
	isOpen bool       // the core knows of that: frames may be sent
	of     attempt    // the neighbour's
	late   *time.Timer
}

func newLink(c *Communicator, rank int, calls bool) *link {
	l := &link{c: c, peer: rank, name: c.members[rank].process(), calls: calls}
	for i := range l.streams {
		l.streams[i].link, l.streams[i].class = l, peer.Class(i)
	}
	return l
}

// begin has the link call the neighbour, or answer its calls.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.host.links.add(l)
	if l.calls {
		l.hold(peer.Control)
		l.open(&l.streams[peer.Control])
	}
}

// callBack has the link call a neighbour that ought to have called: if the neighbour's
// host cannot call, or knows another process by this one's name, this shows it.
func (l *link) callBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isShut && l.met == 0 {
		l.hold(peer.Control)
	}
}

// hold has there be a connection of a class. The caller holds the lock.
func (l *link) hold(class peer.Class) {
	if !l.held[class] {
		l.held[class] = true
		l.c.host.peers.Hold(l.name, class, l.c.members[l.peer].Addr)
	}
}

// open says to the parent that this member is there, on the newest connection that there
// is. The caller holds the lock.
func (l *link) open(s *stream) {
	if !l.calls || l.isShut || l.isOver || !l.held[s.class] {
		return
	}
	for _, c := range l.c.host.links.conns(l.name, s.class) {
		if l.openOn(s, c) {
			return
		}
	}
}

// openOn does so on a connection, in place of the stream's one before. The caller holds
// the lock.
func (l *link) openOn(s *stream, c *peer.Conn) bool {
	l.end(s)
	number := l.c.host.links.number(s)
	w := word{kind: opens, from: number, own: l.c.own, hello: hello{
		group: l.c.group, rank: uint32(l.c.rank), of: uint32(l.peer), met: l.met, name: l.c.name,
	}}
	if !say(c, &w) {
		l.c.host.links.free(number)
		return false
	}
	s.conn, s.mine, l.trouble = c, number, nil
	return true
}

// say sends a word, and reports whether it could be.
func say(c *peer.Conn, w *word) bool {
	err := c.Send(w.frame())
	c.Flush(peer.Communicators, nil)
	return err == nil
}

// end ends a stream, whose number means nothing from now on. The caller holds the lock.
func (l *link) end(s *stream) {
	if s.conn == nil {
		return
	}
	l.c.host.links.free(s.mine)
	s.conn, s.mine, s.theirs, s.isUp, s.isOpen = nil, 0, 0, false, false
	if l.met != 0 && !l.isShut && !l.isOver {
		l.miss(s)
	}
}

// miss has the neighbour be dead if the stream is not made again soon. The caller holds
// the lock.
func (l *link) miss(s *stream) {
	limit := l.c.host.cfg.DeadAfter
	why := fmt.Sprintf("it could not be reached for %v", limit)
	if l.hasRestarted {
		limit, why = min(limit, restartGrace), peering.ErrRestarted.Error()
	}
	if s.late != nil {
		if !l.hasRestarted {
			return
		}
		s.late.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(limit, func() {
		l.mu.Lock()
		isLate := s.late == timer
		if l.trouble != nil && !l.hasRestarted {
			why += fmt.Sprintf(" (%v)", l.trouble)
		}
		l.mu.Unlock()
		if isLate {
			l.dead(why)
		}
	})
	s.late = timer
}

// up notes that the two have agreed, and has the core hear of it. The caller holds the
// lock, and posts what is returned.
func (l *link) up(s *stream) item {
	l.met, s.isUp, l.pause, l.trouble = s.of, true, 0, nil
	l.life, l.hasRestarted = s.conn.Peer().Incarnation, false
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
	l.hold(s.class) // either side finds out that it has broken, and makes another
	return item{in: endpoint.Input{Kind: endpoint.Connected, Rank: uint32(l.peer)}, stream: s, number: s.mine}
}

// dead has the core hear that the neighbour is.
func (l *link) dead(why string) {
	l.c.loop.Add(item{in: endpoint.Input{Kind: endpoint.Dead, Rank: uint32(l.peer), News: &endpoint.News{Reason: why}}})
}

// died has the core hear that the neighbour has, if it was met in that incarnation or
// before.
func (l *link) died(incarnation uint64, why string) {
	l.mu.Lock()
	is := l.met != 0 && l.life <= incarnation
	l.mu.Unlock()
	if is {
		l.dead(why)
	}
}

// isOfEarlierLife reports whether the neighbour was met in a later incarnation than that.
func (l *link) isOfEarlierLife(incarnation uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return incarnation < l.life
}

// restarted takes that the neighbour is in a later incarnation than that.
func (l *link) restarted(before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met == 0 || l.life > before || l.isShut || l.isOver {
		return
	}
	l.hasRestarted = true
	for i := range l.streams {
		if s := &l.streams[i]; s.late != nil {
			l.miss(s)
		}
	}
}

// opened lets frames be sent, if the stream still has that number. It reports whether it has,
// and whether the core is to repeat what the neighbour may have missed.
func (s *stream) opened(number uint32) (is, isCurrent bool) {
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.mine != number || !s.isUp {
		return false, false
	}
	s.isOpen = true
	l.unsent[s.class] = s.conn // with a confirmation
	l.isDiverted = l.isDiverted || s.class == peer.Data
	return true, s.class == peer.Data || !l.isDiverted
}

// connected has the host take a connection: a child calls on it.
func (l *link) connected(c *peer.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls && !l.isShut && !l.isOver && l.held[c.Class()] {
		l.openOn(&l.streams[c.Class()], c)
	}
}

// broken takes the end of a connection.
func (l *link) broken(c *peer.Conn, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.streams[c.Class()]
	if s.conn != c {
		return
	}
	l.end(s)
	l.c.host.cfg.Log.Info("a host connection broke",
		slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.Any("error", why))
	if l.met != 0 && errors.Is(why, peering.ErrDead) { // after DeadAfter
		l.dead(why.Error())
		return
	}
	l.open(s)
}

// failed takes that a call for a connection has come to nothing.
func (l *link) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isShut || l.isOver {
		return
	}
	l.trouble = err
	if isFatal(err, l.calls) {
		l.dead(err.Error())
	}
}

// called takes a call of the child's, in place of the one before, or returns why not.
func (l *link) called(k *caller) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.met != 0 && l.met != k.own:
		return fmt.Sprintf("rank %d has another communicator %q than the one that was met", l.peer, l.c.name)
	case l.isShut:
		say(k.conn, &word{kind: closes, to: k.from})
	default:
		l.accept(k)
	}
	return ""
}

// accept answers a call. The caller holds the lock.
func (l *link) accept(k *caller) {
	s := &l.streams[k.conn.Class()]
	l.end(s)
	number := l.c.host.links.number(s)
	if !say(k.conn, &word{kind: accepts, to: k.from, from: number, own: l.c.own}) {
		l.c.host.links.free(number)
		return
	}
	s.conn, s.mine, s.theirs, s.of = k.conn, number, k.from, k.own
}

// hear takes a word to one of the link's streams.
func (s *stream) hear(c *peer.Conn, w *word) {
	l := s.link
	l.mu.Lock()
	if s.conn != c || s.mine != w.to {
		l.mu.Unlock()
		return
	}
	var news []item
	switch {
	case w.kind == accepts && s.theirs == 0:
		if l.met != 0 && w.own != l.met {
			l.trouble = errors.New("another communicator answers in its place")
			l.end(s)
			break
		}
		s.theirs, s.of = w.from, w.own
		_ = c.Send((&word{kind: confirms, to: s.theirs}).frame()) // the loop flushes it, with what it has to send itself
		news = append(news, l.up(s))
	case w.kind == confirms && s.theirs != 0 && !s.isUp:
		news = append(news, l.up(s))
	case w.kind == refuses && s.theirs == 0:
		l.end(s)
		l.dead("refused: " + string(w.rest))
	case w.kind == lastWord:
		l.isOver = true
		l.end(s)
		l.rest()
		news = append(news, item{in: endpoint.Input{Kind: endpoint.Frame, Rank: uint32(l.peer), Bytes: append([]byte(nil), w.rest...)}})
	case w.kind == closes && (w.from == 0 || w.from == s.theirs || s.theirs == 0):
		l.end(s)
		l.later()
	}
	l.mu.Unlock()
	for _, i := range news {
		l.c.post(i)
	}
}

// later opens what was closed after a while. The caller holds the lock.
func (l *link) later() {
	if !l.calls || l.retry != nil || l.isShut || l.isOver {
		return
	}
	l.pause = min(max(2*l.pause, retryMin), retryMax)
	l.retry = time.AfterFunc(l.pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.retry = nil
		for i := range l.streams {
			if s := &l.streams[i]; s.conn == nil {
				l.open(s)
			}
		}
	})
}

// rest stops what waits for the neighbour. The caller holds the lock.
func (l *link) rest() {
	for i := range l.streams {
		if s := &l.streams[i]; s.late != nil {
			s.late.Stop()
			s.late = nil
		}
	}
	if l.retry != nil {
		l.retry.Stop()
	}
}

// shut ends the link with the communicator, and says its last word where the core did not
// know of the neighbour.
func (l *link) shut(last []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	l.rest()
	// The neighbour may use Data already, and take no more of this kind from Control.
	control, data := &l.streams[peer.Control], &l.streams[peer.Data]
	wasSaid := data.isOpen || control.isOpen && data.theirs == 0
	for _, s := range []*stream{data, control} {
		if s.conn == nil {
			continue
		}
		if s.theirs != 0 && !wasSaid && last != nil {
			say(s.conn, &word{kind: lastWord, to: s.theirs, rest: last})
			wasSaid = true
		} else {
			say(s.conn, &word{kind: closes, to: s.theirs, from: s.mine})
		}
		l.end(s)
	}
	for class, is := range l.held {
		if is {
			l.c.host.peers.Release(l.name, peer.Class(class), l.c.members[l.peer].Addr)
		}
	}
	l.c.host.links.drop(l)
}

const (
	notCalled   = "has not called Communicator"
	calledOther = "has called it with other members or settings"
)

// missing reports why the neighbour was not met; empty if it was.
func (l *link) missing() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := "has not answered"
	if !l.calls {
		why = notCalled
	}
	switch {
	case l.met != 0:
		return ""
	case l.trouble != nil && l.calls:
		return "cannot be reached: " + l.trouble.Error()
	case l.trouble != nil:
		return why + ", and cannot be reached: " + l.trouble.Error()
	}
	return why
}

// metAnother reports whether the neighbour was met in another communicator than a caller's.
func (l *link) metAnother(k *caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.met, k.own) != k.own
}
