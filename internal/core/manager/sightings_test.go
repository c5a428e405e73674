package manager

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// sightings is what an onlooker outside the manager sees of its promises; nil: nobody
// looks.
type sightings struct {
	highest   map[uint32]uint32 // epoch of any Prepare, by group
	epochs    map[epochKey]*epochSeen
	installed map[installKey]uint64 // incarnation
}

type epochKey struct{ group, epoch uint32 }

type installKey struct {
	node string
	epochKey
}

// epochSeen is what was seen of one epoch.
type epochSeen struct {
	prepared  []string
	configs   map[string]switchreduce.Config
	committed map[string]bool
	addrs     map[netip.AddrPort]string // by data address
	offers    map[uint32]Offer
}

func newSightings() *sightings {
	return &sightings{highest: map[uint32]uint32{}, epochs: map[epochKey]*epochSeen{}, installed: map[installKey]uint64{}}
}

func (s *sightings) epoch(group, epoch uint32) *epochSeen {
	key := epochKey{group, epoch}
	if s.epochs[key] == nil {
		s.epochs[key] = &epochSeen{
			configs: map[string]switchreduce.Config{}, committed: map[string]bool{},
			addrs: map[netip.AddrPort]string{}, offers: map[uint32]Offer{},
		}
	}
	return s.epochs[key]
}

// manager looks at what the manager has put out.
func (s *sightings) manager(w *world) {
	if s == nil {
		return
	}
	for _, p := range w.out.Prepares {
		e := s.epoch(p.Group, p.Epoch)
		r, ok := w.disk[diskKey{TreesRecord, p.Group}]
		switch {
		case p.Epoch%2 != 0:
			w.fail("odd epoch %d", p.Epoch)
		case len(e.prepared) == 0 && p.Epoch <= s.highest[p.Group]:
			w.fail("group %d: epoch %d begins after %d", p.Group, p.Epoch, s.highest[p.Group])
		case !ok || r.Trees.Epoch < p.Epoch:
			w.fail("group %d: epoch %d is used before it is stored", p.Group, p.Epoch)
		}
		s.highest[p.Group] = max(s.highest[p.Group], p.Epoch)
		if !slices.Contains(e.prepared, p.Switch) {
			e.prepared = append(e.prepared, p.Switch)
		}
	}
	for _, m := range w.out.Commits {
		s.epoch(m.Config.Group, m.Config.Epoch).configs[m.Switch] = m.Config
	}
	for _, m := range w.out.Removes {
		r := w.disk[diskKey{TreesRecord, m.Group}].Trees
		if r != nil && slices.ContainsFunc(r.Live, func(t Tree) bool { return t.Epoch == m.Epoch }) {
			w.fail("group %d: epoch %d is removed, and a later manager would go on with it", m.Group, m.Epoch)
		}
	}
	for _, o := range w.out.Offers {
		if err := s.offer(w, o); err != nil {
			w.fail("offer of epoch %d to rank %d of group %d: %w", o.Epoch, o.Rank, o.Group, err)
		}
	}
}

// offer checks an offer against what the switches have committed to.
func (s *sightings) offer(w *world, o Offer) error {
	e := s.epoch(o.Group, o.Epoch)
	for _, n := range e.prepared {
		if !e.committed[n] {
			return fmt.Errorf("switch %s has not committed", n)
		}
	}
	if len(e.prepared) == 0 || len(e.configs) != len(e.prepared) {
		return fmt.Errorf("%d switches prepared, %d configured", len(e.prepared), len(e.configs))
	}
	r := w.disk[diskKey{TreesRecord, o.Group}].Trees
	if r == nil || !slices.ContainsFunc(r.Live, func(t Tree) bool { return t.Epoch == o.Epoch }) {
		return fmt.Errorf("it is not stored that the tree is active")
	}
	for rank, x := range e.offers {
		if x.Window != o.Window || (rank == o.Rank) != (x.Cookie == o.Cookie) || rank == o.Rank && (x.Parent != o.Parent || x.Index != o.Index) {
			return fmt.Errorf("it differs from that to rank %d: %+v, %+v", rank, o, x)
		}
	}
	e.offers[o.Rank] = o
	for _, cfg := range e.configs {
		if cfg.Window != o.Window {
			return fmt.Errorf("a switch has another window: %+v", cfg)
		}
	}
	return e.checkLeaf(w, o)
}

