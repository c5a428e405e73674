package switchreduce

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

func validConfig() Config {
	return Config{
		Group: 9, Epoch: 2, Cookie: 7, Window: 2, ChunkBytes: 64,
		Children: []Child{{Addr: addr("a"), Cookie: 11}, {Addr: addr("b"), Lowest: 3, Cookie: 12}}, Parent: addr("p"), Index: 1, Lease: time.Second,
	}
}

func TestConfigValidate(t *testing.T) {
	valid := validConfig()
	if err := valid.Validate(); err != nil {
		t.Errorf("valid configuration: %v", err)
	}
	for name, spoil := range map[string]func(c *Config){
		"epoch 0":              func(c *Config) { c.Epoch = 0 },
		"cookie of 49 bits":    func(c *Config) { c.Cookie = 1 << 48 },
		"child's of 49 bits":   func(c *Config) { c.Children[1].Cookie = 1 << 48 },
		"no window":            func(c *Config) { c.Window = 0 },
		"window 3":             func(c *Config) { c.Window = 3 },
		"large window":         func(c *Config) { c.Window = 2 * MaxWindow },
		"small chunk":          func(c *Config) { c.ChunkBytes = MinChunk - 1 },
		"large chunk":          func(c *Config) { c.ChunkBytes = MaxChunk + 1 },
		"negative probes":      func(c *Config) { c.Probes = -1 },
		"negative lease":       func(c *Config) { c.Lease = -1 },
		"no children":          func(c *Config) { c.Children = nil },
		"child of no address":  func(c *Config) { c.Children[1].Addr = netip.AddrPort{} },
		"child is parent":      func(c *Config) { c.Parent = c.Children[1].Addr },
		"rank of 25 bits":      func(c *Config) { c.Children[1].Lowest = wire.MaxRank + 1 },
		"children of one rank": func(c *Config) { c.Children[1].Lowest = 0 },
		"too many children":    func(c *Config) { c.Children = make([]Child, MaxChildren+1) },
	} {
		c := validConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v, want ErrConfig", name, err)
		}
	}
}

func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range Drop(Drops) {
		if name := d.String(); name == "" || seen[name] {
			t.Errorf("reason %d has the name %q, which is empty or another's", d, name)
		} else {
			seen[name] = true
		}
	}
	if got := Drop(200).String(); got != "drop(200)" {
		t.Errorf("unknown reason is named %q", got)
	}
}

// TestDropsInDocument: docs/protocol.md lists every reason, in the order of
// admission.
func TestDropsInDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## Admission")
	for d := range Drop(Drops) {
		_, after, found := strings.Cut(rest, "| `"+d.String()+"` |")
		if !found {
			t.Errorf("reason %v is not notified, or not in its place", d)
			continue
		}
		rest = after
	}
}

// TestFaults: an unreadable packet is counted by what is wrong with it.
func TestFaults(t *testing.T) {
	c := New()
	cfg := validConfig()
	var out Output
	c.Step(0, []Input{{Kind: Install, Config: &cfg}, {From: addr("a")}, {From: addr("a"), Packet: make([]byte, wire.HeaderSize)}}, &out)
	n := c.Counters()
	if n.Drops[DropFault] != 2 || n.Faults[wire.Truncated] != 1 || n.Faults[wire.BadVersion] != 1 || n.Dropped() != 2 {
		t.Errorf("counters: %+v", n)
	}
}

// TestConfigIsCopied: what Install was given is the caller's again.
func TestConfigIsCopied(t *testing.T) {
	trial := newTrial()
	trial.do("install epoch=2 window=2 children=0,3")
	cfg := trial.config(map[string]string{"epoch": "4", "window": "2", "children": "0,3"})
	trial.core.Step(0, []Input{{Kind: Install, Config: cfg}}, &trial.out)
	clear(cfg.Children)
	if got := trial.do("a probe 0"); got != "a want 0 child=0 epoch=4\n" {
		t.Errorf("answer: %q", got)
	}
}

