package peer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
)

// PathState is whether a path carries frames.
type PathState uint8

// The states of paths.
const (
	PathUp         PathState = iota
	PathConnecting           // this host is calling
	PathDown                 // it was lost, or the call failed: it will be made again, by the host that made the connection
)

// PathCounters count what went over paths, and what became of them.
type PathCounters struct {
	Sent, Received uint64 // bytes, with the heads of frames, without those of TLS, TCP and UDP
	Resent         uint64 // segments that were not acknowledged when their path ended, and went over another
	ResentBytes    uint64
	Lost           uint64 // paths that ended otherwise than in good order
	Recovered      uint64 // paths that were made again in their place, for the same connection
	Failed         uint64 // calls of this host for a path that came to nothing
}

func (n *PathCounters) add(o *PathCounters) {
	n.Sent += o.Sent
	n.Received += o.Received
	n.Resent += o.Resent
	n.ResentBytes += o.ResentBytes
	n.Lost += o.Lost
	n.Recovered += o.Recovered
	n.Failed += o.Failed
}

// PathMeasure is how a path does now.
type PathMeasure struct {
	InFlight int           // bytes that are sent and not acknowledged
	Queued   int           // bytes that wait to be sent
	Rate     uint64        // bit/s, as measured; 0: not known
	Delay    time.Duration // of a round trip without a queue; 0: not known
}

// PathStatus is a path of a connection, or one that is wanted.
type PathStatus struct {
	Peer        string
	Class       Class
	Own, Theirs rail.Rail // Theirs has an address alone where the other host has not sent its rails
	State       PathState
	Since       time.Time
	Fault       error // why the last one here was lost, or could not be made, or why it is on no pair of rails; nil: none of that
	PathCounters
	PathMeasure
}

// RailStatus is a rail of this host, with the sums of its paths.
type RailStatus struct {
	Rail         rail.Rail
	Peers        int // to which there are paths
	Paths        int // that are up
	Missing      int // that are wanted and not up
	PathCounters     // since the rail is there, of all paths
	PathMeasure      // sums; but the highest rate and the lowest delay of a path
	Fault        error
	FaultAt      time.Time
}

// pairState is what is known of a connection's paths on one pair of rails.
type pairState struct {
	ended     PathCounters // of paths that have ended
	since     time.Time    // there is none since then
	fault     error
	isCalling bool
	isLost    bool // the last one

	isReported bool // that a call has failed, since there was a path
}

// account is what was counted of a path. It is of the channel's lock.
type account struct {
	sent, resent, resentBytes uint64
	booked                    PathCounters // of these, what its rail has counted
	upAt                      time.Time
}

// railAccount is what was counted on a rail of this host.
type railAccount struct {
	PathCounters
	fault   error
	faultAt time.Time
}

// begin keeps what is known of pairs that stay, and begins that of others.
func (r *railed) begin(before *[rail.MaxRails]*RailPair) {
	for i, pair := range r.pairs {
		switch {
		case pair == nil:
			r.states[i] = nil
		case before[i] == nil || !before[i].is(pair):
			r.states[i] = &pairState{since: time.Now()}
		}
	}
}

// state returns what is known of a pair; nil: it is none.
func (r *railed) state(pair *RailPair) *pairState {
	if pair != nil {
		for i, o := range r.pairs {
			if o != nil && o.is(pair) {
				return r.states[i]
			}
		}
	}
	return nil
}

// arrived notes that frames go over a path from now on. The caller holds the channel's lock.
func (p *Path) arrived() {
	p.upAt = time.Now()
	r := &p.conn.rails
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived(p)
}

// arrived notes that there is a path on its pair. The caller holds the lock.
func (r *railed) arrived(p *Path) {
	if s := r.state(p.Rails()); s != nil {
		if s.isLost {
			s.ended.Recovered++
			p.host.rails.count(p.ownRail(), &PathCounters{Recovered: 1}, nil)
		}
		s.isCalling, s.isLost, s.isReported = false, false, false
	}
}

// ended notes that a path has ended. The caller holds the channel's lock.
func (p *Path) ended(why error) {
	p.book()
	n, lost := p.counted(), PathCounters{}
	if !isOrderly(why) && !p.isFinished && !p.conn.rails.isRemoved(p) {
		lost.Lost = 1
		p.host.rails.count(p.ownRail(), &lost, fmt.Errorf("%s: %w", p.conn.peer.Name, why))
	}
	r := &p.conn.rails
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.state(p.Rails()); s != nil {
		s.ended.add(&n)
		s.ended.add(&lost)
		s.since, s.fault, s.isLost, s.isCalling = time.Now(), why, lost.Lost > 0, false
	}
}

