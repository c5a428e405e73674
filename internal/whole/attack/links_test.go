package attack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// testLinks: mallory, who has no key of the zone, opens links of the zone and of the hierarchy on connections of
// its own, and says on them every message with every field forged, in the name of nodes that are there and of
// others, without the greeting by which a neighbour proves who it is. Nobody joins, leaves or dies by that. What an
// accepted neighbour may say is tried in internal/core/member.
func (f *fabric) testLinks(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 8))
	h := f.hosts[0]
	as := f.source(pki.Identity{Role: pki.Host, Name: mallory})
	greets, _ := hello(peer.Control)
	binary.BigEndian.PutUint64(greets.bytes[8:], f.last)
	r := f.matrix.of("a host's certificate", "membership, links")
	// say sends frames of service 3, of one link of the zone each, which it opens, all on one connection: the host
	// calls mallory, too, and a call of mallory's waits until that has failed.
	say := func(all []forged) {
		f.calls++
		binary.BigEndian.PutUint64(greets.bytes[24:], 1<<62+f.calls)
		b := slices.Clone(greets.bytes)
		for i, x := range all {
			link := uint32(i%60 + 1)
			b = append(b, frame(3, link, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0})...)
			b = append(b, frame(3, link, x.bytes)...)
			b = append(b, frame(3, link, []byte{5, 0, 0, 0, 2})...)
		}
		conn, err := f.dial(h.Addr(), as)
		if err != nil {
			t.Fatal(err)
		}
		answer := f.exchange(conn, b)
		r.tried, r.refused, r.in, r.out = r.tried+len(all), r.refused+len(all), r.in+len(b), r.out+len(answer)
	}
	f.under(t, func() {
		var all []forged
		add := func(x forged) {
			x.bytes = append([]byte{4, 0, 0, 0, 1}, x.bytes...)
			all = append(all, x)
		}
		for _, m := range golden(t, gossipMessages, 4) {
			m.bytes = onLoopback(m.bytes)
			for _, x := range fewer(append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})) {
				add(x)
			}
		}
		own := gossip.ID(mallory + "@127.0.0.1:746")
		for _, p := range f.claims(own) {
			add(forged{bytes: p.Append(nil)})
		}
		open := message{name: "open", bytes: []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, fields: []field{{"kind", 0, 1}, {"number", 1, 4}, {"zone", 5, 4}, {"management", 9, 1}}}
		say(append(all, open.forge(nil, random)...))
	})
}

// onLoopback returns a golden message whose nodes have addresses of this machine, where nobody is.
func onLoopback(b []byte) []byte {
	for n := range 10 {
		was := gossip.ID(fmt.Sprintf("n%d@10.0.0.%d:7946", n, n))
		is := gossip.ID(fmt.Sprintf("n%d@127.0.0.%d:746", n, n))
		b = bytes.ReplaceAll(b, []byte(was), []byte(is))
		b = bytes.ReplaceAll(b, binary.BigEndian.AppendUint64(nil, uint64(was.Key())), binary.BigEndian.AppendUint64(nil, uint64(is.Key())))
	}
	return b
}
