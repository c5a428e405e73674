package manager

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/topology"
)

// connected returns a small fabric whose agents are all connected.
func connected(slots int) *world {
	w := newWorld(smallFabric(), Config{MinWindow: 2}, slots)
	for i := range w.agents {
		w.connect(i)
	}
	return w
}

// running returns a world whose group 1, of hosts 0, 2 and 4, has a tree.
func running(t *testing.T) *world {
	t.Helper()
	w := connected(1000)
	w.watchAll(w.create("g", 16, 0, 2, 4).Group)
	w.settle()
	w.want(t, Active, 2)
	return w
}

// want checks how group 1 stands.
func (w *world) want(t *testing.T, state State, epoch uint32) {
	t.Helper()
	if w.fault != nil {
		t.Fatal(w.fault)
	}
	if e, _ := w.core.Group(1); e.State != state || e.Epoch != epoch {
		t.Fatalf("the group is %v in epoch %d, want %v in %d; %v; %+v", e.State, e.Epoch, state, epoch, e.Refusal, e.History)
	}
}

// on returns the index of the switch at a vertex of group 1's active tree.
func (w *world) on(vertex int) int {
	return w.graph.SwitchIndex(w.core.groups[1].active.plan.Tree.Vertices[vertex].Switch)
}

func (w *world) enterAll(epoch uint32) {
	for rank := range w.core.groups[1].members {
		w.enter(1, uint32(rank), epoch)
	}
}

// TestTransitions lets one thing happen to a group whose tree is in a given
// stage, and checks what has become of it when all has come to rest.
func TestTransitions(t *testing.T) {
	planned := func(w *world) { w.plan(); w.store() } // Prepares are out
	commits := func(w *world) {
		planned(w)
		for i := range w.agents {
			w.deliver(i, 0)
			w.bind(i)
			w.answer(i)
		}
	}
	stages := map[string]func(*world){
		"waiting":    func(*world) {},
		"planning":   func(w *world) { w.watchAll(1) },
		"planned":    func(w *world) { w.watchAll(1); w.plan() },
		"asked":      func(w *world) { w.watchAll(1); planned(w) },
		"committing": func(w *world) { w.watchAll(1); commits(w) },
		"active":     func(w *world) { w.watchAll(1); w.settle() },
		"entered":    func(w *world) { w.watchAll(1); w.settle(); w.enterAll(2) },
	}
	const root = 3 // spine-0, which is chosen for the first tree
	events := map[string]struct {
		do    func(*world)
		state State
		// Epoch of the tree in the end, by stage; those that are not named
		// have 2 if the stage had no epoch yet, and 4 otherwise.
		epochs map[string]uint32
	}{
		"root crashes":       {func(w *world) { w.crash(root) }, Active, nil},
		"root is restarted":  {func(w *world) { w.crash(root); w.connect(root) }, Active, nil},
		"root reconnects":    {func(w *world) { w.connect(root) }, Active, map[string]uint32{"planned": 2, "asked": 2, "committing": 2, "active": 2, "entered": 2}},
		"root is drained":    {func(w *world) { w.ask(Drain{Switch: w.agents[root].name, On: true}) }, Active, nil},
		"leaf is gone":       {func(w *world) { w.crash(0) }, Refusing, nil},
		"a member goes":      {func(w *world) { w.step(Unwatch{Group: 1, Rank: 1, Stream: w.memberStream(1)}) }, Waiting, nil},
		"a member comes new": {func(w *world) { w.watchElsewhere(1) }, Active, map[string]uint32{"planned": 2, "asked": 2}},
		"host tree entered":  {func(w *world) { w.enterAll(3) }, Active, nil},
		"released":           {func(w *world) { w.ask(Release{Group: 1}) }, Releasing, nil},
		"manager restarted":  {func(w *world) { w.killManager(); w.reconnect() }, Active, map[string]uint32{"active": 2, "entered": 2, "planned": 2}},
	}
	for stage, begin := range stages {
		for event, e := range events {
			t.Run(stage+": "+event, func(t *testing.T) {
				w := connected(1000)
				w.create("g", 16, 0, 2, 4)
				begin(w)
				had := w.core.groups[1].epoch
				e.do(w)
				if e.state != Releasing && event != "a member goes" {
					w.settle()
					w.watchAll(1)
				}
				w.run(3 * time.Second)
				epoch := uint32(2)
				if had > 0 {
					epoch = 4
				}
				if named, ok := e.epochs[stage]; ok {
					epoch = named
				}
				state := e.state
				if event == "host tree entered" && had == 0 {
					epoch = 4 // above 3, if members were there to report
					if stage == "waiting" {
						epoch = 2
					}
				}
				if event == "a member goes" && (stage == "committing" || stage == "active" || stage == "entered") {
					state, epoch = Active, 2
				} else if state != Active {
					epoch = 0
				}
				if event == "released" && (stage == "active" || stage == "entered") {
					epoch = 2 // still there, for members that are leaving
				}
				w.want(t, state, epoch)
				if state == Active {
					w.enterAll(epoch)
				}
				w.run(time.Minute)
				if w.fault == nil && w.core.groups[1] != nil && state == Active {
					w.checkSwitches()
				}
				if w.fault != nil {
					t.Fatal(w.fault)
				}
				if state == Releasing && len(w.core.Groups()) != 0 {
					t.Fatal("the group is still there")
				}
			})
		}
	}
}

