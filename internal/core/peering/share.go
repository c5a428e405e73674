package peering

import (
	"container/heap"
	"container/list"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// share is what the processes of one host, which have one certificate and as many names as
// they like, take of the limits.
type share struct {
	host   string
	peers  int       // of the host, that are known
	taken  list.List // of *conn: that they have made, the oldest first
	unused int       // of the host, in Core.unused
	claims int       // connections that wait for a probe
	place  int       // in Core.shares
}

// shares are a heap of all: the first one has most connections.
type shares []*share

func (s shares) Len() int           { return len(s) }
func (s shares) Less(i, j int) bool { return s[i].taken.Len() > s[j].taken.Len() }
func (s shares) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements heap.Interface.
func (s *shares) Push(x any) {
	one := x.(*share)
	one.place = len(*s)
	*s = append(*s, one)
}

// Pop implements heap.Interface.
func (s *shares) Pop() any {
	last := len(*s) - 1
	one := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return one
}

// join gives a peer that is new its share.
func (c *Core) join(p *peer) {
	host := HostOf(p.name)
	s := c.shareOf[host]
	if s == nil {
		s = &share{host: host}
		c.shareOf[host] = s
		heap.Push(&c.shares, s)
	}
	s.peers++
	p.share = s
}

// part takes it back from one that is forgotten.
func (c *Core) part(p *peer) {
	s := p.share
	if s.peers--; s.peers == 0 {
		delete(c.shareOf, s.host)
		heap.Remove(&c.shares, s.place)
	}
}

// count adds a connection that another host has made to its share.
func (c *Core) count(k *conn) {
	s := k.peer.share
	c.taken++
	k.counted = s.taken.PushBack(k)
	heap.Fix(&c.shares, s.place)
}

// uncount ends that.
func (c *Core) uncount(k *conn) {
	if k.counted == nil {
		return
	}
	s := k.peer.share
	c.taken--
	s.taken.Remove(k.counted)
	k.counted = nil
	heap.Fix(&c.shares, s.place)
}

// overfull returns why a caller is refused where all connections are taken: unless another host
// has two more than the caller's.
func (c *Core) overfull(s *share, g *greeting.Greeting) error {
	if c.taken >= c.cfg.Connections && s.taken.Len()+1 >= c.shares[0].taken.Len() {
		return fmt.Errorf("%w: %d connections in all, %d of them from the processes of %q", ErrBusy, c.taken, s.taken.Len(), HostOf(g.From))
	}
	return nil
}

// overdraft returns why a caller is refused: its host has too much already.
func (c *Core) overdraft(g *greeting.Greeting) error {
	s := c.shareOf[HostOf(g.From)]
	if s == nil {
		s = &share{}
	}
	if err := c.overfull(s, g); err != nil {
		return err
	}
	switch {
	case len(c.claimsOf(g.From)) >= claimMost:
		return fmt.Errorf("%w: %d claims to the name %q", ErrBusy, claimMost, g.From)
	case s.claims >= claimMostOfHost:
		return fmt.Errorf("%w: %d claims to names of %q", ErrBusy, claimMostOfHost, s.host)
	}
	return nil
}

// displace has the latest connection of the host that has most give way, where there are too many.
func (c *Core) displace() {
	if c.taken <= c.cfg.Connections {
		return
	}
	s := c.shares[0]
	k := s.taken.Back().Value.(*conn)
	err := fmt.Errorf("%w: %d connections in all, and the processes of %q have most, %d", ErrBusy, c.taken, s.host, s.taken.Len())
	c.counters.Displaced++
	if k.isWaiting() {
		c.refuse(k, greeting.Busy, err)
		return
	}
	if k.whole().living() > 1 {
		c.closePath(k, err)
		return
	}
	k = k.whole()
	wasUp := k.state == up
	c.close(k, err)
	if wasUp {
		c.redial(k.channel())
	}
}
