package switchreduce

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// program is a FastPath that does what the one of package kernel does (bpf/reduce.c), word
// by word, so that several processes of it, and the core, can be interleaved at every step
// between two accesses to memory that others see.
type program struct {
	f     *forest
	n     *node
	cfg   Config
	words []word
	areas [][]area // by neighbour, the parent last, and slot
	taken uint64
}

type word struct {
	number uint32
	inUse  bool
	agent  bool
	source bool
	mask   uint32
}

type area struct {
	state  areaState
	number uint32
	packet []byte
}

type areaState uint8

const (
	areaVacant areaState = iota
	areaLoading
	areaHeld
)

// load gives an epoch of a switch a program.
func (n *node) load(f *forest, c *Config) {
	p := &program{f: f, n: n, cfg: *c, words: make([]word, 2*c.Window)}
	for range len(c.Children) + 1 {
		all := make([]area, 2*c.Window)
		for i := range all {
			all[i].packet = make([]byte, wire.HeaderSize+c.ChunkBytes)
		}
		p.areas = append(p.areas, all)
	}
	if n.programs == nil {
		n.programs = map[uint32]*program{}
	}
	n.programs[c.Epoch] = p
	c.FastPath = p
}

func (p *program) slot(n uint32) int { return int(n & (2*p.cfg.Window - 1)) }

func (p *program) isComplete(w word, n uint32) bool {
	return w == word{number: n, inUse: true, source: w.source, mask: 1<<len(p.cfg.Children) - 1}
}

// Taken implements FastPath.
func (p *program) Taken() uint64 { return p.taken }

// Take implements FastPath: processes go on between its accesses to memory.
func (p *program) Take(n uint32, supersede bool, held func([]byte)) bool {
	for {
		was := p.words[p.slot(n)]
		p.n.someSteps(p.f)
		w := &p.words[p.slot(n)]
		isOlder := !was.inUse || wire.Newer(n, was.number)
		switch {
		case isOlder && !supersede:
			return true
		case !isOlder && was.number != n:
			return false
		case !isOlder && was.agent:
			return true
		case *w != was:
			continue
		}
		*w = word{number: n, inUse: true, agent: true}
		if isOlder {
			return true
		}
		for i := range p.areas {
			p.n.someSteps(p.f)
			if a := &p.areas[i][p.slot(n)]; a.state == areaHeld && a.number == n {
				held(a.packet)
			}
		}
		return true
	}
}

// process is a run of a program, for one packet.
type process struct {
	p      *program
	from   flight
	h      wire.Header
	who    int // the neighbour
	step   int
	area   area // as it was read
	word   word
	inputs [][]byte
	scales []int8
	flags  []wire.Flags
}

// What becomes of a process with a step.
const (
	goesOn = iota
	ended
	passes // its packet to the core
)

// processors bounds, about, the processes that run at a time.
const processors = 4

// start begins a process for a packet, unless the packet is the core's.
func (n *node) start(from flight) bool {
	p := n.begun
	if p == nil {
		return false
	}
	r := &process{p: p, from: from}
	payload, fault := r.h.Decode(from.bytes)
	if fault != wire.NoFault || r.h.Epoch != p.cfg.Epoch || len(payload) > p.cfg.ChunkBytes || !isTaken(&r.h) {
		return false
	}
	var addr, cookie any
	switch {
	case r.h.Type == wire.Contribution && int(r.h.Child) < len(p.cfg.Children):
		r.who = int(r.h.Child)
		addr, cookie = p.cfg.Children[r.who].Addr, p.cfg.Children[r.who].Cookie
	case r.h.Type == wire.Result && r.h.Child == p.cfg.Index:
		r.who, r.step = len(p.cfg.Children), fromParent
		addr, cookie = p.cfg.Parent, p.cfg.Cookie
	}
	if addr != any(from.from) || cookie != any(r.h.Cookie) {
		return false
	}
	n.running = append(n.running, r)
	return true
}

// isTaken reports whether the program takes packets with a header.
func isTaken(h *wire.Header) bool {
	switch h.Collective {
	case wire.Barrier:
		return h.Flags == wire.Sink
	case wire.Allreduce:
		return h.Flags == wire.Sink && h.Element == reduce.Block32 && h.ChunkElements > 0
	case wire.Reduce:
		return h.Element == reduce.Block32 && h.ChunkElements > 0
	default:
		return h.ChunkElements > 0
	}
}

// advance lets one process do its next step.
func (n *node) advance() {
	f, i := n.running[0].p.f, len(n.running)-1
	if i >= processors || f.rng.IntN(8) == 0 { // otherwise some are held up for long
		i = f.rng.IntN(len(n.running))
	}
	r := n.running[i]
	what := r.next()
	if what == goesOn {
		return
	}
	n.running = slices.Delete(n.running, i, i+1)
	if what == passes {
		n.batch = append(n.batch, Input{From: r.from.from, Packet: r.from.bytes})
	} else {
		r.p.taken++
	}
}

// someSteps lets processes go on while the core is in a Step. What they pass to it comes
// with the next one.
func (n *node) someSteps(f *forest) {
	batch := n.batch
	n.batch = nil
	for len(n.running) > 0 && f.rng.IntN(3) > 0 {
		n.advance()
	}
	n.later = append(n.later, n.batch...)
	n.batch = batch
}

func (f *forest) isRunning() bool {
	return slices.ContainsFunc(f.switches, func(n *node) bool { return len(n.running)+len(n.batch)+len(n.later) > 0 })
}

// Steps of a process. Those of results begin at fromParent, and go on at readArea.
const (
	readArea = iota
	claimArea
	loadHalf
	loadRest
	hold
	readWord
	compare
	contribute
	collect
	fromParent
	lookAgain
)

