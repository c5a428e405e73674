package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// RailPair is the rails of two hosts that a path lies on.
type RailPair struct {
	Own, Theirs rail.Rail
	Bandwidth   uint64 // that of the slower one in bit/s; 0: not known
}

func (p *RailPair) is(o *RailPair) bool {
	return p.Own.Name == o.Own.Name && p.Theirs.Name == o.Theirs.Name && p.Theirs.Address == o.Theirs.Address
}

// railed is what a connection knows of rails.
type railed struct {
	pairing sync.Mutex // held while pairs are found, so that the last ones are those of the last lists

	mu      sync.Mutex
	isSaid  bool                     // the other side knows this host's
	theirs  []rail.Rail              // nil: not known
	version uint32                   // of theirs
	pairs   [rail.MaxRails]*RailPair // that join the two hosts; nil: none. A pair keeps its place
	first   int                      // the one that the first path lies, or lay, on

	isFirstKnown bool

	states   [rail.MaxRails]*pairState
	mismatch error // why no pair joins the two hosts
}

// announce says what this host's rails are, if it has several. The caller holds the channel's
// lock.
func (c *Conn) announce(p *Path) {
	c.rails.mu.Lock()
	defer c.rails.mu.Unlock()
	all, version := c.host.rails.list()
	if len(all) > 1 || c.rails.theirs != nil || c.rails.isSaid {
		c.rails.isSaid = true
		var head [listHead]byte
		head[0] = railList
		binary.BigEndian.PutUint32(head[4:], version)
		p.queue.copy(&Send{Service: itself, Head: head[:], Body: rail.Append(nil, all)})
	}
}

// listHead are the bytes before a list of rails: its kind, three of padding, and the list's
// number, which rises with every change. So a list that comes late, on another path, is not
// taken for the last.
const listHead = 8

// hearRails takes the other host's rails.
func (c *Conn) hearRails(p *Path, b []byte) error {
	if len(b) < listHead {
		return ErrFrame
	}
	version := binary.BigEndian.Uint32(b[4:])
	theirs, err := rail.Read(b[listHead:])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	c.rails.mu.Lock()
	if c.rails.theirs != nil && int32(version-c.rails.version) <= 0 {
		c.rails.mu.Unlock()
		c.closeStray()
		return nil
	}
	c.rails.theirs, c.rails.version = theirs, version
	isSaid := c.rails.isSaid
	c.rails.mu.Unlock()
	if !isSaid {
		l := c.channel
		l.mu.Lock()
		c.announce(p)
		_, others := p.send(itself, nil)
		l.mu.Unlock()
		c.host.report(others, nil)
	}
	c.pair()
	return nil
}

// pair finds out which pairs of rails join the two hosts, and has package peering know.
func (c *Conn) pair() {
	h, r := c.host, &c.rails
	r.pairing.Lock()
	defer r.pairing.Unlock()
	r.mu.Lock()
	if r.theirs == nil || !r.isSaid {
		r.mu.Unlock()
		return
	}
	own, _ := h.rails.list()
	pairs, err := rail.Pairs(rail.Side{Host: h.cfg.Name, Rails: own}, rail.Side{Host: c.peer.Name, Rails: r.theirs})
	isNew := err != nil && (r.mismatch == nil || r.mismatch.Error() != err.Error())
	if r.mismatch = err; isNew {
		h.cfg.Log.Warn("no rail in common", slog.String("peer", c.peer.Name), slog.Any("error", err))
	}
	if err == nil {
		h.reportUnpaired(c.peer.Name, own, pairs)
	}
	r.place(own, pairs, c.takenPlaces())
	mask := uint8(0)
	for i, p := range r.pairs {
		if p != nil {
			mask |= 1 << i
		}
	}
	if first := slices.IndexFunc(c.all(), func(p *Path) bool { return p.id == c.id }); first >= 0 && !r.isFirstKnown && mask != 0 {
		p := c.all()[first]
		r.first, r.isFirstKnown = r.find(p), true
		p.setRails(*r.pairs[r.first])
	}
	for _, p := range c.all() { // that have come before the other side's list
		r.locate(p)
	}
	c.locateFirst()
	in := peering.Input{Kind: peering.Paired, ID: c.id, Pairs: mask, First: uint8(r.first)}
	r.mu.Unlock()
	if mask&(mask-1) != 0 || mask != 1<<in.First {
		if !c.class.isTracked() {
			c.newStripe()
		}
		h.rails.watch.Do(func() { h.tasks.Go(h.watchRails) })
	}
	if c.id&peering.Dialled != 0 && mask != 0 {
		h.post(in)
		c.closeStray()
	}
}

// errUnpaired is the fault of a rail that others of the host are not for a peer.
var errUnpaired = errors.New("no rail of a peer joins it, while others do: a pair needs the same kind, and either the same name of a network or none")

// reportUnpaired reports rails of this host that join none of a peer's, while others do: most
// often by a mistake in the configuration of one of the two.
func (h *Host) reportUnpaired(peer string, own []rail.Rail, pairs []rail.Pair) {
	for i := range own {
		if slices.ContainsFunc(pairs, func(p rail.Pair) bool { return int(p.Own) == i }) {
			continue
		}
		h.rails.mu.Lock()
		a := h.rails.accounts[own[i].Name]
		isNew := a != nil && !errors.Is(a.fault, errUnpaired)
		if isNew {
			a.fault, a.faultAt = fmt.Errorf("%s: %w", peer, errUnpaired), time.Now()
		}
		h.rails.mu.Unlock()
		if isNew {
			h.cfg.Log.Warn("a rail is not used", slog.String("rail", own[i].String()), slog.String("peer", peer), slog.Any("error", errUnpaired))
		}
	}
}

