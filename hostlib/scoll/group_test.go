package scoll_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/ranktree"
)

// mapping is what a node knows of out-of-band groups.
type mapping struct {
	mu      sync.Mutex
	members map[scoll.Index]*scoll.Members
	asked   int
}

var errUnknown = errors.New("no such group")

func (m *mapping) set(i scoll.Index, members *scoll.Members) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.members == nil {
		m.members = map[scoll.Index]*scoll.Members{}
	}
	m.members[i] = members
}

func (m *mapping) find(i scoll.Index) (*scoll.Members, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if i == (scoll.Index{99}) {
		panic(errOdd)
	}
	if members := m.members[i]; members != nil {
		return members, nil
	}
	return nil, errUnknown
}

// outOfBand registers a roll call with out-of-band groups at all nodes.
func (c *cluster) outOfBand() ([]*rollCall, []*mapping) {
	var rolls []*rollCall
	var maps []*mapping
	c.register(func(i int) scoll.Callbacks {
		s, m := &rollCall{node: c.nodes[i].Name()}, &mapping{}
		rolls, maps = append(rolls, s), append(maps, m)
		call := s.callbacks()
		call.MapGroup = m.find
		return call
	})
	return rolls, maps
}

func (c *cluster) members(of ...int) *scoll.Members {
	c.t.Helper()
	var targets []scoll.Target
	for _, i := range of {
		targets = append(targets, c.targets()[i])
	}
	m, err := scoll.NewMembers(testService, targets)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func TestPoint07OutOfBand(t *testing.T) {
	c := start(t, 8, nil)
	rolls, maps := c.outOfBand()
	index := scoll.Index{42}
	for _, m := range maps {
		m.set(index, c.members(0, 2, 4, 6, 7))
	}
	g, err := c.service[0].OutOfBand(scoll.OutOfBandSpec{Name: "some", Index: index, Private: 5})
	if err != nil {
		t.Fatal(err)
	}
	if k := c.nodes[0].Counters(); k.MessagesOut != 0 || maps[0].asked != 0 {
		t.Errorf("%d messages, %d questions by its making", k.MessagesOut, maps[0].asked)
	}
	if children, err := g.Children(); err != nil || len(children) != 3 || g.Name() != "some" || g.Private() != 5 {
		t.Errorf("%+v, %v", children, err)
	}
	var mu sync.Mutex
	var member *scoll.Group
	rolls[6].set(func(s *rollCall) {
		s.also = func(callback string, r *scoll.Request) (err error) {
			if callback == "incoming-request" {
				mu.Lock()
				defer mu.Unlock()
				member, err = r.Group()
			}
			return err
		}
	})
	for range 2 {
		if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != "n0 n2 n4 n6 n7" {
			t.Errorf("%v, %s", err, heard(r))
		}
	}
	mu.Lock()
	fromMember := member
	mu.Unlock()
	if r, err := call(t, fromMember, scoll.Broadcast{}); err != nil || r.Root() != "n6" {
		t.Errorf("from a member: %v", err)
	}
	for name, c := range map[string]struct {
		index scoll.Index
		is    error
	}{"not known": {scoll.Index{1}, errUnknown}, "panics": {scoll.Index{99}, errOdd}} {
		g, err := g.Service().OutOfBand(scoll.OutOfBandSpec{Index: c.index})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.NewRequest(scoll.Broadcast{}); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.Destroy(background(t)); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var panicked *scoll.PanicError
	if _, err := (func() (*scoll.Group, error) {
		g, _ := g.Service().OutOfBand(scoll.OutOfBandSpec{Index: scoll.Index{99}})
		_, err := g.Children()
		return g, err
	})(); !errors.As(err, &panicked) || panicked.Value != errOdd || len(panicked.Stack) == 0 {
		t.Errorf("%v", err)
	}
	plain := start(t, 1, nil)
	plain.rolls()
	if _, err := plain.service[0].OutOfBand(scoll.OutOfBandSpec{Index: index}); !errors.Is(err, scoll.ErrService) {
		t.Errorf("a service without MapGroup: %v", err)
	}
}

// TestPoint39DigestOfOutOfBand: a member that knows other members takes no part,
// nor those beneath it; one whose service panics neither.
func TestPoint39DigestOfOutOfBand(t *testing.T) {
	c := start(t, 4, nil)
	rolls, maps := c.outOfBand()
	index := scoll.Index{42}
	for _, m := range maps {
		m.set(index, c.members(0, 1, 2, 3))
	}
	g, err := c.service[0].OutOfBand(scoll.OutOfBandSpec{Index: index})
	if err != nil {
		t.Fatal(err)
	}
	for name, what := range map[string]struct {
		members *scoll.Members
		want    scoll.Status
	}{
		"fewer":         {c.members(0, 1, 2), scoll.StatusDisagree},
		"another order": {c.members(0, 1, 3, 2), scoll.StatusDisagree},
		"none":          {nil, scoll.StatusNoGroup},
	} {
		maps[2].set(index, what.members)
		_, err := call(t, g, scoll.Broadcast{})
		if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: 2, Status: what.want}) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if n := len(rolls[3].has()); n > 0 {
		t.Errorf("n3 ran %d", n)
	}
	if k := c.nodes[2].Counters(); k.Groups != 0 {
		t.Errorf("n2 keeps %d groups", k.Groups)
	}
}

// TestPoint40SubsetOfTheAlive: the subset changes with who lives; a member that
// holds another one for dead takes no part.
func TestPoint40SubsetOfTheAlive(t *testing.T) {
	news := make([]scoll.News, 8)
	c := start(t, 8, func(i int, cfg *config) { cfg.Liveness = &news[i] })
	c.rolls()
	whole := c.group(0, scoll.GroupSpec{Name: "all", Private: "mine"})
	alive, err := whole.Alive()
	if err != nil {
		t.Fatal(err)
	}
	for i := range news {
		news[i].Down("n4")
	}
	if _, err := call(t, whole, scoll.Broadcast{}); !errors.Is(err, scoll.ErrDead) {
		t.Errorf("the whole group: %v", err)
	}
	r, err := call(t, alive, scoll.Broadcast{})
	if want := strings.Replace(sorted(8), "n4 ", "", 1); err != nil || heard(r) != want || alive.Private() != "mine" {
		t.Errorf("%v, %s", err, heard(r))
	}
	news[1].Down("n7")
	_, err = call(t, alive, scoll.Broadcast{})
	if m := missing(t, err); m.Node != "n1" || m.Status != scoll.StatusDisagree {
		t.Errorf("%+v", m)
	}
	if _, err := alive.NewRequest(scoll.Broadcast{Last: true}); !errors.Is(err, scoll.ErrGroup) {
		t.Errorf("a last broadcast over a subset: %v", err)
	}
	if err := alive.Destroy(background(t)); err != nil {
		t.Error(err)
	}
	if _, err := alive.NewRequest(scoll.Broadcast{}); !errors.Is(err, scoll.ErrGroup) {
		t.Errorf("a handle that was given back: %v", err)
	}
}

// groups waits until nodes have so many groups.
func (c *cluster) groups(want int, of ...int) {
	c.t.Helper()
	await(c.t, "groups to be freed", func() bool {
		return !slices.ContainsFunc(of, func(i int) bool { return c.nodes[i].Counters().Groups != want })
	})
}

// TestPoint41Destruction: by the last broadcast, by a destruction, by the
// creator's death, and by its reboot, which frees the groups of earlier
// incarnations alone.
func TestPoint41Destruction(t *testing.T) {
	var news scoll.News
	c := start(t, 4, func(i int, cfg *config) { cfg.Liveness, cfg.host.Incarnation = &news, 1 })
	rolls := c.rolls()
	all, others := []int{0, 1, 2, 3}, []int{1, 2, 3}
	ran := 0
	broadcast := func(g *scoll.Group, last bool) {
		t.Helper()
		if _, err := call(t, g, scoll.Broadcast{Last: last}); err != nil {
			t.Error(err)
		}
		ran++
	}
	g := c.group(0, scoll.GroupSpec{Name: "last"})
	broadcast(g, false)
	c.groups(1, all...)
	broadcast(g, true)
	c.groups(0, all...)

	g = c.group(0, scoll.GroupSpec{Name: "destroyed"})
	broadcast(g, false)
	if err := g.Destroy(background(t)); err != nil {
		t.Error(err)
	}
	c.groups(0, all...)
	if err := g.Destroy(background(t)); !errors.Is(err, scoll.ErrGroup) {
		t.Errorf("destroyed twice: %v", err)
	}
	if n := len(rolls[3].has()); n != ran {
		t.Errorf("a service has seen the destruction: %d broadcasts, want %d", n, ran)
	}

	c.group(0, scoll.GroupSpec{Name: "orphaned"})
	c.group(1, scoll.GroupSpec{Name: "another's"})
	news.Up("n0", 1)
	news.Down("n0")
	c.groups(1, others...)

	news.Up("n0", 1)
	c.group(0, scoll.GroupSpec{Name: "of the first life"})
	c.groups(2, others...)
	ctx := background(t)
	if err := c.nodes[0].Close(ctx); err != nil {
		t.Fatal(err)
	}
	cfg := c.settings("n0")
	cfg.host.Incarnation, cfg.Liveness = 2, &news
	reborn, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.set("n0", reborn.host.Addr())
	c.nodes[0] = reborn
	s := &rollCall{node: "n0"}
	if c.service[0], err = reborn.Register(testService, s.callbacks()); err != nil {
		t.Fatal(err)
	}
	// To whom it calls that shows, before any news of it.
	g = c.group(0, scoll.GroupSpec{Name: "of the second life"})
	c.groups(2, 1, 2) // this one, and another's
	news.Up("n0", 2)
	c.groups(2, others...)
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(4) {
		t.Errorf("in its second life: %v", err)
	}
}

// TestRootDies: its requests end at the members, and nothing is replied.
func TestRootDies(t *testing.T) {
	var news scoll.News
	c := start(t, 4, func(i int, cfg *config) {
		if i > 0 {
			cfg.Liveness = &news
		}
	})
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.KAry(1)})
	r, release := rolls[3].holds(t, g)
	news.Down("n0")
	for _, i := range []int{1, 2} {
		await(t, "the orphan's end", func() bool { return len(rolls[i].outs()) == 1 })
		var died *scoll.StatusError
		if err := rolls[i].outs()[0]; !errors.As(err, &died) || died.Status != scoll.StatusRootDied {
			t.Errorf("n%d: %v", i, err)
		}
	}
	close(release)
	r.Abort() // n0, which lives after all, waits
	<-r.Done()
}

