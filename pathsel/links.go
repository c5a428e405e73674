package pathsel

import (
	"fmt"

	"github.com/tributary-fabric/tributary/topology"
)

// Links are what joins the hosts of members to the fabric. The zero value: that is not known.
type Links struct {
	Rate int64 // bit/s of a member's link, in each direction
	// Uplink is the bit/s that a member has of its leaf's links to other switches when all members at
	// that leaf use them, and Leaf how many they are. 0: leaves are not known, or there is one.
	Uplink int64
	Leaf   int
}

// maxLinkRate is the most of both rates.
const maxLinkRate = 1e18

// Validate reports what is out of range.
func (l Links) Validate() error {
	for name, rate := range map[string]int64{"rate": l.Rate, "uplink": l.Uplink} {
		if rate < 0 || rate > maxLinkRate {
			return fmt.Errorf("%w: links.%s of %d bit/s is not within 0 and %d", ErrModel, name, rate, int64(maxLinkRate))
		}
	}
	if l.Leaf < 0 || l.Leaf > MaxLeaf {
		return fmt.Errorf("%w: links.leaf of %d members is not within 0 and %d", ErrModel, l.Leaf, MaxLeaf)
	}
	return nil
}

// MaxLeaf is the most that Links.Leaf may be.
const MaxLeaf = 1 << 24

// String says it in words, such as "200 Mbit/s, 100 Mbit/s to other leaves".
func (l Links) String() string {
	switch {
	case l.Rate == 0:
		return "unknown rate"
	case l.Uplink == 0 || l.Uplink >= l.Rate:
		return bitRate(l.Rate)
	}
	return fmt.Sprintf("%s, %s to other leaves", bitRate(l.Rate), bitRate(l.Uplink))
}

// headers is what a link carries for each byte of vectors, in packets of 1500 bytes.
const headers = 1.05

// take returns the nanoseconds that the bytes of the busiest member take on links; 0: it is not known.
// Of a leaf's members that all send to one so far away, that share sends to another leaf.
func (l Links) take(w *Work) float64 {
	if l.Rate <= 0 {
		return 0
	}
	mib := w.Busiest[Link]
	if l.Uplink > 0 && l.Leaf > 0 {
		narrow := float64(l.Rate) / float64(l.Uplink)
		for i, far := range w.Far {
			leave := min(1, float64(int(1)<<i)/float64(l.Leaf))
			mib += far * max(0, leave*narrow-1)
		}
	}
	return mib * (1 << 20) * headers * 8e9 / float64(l.Rate)
}

// LinksOf returns those of members' hosts: the rate of the fastest link of the host whose is the slowest, and the
// leaf whose links to switches have the least for each member there. Zero: a host is NoNode, or has no link.
func LinksOf(g *topology.Graph, hosts []topology.NodeID) (all Links) {
	leaves := map[topology.NodeID]int{}
	for _, host := range hosts {
		l := fastestLink(g, host)
		if l == topology.NoLink {
			return Links{}
		}
		leaves[g.Across(l, host)]++
		if rate := g.Link(l).Bandwidth; all.Rate == 0 || rate < all.Rate {
			all.Rate = rate
		}
	}
	if len(leaves) == 1 {
		return all
	}
	for leaf, members := range leaves {
		uplink := int64(0)
		for _, l := range g.Adjacent(leaf) {
			if g.IsSwitch(g.Across(l, leaf)) {
				uplink += g.Link(l).Bandwidth
			}
		}
		uplink /= int64(members)
		if uplink > 0 && (all.Uplink == 0 || uplink < all.Uplink || uplink == all.Uplink && members > all.Leaf) {
			all.Uplink, all.Leaf = uplink, members
		}
	}
	return all
}

// fastestLink returns the fastest link of a host, of several the one of the lowest port.
func fastestLink(g *topology.Graph, host topology.NodeID) topology.LinkID {
	fastest, rate := topology.NoLink, int64(0)
	if host == topology.NoNode {
		return fastest
	}
	for _, l := range g.Adjacent(host) {
		if is := g.Link(l).Bandwidth; is > rate {
			fastest, rate = l, is
		}
	}
	return fastest
}