// closeStray closes the paths on pairs that are no more, once there is a path on one that is. The
// other side has that when it has sent something on it: its rails, at least. It is for the side
// that decides.
func (c *Conn) closeStray() {
	if !c.decides() {
		return
	}
	c.host.rails.losing.Lock()
	defer c.host.rails.losing.Unlock()
	all := c.living()
	c.rails.mu.Lock()
	var stray []*Path
	isOther := false
	for _, p := range all {
		if on, now := p.Rails(), c.rails.pairs[c.placeOf(p)]; on != nil && (now == nil || !now.is(on)) {
			stray = append(stray, p)
		} else if p.received.Load() > 0 {
			isOther = true
		}
	}
	c.rails.mu.Unlock()
	if isOther {
		for _, p := range stray {
			p.say(goaway) // the other side may not know yet that the pair is no more
			p.close(peering.ErrRemoved)
		}
	}
}

// placeOf returns the place of the pair for which this host has dialled a path.
func (c *Conn) placeOf(p *Path) int {
	if p.id == c.id {
		return c.rails.first
	}
	return p.place
}

// takenPlaces returns those that paths have, where this host has dialled them. The caller holds
// the lock of rails.
func (c *Conn) takenPlaces() (taken [rail.MaxRails]bool) {
	for _, p := range c.all() {
		if p.id&peering.Dialled != 0 && (p.id != c.id || c.rails.isFirstKnown) {
			taken[c.placeOf(p)] = true
		}
	}
	return taken
}

// place gives each pair a place, and takes it from those that are no more. Taken are the places
// of paths that there are.
func (r *railed) place(own []rail.Rail, pairs []rail.Pair, taken [rail.MaxRails]bool) {
	var now []*RailPair
	before := r.pairs
	defer r.begin(&before)
	for _, p := range pairs {
		now = append(now, &RailPair{Own: own[p.Own], Theirs: r.theirs[p.Their], Bandwidth: p.Bandwidth})
	}
	var gone []int
	for i, old := range r.pairs {
		if old == nil {
			continue
		}
		at := slices.IndexFunc(now, old.is)
		if at < 0 {
			gone = append(gone, i)
			continue
		}
		r.pairs[i] = now[at]
		now = slices.Delete(now, at, at+1)
	}
	// First those that were free: a pair in the place of another would be taken for it. So would
	// one in a place whose pair is no more, and its path is there still.
	free := func(isTaken bool) {
		for i, old := range r.pairs {
			if old == nil && taken[i] == isTaken && len(now) > 0 {
				r.pairs[i], now = now[0], now[1:]
			}
		}
	}
	free(false)
	for _, i := range gone {
		r.pairs[i] = nil
	}
	free(false)
	free(true)
}

// find returns the place of the pair that a path lies on: by its addresses, or as much of them
// as is known.
func (r *railed) find(p *Path) int {
	local, remote := p.Addresses()
	best, most, kind := 0, -1, p.kind()
	for i, pair := range r.pairs {
		if pair == nil {
			continue
		}
		score := 0
		if pair.Own.Address.Addr() == local {
			score += 4
		}
		if pair.Theirs.Address.Addr() == remote {
			score += 2
		}
		if pair.Own.Kind == kind {
			score++
		}
		if score > most {
			best, most = i, score
		}
	}
	return best
}

// locate finds the pair of rails that a path lies on, where the other host has dialled it. It
// may come before this host knows the pair: then it is found when that is known.
func (c *Conn) locate(p *Path) {
	c.rails.mu.Lock()
	defer c.rails.mu.Unlock()
	c.rails.locate(p)
	c.locateFirst()
}

// locateFirst finds the pair of the first path, whose addresses need not be those of rails,
// where the other host has dialled it: one that has no other path. The caller holds the lock
// of rails.
func (c *Conn) locateFirst() {
	r, all := &c.rails, c.all()
	at := slices.IndexFunc(all, func(p *Path) bool { return p.id == c.id })
	if at < 0 || c.id&peering.Dialled != 0 || all[at].Rails() == nil {
		return
	}
	isFree := func(pair *RailPair) bool {
		return r.state(pair) != nil && !slices.ContainsFunc(all, func(p *Path) bool { return p.id != c.id && p.Rails() != nil && p.Rails().is(pair) })
	}
	if isFree(all[at].Rails()) {
		return
	}
	for _, pair := range r.pairs {
		if isFree(pair) {
			all[at].setRails(*pair)
			r.arrived(all[at])
			return
		}
	}
}

func (r *railed) locate(p *Path) {
	at := r.pairs[r.find(p)]
	if at == nil || p.id == p.conn.id || p.id&peering.Dialled != 0 {
		return
	}
	local, remote := p.Addresses()
	isIt := at.Own.Address.Addr() == local && at.Theirs.Address.Addr() == remote && at.Own.Kind == p.kind()
	if now := p.Rails(); now == nil || !now.is(at) && isIt {
		p.setRails(*at)
		r.arrived(p)
	}
}

// announceAgain says once more what this host's rails are: on all paths, since that of one may
// end first.
func (c *Conn) announceAgain() {
	l := c.channel
	l.mu.Lock()
	var others []mark
	if !c.isDraining {
		for _, p := range c.all() {
			c.announce(p)
			_, of := p.send(itself, nil)
			others = append(others, of...)
		}
	}
	l.mu.Unlock()
	c.host.report(others, nil)
	c.pair()
}
