package p4_test

import (
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/p4"
)

// The root of a tree has two hosts beneath it, one at each of its ports.
func ExampleTranslate() {
	state := p4.State{
		Ports: []p4.Port{
			{Number: 1, Addr: netip.MustParseAddr("10.0.1.254"), MAC: p4.MAC{2, 0, 0, 0, 1, 254}},
			{Number: 2, Addr: netip.MustParseAddr("10.0.2.254"), MAC: p4.MAC{2, 0, 0, 0, 2, 254}},
		},
		Routes: []p4.Route{
			{Prefix: netip.MustParsePrefix("10.0.1.0/24"), Port: 1, MAC: p4.MAC{2, 0, 0, 0, 1, 1}},
			{Prefix: netip.MustParsePrefix("10.0.2.0/24"), Port: 2, MAC: p4.MAC{2, 0, 0, 0, 2, 1}},
		},
		Trees: []p4.Tree{{Index: 0, Group: 9, Newest: 2}},
		Epochs: []p4.Epoch{{
			Tree: 0, Index: 0, Serial: 1, SlotBase: 0, Epoch: 2, Window: 64, ChunkBytes: p4.Chunk,
			Children: []p4.Child{
				{Addr: netip.MustParseAddrPort("10.0.1.1:4000"), Lowest: 0, Cookie: 0xc0ffee},
				{Addr: netip.MustParseAddrPort("10.0.2.1:4000"), Lowest: 1, Cookie: 0xdecaf},
			},
		}},
	}
	program, err := p4.Translate(&state)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(program.Entries), "entries")
	for _, g := range program.Groups {
		fmt.Println("group", g.ID, g.Replicas)
	}
	fmt.Println("hosts send to port", p4.TreePort(0))
	// Output:
	// 12 entries
	// group 1 [{1 1} {2 2}]
	// hosts send to port 49152
}