func (w *world) memberStream(rank uint32) uint64 {
	m := w.members[[2]uint32{1, rank}]
	if m == nil {
		return 0
	}
	m.watching = false
	return m.stream
}

func (w *world) watchElsewhere(rank uint32) {
	if m := w.members[[2]uint32{1, rank}]; m != nil {
		m.addr = addPort(m.addr)
		w.watch(1, rank)
	}
}

func (w *world) reconnect() {
	for i := range w.agents {
		w.connect(i)
	}
}

// Where slots are scarce the window shrinks; where there are none at all the
// refusal reports who has them, and it ends when they are free.
func TestScarceSlots(t *testing.T) {
	w := connected(40)
	w.watchAll(w.create("big", 16, 0, 2).Group)
	w.settle()
	w.watchAll(w.create("small", 16, 1, 3).Group)
	w.settle()
	e, _ := w.core.Group(2)
	if e.State != Active || e.Trees[0].Window != 4 {
		t.Fatalf("%v %+v", e.State, e.Trees)
	}
	w.watchAll(w.create("none", 16, 0, 1, 3).Group)
	w.settle()
	e, _ = w.core.Group(3)
	var why *Refusal
	if e.State != Refusing || !errors.As(e.Refusal, &why) || !errors.Is(why, ErrNoTree) {
		t.Fatalf("%v: %v", e.State, e.Refusal)
	}
	want := []agent.Holder{{Group: 1, Slots: 32}, {Group: 2, Slots: 8}}
	if why.Resource != "slots" || !strings.HasPrefix(why.Switch, "leaf-") || why.Need != 4 || why.Free != 0 || !slices.Equal(why.Holders, want) {
		t.Fatalf("%+v", why)
	}
	if text := why.Error(); !strings.Contains(text, "slots on switch leaf-") || !strings.Contains(text, "needed 4, free 0; held by group 1 (32), group 2 (8)") {
		t.Fatal(text)
	}
	w.ask(Release{Group: 1})
	w.run(time.Minute)
	if e, _ = w.core.Group(3); e.State != Active || e.Trees[0].Window != 16 || e.Refusal != nil || w.fault != nil {
		t.Fatalf("%v: %v; %+v; %v", e.State, e.Refusal, e.Trees, w.fault)
	}
}

