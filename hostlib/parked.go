package hostlib

import (
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// Limits of what waits for communicators that this host has not made yet. Who is given up
// for another asks again.
const (
	parkTimeout    = 30 * time.Second
	maxParked      = 16384 // in all
	maxParkedOfOne = 1024  // of one host, with all its processes
)

// caller is a member that wants to be linked to one of this host's.
type caller struct {
	hello

	conn  *peer.Conn
	from  uint32 // the number of its stream
	own   attempt
	timer *time.Timer // while it is parked
}

// host returns whose certificate the caller's process has.
func (k *caller) host() string { return peering.HostOf(k.conn.Peer().Name) }

func (k *caller) refuse(why string) { say(k.conn, &word{kind: refuses, to: k.from, rest: []byte(why)}) }

// parked are callers of communicators that this host has not made yet, the oldest first.
// The host's lock guards them.
type parked struct {
	all []*caller
	of  map[string]int // by the caller's host
}

// receive hands a caller to the communicator that it wants.
func (h *Host) receive(k *caller) {
	h.mu.Lock()
	c, last, why := h.wanted(k)
	if c == nil && last == nil && why == "" {
		h.park(k)
	}
	h.mu.Unlock()
	if c != nil {
		why = c.called(k)
	}
	switch {
	case last != nil:
		say(k.conn, &word{kind: lastWord, to: k.from, rest: last})
	case why != "":
		k.refuse(why)
	}
}

// wanted returns the communicator that a caller wants, its last word, or why it
// cannot be had; none of these if the host has not made it yet.
func (h *Host) wanted(k *caller) (c *Communicator, last []byte, refusal string) {
	if k.met != 0 {
		if c := h.comms[k.met]; c != nil {
			return c, nil, ""
		}
		if last, dead := h.tombstones.words[k.met]; dead {
			return nil, last, ""
		}
		return nil, nil, fmt.Sprintf("%s knows of that communicator %q no more", h.name, k.name)
	}
	switch c := h.names[k.name]; {
	case k.conn.Class() != peer.Control:
		return nil, nil, "the two communicators have not met"
	case c != nil && c.group == k.group && c.isOpen && !c.met(k):
		return c, nil, ""
	case c != nil && c.group != k.group && !c.leaving():
		return nil, nil, h.inAnother(c, k)
	case h.closed:
		return nil, nil, h.name + " takes no more callers"
	}
	return nil, nil, ""
}

// inAnother returns the refusal of a caller whose members or settings differ, which c notes.
func (h *Host) inAnother(c *Communicator, k *caller) string {
	other := k.conn.Peer().Name
	c.other.Store(&other)
	return fmt.Sprintf("%s is in a communicator %q with other members or settings: of %d, with %s", h.name, c.name, len(c.members), c.options.codingWords())
}

// park keeps a caller until its communicator is made, in place of an earlier one of the
// same member, or, where too many are kept, of the oldest of the host that has most.
func (h *Host) park(k *caller) {
	p, host := &h.parked, k.host()
	full := func(*caller) bool { return false }
	switch {
	case p.of[host] >= maxParkedOfOne:
		full = func(o *caller) bool { return o.host() == host }
	case len(p.all) >= maxParked:
		most := host
		for name, n := range p.of {
			if n > p.of[most] {
				most = name
			}
		}
		full = func(o *caller) bool { return o.host() == most }
	}
	at := slices.IndexFunc(p.all, func(o *caller) bool {
		return o.conn.Peer().Name == k.conn.Peer().Name && o.name == k.name && o.group == k.group && o.rank == k.rank
	})
	if at < 0 {
		at = slices.IndexFunc(p.all, full)
	}
	if at >= 0 {
		h.giveUp(p.all[at])
	}
	p.all = append(p.all, k)
	p.of[host]++
	if k.isInvitation() {
		select {
		case h.invited <- struct{}{}:
		default:
		}
	}
	k.timer = time.AfterFunc(parkTimeout, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.giveUp(k)
	})
}

// giveUp has a caller ask again, if it is parked and still wants to.
func (h *Host) giveUp(k *caller) {
	if len(h.parked.take(func(o *caller) bool { return o == k })) > 0 {
		say(k.conn, &word{kind: closes, to: k.from})
	}
}

// unpark forgets callers.
func (h *Host) unpark(which func(*caller) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parked.take(which)
}

// take removes callers, and returns them.
func (p *parked) take(which func(*caller) bool) (all []*caller) {
	p.all = slices.DeleteFunc(p.all, func(k *caller) bool {
		if !which(k) {
			return false
		}
		k.timer.Stop()
		host := k.host()
		if p.of[host]--; p.of[host] == 0 {
			delete(p.of, host)
		}
		all = append(all, k)
		return true
	})
	return all
}
