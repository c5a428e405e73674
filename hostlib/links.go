package hostlib

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// maxStream is the greatest number of a stream.
const maxStream = 1<<24 - 1

// links are those of all communicators, by what is known of them on connections.
type links struct {
	mu      sync.RWMutex
	last    uint32
	streams map[uint32]*stream // by the number of frames to this host
	to      map[string][]*link // by the name of the neighbour's process
	up      map[place][]*peer.Conn
}

type place struct {
	name  string
	class peer.Class
}

func newLinks() links {
	return links{streams: map[uint32]*stream{}, to: map[string][]*link{}, up: map[place][]*peer.Conn{}}
}

// number gives a stream a number. One that was given back is not given again for long.
func (k *links) number(s *stream) uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		k.last = k.last%maxStream + 1
		if k.streams[k.last] == nil { // a process has a link for each neighbour: far fewer
			k.streams[k.last] = s
			return k.last
		}
	}
}

func (k *links) free(number uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.streams, number)
}

func (k *links) find(number uint32) *stream {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.streams[number]
}

func (k *links) add(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to[l.name] = append(k.to[l.name], l)
}

func (k *links) drop(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := slices.DeleteFunc(k.to[l.name], func(o *link) bool { return o == l })
	if k.to[l.name] = left; len(left) == 0 {
		delete(k.to, l.name)
	}
}

// toHost returns the links to a host.
func (k *links) toHost(name string) []*link {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Clone(k.to[name])
}

// conns returns the connections with a host, the newest first.
func (k *links) conns(name string, class peer.Class) []*peer.Conn {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := slices.Clone(k.up[place{name, class}])
	slices.Reverse(all)
	return all
}

// isOurs reports whether a class has streams of communicators.
func isOurs(c peer.Class) bool { return c == peer.Control || c == peer.Data }

// handler is the host as its connections see it. It implements peer.Handler.
type handler Host

// Up implements peer.Handler.
func (h *handler) Up(c *peer.Conn) {
	if !isOurs(c.Class()) {
		return
	}
	name := c.Peer().Name
	at := place{name, c.Class()}
	h.links.mu.Lock()
	h.links.up[at] = append(h.links.up[at], c)
	h.links.mu.Unlock()
	for _, l := range h.links.toHost(name) {
		l.connected(c)
	}
	if c.Class() == peer.Control {
		(*Host)(h).toRevoked(name, revoke.Connected)
	}
}

// Down implements peer.Handler.
func (h *handler) Down(c *peer.Conn, reason error) {
	if !isOurs(c.Class()) {
		return
	}
	name := c.Peer().Name
	at := place{name, c.Class()}
	h.links.mu.Lock()
	left := slices.DeleteFunc(h.links.up[at], func(o *peer.Conn) bool { return o == c })
	if h.links.up[at] = left; len(left) == 0 {
		delete(h.links.up, at)
	}
	h.links.mu.Unlock()
	(*Host)(h).unpark(func(k *caller) bool { return k.conn == c })
	for _, l := range h.links.toHost(name) {
		l.broken(c, reason)
	}
}

// Failed implements peer.Handler.
func (h *handler) Failed(host string, class peer.Class, reason error) {
	if !isOurs(class) {
		return
	}
	for _, l := range h.links.toHost(host) {
		l.failed(reason)
	}
	if class == peer.Control && isFatal(reason, true) {
		(*Host)(h).toRevoked(host, revoke.Dead)
	}
}

// isFatal reports whether an error in calling a neighbour's host is one for good: it was
// reached, and refuses, or is not the process that is wanted.
func isFatal(err error, calls bool) bool {
	return errors.Is(err, peering.ErrName) || calls && errors.Is(err, peering.ErrRefused) && !errors.Is(err, peering.ErrBusy)
}

// Sent implements peer.Handler: communicators lend nothing.
func (*handler) Sent([]uint64, error) {}

// Restarted implements peer.Handler.
func (h *handler) Restarted(host string, before, _ uint64) {
	for _, l := range h.links.toHost(host) {
		l.restarted(before)
	}
}

// Received implements peer.Handler: frames of one stream that came together are stepped
// together.
func (h *handler) Received(c *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	defer b.Release()
	if !isOurs(c.Class()) {
		return
	}
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n].Stream == frames[0].Stream {
			n++
		}
		if number := frames[0].Stream; number != 0 {
			if s := h.links.find(number); s != nil {
				s.receive(c, number, frames[:n], b)
			}
		} else if err := (*Host)(h).hear(c, frames[:n]); err != nil {
			h.malformed.Add(1)
			h.cfg.Log.Warn("a malformed word of another host", slog.String("peer", c.Peer().Name), slog.Any("error", err))
			c.Break(err)
			return
		}
		frames = frames[n:]
	}
}

// hear takes what another host says about links, and about revoked communicators.
func (h *Host) hear(c *peer.Conn, frames []peer.Frame) error {
	for _, f := range frames {
		w, err := readWord(f.Bytes)
		if err != nil {
			return err
		}
		switch {
		case w.kind == opens:
			h.receive(&caller{conn: c, from: w.from, own: w.own, hello: w.hello})
		case w.kind == revokes:
			if err := h.heardNotice(c.Peer().Name, w.rest); err != nil {
				return err
			}
		case w.to == 0:
			h.unpark(func(k *caller) bool { return k.conn == c && k.from == w.from })
		default:
			s := h.links.find(w.to)
			if s != nil {
				s.hear(c, &w)
			} else if w.kind == accepts { // it was given up meanwhile
				say(c, &word{kind: closes, to: w.from})
			}
		}
	}
	return nil
}
