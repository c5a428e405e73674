package pathsel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// Config is what a Planner goes by. The zero value is DefaultConfig.
type Config struct {
	Model Model
	// Work is the budget of one search for a Steiner tree, in the work units of
	// package steiner: 2^26 take about a second.
	Work int64
	// Rivals are the most alternatives that a plan reports; below zero: none.
	Rivals int
	// Keep is the share by which a repaired tree may be worse than a new one, by
	// the criterion, in hops, depth or latency, and is kept yet, so that trees do not
	// move for little; below zero: nothing.
	Keep float64
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Model: DefaultModel(), Work: 1 << 22, Rivals: 3, Keep: 1.0 / 8}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	return Config{
		Model: cmp.Or(c.Model, d.Model), Work: cmp.Or(c.Work, d.Work), Rivals: cmp.Or(c.Rivals, d.Rivals), Keep: cmp.Or(c.Keep, d.Keep),
	}
}

// Validate reports what is out of range, zero fields having their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	if c.Work < 0 {
		return fmt.Errorf("%w: a budget of %d work units is negative", ErrRequest, c.Work)
	}
	if math.IsNaN(c.Keep) {
		return fmt.Errorf("%w: the share to keep is not a number", ErrRequest)
	}
	return c.Model.Validate()
}

// Planner chooses trees in one graph, one after another. It is not safe for
// concurrent use.
type Planner struct {
	graph  *topology.Graph
	cfg    Config
	layers *layers // nil: the fabric has none

	rank      []int32 // by host, during a plan; otherwise -1
	levelwise levelwise
	detours   detours
	paces     paces
}

// NewPlanner returns a planner for g.
func NewPlanner(g *topology.Graph, cfg Config) (*Planner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("new planner: %w", err)
	}
	return (&Planner{cfg: cfg.withDefaults()}).For(g), nil
}

// For returns a planner for another graph, with the same Config.
func (p *Planner) For(g *topology.Graph) *Planner {
	next := newPlanner(g, p.cfg)
	next.layers = findLayers(g)
	return next
}

// newPlanner returns a planner that knows of no layers.
func newPlanner(g *topology.Graph, cfg Config) *Planner {
	p := &Planner{graph: g, cfg: cfg, rank: make([]int32, g.Hosts())}
	for h := range p.rank {
		p.rank[h] = -1
	}
	return p
}

// Graph returns the graph that p plans in.
func (p *Planner) Graph() *topology.Graph { return p.graph }

// Bytes returns the memory that the planner holds beside its graph, in bytes.
func (p *Planner) Bytes() int {
	n := 4*cap(p.rank) + p.levelwise.bytes() + p.detours.bytes()
	if p.layers != nil {
		n += 4 * (cap(p.layers.own) + cap(p.layers.above))
	}
	return n
}

// Method is how a tree was found.
type Method uint8

// The methods; see docs/planning.md.
const (
	ByLevels Method = iota + 1
	ByShortestPaths
	BySteiner
	ByRepair
)

var methodNames = [...]string{"method(0)", "levels", "shortest paths", "steiner", "repair"}

// String returns the method's name.
func (m Method) String() string { return nameOf(m, methodNames[:], "method") }

// Rival is a tree that was not chosen.
type Rival struct {
	Root    topology.NodeID
	Method  Method
	Figures Figures // of some only the hops, the depth and the use
	Lost    string  // by how much, in words
}

// Plan is the tree chosen, and why.
type Plan struct {
	Tree      Tree
	Figures   Figures
	Criterion Criterion // that it was chosen by; ByFunction where weights decided
	Default   bool      // by that since the request has no criterion and no weights
	Because   string    // why by that
	Method    Method
	// Exact: no tree of the fabric has fewer hops, or with as few hops less
	// depth; and of the trees with as few, none is better by the criterion.
	Exact  bool
	Rivals []Rival // the best others, best first
	Reason string  // why this tree, in a sentence
	Tried  int     // roots of which the best tree is known
	Work   int64   // work units of package steiner
	Shared int     // links in common with Request.Avoid, as Shared counts them
	// SharedOwn are the members' links in common with Request.Avoid.
	SharedOwn int
	// LeftOut are the members that no tree reaches, by rank in the request; the
	// ranks of the tree are those of the others. Only PlanReachable leaves any.
	LeftOut []Omission
	// Trip is what the model knew of the tree, and these what it said; zero
	// where the bytes of a vector are not known.
	Trip     Trip
	Forecast Forecast
}

// Omission is a member that a plan leaves out.
type Omission struct {
	Rank int
	Host topology.NodeID
	Why  string
}

// candidate is a tree that may be chosen.
type candidate struct {
	tree    Tree
	figures Figures
	method  Method
	exact   bool
	tried   int
	rivals  []Rival
	work    int64
	hash    uint64  // of the group and the root
	score   float64 // by weights, the less the better
}

// asked is a request in the making of its plan.
type asked struct {
	*Request
	view topology.View
	load *Load
	by   Criterion
	need Criterion // what the purpose needs beside the least load by default; otherwise ByFunction
	hash uint64
	// Request.Exclude, Idle and ExcludeLinks; nil where they are empty.
	excluded, idle map[topology.NodeID]bool
	own            map[topology.NodeID]bool // the switches of Request.Old, where speeds matter
	shut           map[topology.LinkID]bool
	// floor is the least width of a link, ceiling the largest share of its free
	// slots that a switch gives; 0: any.
	floor   int64
	ceiling float64
	least   float64       // the least pace of a switch; 0: any
	within  time.Duration // the most that detours may take from a member to the root; 0: any
	usual   float64       // the pace of a switch of unknown speed
	volumes []float64     // paces.volumes
	blind   bool          // speeds do not count, only how busy nodes are
}

