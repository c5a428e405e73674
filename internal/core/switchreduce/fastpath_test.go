package switchreduce

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// busy is a FastPath that holds nothing.
type busy struct{ taken uint64 }

func (*busy) Take(uint32, bool, func([]byte)) bool { return true }
func (b *busy) Taken() uint64                      { return b.taken }

// TestFastPathRenewsLease: an epoch of which only its fast path takes packets is in use;
// it begins with the first packet that the core has admitted, once.
func TestFastPathRenewsLease(t *testing.T) {
	tr := newTrial()
	fast := &busy{}
	cfg := tr.config(map[string]string{"epoch": "2", "window": "2", "children": "0,3", "lease": "3s"})
	cfg.FastPath = fast
	var out Output
	at := func(d time.Duration) core.Time { return core.Time(0).Add(d) }
	step := func(now core.Time, in ...Input) {
		out.Reset()
		tr.core.Step(now, in, &out)
	}
	step(0, Input{Kind: Install, Config: cfg})
	tr.cfg = *cfg
	step(0, tr.packet([]string{"a", "probe", "5"}, nil))
	if !slices.Equal(out.Begun, []uint32{2}) {
		t.Fatalf("begun: %d", out.Begun)
	}
	step(at(time.Second), tr.packet([]string{"a", "probe", "5"}, nil))
	if len(out.Begun) > 0 {
		t.Fatalf("begun again: %d", out.Begun)
	}
	for n := range time.Duration(5) {
		fast.taken++
		now := at(time.Second + (n+1)*3*time.Second)
		if got := tr.core.Deadline(); got != now {
			t.Fatalf("deadline %v, want %v", got, now)
		}
		if step(now); len(out.Expired) > 0 {
			t.Fatalf("expired after %v, although in use", time.Duration(now))
		}
	}
	if step(tr.core.Deadline()); !slices.Equal(out.Expired, []uint32{2}) {
		t.Fatalf("expired: %d", out.Expired)
	}
}

// holder is a FastPath that holds packets about one number until they are taken.
type holder struct {
	busy
	packets [][]byte
}

func (h *holder) Take(_ uint32, _ bool, held func([]byte)) bool {
	for _, p := range h.packets {
		held(p)
	}
	h.packets = nil
	return true
}

// TestAdoptedPartialIsSentOnce: who takes over a complete chunk sends its partial, unless the parent has
// answered it already.
func TestAdoptedPartialIsSentOnce(t *testing.T) {
	addr := func(i byte) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, i}), 9) }
	packet := func(kind wire.Type, child uint16, flags wire.Flags) []byte {
		h := wire.Header{Type: kind, Flags: flags, Child: child, Group: 1, Epoch: 2, Cookie: wire.Cookie(child), Chunk: 7}
		size := 0
		if kind != wire.Probe {
			h.Signature = wire.Signature{Collective: wire.Reduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 2, ChunkElements: 2}
			size = 8
		}
		b := make([]byte, wire.HeaderSize+size)
		h.Put(b)
		return b
	}
	contributions := [][]byte{packet(wire.Contribution, 0, wire.Sink), packet(wire.Contribution, 1, 0)}
	result := packet(wire.Result, 3, wire.Sink)
	for _, x := range []struct {
		name              string
		held              [][]byte
		from              netip.AddrPort
		packet            []byte
		partials, results int
	}{
		{"a probe of what is complete", contributions, addr(0), packet(wire.Probe, 0, 0), 1, 0},
		{"a probe of what has a result", slices.Concat(contributions, [][]byte{result}), addr(0), packet(wire.Probe, 0, 0), 0, 2},
		{"the result, which is held", slices.Concat(contributions, [][]byte{result}), addr(99), result, 0, 2},
		{"the result, which is not", contributions, addr(99), result, 0, 2},
		{"the last contribution", contributions[:1], addr(1), contributions[1], 1, 0},
	} {
		c, out := New(), Output{}
		c.Step(0, []Input{{Kind: Install, Config: &Config{
			Group: 1, Epoch: 2, Window: 64, ChunkBytes: 1432, Lease: time.Hour, Parent: addr(99), Index: 3, Cookie: 3,
			Children: []Child{{Addr: addr(0)}, {Addr: addr(1), Lowest: 1, Cookie: 1}}, FastPath: &holder{packets: x.held},
		}}}, &out)
		out.Reset()
		c.Step(0, []Input{{Kind: Packet, From: x.from, Packet: x.packet}}, &out)
		partials, results := 0, 0
		for _, s := range out.Sends {
			switch wire.Type(s.Head[0] & 15) {
			case wire.Contribution:
				partials++
			case wire.Result:
				results++
			default:
			}
		}
		if partials != x.partials || results < x.results {
			t.Errorf("%s: %d partials, %d results, want %d, %d", x.name, partials, results, x.partials, x.results)
		}
	}
}
