package manager

import (
	"cmp"
	"container/heap"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// The times of contest.
const (
	planTime   = time.Millisecond // of one plan
	answerTime = 200 * time.Microsecond
	storeTime  = time.Millisecond
	thinkTime  = 2500 * time.Microsecond // of a host between two groups, on average, for each host: the planner is busy for 0.4 of the time
)

// happening is what happens at a time.
type happening struct {
	at    core.Time
	order int
	do    func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// contest is a manager in virtual time whose hosts ask for groups: a planner that makes one
// plan after the other, a store, and switches that agree to everything.
type contest struct {
	core    *Core
	graph   *topology.Graph
	planner *Planner
	plans   bool // the planner is at work
	now     core.Time
	events  happenings
	order   int
	wake    core.Time
	stream  uint64

	asked  map[uint64]func(group uint32) // by request
	begun  map[uint32]core.Time          // groups without a tree, by number
	done   map[uint32]func()             // of these, once they have one
	reqs   uint64
	others []time.Duration // what groups of all hosts but the first took
}

func newContest(hostsPerLeaf int) *contest {
	g := must(topology.LeafSpine(hostsPerLeaf, 10, 4))
	x := &contest{
		graph: g, planner: must(NewPlanner(g, pathsel.DefaultConfig())), wake: core.Never,
		core: must(New(g, Config{
			MinWindow: 8, StartWindow: 8, MaxWindow: 8, Answer: time.Hour,
			Quotas: quota.Config{Host: quota.Limits{Groups: 1 << 16, Plans: 1e6}},
		})),
		asked: map[uint64]func(uint32){}, begun: map[uint32]core.Time{}, done: map[uint32]func(){},
	}
	c := topology.DefaultCapability()
	c.Slots = 1 << 30
	for i := range g.Switches() {
		x.step(SwitchUp{Switch: g.Name(g.Switch(i)), Incarnation: 1, Capability: c})
	}
	return x
}

func (x *contest) in(d time.Duration, do func()) {
	x.order++
	heap.Push(&x.events, happening{x.now.Add(d), x.order, do})
}

// run lets everything happen until so many groups have their trees.
func (x *contest) run(groups int) {
	for len(x.others) < groups {
		next := heap.Pop(&x.events).(happening)
		x.now = next.at
		next.do()
	}
}

// plan has the planner make its next plan.
func (x *contest) plan() {
	if x.plans || !x.planner.Waits() {
		return
	}
	x.plans = true
	x.in(planTime, func() {
		x.plans = false
		if planned, ok := x.planner.Next(); ok {
			x.step(planned)
		}
		x.plan()
	})
}

func (x *contest) step(batch ...Input) {
	out := new(Output)
	x.core.Step(x.now, batch, out)
	x.planner.Put(out)
	x.plan()
	if n := len(out.Persist); n > 0 {
		last := out.Persist[n-1].Seq
		x.in(storeTime, func() { x.step(Stored{Seq: last}) })
	}
	answer := func(name string, r agent.Reply) {
		r.Incarnation = 1
		x.in(answerTime, func() { x.step(Answer{Switch: name, Reply: r}) })
	}
	for _, p := range out.Prepares {
		n, _ := x.graph.Lookup(p.Switch)
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), 1)
		answer(p.Switch, agent.Reply{Kind: agent.Prepared, Group: p.Group, Epoch: p.Epoch, Addr: at})
	}
	for _, c := range out.Commits {
		answer(c.Switch, agent.Reply{Kind: agent.Committed, Group: c.Config.Group, Epoch: c.Config.Epoch})
	}
	for _, r := range out.Replies {
		do := x.asked[r.Req]
		delete(x.asked, r.Req)
		if r.Err != nil {
			panic(r.Err)
		}
		do(r.Group)
	}
	for _, o := range out.Offers {
		if _, waits := x.begun[o.Group]; waits && o.Rank == 0 {
			x.done[o.Group]()
			delete(x.begun, o.Group)
			delete(x.done, o.Group)
		}
	}
	if at := x.core.Deadline(); at < x.wake || x.wake <= x.now {
		x.wake = at
		if at != core.Never {
			x.in(at.Sub(x.now), func() { x.step() })
		}
	}
}

