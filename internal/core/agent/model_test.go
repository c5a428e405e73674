package agent

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// bench drives a core and holds what it does against a slow model: a plain
// list of what was promised, from which everything else is counted anew.
type bench struct {
	core *Core
	cfg  Config
	now  core.Time
	out  Output

	promised []promise
	dead     map[[2]uint32]bool // group, tree, epoch: removed, run out, or lost
	sockets  map[uint64]*socket
	asked    map[uint64]bool // requests without an answer
	nextReq  uint64
	fault    error // the first broken invariant
}

type promise struct {
	group, epoch uint32
	window       uint32
	committed    bool
	until        core.Time // while not committed
}

type socket struct {
	group     uint32
	bound     bool
	installed []uint32
	newest    uint32
}

func newBench(cfg Config) *bench {
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return &bench{
		core: c, cfg: cfg.withDefaults(), dead: map[[2]uint32]bool{},
		sockets: map[uint64]*socket{}, asked: map[uint64]bool{},
	}
}

func testConfig() Config {
	capability := topology.DefaultCapability()
	capability.Slots, capability.Children, capability.Chunk = 64, 4, 1024
	return Config{Name: "s1", Incarnation: 7, Capability: capability, PrepareLease: time.Second, History: 16}
}

func testAddr(n uint64) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 4000)
}

// aggregateConfig is a configuration that fits a Prepare of p's terms.
func aggregateConfig(group, epoch, window uint32) switchreduce.Config {
	return switchreduce.Config{
		Group: group, Epoch: epoch, Cookie: 5, Window: window, ChunkBytes: 1024,
		Children: []switchreduce.Child{{Addr: testAddr(900), Lowest: 0}, {Addr: testAddr(901), Lowest: 1}},
		Probes:   8, Lease: time.Minute,
	}
}

// request numbers in, which is from a manager.
func (b *bench) request(in Input) Input {
	b.nextReq++
	switch m := in.(type) {
	case Prepare:
		m.Req = b.nextReq
		in = m
	case Commit:
		m.Req = b.nextReq
		in = m
	case Remove:
		m.Req = b.nextReq
		in = m
	case Drain:
		m.Req = b.nextReq
		in = m
	default:
		return in
	}
	b.asked[b.nextReq] = true
	return in
}

// step gives the core one input (or none) and checks all that must hold.
func (b *bench) step(in Input) *Output {
	used, _ := b.core.Slots()
	if modelled := b.slots(nil); used != modelled {
		b.fail("core counts %d slots, the model %d", used, modelled)
	}
	b.out.Reset()
	var batch []Input
	if in != nil {
		in = b.request(in)
		batch = []Input{in}
	}
	before := b.core.Deadline()
	b.core.Step(b.now, batch, &b.out)
	for _, e := range b.out.Ended {
		b.takeEnded(e, before)
	}
	for _, a := range b.out.Actions {
		b.takeAction(a)
	}
	for i := range b.out.Replies {
		b.takeReply(&b.out.Replies[i], in)
	}
	if e, ok := in.(Expired); ok && len(b.out.Ended) == 0 {
		b.checkIgnored(e)
	}
	b.checkAll()
	return &b.out
}

func (b *bench) fail(format string, args ...any) {
	if b.fault == nil {
		b.fault = fmt.Errorf(format, args...)
	}
}

func (b *bench) find(group, epoch uint32) int {
	for i, p := range b.promised {
		if p.group == group && p.epoch == epoch {
			return i
		}
	}
	return -1
}

// slots counts: of every tree the largest window, twice. With p it counts as
// if p had been promised, too.
func (b *bench) slots(p *promise) int {
	all := b.promised
	if p != nil {
		all = append(append([]promise(nil), all...), *p)
	}
	sum := 0
	for i, x := range all {
		largest := true
		for j, y := range all {
			if x.group == y.group && (y.window > x.window || y.window == x.window && j < i) {
				largest = false
			}
		}
		if largest {
			sum += 2 * int(x.window)
		}
	}
	return sum
}

func (b *bench) kill(i int) {
	p := b.promised[i]
	b.dead[[2]uint32{p.group, p.epoch}] = true
	b.promised = append(b.promised[:i], b.promised[i+1:]...)
}

func (b *bench) takeEnded(e Ended, deadline core.Time) {
	i := b.find(e.Group, e.Epoch)
	switch {
	case i < 0:
		b.fail("ended what was never promised: %+v", e)
		return
	case e.Why == PrepareRanOut && (b.promised[i].committed || b.promised[i].until > b.now || deadline > b.now):
		b.fail("ran out too early: %+v", e)
	case e.Why == LeaseRanOut && !b.promised[i].committed:
		b.fail("lease of an uncommitted epoch: %+v", e)
	}
	if e.Why == LeaseRanOut {
		for _, s := range b.sockets {
			if s.group == e.Group {
				s.forget(e.Epoch)
			}
		}
	}
	b.kill(i)
}