// A group's own slots are no obstacle to the tree that replaces its own.
func TestTakeOver(t *testing.T) {
	w := connected(32)
	w.watchAll(w.create("g", 16, 0, 2).Group)
	w.settle()
	w.enterAll(2)
	w.ask(Drain{Switch: w.agents[w.on(0)].name, On: true})
	w.settle()
	w.want(t, Active, 4)
	if e, _ := w.core.Group(1); len(e.Trees) != 2 || e.Trees[0].Stage != TreeDraining || e.Trees[1].Window != 16 {
		t.Fatalf("%+v", e.Trees)
	}
	// The old tree goes when the last member has left it.
	w.enter(1, 0, 4)
	w.settle()
	if e, _ := w.core.Group(1); len(e.Trees) != 2 {
		t.Fatalf("gone while a member is in it: %+v", e.Trees)
	}
	w.enter(1, 1, 4)
	w.settle()
	if e, _ := w.core.Group(1); len(e.Trees) != 1 || w.fault != nil {
		t.Fatalf("%+v; %v", e.Trees, w.fault)
	}
}

// A member that lost its tree though all switches are there makes the switch
// above its own one suspect, and only as long as there is another way.
func TestSuspicion(t *testing.T) {
	w := running(t)
	root := w.on(0)
	leaf := w.on(1)
	w.step(Report{Group: 1, Rank: 0, Entered: 2, Lost: 2, Reason: "9 probes had no answer"})
	if n := len(w.out.Withdrawals); n != 3 {
		t.Fatalf("%d withdrawals", n)
	}
	name := func(i int) string { return w.graph.Name(w.graph.Switch(i)) }
	want := "rank 0 has lost it: 9 probes had no answer; it is between " + name(leaf) + " and " + name(root)
	if why := w.out.Withdrawals[0].Why; why != want {
		t.Errorf("withdrawn because %q, want %q", why, want)
	}
	w.run(time.Second)
	w.want(t, Active, 4)
	if w.on(0) == root {
		t.Fatal("the suspect is the root again")
	}
	// Both spines are suspect now: then there is no choice.
	w.step(Report{Group: 1, Rank: 1, Entered: 4, Lost: 4})
	w.run(time.Second)
	w.want(t, Active, 6)
	// The only switch of a host is, too.
	w.step(Report{Group: 1, Rank: 0, Entered: 6, Lost: 6, Silent: true})
	w.run(time.Second)
	w.want(t, Active, 8)
}

// Where every tree is lost in silence, as behind a switch that is up and forwards nothing,
// the waits between them grow; after a tree that lasted they begin anew.
func TestBlackHole(t *testing.T) {
	w := running(t)
	lose := func() {
		e, _ := w.core.Group(1)
		tree := e.Trees[len(e.Trees)-1].Epoch
		for rank := range uint32(3) {
			w.enter(1, rank, tree)
		}
		w.run(1600 * time.Millisecond)
		for rank := range uint32(3) {
			w.step(Report{Group: 1, Rank: rank, Entered: tree + 1, Lost: tree, Silent: true})
		}
	}
	const minutes = 10
	lost := 0
	for begin := w.now; w.now < begin.Add(minutes*time.Minute); w.run(10 * time.Millisecond) {
		if e, _ := w.core.Group(1); e.State == Active {
			lost++
			lose()
		}
	}
	if most := 10 + minutes*time.Minute/DefaultConfig().RetryMax; lost > 2*int(most) {
		t.Errorf("%d trees were lost in %d minutes, want about %d", lost, minutes, most)
	}
	w.run(DefaultConfig().RetryMax)
	if e, _ := w.core.Group(1); e.State != Active {
		t.Fatal(e.State)
	}
	w.run(2 * DefaultConfig().Suspicion)
	for range 3 {
		lose()
		w.run(time.Second)
		if e, _ := w.core.Group(1); e.State != Active {
			t.Error(e.State)
		}
	}
}

