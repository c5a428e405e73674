package rail

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// MaxRails is the most rails of a host, and the most pairs of rails that join two hosts.
const MaxRails = 8

// Kind is the kind of a rail: what carries its connections.
type Kind uint8

// The kinds.
const (
	TCP Kind = iota
	UDP
	railKinds
)

// String returns the kind's name, as in configurations.
func (k Kind) String() string {
	switch k {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return "unknown kind"
}

// Rail is a rail of a host as other hosts see it.
type Rail struct {
	Name      string // unique on the host: 1 to MaxText bytes of printable UTF-8
	Kind      Kind
	Address   netip.AddrPort
	Bits      uint8  // length of the network's prefix; 0: the network is not known
	Network   string // name of the network, where its prefix does not say which one it is; at most MaxText bytes
	Bandwidth uint64 // bit/s; 0: not known
}

// String names the rail, its kind and address.
func (r Rail) String() string {
	s := fmt.Sprintf("%s (%v %v", r.Name, r.Kind, r.Address)
	if r.Bits != 0 {
		s += fmt.Sprintf("/%d", r.Bits)
	}
	if r.Network != "" {
		s += " in " + r.Network
	}
	return s + ")"
}

// Side is one of two hosts with its rails.
type Side struct {
	Host  string
	Rails []Rail
}

// Pair is a rail of this host and one of another host, which a path may join: indices of
// the lists of rails. Bandwidth is the smaller of those that are known, in bit/s.
type Pair struct {
	Own, Their uint8
	Bandwidth  uint64
}

// ErrNoPair is wrapped by the error about two hosts that no pair of rails joins.
var ErrNoPair = errors.New("no rail in common")

// Pairs returns the pairs of rails that join two hosts, MaxRails at most. The other host
// computes the same pairs in the same order, with the sides exchanged.
//
// Rails in a network that has a name join rails in the network of that name. Of the others,
// those join that have a prefix in common; of those left on either side, all are taken for
// routed. The kinds have to be equal, and so has the family of addresses where no name says
// that the network is one; addresses of the loopback interface join only such. In a network of n and m rails, there are max(n, m) pairs: rail i
// of the one host joins rail i of the other, modulo the number of its rails.
func Pairs(own, their Side) ([]Pair, error) {
	isFirst := own.Host < their.Host
	a, b := own.Rails, their.Rails
	if !isFirst {
		a, b = b, a
	}
	found := (&pairing{a: a, b: b}).all()
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %v and %v: a pair needs the same kind, and either the same name of a network or none", ErrNoPair, own, their)
	}
	pairs := make([]Pair, len(found))
	for i, f := range found {
		p := Pair{Own: uint8(f.a), Their: uint8(f.b), Bandwidth: least(a[f.a].Bandwidth, b[f.b].Bandwidth)}
		if !isFirst {
			p.Own, p.Their = p.Their, p.Own
		}
		pairs[i] = p
	}
	return pairs, nil
}

// String names the host and all its rails.
func (s Side) String() string {
	if len(s.Rails) == 0 {
		return s.Host + " has no rails"
	}
	names := make([]string, len(s.Rails))
	for i, r := range s.Rails {
		names[i] = r.String()
	}
	return s.Host + " has " + strings.Join(names, ", ")
}

// least returns the smaller of two bandwidths that are known.
func least(x, y uint64) uint64 {
	if x == 0 || y == 0 {
		return max(x, y)
	}
	return min(x, y)
}

// pairing finds the pairs of two lists of rails.
type pairing struct {
	a, b         []Rail
	usedA, usedB [MaxRails]bool
	found        []joined
}

// joined are the indices of a pair. One is extra that shares a rail with another pair.
type joined struct {
	a, b    int
	isExtra bool
}

// network is what rails of a pair have in common.
type network struct {
	name     string
	kind     Kind
	prefix   netip.Prefix
	is4      bool
	loopback bool
}

func (p *pairing) all() []joined {
	p.join(func(r *Rail) (network, bool) {
		return network{name: r.Network, kind: r.Kind, loopback: r.Address.Addr().IsLoopback()}, r.Network != ""
	})
	p.join(func(r *Rail) (network, bool) {
		prefix, err := r.Address.Addr().Prefix(int(r.Bits))
		return network{kind: r.Kind, prefix: prefix}, err == nil && r.Bits != 0 && r.Network == ""
	})
	p.join(func(r *Rail) (network, bool) {
		a := r.Address.Addr()
		return network{kind: r.Kind, is4: a.Is4(), loopback: a.IsLoopback()}, r.Network == ""
	})
	slices.SortFunc(p.found, func(x, y joined) int {
		if x.isExtra != y.isExtra {
			if x.isExtra {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return p.found[:min(len(p.found), MaxRails)] // pairs that are not extra are no more than that
}

// join joins those rails that are in no pair yet and have a network in common.
func (p *pairing) join(of func(*Rail) (network, bool)) {
	var done []network
	for i := range p.a {
		n, ok := of(&p.a[i])
		if !ok || p.usedA[i] || slices.Contains(done, n) {
			continue
		}
		done = append(done, n)
		in := func(rails []Rail, used *[MaxRails]bool) (list []int) {
			for i := range rails {
				if m, ok := of(&rails[i]); ok && m == n && !used[i] {
					list = append(list, i)
				}
			}
			return list
		}
		as, bs := in(p.a, &p.usedA), in(p.b, &p.usedB)
		if len(as) == 0 || len(bs) == 0 {
			continue
		}
		for k := range max(len(as), len(bs)) {
			a, b := as[k%len(as)], bs[k%len(bs)]
			p.found = append(p.found, joined{a, b, k >= min(len(as), len(bs))})
			p.usedA[a], p.usedB[b] = true, true
		}
	}
}