// checkLeaf looks for the one switch that takes the member's data.
func (e *epochSeen) checkLeaf(w *world, o Offer) error {
	if err := e.checkTree(w, len(w.core.groups[o.Group].members)); err != nil {
		return err
	}
	leaf, ok := e.addrs[o.Parent]
	if !ok {
		return fmt.Errorf("parent %v is the address of no switch on the tree", o.Parent)
	}
	cfg := e.configs[leaf]
	if int(o.Index) >= len(cfg.Children) {
		return fmt.Errorf("index %d of %d children", o.Index, len(cfg.Children))
	}
	m := w.members[[2]uint32{o.Group, o.Rank}]
	want := switchreduce.Child{Addr: netip.AddrPortFrom(o.Source, m.addr.Port()), Lowest: o.Rank, Cookie: o.Cookie}
	if isRail := slices.ContainsFunc(m.rails, func(r Rail) bool { return r.Address == o.Source }); !isRail && want.Addr != m.addr {
		return fmt.Errorf("packets come from %v, want %v or one of %v", o.Source, m.addr, m.rails)
	}
	if got := cfg.Children[o.Index]; got != want {
		return fmt.Errorf("switch %s takes %+v there, want %+v", leaf, got, want)
	}
	return nil
}

// checkTree checks that the switches form one tree with each rank once.
func (e *epochSeen) checkTree(w *world, members int) error {
	roots, edges, leaves := 0, 0, 0
	secrets := map[wire.Cookie]bool{0: true}
	for n, cfg := range e.configs {
		if !slices.IsSortedFunc(cfg.Children, func(a, b switchreduce.Child) int { return int(a.Lowest) - int(b.Lowest) }) {
			return fmt.Errorf("children out of order: %+v", cfg.Children)
		}
		for _, child := range cfg.Children {
			if secrets[child.Cookie] {
				return fmt.Errorf("child %+v has another's cookie, or none", child)
			}
			secrets[child.Cookie] = true
			below, ok := e.addrs[child.Addr]
			if !ok {
				leaves++
				continue
			}
			edges++
			if e.configs[below].Children[0].Lowest != child.Lowest {
				return fmt.Errorf("child %+v begins with rank %d", child, e.configs[below].Children[0].Lowest)
			}
		}
		if !cfg.Parent.IsValid() {
			if roots++; cfg.Cookie != 0 {
				return fmt.Errorf("switch %s is the root, and has a cookie for a parent", n)
			}
			continue
		}
		parent := e.addrs[cfg.Parent]
		if at := e.configs[parent].Children[cfg.Index]; e.addrs[at.Addr] != n || at.Lowest != cfg.Children[0].Lowest || at.Cookie != cfg.Cookie {
			return fmt.Errorf("switch %s is child %d of %s, which has there %+v", n, cfg.Index, parent, at)
		}
	}
	if roots != 1 || leaves != members || edges != len(e.configs)-1 {
		return fmt.Errorf("%d roots, %d edges between %d switches, %d leaves of %d members", roots, edges, len(e.configs), leaves, members)
	}
	return nil
}

// reply sees what a switch has answered.
func (s *sightings) reply(a *switchAgent, r agent.Reply) {
	if s == nil {
		return
	}
	switch r.Kind {
	case agent.Prepared:
		s.epoch(r.Group, r.Epoch).addrs[r.Addr] = a.name
	case agent.Committed:
		s.epoch(r.Group, r.Epoch).committed[a.name] = true
	}
}

// install sees an epoch begin on a switch.
func (s *sightings) install(w *world, a *switchAgent, cfg *switchreduce.Config) {
	if s == nil {
		return
	}
	key := installKey{a.name, epochKey{cfg.Group, cfg.Epoch}}
	if life, again := s.installed[key]; again {
		w.fail("epoch %d of group %d is installed twice on %s, in its lives %d and %d", cfg.Epoch, cfg.Group, a.name, life, a.lives)
	}
	s.installed[key] = a.lives
}