// A pipeline goes on without its agent: a tree there is given up when the agent
// stays away, or comes back without it, and not before.
func TestPipelineOutlivesItsAgent(t *testing.T) {
	begin := func(t *testing.T) (*world, int) {
		w := running(t)
		root := w.on(0)
		w.agents[root].outlives = true
		w.connect(root)
		w.disconnect(root)
		w.run(DefaultConfig().Absence - time.Millisecond)
		w.want(t, Active, 2)
		return w, root
	}
	t.Run("it reconnects", func(t *testing.T) {
		w, root := begin(t)
		w.connect(root)
		w.run(2 * DefaultConfig().Absence)
		w.want(t, Active, 2)
	})
	t.Run("it is restarted", func(t *testing.T) {
		w, root := begin(t)
		w.boot(root)
		w.connect(root)
		w.run(time.Second)
		w.want(t, Active, 4)
	})
	t.Run("it stays away", func(t *testing.T) {
		w, root := begin(t)
		w.run(time.Second)
		w.want(t, Active, 4)
		if w.on(0) == root {
			t.Error("the new tree is on the switch without an agent")
		}
	})
	t.Run("a member loses the tree", func(t *testing.T) {
		w, root := begin(t)
		w.step(Report{Group: 1, Rank: 1, Entered: 2, Lost: 2})
		w.run(time.Second)
		w.want(t, Active, 4)
		if w.on(0) == root {
			t.Error("the new tree is on the switch without an agent")
		}
	})
}

// A switch that does not answer is left out, and swept when it does.
func TestNoAnswer(t *testing.T) {
	for _, stage := range []string{"prepare", "commit"} {
		t.Run(stage, func(t *testing.T) {
			w := connected(1000)
			w.watchAll(w.create("g", 16, 0, 2, 4).Group)
			w.plan()
			w.store()
			silent := w.agents[3]
			if stage == "commit" {
				w.deliver(3, 0)
				w.bind(3)
				w.answer(3)
			}
			for range 20 {
				for i := range w.agents {
					if i != 3 {
						w.deliver(i, 0)
						w.bind(i)
						w.answer(i)
					}
				}
			}
			w.wait(DefaultConfig().Answer)
			if e, _ := w.core.Group(1); e.Trees[0].Stage != TreeDraining {
				t.Fatalf("%+v", e.Trees)
			}
			kept := silent.requests
			silent.requests = nil
			for range 20 {
				w.run(50 * time.Millisecond)
			}
			w.want(t, Active, 4)
			silent.requests = append(kept, silent.requests...)
			w.run(time.Minute)
			w.checkSwitches()
			w.want(t, Active, 4)
		})
	}
}

// What a switch frees by itself is lost, or was no longer wanted anyway.
func TestLeaseRunsOut(t *testing.T) {
	w := running(t)
	w.expireOn(w.on(1))
	w.settle()
	w.run(time.Second)
	w.want(t, Active, 4)
	w.checkSwitches()
	w.want(t, Active, 4)
}

// expireOn lets the lease of the first epoch on a switch run out.
func (w *world) expireOn(i int) {
	a := w.agents[i]
	h := a.core.Holds()[0]
	for socket := uint64(1); socket < 100; socket++ {
		if w.socketAddr(a, socket) == h.Addr {
			w.stepAgent(i, agent.Expired{Socket: socket, Epoch: h.Epoch})
		}
	}
}

func TestTopologyChange(t *testing.T) {
	w := running(t)
	up := w.core.groups[1].active.plan.Tree.Vertices[1].Up
	w.overlay = must(w.overlay.With(topology.LinkState(up, false)))
	w.step(TopologyChanged{View: w.overlay.View()})
	if n := w.out.Withdrawals; len(n) != 3 || !strings.Contains(n[0].Why, "down") {
		t.Fatalf("%+v", n)
	}
	lost := w.core.groups[1].lost
	if lost == nil || lost.epoch != 2 {
		t.Fatalf("the plan to come does not know the tree that was lost: %+v", lost)
	}
	w.run(time.Second)
	w.want(t, Active, 4)
	if w.core.groups[1].lost != nil {
		t.Error("a lost tree is kept beyond the next one")
	}
	// Another fabric's view is not this one's.
	w.step(TopologyChanged{View: smallFabric().View()})
	w.want(t, Active, 4)
}