// isRemoved reports whether a path lies on a pair of rails that is no more: the other side closes
// it.
func (r *railed) isRemoved(p *Path) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.Rails() != nil && r.state(p.Rails()) == nil
}

// isOrderly reports whether a path ended because it was to.
func isOrderly(why error) bool {
	for _, e := range [...]error{
		peering.ErrDone, peering.ErrIdle, peering.ErrSuperseded, peering.ErrDuplicate, peering.ErrRemoved, peering.ErrRestarted,
		peering.ErrClosing, peering.ErrBusy, ErrClosed,
	} {
		if errors.Is(why, e) {
			return true
		}
	}
	return false
}

// counted returns what was counted of a path. The caller holds the channel's lock.
func (p *Path) counted() PathCounters {
	return PathCounters{Sent: p.sent, Received: p.received.Load(), Resent: p.resent, ResentBytes: p.resentBytes}
}

// book has the path's rail count what the path has counted since the last time. The caller
// holds the channel's lock.
func (p *Path) book() {
	n := p.counted()
	k := PathCounters{
		Sent: n.Sent - p.booked.Sent, Received: n.Received - p.booked.Received,
		Resent: n.Resent - p.booked.Resent, ResentBytes: n.ResentBytes - p.booked.ResentBytes,
	}
	p.booked = n
	p.host.rails.count(p.ownRail(), &k, nil)
}

// count adds to what a rail has counted.
func (s *railSet) count(name string, n *PathCounters, fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[name]; a != nil {
		a.add(n)
		if fault != nil {
			a.fault, a.faultAt = fault, time.Now()
		}
	}
}

// keep begins to count on new rails, and forgets those that are no more. The caller holds the
// lock.
func (s *railSet) keep() {
	accounts := make(map[string]*railAccount, len(s.all))
	for i := range s.all {
		name := s.all[i].Name
		if accounts[name] = s.accounts[name]; accounts[name] == nil {
			accounts[name] = &railAccount{}
		}
	}
	s.accounts = accounts
}

// ownRail returns the name of this host's rail on which a path lies; empty: it is none.
func (p *Path) ownRail() string {
	if r := p.Rails(); r != nil {
		return r.Own.Name
	}
	local, _ := netip.ParseAddrPort(p.raw.LocalAddr().String())
	return p.host.rails.at(local, p.kind()).Name
}

// kind returns the kind of rail that a path needs.
func (p *Path) kind() rail.Kind {
	if _, is := p.raw.(*udp.Conn); is {
		return rail.UDP
	}
	return rail.TCP
}

// at returns the rail of an address, and port if several have the address, or the only one; the
// zero Rail: none has it.
func (s *railSet) at(local netip.AddrPort, kind rail.Kind) (found rail.Rail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 1 && s.all[0].Kind == kind {
		return s.all[0].Rail
	}
	for i := range s.all {
		r := &s.all[i].Rail
		if r.Kind == kind && r.Address.Addr() == local.Addr().Unmap() && (found.Name == "" || r.Address.Port() == local.Port()) {
			found = *r
		}
	}
	return found
}

// calling notes that a path on a pair is called. The caller holds the lock.
func (r *railed) calling(pair *RailPair) {
	if s := r.state(pair); s != nil {
		s.isCalling = true
	}
}

// callFailed notes that a call for a path of a connection came to nothing.
func (p *Path) callFailed(a *peering.Action, why error) {
	c, pair := p.host.conn(a.Conn), p.Rails()
	if c == nil || pair == nil || isOrderly(why) {
		return
	}
	why = fmt.Errorf("calling %s at %v: %w", c.peer.Name, pair.Theirs.Address, why)
	c.rails.mu.Lock()
	s := c.rails.state(pair)
	isNew := s != nil && !s.isReported
	if s != nil {
		s.isCalling, s.isReported, s.fault = false, true, why
		s.ended.Failed++
	}
	c.rails.mu.Unlock()
	p.host.rails.count(pair.Own.Name, &PathCounters{Failed: 1}, why)
	if isNew {
		p.host.cfg.Log.Warn("a path cannot be made", slog.String("peer", c.peer.Name), slog.Int("class", int(c.class)),
			slog.String("rail", pair.Own.Name), slog.String("to", pair.Theirs.Name), slog.Any("error", why))
	}
}

