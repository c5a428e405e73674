package switchreduce

import "github.com/tributary-fabric/tributary/internal/wire"

// Traffic is what was exchanged with one neighbour: packets, and the bytes of
// their headers and payloads without the IP and UDP headers beneath.
type Traffic struct {
	PacketsIn, BytesIn   uint64 // admitted: what is dropped before that may be anybody's
	PacketsOut, BytesOut uint64 // given to be sent
	Forged               uint64 // packets with its address and child index, and another cookie
}

// EpochTraffic is what an epoch has exchanged with its neighbours since it was
// installed.
type EpochTraffic struct {
	Epoch    uint32
	Children []Traffic // by child index
	Parent   *Traffic  // nil at the root
}

// Traffic returns that of every epoch that is installed, in rising order.
func (c *Core) Traffic() []EpochTraffic {
	all := make([]EpochTraffic, len(c.epochs))
	for i := range c.epochs {
		e := &c.epochs[i]
		n := len(e.Children)
		all[i] = EpochTraffic{Epoch: e.Epoch, Children: append([]Traffic(nil), e.traffic[:n]...)}
		if !e.root() {
			parent := e.traffic[n]
			all[i].Parent = &parent
		}
	}
	return all
}

// took counts an admitted packet.
func (e *epoch) took(p *packet) {
	t := &e.traffic[len(e.Children)] // the parent's
	if p.below {
		t = &e.traffic[p.Child]
	}
	t.PacketsIn++
	t.BytesIn += uint64(wire.HeaderSize + len(p.payload))
}

// gave counts a packet that is to be sent to a child, or to the parent if that
// is len(e.Children).
func (e *epoch) gave(to int, body []byte) {
	t := &e.traffic[to]
	t.PacketsOut++
	t.BytesOut += uint64(wire.HeaderSize + len(body))
}