func TestDrainWithoutAnotherWay(t *testing.T) {
	w := running(t)
	w.ask(Drain{Switch: w.agents[0].name, On: true})
	w.run(time.Second)
	w.want(t, Active, 2)
	e, _ := w.core.Group(1)
	var why *Refusal
	if !errors.As(e.Refusal, &why) || why.Switch != "leaf-0" || !strings.HasPrefix(why.Resource, "reservations") {
		t.Fatalf("%v", e.Refusal)
	}
	if s := w.core.Switches()[0]; !s.Drained || s.Name != "leaf-0" || s.Used != 32 {
		t.Fatalf("%+v", s)
	}
	w.ask(Drain{Switch: w.agents[0].name})
	w.run(time.Second)
	w.want(t, Active, 2)
	if e, _ := w.core.Group(1); e.Refusal != nil {
		t.Fatalf("%v", e.Refusal)
	}
}

// A group that nobody watches is released, also after a restart.
func TestAbandoned(t *testing.T) {
	w := running(t)
	w.killManager()
	w.reconnect()
	w.run(DefaultConfig().Abandon - time.Second)
	w.want(t, Active, 2)
	w.run(time.Minute)
	w.checkSwitches()
	if len(w.core.Groups()) != 0 || w.fault != nil {
		t.Fatalf("%+v; %v", w.core.Groups(), w.fault)
	}
}

func TestEpochsUsedUp(t *testing.T) {
	w := connected(1000)
	w.create("g", 16, 0, 2)
	w.watch(1, 0)
	w.watch(1, 1)
	w.step(Report{Group: 1, Rank: 0, Entered: 1<<32 - 3, Transport: HostTree})
	w.settle()
	w.want(t, Active, 1<<32-2)
	w.step(Report{Group: 1, Rank: 0, Entered: 1<<32 - 1, Transport: HostTree})
	w.run(time.Second)
	w.want(t, Refusing, 0)
	e, _ := w.core.Group(1)
	if !errors.Is(e.Refusal, ErrEpochs) || e.Hosts != 1 || e.Offload != 0 {
		t.Fatalf("%v, %d by hosts", e.Refusal, e.Hosts)
	}
}

// With MaxAttempts refusals in a row the group counts as refused, and says
// what the switch said.
func TestAgentRefuses(t *testing.T) {
	w := connected(1000)
	for i := range w.agents {
		w.stepAgent(i, agent.Drain{On: true}) // the manager does not know
	}
	w.watchAll(w.create("g", 16, 0, 2).Group)
	w.run(10 * time.Second)
	w.want(t, Refusing, 0)
	e, _ := w.core.Group(1)
	if !errors.Is(e.Refusal, ErrRefused) || !errors.Is(e.Refusal, agent.ErrDraining) {
		t.Fatal(e.Refusal)
	}
	for i := range w.agents {
		w.stepAgent(i, agent.Drain{})
	}
	w.run(time.Minute)
	if e, _ := w.core.Group(1); e.State != Active || w.fault != nil {
		t.Fatalf("%v: %v; %v", e.State, e.Refusal, w.fault)
	}
}

// A switch that has slots, but no more of them side by side, is given a smaller
// window: the answer to the Commit says so, which comes after the news that the
// epoch has ended.
func TestSlotsInOnePiece(t *testing.T) {
	w := connected(1000)
	for _, a := range w.agents {
		a.piece = 32
	}
	w.cfg.StartWindow = 64
	w.startManager()
	for i := range w.agents {
		w.connect(i)
	}
	w.settle()
	w.watchAll(w.create("g", 64, 0, 2).Group)
	w.run(10 * time.Second)
	e, _ := w.core.Group(1)
	if e.State != Active || w.core.groups[1].active.window != 16 || w.fault != nil {
		t.Fatalf("%v: %v; %v", e.State, e.Refusal, w.fault)
	}
}