// create has a host ask for a group with its neighbour; then is called when it has a tree.
func (x *contest) create(host, i int, then func(took time.Duration)) {
	begun := x.now
	x.reqs++
	members := []string{x.graph.Name(topology.NodeID(host)), x.graph.Name(topology.NodeID((host + 1) % x.graph.Hosts()))}
	x.asked[x.reqs] = func(group uint32) {
		x.begun[group] = begun
		x.done[group] = func() { then(x.now.Sub(begun)) }
		for rank := range uint32(2) {
			x.stream++
			at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, byte(host), byte(rank)}), uint16(1+rank))
			w := Watch{Group: group, Rank: rank, DataAddr: at, Stream: x.stream}
			x.in(answerTime, func() { x.step(w) })
		}
	}
	x.step(Create{
		Req: x.reqs, Name: fmt.Sprint(host, "/", i), Members: members, Owner: members[0], ChunkBytes: 1024, Window: 8,
		Functions: topology.AllFunctions(), Types: topology.AllTypes(), Secret: [32]byte{1},
	})
}

// polite has a host ask for one group after the other, and think between them.
func (x *contest) polite(host, each int) {
	left, chance, think := each, core.Chance(host), 2*int(thinkTime)*x.graph.Hosts()
	var next func()
	next = func() {
		if left--; left < 0 {
			return
		}
		x.create(host, left, func(took time.Duration) {
			if host > 0 {
				x.others = append(x.others, took)
			}
			x.in(time.Duration(chance.Below(think)), next)
		})
	}
	x.in(time.Duration(chance.Below(think)), next)
}

// race returns the times of all hosts' groups but the first's, sorted: each asks for so many,
// one after the other, and the first for factor times as many, at once.
func race(hostsPerLeaf, each, factor int) []time.Duration {
	x := newContest(hostsPerLeaf)
	for host := 1; host < x.graph.Hosts(); host++ {
		x.polite(host, each)
	}
	if factor == 1 {
		x.polite(0, each)
	} else {
		x.in(thinkTime*time.Duration(x.graph.Hosts()), func() {
			for i := range factor * each {
				x.create(0, i, func(time.Duration) {})
			}
		})
	}
	x.run((x.graph.Hosts() - 1) * each)
	slices.Sort(x.others)
	return x.others
}

// percentile99 of sorted times.
func percentile99(all []time.Duration) time.Duration { return all[len(all)*99/100] }

// TestGreedyHostDelaysItself: where one host asks for a hundred times its share, and at once,
// the 99th percentile of the others' times from asking for a group to its tree is at most 1.5
// times that without it. All times are virtual.
func TestGreedyHostDelaysItself(t *testing.T) {
	without, with := percentile99(race(2, 10, 1)), percentile99(race(2, 10, 100))
	if ratio := float64(with) / float64(without); ratio > 1.5 {
		t.Errorf("the 99th percentile is %v, without the greedy host %v: %.2f", with, without, ratio)
	}
}

// BenchmarkGreedyHost is TestGreedyHostDelaysItself with 10,000 groups of 100 hosts.
func BenchmarkGreedyHost(b *testing.B) {
	for b.Loop() {
		without, with := race(10, 50, 1), race(10, 50, 100)
		for _, share := range []int{50, 99} {
			x, y := with[len(with)*share/100], without[len(without)*share/100]
			b.ReportMetric(float64(x.Microseconds())/1e3, fmt.Sprintf("p%d-with-ms", share))
			b.ReportMetric(float64(y.Microseconds())/1e3, fmt.Sprintf("p%d-without-ms", share))
			b.ReportMetric(float64(x)/float64(y), fmt.Sprintf("p%d-ratio", share))
		}
	}
}