// Status returns this host's rails with the sums of their paths, and all paths, in the order of
// the names of hosts and rails.
func (h *Host) Status() (rails []RailStatus, paths []PathStatus) {
	h.rails.mu.Lock()
	rails = make([]RailStatus, len(h.rails.all))
	for i := range rails {
		rails[i].Rail = h.rails.all[i].Rail
	}
	h.rails.mu.Unlock()
	peers := make([]map[string]bool, len(rails))
	for _, c := range h.shared() {
		all := c.status()
		for i := range all {
			s := &all[i]
			if k := slices.IndexFunc(rails, func(r RailStatus) bool { return r.Rail.Name == s.Own.Name }); k >= 0 {
				rails[k].sum(s)
				if peers[k] == nil {
					peers[k] = map[string]bool{}
				}
				peers[k][s.Peer] = true
			}
			paths = append(paths, *s)
		}
	}
	h.rails.mu.Lock()
	for i := range rails {
		rails[i].Peers = len(peers[i])
		if a := h.rails.accounts[rails[i].Rail.Name]; a != nil {
			rails[i].PathCounters, rails[i].Fault, rails[i].FaultAt = a.PathCounters, a.fault, a.faultAt
		}
	}
	h.rails.mu.Unlock()
	slices.SortFunc(paths, func(a, b PathStatus) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Own.Name, b.Own.Name), cmp.Compare(a.Theirs.Name, b.Theirs.Name), cmp.Compare(a.Class, b.Class))
	})
	return rails, paths
}

func (r *RailStatus) sum(s *PathStatus) {
	if s.State != PathUp {
		r.Missing++
		return
	}
	r.Paths++
	r.InFlight += s.InFlight
	r.Queued += s.Queued
	r.Rate = max(r.Rate, s.Rate)
	if s.Delay > 0 && (r.Delay == 0 || s.Delay < r.Delay) {
		r.Delay = s.Delay
	}
}

// status returns the paths of a connection, and those that are wanted.
func (c *Conn) status() (all []PathStatus) {
	l, r := c.channel, &c.rails
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.isOver || c.reason.Load() != nil {
		return nil
	}
	for _, p := range c.all() {
		p.book()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range c.all() {
		if p.reason.Load() == nil {
			all = append(all, p.status())
		}
	}
	for i, pair := range r.pairs {
		if pair == nil || slices.ContainsFunc(all, func(s PathStatus) bool { return pair.is(&RailPair{Own: s.Own, Theirs: s.Theirs}) }) {
			continue
		}
		s := r.states[i]
		status := PathStatus{Peer: c.peer.Name, Class: c.class, Own: pair.Own, Theirs: pair.Theirs, State: PathDown, Since: s.since, Fault: s.fault, PathCounters: s.ended}
		if s.isCalling {
			status.State = PathConnecting
		}
		all = append(all, status)
	}
	return all
}

// status returns how a path does. The caller holds the locks of channel and rails.
func (p *Path) status() PathStatus {
	c := p.conn
	s := PathStatus{Peer: c.peer.Name, Class: c.class, Since: p.upAt, PathCounters: p.counted(), PathMeasure: measure(p.raw)}
	if pair := p.Rails(); pair != nil {
		s.Own, s.Theirs = pair.Own, pair.Theirs
		if before := c.rails.state(pair); before != nil {
			s.add(&before.ended)
			s.Fault = before.fault
		}
	} else {
		local, _ := netip.ParseAddrPort(p.raw.LocalAddr().String())
		s.Own = p.host.rails.at(local, p.kind())
		s.Theirs.Kind, s.Fault = p.kind(), c.rails.mismatch
		s.Theirs.Address, _ = netip.ParseAddrPort(p.raw.RemoteAddr().String())
	}
	s.Queued = p.queue.size
	if c.class.isTracked() || c.stripe != nil {
		s.InFlight = p.unacked.size
	}
	if c.stripe != nil && p.slot >= 0 {
		if m := c.stripe.rails.Measured(p.slot); m.Rate != 0 {
			s.Rate = m.Rate
			if m.Delay != 0 {
				s.Delay = m.Delay
			}
		}
	}
	return s
}

// measure returns what is known of a connection below the process.
func measure(conn net.Conn) PathMeasure {
	if c, is := conn.(*udp.Conn); is {
		s := c.Stats()
		return PathMeasure{InFlight: s.InFlight, Rate: uint64(8 * s.Rate), Delay: s.LeastRTT}
	}
	return kernelMeasure(conn)
}