func TestBackOff(t *testing.T) {
	c := Config{RetryMin: time.Second, RetryMax: 5 * time.Second}
	for failures, want := range []time.Duration{1, 1, 2, 4, 5, 5} {
		if got := c.delay(failures); got != want*time.Second {
			t.Errorf("after %d failures %v, want %v s", failures, got, want)
		}
	}
}

// What an agent's earlier incarnation has said counts no longer.
func TestWordOfTheDead(t *testing.T) {
	w := running(t)
	a := w.agents[w.on(1)]
	for _, in := range []Input{
		Ended{Switch: a.name, End: agent.Ended{Incarnation: a.lives - 1, Group: 1, Epoch: 2}},
		Answer{Switch: a.name, Reply: agent.Reply{Incarnation: a.lives - 1, Kind: agent.Removed, Group: 1, Epoch: 2}},
	} {
		w.step(in)
		w.want(t, Active, 2)
	}
	// The same of the living is the end of the tree.
	w.step(Answer{Switch: a.name, Reply: agent.Reply{Incarnation: a.lives, Kind: agent.Removed, Group: 1, Epoch: 2}})
	if len(w.out.Withdrawals) != 3 {
		t.Fatalf("%+v", w.out)
	}
}

// Trees that members do not leave do not pile up.
func TestMaxDraining(t *testing.T) {
	w := newWorld(smallFabric(), Config{MaxDraining: 2}, 1000)
	w.reconnect()
	w.watchAll(w.create("g", 16, 0, 2, 4).Group)
	w.settle()
	for i := range 6 {
		w.ask(Drain{Switch: w.agents[3+i%2].name, On: true})
		w.ask(Drain{Switch: w.agents[4-i%2].name})
		w.run(time.Second)
	}
	e, _ := w.core.Group(1)
	if len(e.Trees) != 3 || e.Trees[0].Epoch != 2 || e.Epoch != 6 {
		t.Fatalf("%+v", e.Trees)
	}
	w.enterAll(6)
	w.run(time.Second)
	if e, _ = w.core.Group(1); e.State != Active || w.fault != nil {
		t.Fatalf("%v; %v", e, w.fault)
	}
	w.enterAll(e.Epoch)
	w.run(time.Second)
	w.checkSwitches()
	w.want(t, Active, e.Epoch)
}

// A switch whose agent nobody has met is not used, and the refusal says so.
func TestNoAgent(t *testing.T) {
	w := newWorld(smallFabric(), Config{}, 1000)
	w.connect(0)
	w.watchAll(w.create("g", 16, 0, 2).Group)
	w.settle()
	w.want(t, Refusing, 0)
	e, _ := w.core.Group(1)
	if want := "agent (not connected) on switch leaf-1"; !strings.Contains(e.Refusal.Error(), want) {
		t.Fatalf("%v, want %q", e.Refusal, want)
	}
	w.reconnect()
	w.run(time.Second)
	w.want(t, Active, 2)
}

func TestNames(t *testing.T) {
	if Waiting.String() != "waiting" || Releasing.String() != "releasing" || State(99).String() != "state(?)" ||
		TreeGone.String() != "gone" || Stage(99).String() != "stage(?)" || HostTree.String() != "host-tree" || Transport(99).String() != "transport(?)" {
		t.Error("names")
	}
}

func TestDeadlineOfAnEmptyCore(t *testing.T) {
	c := must(New(smallFabric(), Config{}))
	if at := c.Deadline(); at != core.Never {
		t.Fatal(at)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, c := range map[string]Config{
		"groups":   {MaxGroups: -1},
		"members":  {MaxMembers: 1},
		"window":   {MaxWindow: 5},
		"windows":  {MaxWindow: 4, MinWindow: 8},
		"too wide": {MaxWindow: 1 << 30},
		"period":   {Answer: -1},
		"retries":  {RetryMin: time.Hour},
	} {
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(smallFabric(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: New: %v", name, err)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{MaxWindow: 4}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(nil, Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("no graph: %v", err)
	}
}