// TestPoint36Bulk: bulk data in odd vectors down a tree, every node with vectors
// of its own; memory is exposed no longer than until post-reply.
func TestPoint36Bulk(t *testing.T) {
	const size = 3<<20 + 17
	c := start(t, 16, nil)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	var wrong sync.Map
	c.register(func(i int) scoll.Callbacks {
		call := silent(false)
		prepare := call.PreRequest
		call.PreRequest = func(r *scoll.Request) error {
			if !r.IsRoot() {
				if r.BulkLen() != size {
					wrong.Store("length", r.BulkLen())
				}
				mine := make([]byte, size+100) // more than is needed
				at := 1000 * (i + 1)
				r.SetBulk([][]byte{mine[:at], nil, mine[at:]})
			}
			return prepare(r)
		}
		call.IncomingRequest = func(r *scoll.Request) error {
			if !bytes.Equal(bytes.Join(r.Bulk(), nil), data) {
				wrong.Store(i, "the data")
			}
			return nil
		}
		return call
	})
	g := c.group(5, scoll.GroupSpec{Name: "all"})
	kept := bytes.Clone(data)
	if r, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{data[:1], data[1:777], {}, data[777:]}}); err != nil || r.Outcome().Ran != 16 {
		t.Fatal(err)
	}
	wrong.Range(func(k, v any) bool { t.Errorf("%v: %v", k, v); return true })
	if !bytes.Equal(kept, data) {
		t.Error("the root's memory was changed")
	}
	if k := c.nodes[5].Counters(); k.Exposed != 0 {
		t.Errorf("%+v", k)
	}
}