func TestDeadline(t *testing.T) {
	c := New()
	var out Output
	if d := c.Deadline(); d != core.Never {
		t.Errorf("deadline without an epoch: %v", d)
	}
	cfg := validConfig()
	c.Step(5, []Input{{Kind: Install, Config: &cfg}}, &out)
	cfg.Epoch, cfg.Lease = 4, 0
	c.Step(6, []Input{{Kind: Install, Config: &cfg}}, &out)
	if d := c.Deadline(); d != 5+core.Time(time.Second) {
		t.Errorf("deadline %v, want one second after 5", d)
	}
	out.Reset()
	c.Step(c.Deadline(), nil, &out)
	if !slices.Equal(out.Expired, []uint32{2}) || c.Deadline() != core.Never {
		t.Errorf("expired %v, deadline %v", out.Expired, c.Deadline())
	}
}

// FuzzStep gives a core packets from anywhere. It must not crash, nor send more
// than one packet to each neighbour for one that it gets, nor send anything
// that cannot be read; and each packet is dropped for one reason at most.
func FuzzStep(f *testing.F) {
	c := newCrowd(2, false)
	for _, in := range []Input{
		c.packet(wire.Contribution, 0, 1, 2), c.packet(wire.Result, -1, 1, 2), c.packet(wire.Probe, 1, 1, 2),
		c.packet(wire.Error, -1, 1, 2), c.packet(wire.Want, -1, 1, 2), c.packet(wire.Lost, -1, 1, 2),
	} {
		f.Add(in.Packet, byte(0), false)
		f.Add(in.Packet, byte(1), true)
		f.Add(in.Packet, byte(2), false)
	}
	source := wire.Header{Type: wire.Contribution, Flags: wire.Source, Epoch: 2, Signature: wire.Signature{
		Collective: wire.Broadcast, Element: reduce.Int32, Elements: 1, ChunkElements: 1}}
	packet := make([]byte, wire.HeaderSize+4)
	source.Put(packet)
	f.Add(packet, byte(0), true)
	block := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Epoch: 2, Chunk: 1, Exponent: -3, Signature: wire.Signature{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Block32, Elements: 1, ChunkElements: 1}}
	packet = make([]byte, wire.HeaderSize+4)
	block.Put(packet)
	f.Add(packet, byte(0), false)
	f.Fuzz(func(t *testing.T, packet []byte, from byte, root bool) {
		c := newCrowd(2, root)
		var out Output
		senders := []netip.AddrPort{kidAddr(0), kidAddr(1), addr("p"), addr("x")}
		first := senders[from%4]
		c.core.Step(0, []Input{{Kind: Install, Config: c.config(2, 2)}}, &out)
		// The packet as it is, again, from everybody, and among valid ones.
		script := []Input{{From: first, Packet: packet}, {From: first, Packet: packet}}
		for _, s := range senders {
			script = append(script, Input{From: s, Packet: packet})
		}
		script = append(script, c.packet(wire.Contribution, 0, 1, 2), c.packet(wire.Contribution, 1, 1, 2),
			Input{From: first, Packet: packet}, c.packet(wire.Result, -1, 1, 2), Input{From: first, Packet: packet})
		for _, in := range script {
			before := c.core.Counters().Dropped()
			out.Reset()
			c.core.Step(0, []Input{in}, &out)
			if n := len(out.Sends); n > 3 {
				t.Errorf("%d packets for one", n)
			}
			if n := c.core.Counters().Dropped() - before; n > 1 || n == 1 && len(out.Sends) > 0 {
				t.Errorf("dropped %d times, %d packets sent", n, len(out.Sends))
			}
			for _, s := range out.Sends {
				var h wire.Header
				if _, fault := h.Decode(slices.Concat(s.Head[:], s.Body)); fault != wire.NoFault {
					t.Errorf("sent a packet with fault %v", fault)
				}
			}
		}
	})
}