func (s *socket) forget(epoch uint32) bool {
	for i, e := range s.installed {
		if e == epoch {
			s.installed = append(s.installed[:i], s.installed[i+1:]...)
			return true
		}
	}
	return false
}

func (b *bench) takeAction(a Action) {
	s := b.sockets[a.Socket]
	if a.Kind == Open {
		if s != nil {
			b.fail("socket %d opened twice", a.Socket)
		}
		b.sockets[a.Socket] = &socket{group: a.Group}
		return
	}
	if s == nil || s.group != a.Group {
		b.fail("%v of socket %d, which is not that of group %d", a.Kind, a.Socket, a.Group)
		return
	}
	switch a.Kind {
	case Install:
		if a.Epoch <= s.newest || a.Config.Epoch != a.Epoch || !s.bound {
			b.fail("epoch %d installed after %d", a.Epoch, s.newest)
		}
		s.newest = a.Epoch
		s.installed = append(s.installed, a.Epoch)
	case Retire:
		if !s.forget(a.Epoch) {
			b.fail("epoch %d retired, which is not installed", a.Epoch)
		}
	case Close:
		delete(b.sockets, a.Socket)
	}
}

func (b *bench) takeReply(r *Reply, in Input) {
	if !b.asked[r.Req] || r.Incarnation != b.cfg.Incarnation {
		b.fail("an answer that nobody asked for: %+v", r)
	}
	delete(b.asked, r.Req)
	i := b.find(r.Group, r.Epoch)
	switch r.Kind {
	case Committed:
		if i < 0 {
			b.fail("committed what is not promised: %+v", r)
			return
		}
		b.promised[i].committed = true
	case Removed:
		if i >= 0 {
			b.kill(i)
		}
		b.dead[[2]uint32{r.Group, r.Epoch}] = true
	case Prepared:
		if !r.Addr.IsValid() || b.core.trees[r.Group].find(r.Epoch) == nil {
			b.fail("prepared, but not held: %+v", r)
		}
	case Refused:
		b.takeRefusal(r, in)
	}
}

func (b *bench) takeRefusal(r *Reply, in Input) {
	why := r.Refusal
	if why.Switch != b.cfg.Name || why.Unwrap() == nil {
		b.fail("a refusal that does not name the switch: %v", why)
	}
	if i := b.find(r.Group, r.Epoch); i >= 0 && why.Cause == Socket {
		b.kill(i)
	}
	p, ok := in.(Prepare)
	if !ok || why.Cause != Slots {
		return
	}
	wanted := b.slots(&promise{group: p.Group, epoch: p.Epoch, window: p.Window})
	if wanted <= b.cfg.Capability.Slots {
		b.fail("refused for slots, although %d of %d would be in use", wanted, b.cfg.Capability.Slots)
	}
	if why.Need <= why.Free {
		b.fail("refused for slots: %v", why)
	}
	held := 0
	for _, h := range why.Holders {
		held += h.Slots
	}
	if why.More == 0 && held+why.Free != b.cfg.Capability.Slots {
		b.fail("of %d slots %d are free and %d held", b.cfg.Capability.Slots, why.Free, held)
	}
}

func (b *bench) checkIgnored(e Expired) {
	if s := b.sockets[e.Socket]; s != nil {
		for _, epoch := range s.installed {
			if epoch == e.Epoch {
				b.fail("expired epoch %d stays", epoch)
			}
		}
	}
}

// checkAll brings the model up to what is newly held, and compares.
func (b *bench) checkAll() {
	holds := b.core.Holds()
	for _, h := range holds {
		if b.find(h.Group, h.Epoch) >= 0 {
			continue
		}
		if b.dead[[2]uint32{h.Group, h.Epoch}] {
			b.fail("a dead epoch is held again: %+v", h)
		}
		r := b.core.trees[h.Group].find(h.Epoch)
		b.promised = append(b.promised, promise{group: h.Group, epoch: h.Epoch, window: h.Window, until: r.until})
	}
	kept := b.promised[:0]
	for _, p := range b.promised {
		r := (*reservation)(nil)
		if t := b.core.trees[p.group]; t != nil {
			r = t.find(p.epoch)
		}
		if r == nil {
			// A socket that failed takes all its promises; its replies say so.
			b.fail("promise %+v is gone without a word", p)
			continue
		}
		p.until = r.until
		kept = append(kept, p)
	}
	b.promised = kept
	if used, all := b.core.Slots(); used > all || used != b.slots(nil) {
		b.fail("%d slots of %d in use, the model has %d", used, all, b.slots(nil))
	}
	trees := map[uint32]bool{}
	for _, h := range holds {
		trees[h.Group] = true
	}
	if len(trees) != len(b.sockets) {
		b.fail("%d trees, %d sockets", len(trees), len(b.sockets))
	}
	if idle := len(b.core.trees) - len(trees); idle > b.cfg.History {
		b.fail("%d trees are remembered, at most %d", idle, b.cfg.History)
	}
}
