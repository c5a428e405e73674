package membership

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/member"
)

// View returns who is alive, this node among them, by name.
func (n *Node) View(ctx context.Context) ([]Member, error) {
	var all []Member
	err := n.ask(ctx, func(s *stepper) {
		for _, i := range s.members().View() {
			all = append(all, s.member(i))
		}
	})
	slices.SortFunc(all, byName)
	return all, err
}

// Member returns the node of that name in the view. The error is ErrUnknown if
// none is called so.
func (n *Node) Member(ctx context.Context, name string) (m Member, err error) {
	err = n.about(ctx, name, func(s *stepper, i member.Index) { m = s.member(i) })
	return m, err
}

// about runs f between two steps, about the node in the view that has a name,
// the younger if two have.
func (n *Node) about(ctx context.Context, name string, f func(s *stepper, i member.Index)) error {
	found := false
	err := n.ask(ctx, func(s *stepper) {
		var i member.Index
		if i, found = s.find(name); found {
			f(s, i)
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: no node %q is in the view", ErrUnknown, name)
	}
	return err
}

func byName(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version.Incarnation, b.Version.Incarnation))
}

// Watcher returns a reader of notices, which are first one for every node in the
// view.
func (n *Node) Watcher() *Watcher {
	w := newWatcher(n)
	err := n.ask(context.Background(), func(s *stepper) {
		for _, i := range s.members().View() {
			w.take(Notice{Zone: n.cfg.Zone, Kind: Joined, Member: s.member(i)})
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.watchers[w] = struct{}{}
	})
	if err != nil {
		w.news.end(err)
	}
	return w
}

// Notices returns the notices from the whole view on, until ctx or the node ends.
func (n *Node) Notices(ctx context.Context) iter.Seq[Notice] {
	return func(yield func(Notice) bool) {
		w := n.Watcher()
		defer w.Close()
		for {
			all, err := w.Next(ctx)
			if err != nil {
				return
			}
			for _, x := range all {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// Watch calls up for every node in the view, this one among them, and for every
// one that comes, and down for every one that goes, one call at a time, with the
// incarnation of the life that began or ended. A node that starts again at its
// address is down, and then up. At another address it may be up before its earlier
// life is down: down with an incarnation below that of the last up is about a life
// that is over anyway. Cancel ends that, and waits for a call that runs.
func (n *Node) Watch(up, down func(node string, incarnation uint64)) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	var task sync.WaitGroup
	task.Go(func() {
		for x := range n.Notices(ctx) {
			if x.Kind == Joined {
				up(x.Member.Name, x.Member.Version.Incarnation)
			} else {
				down(x.Member.Name, x.Member.Version.Incarnation)
			}
		}
	})
	return func() {
		stop()
		task.Wait()
	}
}

// Watching returns the names of the nodes whose heartbeats this one expects.
func (n *Node) Watching(ctx context.Context) (names []string, err error) {
	err = n.ask(ctx, func(s *stepper) { names = s.neighbours(func(p member.Peer) bool { return p.Watching }) })
	return names, err
}

// WatchersOf returns the names of the nodes that expect the heartbeats of the one
// of that name, as far as this node knows: of its own all; of another, whether it
// does so itself. The others report by their Status.
func (n *Node) WatchersOf(ctx context.Context, name string) (names []string, err error) {
	err = n.about(ctx, name, func(s *stepper, i member.Index) { names = s.watchersOf(i) })
	return names, err
}

// stepper's queries, for whoever has the loop.

// member returns a node as others see it.
func (s *stepper) member(i member.Index) Member {
	return s.memberAt(i, s.members().Version(i), s.members().Deaths(i))
}

func (s *stepper) memberAt(i member.Index, v member.Version, deaths uint32) Member {
	id := s.directory.ID(i)
	return Member{Name: id.Name(), Addr: s.address(i), Version: Version{v.Incarnation, v.Minor}, Deaths: deaths}
}

// find returns the node in the view that has a name, the younger if two have.
func (s *stepper) find(name string) (found member.Index, ok bool) {
	if s.index == nil {
		s.index = map[string]member.Index{}
		for _, i := range s.members().View() {
			s.enter(i)
		}
	}
	if found, ok = s.index[name]; ok && s.members().Has(found) {
		return found, true
	}
	for _, i := range s.members().View() { // an earlier life, which the last one has outshone
		if s.directory.ID(i).Name() == name {
			s.enter(i)
			return i, true
		}
	}
	return 0, false
}

// enter notes a node in the view.
func (s *stepper) enter(i member.Index) {
	name := s.directory.ID(i).Name()
	if old, ok := s.index[name]; !ok || old == i || !s.members().Has(old) || s.members().Version(old).Incarnation < s.members().Version(i).Incarnation {
		s.index[name] = i
	}
}

// reindex keeps the index to the view.
func (s *stepper) reindex(x *member.Notice) {
	switch name := s.directory.ID(x.Node).Name(); {
	case s.index == nil:
	case x.Kind == member.Join:
		s.enter(x.Node)
	case s.index[name] == x.Node && !s.members().Has(x.Node):
		delete(s.index, name)
	}
}

// address returns where datagrams to a node go.
func (s *stepper) address(i member.Index) netip.AddrPort {
	id := s.directory.ID(i)
	if s.homes == nil || int(i) >= len(s.homes) {
		s.homes = append(s.homes, make([]home, s.directory.Len()-len(s.homes))...)
	}
	if h := &s.homes[i]; h.id != id {
		*h = home{id: id}
		if all := id.Endpoints(); len(all) > 0 {
			h.at = all[0]
		}
	}
	return s.homes[i].at
}
