package agent

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// play decodes one input from a few small numbers, gives it to the core, and
// has the bench check everything. Few groups, epochs and windows meet often.
func (b *bench) play(kind, group, epoch, size byte) {
	g, e := uint32(group%3)+1, 2*uint32(epoch%8)+2
	window := uint32(1) << (size % 6)
	socket := b.core.sockets - uint64(group>>2%4) // one of the last, or none
	incarnation := b.cfg.Incarnation
	if size > 250 {
		incarnation++
	}
	switch kind % 9 {
	case 0, 1:
		p := prepareOf(g, e, window)
		p.Incarnation = incarnation
		b.step(p)
	case 2:
		m := Commit{Incarnation: incarnation, Config: aggregateConfig(g, e, window)}
		b.step(m)
	case 3: // a commit that fits what is held, if there is something
		if n := len(b.promised); n > 0 {
			p := b.promised[int(group)%n]
			b.step(Commit{Incarnation: incarnation, Config: aggregateConfig(p.group, p.epoch, p.window)})
		}
	case 4:
		b.step(Remove{Incarnation: incarnation, Group: g, Epoch: e})
	case 5:
		in := Bound{Socket: socket, Addr: testAddr(socket)}
		if size > 200 {
			in = Bound{Socket: socket, Failed: "no port is free"}
		}
		b.bind(in)
		b.step(in)
	case 6:
		b.step(Expired{Socket: socket, Epoch: e})
	case 7:
		b.now = b.now.Add(time.Duration(size) * 10 * time.Millisecond)
		b.step(nil)
	case 8:
		b.step(Drain{On: size > 230})
	}
}

// bindAll answers every Open: what a driver does sooner or later.
func (b *bench) bindAll() {
	for n := uint64(1); n <= b.core.sockets; n++ {
		if s := b.sockets[n]; s != nil && !s.bound {
			in := Bound{Socket: n, Addr: testAddr(n)}
			b.bind(in)
			b.step(in)
		}
	}
}

// end lets everything come to rest: every request is answered, and nothing
// stays that was not committed.
func (b *bench) end() {
	b.bindAll()
	if len(b.asked) > 0 {
		b.fail("%d requests have no answer", len(b.asked))
	}
	for at := b.core.Deadline(); at != core.Never; at = b.core.Deadline() {
		b.now = max(b.now, at)
		b.step(nil)
	}
	for _, p := range b.promised {
		if !p.committed {
			b.fail("%+v is left behind", p)
		}
	}
	for len(b.promised) > 0 {
		p := b.promised[0]
		b.step(Remove{Incarnation: b.cfg.Incarnation, Group: p.group, Epoch: p.epoch})
	}
	if used, _ := b.core.Slots(); used != 0 || len(b.sockets) != 0 {
		b.fail("%d slots and %d sockets are left when all is removed", used, len(b.sockets))
	}
}

// oneStep draws the arguments of play.
var oneStep = rapid.Custom(func(t *rapid.T) [4]byte {
	return [4]byte{
		byte(rapid.IntRange(0, 8).Draw(t, "kind")),
		byte(rapid.IntRange(0, 47).Draw(t, "group")),
		byte(rapid.IntRange(0, 7).Draw(t, "epoch")),
		rapid.OneOf(rapid.ByteRange(0, 63), rapid.Byte()).Draw(t, "size"),
	}
})

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := testConfig()
		cfg.Capability.Slots = rapid.SampledFrom([]int{0, 2, 32, 64, 200}).Draw(t, "slots")
		cfg.Epochs = rapid.IntRange(1, 4).Draw(t, "epochs")
		// Long enough to remember all that this test names.
		cfg.History = 64
		b := newBench(cfg)
		// At least so many: left alone, rapid draws short ones.
		steps := rapid.SliceOfN(oneStep, 60, 200).Draw(t, "steps")
		for _, x := range steps {
			b.play(x[0], x[1], x[2], x[3])
			if b.fault != nil {
				t.Fatal(b.fault)
			}
		}
		if b.end(); b.fault != nil {
			t.Fatal(b.fault)
		}
	})
}

// The epochs of a bounded number of trees are remembered, not of all.
func TestHistoryIsBounded(t *testing.T) {
	cfg := testConfig()
	cfg.History = 4
	b := newBench(cfg)
	for group := uint32(1); group <= 100; group++ {
		b.step(prepareOf(group, 2, 8))
		b.step(removeOf(group, 2))
		b.step(removeOf(group+1000, 2))
	}
	if b.fault != nil {
		t.Fatal(b.fault)
	}
	if n := len(b.core.trees); n > 4 {
		t.Fatalf("%d trees are remembered", n)
	}
}

func FuzzInputs(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 5, 1, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 3})
	f.Add([]byte{0, 0, 0, 5, 0, 0, 1, 5, 0, 1, 1, 5, 7, 0, 0, 255})
	f.Add([]byte{0, 1, 0, 2, 5, 1, 0, 255, 0, 1, 1, 2, 8, 0, 0, 255, 0, 1, 2, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := testConfig()
		cfg.History = 64
		b := newBench(cfg)
		for ; len(data) >= 4 && len(b.dead) < 200; data = data[4:] {
			b.play(data[0], data[1], data[2], data[3])
		}
		b.end()
		if b.fault != nil {
			t.Fatal(b.fault)
		}
	})
}

// What came to rest last is forgotten last, also if it has been at rest before.
func TestHistoryKeepsTheYoungest(t *testing.T) {
	cfg := testConfig()
	cfg.History = 4
	b := newBench(cfg)
	for _, in := range []Input{
		removeOf(1, 2), removeOf(2, 2), removeOf(3, 2),
		prepareOf(1, 4, 8), removeOf(1, 4),
		removeOf(4, 2),
	} {
		b.step(in)
	}
	out := b.step(prepareOf(1, 4, 8))
	if r := out.Replies[0]; r.Kind != Refused || r.Refusal.Cause != StaleEpoch || b.fault != nil {
		t.Fatalf("epoch 4 of group 1 is forgotten: %+v; %v", r, b.fault)
	}
}