func (r *process) next() int {
	p, n := r.p, r.h.Chunk
	a, w := &p.areas[r.who][p.slot(n)], &p.words[p.slot(n)]
	size := len(r.from.bytes)
	switch r.step {
	case fromParent:
		if first := p.areas[0][p.slot(n)]; !p.isComplete(*w, n) || first.state != areaHeld || first.number != n || !agree(first.packet, r.from.bytes) {
			return passes
		}
		if r.h.Flags&wire.Sink != p.flags(n)&wire.Sink {
			return passes
		}
		r.step = readArea
	case readArea:
		r.area = area{state: a.state, number: a.number}
		switch {
		case a.state == areaLoading:
			return passes
		case a.state == areaHeld && a.number == n && r.h.Type == wire.Contribution:
			r.step = readWord
			return goesOn
		case a.state == areaHeld && !wire.Newer(n, a.number):
			return ended
		}
		r.step = claimArea
	case claimArea:
		if a.state != r.area.state || a.number != r.area.number {
			return passes
		}
		a.state, a.number = areaLoading, n
		r.step = loadHalf
	case loadHalf:
		a.packet = a.packet[:size]
		copy(a.packet, r.from.bytes[:size/2])
		r.step = loadRest
	case loadRest:
		copy(a.packet[size/2:], r.from.bytes[size/2:])
		r.step = hold
	case hold:
		a.state = areaHeld
		if r.step = readWord; r.h.Type == wire.Result {
			r.step = lookAgain
		}
	case lookAgain:
		if !p.isComplete(*w, n) {
			return passes
		}
		p.deliver(r.h, r.from.bytes[wire.HeaderSize:])
		return ended
	case readWord:
		r.word = *w
		switch {
		case w.inUse && !wire.Newer(n, w.number) && w.number != n:
			return ended
		case w.inUse && w.number == n && w.agent:
			return passes
		case w.inUse && w.number == n && w.mask>>r.who&1 == 1:
			return ended
		}
		r.step = compare
	case contribute:
		if *w != r.word {
			r.step = readWord
			break
		}
		if !w.inUse || w.number != n {
			*w = word{number: n, inUse: true}
		}
		w.mask |= 1 << r.who
		w.source = w.source || r.isSource()
		if !p.isComplete(*w, n) {
			return ended
		}
		r.step = collect
	case compare:
		for c := range p.cfg.Children {
			if r.word.inUse && r.word.number == n && r.word.mask>>c&1 == 1 {
				if !agree(p.areas[c][p.slot(n)].packet, r.from.bytes) {
					return passes
				}
				if r.word.source && r.isSource() {
					return passes
				}
				break
			}
		}
		r.step = contribute
	case collect:
		c := len(r.inputs)
		packet := p.areas[c][p.slot(n)].packet
		if c == r.who {
			packet = r.from.bytes
		}
		var h wire.Header
		payload, _ := h.Decode(packet)
		r.inputs, r.scales, r.flags = append(r.inputs, bytes.Clone(payload)), append(r.scales, h.Exponent), append(r.flags, h.Flags)
		if len(r.inputs) < len(p.cfg.Children) {
			break
		}
		return r.finish()
	}
	return goesOn
}

func (r *process) isSource() bool { return r.h.Flags&wire.Source != 0 }

// finish sends what a complete slot has come to.
func (r *process) finish() int {
	p, h := r.p, r.h
	var sum []byte
	if h.Collective.Copies() {
		source := slices.IndexFunc(r.flags, func(f wire.Flags) bool { return f&wire.Source != 0 })
		if source >= 0 {
			sum = r.inputs[source]
		} else if p.cfg.root() {
			return passes
		}
	} else if sum = make([]byte, h.PayloadSize()); len(sum) > 0 {
		h.Exponent = reduce.SumBlocks(sum, r.inputs, r.scales)
	}
	h.Lowest = p.cfg.Children[0].Lowest
	if p.cfg.root() {
		p.deliver(h, sum)
		return ended
	}
	h.Flags, h.Child, h.Cookie = p.flags(h.Chunk), p.cfg.Index, p.cfg.Cookie
	p.send(p.cfg.Parent, h, sum)
	return ended
}

// flagsOf returns the flags of what a child has contributed to number n.
func (p *program) flagsOf(child int, n uint32) wire.Flags {
	return wire.Flags(p.areas[child][p.slot(n)].packet[1])
}

// flags returns those of all children.
func (p *program) flags(n uint32) (all wire.Flags) {
	for i := range p.cfg.Children {
		all |= p.flagsOf(i, n)
	}
	return all
}

func (p *program) deliver(h wire.Header, payload []byte) {
	h.Type, h.Lowest = wire.Result, p.cfg.Children[0].Lowest
	for i := range p.cfg.Children {
		c := &p.cfg.Children[i]
		h.Child, h.Cookie = uint16(i), c.Cookie
		if h.Flags = p.flagsOf(i, h.Chunk) & wire.Sink; h.Flags != 0 {
			p.send(c.Addr, h, payload)
		} else {
			p.send(c.Addr, h, nil)
		}
	}
}

func (p *program) send(to netip.AddrPort, h wire.Header, payload []byte) {
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	p.f.fly(flight{p.n.addr, to, append(b, payload...)})
}

// agree reports whether two packets are of the same operation and chunk.
func agree(a, b []byte) bool {
	if len(a) < wire.HeaderSize {
		return false
	}
	return bytes.Equal(a[24:36], b[24:36]) && binary.BigEndian.Uint32(a[36:])>>24 == binary.BigEndian.Uint32(b[36:])>>24
}
