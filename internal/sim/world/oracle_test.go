package world

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// registry knows every epoch that was ever installed at a switch.
type registry struct {
	sites map[site]switchreduce.Config
	err   error // an epoch was installed twice
}

type site struct {
	group, epoch uint32
	at           netip.AddrPort
}

func newRegistry() *registry { return &registry{sites: map[site]switchreduce.Config{}} }

func (g *registry) installed(at netip.AddrPort, cfg *switchreduce.Config) {
	s := site{cfg.Group, cfg.Epoch, at}
	if g.has(s) && g.err == nil {
		g.err = fmt.Errorf("%v has been given epoch %d of group %d twice", at, cfg.Epoch, cfg.Group)
	}
	g.sites[s] = *cfg
}

// fold returns what the tree beneath a switch makes of the ranks' vectors.
func (g *registry) fold(k *work, at site) []byte {
	cfg, ok := g.sites[at]
	if !ok {
		return nil
	}
	var in [][]byte
	for _, child := range cfg.Children {
		if below := (site{at.group, at.epoch, child.Addr}); g.has(below) {
			in = append(in, g.fold(k, below))
		} else {
			in = append(in, k.in[child.Lowest])
		}
	}
	return combine(k, in)
}

// shape returns that of the tree beneath a switch.
func (g *registry) shape(at site) (s reducetest.Shape) {
	cfg := g.sites[at]
	s.Children = len(cfg.Children)
	switches, depth := 1, 0
	for _, child := range cfg.Children {
		if below := (site{at.group, at.epoch, child.Addr}); g.has(below) {
			o := g.shape(below)
			switches, depth = switches+o.Switches, max(depth, o.Depth)
			s.Children = max(s.Children, o.Children)
		}
	}
	s.Switches, s.Depth = switches, depth+1
	return s
}

// shapeOfHosts returns that of the tree of hosts from a rank on.
func shapeOfHosts(g *Group, r int) (s reducetest.Shape) {
	children := g.Config().Tree().Children(r)
	s = reducetest.Shape{Switches: 1, Children: 1 + len(children)}
	for _, child := range children {
		o := shapeOfHosts(g, child)
		s.Switches, s.Depth, s.Children = s.Switches+o.Switches, max(s.Depth, o.Depth), max(s.Children, o.Children)
	}
	s.Depth++
	return s
}

func (g *registry) has(s site) bool { _, ok := g.sites[s]; return ok }

// root returns the place of a tree's root.
func (g *registry) root(group, epoch uint32) (site, bool) {
	for s, cfg := range g.sites {
		if s.group == group && s.epoch == epoch && !cfg.Parent.IsValid() {
			return s, true
		}
	}
	return site{}, false
}

func combine(k *work, in [][]byte) []byte {
	if k.op.Element == reduce.Block32 {
		return reducetest.SumBlocks(in)
	}
	kernel, err := reduce.KernelOf(k.op.Function, k.op.Element)
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(in[0]))
	kernel(out, in)
	return out
}

// foldHosts returns what the tree of hosts makes of the vectors from a rank on.
func foldHosts(k *work, g *Group, r int) []byte {
	in := [][]byte{k.in[r]}
	for _, child := range g.Config().Tree().Children(r) {
		in = append(in, foldHosts(k, g, child))
	}
	return combine(k, in)
}

// rounds reports whether a function's result depends on the order and grouping.
func rounds(k *work) bool {
	return k.op.Element >= reduce.Float32 && (k.op.Function == reduce.Sum || k.op.Function == reduce.Product)
}

// results returns what an operation may have given: one vector, or, where
// numbers are rounded, one for each tree that any member was in.
func (g *registry) results(k *work, group *Group, numbers []uint32) [][]byte {
	switch {
	case k.op.Collective == wire.Broadcast:
		return [][]byte{k.copied()}
	case k.op.Collective == wire.Barrier:
		return [][]byte{nil}
	case k.op.Fixed.IsSet():
		return [][]byte{reducetest.Fixed(k.op.Fixed, k.in)} // whatever the trees
	case !rounds(k):
		return [][]byte{combine(k, k.in)}
	}
	chunk := group.Config().ChunkBytes
	all := [][]byte{whole(k, chunk, func(k *work) []byte { return foldHosts(k, group, 0) })}
	k.shape = shapeOfHosts(group, 0)
	seen := map[uint32]bool{}
	for _, h := range group.Hosts {
		for _, e := range h.Entered {
			if !e.Offload || seen[e.Epoch] {
				continue
			}
			seen[e.Epoch] = true
			for _, number := range numbers {
				if root, ok := g.root(number, e.Epoch); ok {
					all = append(all, whole(k, chunk, func(k *work) []byte { return g.fold(k, root) }))
					k.shape = k.shape.Or(g.shape(root))
				}
			}
		}
	}
	return all
}

// verdict counts what was checked, and what was wrong.
type verdict struct {
	operations    int // that ended at some member; last barriers excluded
	bounded       int // elements of compressed sums that were compared with the exact ones
	wrong         int // results that are none of the possible ones
	disagreements int // results that are not the same bits at all members
}

// judge checks an operation that was completed at some members or at all. Every
// chunk must be that of one of the possible results.
func (v *verdict) judge(k *work, possible [][]byte, chunkBytes int) error {
	if !k.op.Last && slices.Contains(k.done, true) {
		v.operations++
	}
	whole, known := make([]byte, k.bytes()), make([]byte, k.bytes()) // known: 0xff where a member has a byte
	for r, out := range k.out {
		from, to := k.takes(r)
		if !k.done[r] || from == to {
			continue
		}
		if err := k.untouched(uint32(r)); err != nil {
			v.wrong++
			return err
		}
		for i, b := range out {
			if known[from+i] != 0 && b != whole[from+i] {
				v.disagreements++
				return fmt.Errorf("%+v: rank %d and one before it disagree about byte %d of\n%x\n%x", k.op, r, from+i, whole[from:to], out)
			}
			whole[from+i], known[from+i] = b, 0xff
		}
	}
	step := chunkBytes
	if size := (wire.Signature{Function: k.op.Function, Element: k.op.Element}).ElementSize(); size > 0 {
		step = chunkBytes / size * k.op.Width()
	}
	for at := 0; at < len(whole); at += step {
		end := min(at+step, len(whole))
		if !oneHas(possible, at, whole[at:end], known[at:end]) {
			v.wrong++
			return fmt.Errorf("%+v: bytes %d to %d are\n%x, and the %d trees give\n%x", k.op, at, end, whole[at:end], len(possible), possible)
		}
	}
	if k.op.Compressed && !slices.Contains(known, 0) {
		k.shape.Members = len(k.in)
		held, err := reducetest.CheckCompressed(k.op.Element, k.shape, k.in, whole)
		if v.bounded += held; err != nil {
			v.wrong++
			return fmt.Errorf("%+v: %w", k.op, err)
		}
	}
	return nil
}

// oneHas reports whether a possible result has those bytes of a chunk that are known.
func oneHas(possible [][]byte, at int, chunk, known []byte) bool {
	for _, p := range possible {
		differs := len(p) < at+len(chunk)
		for i := 0; !differs && i < len(chunk); i++ {
			differs = (p[at+i]^chunk[i])&known[i] != 0
		}
		if !differs {
			return true
		}
	}
	return false
}