// star is a tree of a kind of its own: all beneath the member after the root.
type star struct{ n, root int }

func (s star) hub() int  { return (s.root + 1) % s.n }
func (s star) Size() int { return s.n }
func (s star) Parent(rank int) (int, bool) {
	switch rank {
	case s.root:
		return 0, false
	case s.hub():
		return s.root, true
	}
	return s.hub(), true
}
func (s star) AppendChildren(dst []int, rank int) []int {
	for r := range s.n {
		if p, ok := s.Parent(r); ok && p == rank {
			dst = append(dst, r)
		}
	}
	return dst
}
func (s star) Count(rank int) int {
	switch rank {
	case s.root:
		return s.n
	case s.hub():
		return s.n - 1
	}
	return 1
}
func (s star) Reach(rank int) int {
	switch rank {
	case s.root:
		return 2
	case s.hub():
		return 1
	}
	return 0
}
func (s star) String() string { return "a star" }

// TestPoint45OwnTree: a kind of tree is a few functions; the operator chooses it
// for all groups that name none. Who does not know it takes no part.
func TestPoint45OwnTree(t *testing.T) {
	kind := scoll.Tree{Kind: scoll.FirstOwnKind}
	c := start(t, 6, func(i int, cfg *config) {
		cfg.Tree = kind
		if i < 5 {
			cfg.Trees = map[uint8]scoll.Shape{kind.Kind: func(m *scoll.Members, root, _ int) (ranktree.Spanning, error) {
				return star{m.Len(), root}, nil
			}}
		}
	})
	c.rolls()
	g := c.group(2, scoll.GroupSpec{Name: "five", Targets: c.targets()[:5]})
	children, err := g.Children()
	if want := []scoll.Child{{Node: "n3", Nodes: 4, Entities: 8, Depth: 1}}; err != nil || !slices.Equal(children, want) {
		t.Errorf("%+v, %v", children, err)
	}
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(5) {
		t.Errorf("%v, %s", err, heard(r))
	}
	_, err = c.tryGroup(2, scoll.GroupSpec{Name: "six"})
	if m := missing(t, err); m != (scoll.Missing{Node: "n5", Nodes: 1, Status: scoll.StatusNoTree}) {
		t.Errorf("%+v", m)
	}
}