// ask takes a request up.
func (p *Planner) ask(view topology.View, load *Load, req *Request) asked {
	speeds := p.paced(view)
	a := asked{
		Request: req, view: view, load: load, hash: groupHash(req.Members),
		excluded: setOf(req.Exclude), idle: setOf(req.Idle), shut: setOf(req.ExcludeLinks),
		own: p.ownOf(view, req), usual: speeds.usual, volumes: speeds.volumes,
	}
	if req.byDefault() {
		a.need, _ = req.need(p.cfg.Model)
	}
	return a
}

// setOf returns a list as a set, nil where it is empty.
func setOf[T comparable](list []T) map[T]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[T]bool, len(list))
	for _, x := range list {
		set[x] = true
	}
	return set
}

// excludesLink reports whether the request keeps a link off the tree. Most requests
// exclude none, and are not to pay for a look into a map at every link.
func (a *asked) excludesLink(l topology.LinkID) bool { return a.shut != nil && a.shut[l] }

// Plan chooses the tree of a group in view, beside what load counts of other
// groups (nil: none). A request that no fabric could fulfil is an ErrRequest. If
// only this fabric has no tree, the error is a *Refusal, and if hosts are faster
// a *HostsFaster; both are an ErrNoTree.
func (p *Planner) Plan(view topology.View, load *Load, req Request) (Plan, error) {
	if len(req.Avoid) > 0 {
		return p.planApart(view, load, req)
	}
	if err := p.enter(view, load, &req); err != nil {
		return Plan{}, fmt.Errorf("plan tree: %w", err)
	}
	defer p.leave(&req)
	a := p.ask(view, load, &req)
	plan, err := p.plan(a)
	if err == nil {
		p.keepOld(a, &plan)
		p.slimDown(a, &plan)
		err = p.forecast(a, &plan)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("plan tree: %w", err)
	}
	return plan, nil
}

// enter checks a request and notes the ranks of its members.
func (p *Planner) enter(view topology.View, load *Load, req *Request) error {
	g := p.graph
	if view.Graph() != g || load != nil && load.graph != g {
		return fmt.Errorf("%w: the view or the load is of another graph", ErrRequest)
	}
	check := req.validateRest
	for rank, m := range req.Members {
		if !g.IsHost(m) || p.rank[m] >= 0 {
			check = req.Validate // which says what is wrong with it
			break
		}
		p.rank[m] = int32(rank)
	}
	if len(req.Members) == 0 {
		check = req.Validate
	}
	err := check(g)
	if err != nil {
		p.leave(req)
	}
	return err
}

func (p *Planner) leave(req *Request) {
	for _, m := range req.Members {
		if p.graph.IsHost(m) {
			p.rank[m] = -1
		}
	}
}

// plan makes the plan of a request that is valid.
func (p *Planner) plan(a asked) (Plan, error) {
	var plan Plan
	var all []candidate
	var err error
	if a.Weights.given() {
		plan.Because = "weights were given"
	} else {
		a.by, plan.Because = a.Decide(p.cfg.Model)
	}
	plan.Default = a.byDefault()
	all, err = p.trees(a)
	if err != nil {
		return Plan{}, err
	}
	all = p.withoutSlow(a, all)
	best := all[0]
	plan.Tree, plan.Figures, plan.Criterion = best.tree, best.figures, a.by
	plan.Method, plan.Exact = best.method, best.exact
	for _, c := range all {
		plan.Tried, plan.Work = plan.Tried+c.tried, plan.Work+c.work
	}
	plan.Rivals = p.rivals(a, all)
	plan.Reason = p.reason(&plan)
	return plan, nil
}

// trees returns the trees by the weights or else by a.by, best first, or why there is
// none.
func (p *Planner) trees(a asked) ([]candidate, error) {
	switch {
	case a.Weights.given():
		return p.weigh(a)
	case a.need != ByFunction:
		return p.balanced(a)
	}
	return p.candidates(a)
}

// candidates returns the trees by a.by, best first, or why there is none.
func (p *Planner) candidates(a asked) ([]candidate, error) {
	all, err := p.direct(a)
	if err == nil {
		all = p.withDetour(a, all)
	}
	return all, err
}

// direct returns the trees without detours.
func (p *Planner) direct(a asked) (all []candidate, err error) {
	found := false
	if p.layers != nil && !a.Forward {
		all = make([]candidate, 1)
		all[0], found = p.byLevels(a)
	}
	if !found {
		if all, err = p.fallback(a); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// weigh returns the trees that each criterion with a weight would choose, and
// those that lost to it, by their scores.
func (p *Planner) weigh(a asked) ([]candidate, error) {
	var all []candidate
	for by := FewestHops; by < criteria; by++ {
		if a.Weights[by] == 0 {
			continue
		}
		b := a
		b.by = by
		found, err := p.candidates(b)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			c.exact = false
			all = append(all, c)
		}
	}
	for i, score := range scores(a.Weights, all) {
		all[i].score = score
	}
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.score, y.score), x.figures.Compare(y.figures, FewestHops))
	})
	return all, nil
}

// scores returns how much worse than the best each candidate is, weighted.
func scores(w Weights, all []candidate) []float64 {
	score := make([]float64, len(all))
	for by := FewestHops; by < criteria; by++ {
		least := 0.0
		for i, c := range all {
			if x := c.figures.value(by); i == 0 || x < least {
				least = x
			}
		}
		for i, c := range all {
			if least > 0 {
				score[i] += w[by] * c.figures.value(by) / least
			} else {
				score[i] += w[by] * (1 + c.figures.value(by))
			}
		}
	}
	return score
}

// latency returns that of a link.
func (p *Planner) latency(l topology.LinkID) time.Duration { return p.graph.Link(l).Latency }
