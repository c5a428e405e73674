package manager

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/topology"
)

// records returns what is stored.
func (w *world) records() []Record {
	var all []Record
	for _, r := range w.disk {
		all = append(all, r)
	}
	return all
}

// A manager that is restarted goes on with the trees that are active, and
// members that come back are offered the same.
func TestRestart(t *testing.T) {
	w := running(t)
	w.enterAll(2)
	before := w.members[[2]uint32{1, 2}].offers[0]
	w.killManager()
	w.want(t, Active, 2)
	for l := range w.graph.Links() {
		if w.load.LinkTrees(topology.LinkID(l)) > 1 {
			t.Fatal("the tree counts twice")
		}
	}
	if w.loaded != 1 {
		t.Fatalf("%d trees count", w.loaded)
	}
	w.reconnect()
	if n := len(w.out.Removes) + len(w.out.Withdrawals); n != 0 {
		t.Fatalf("a running tree is disturbed: %+v", w.out)
	}
	w.members[[2]uint32{1, 2}].offers = nil
	w.watchAll(1)
	w.run(time.Minute)
	w.checkSwitches()
	w.want(t, Active, 2)
	after := w.members[[2]uint32{1, 2}].offers[0]
	if after.Stream = before.Stream; !reflect.DeepEqual(after, before) {
		t.Fatalf("%+v before, %+v now", before, after)
	}
}

// What a switch lost while there was no manager is noticed when they meet.
func TestRestartAfterLoss(t *testing.T) {
	for name, loss := range map[string]func(*world){
		"restarted": func(w *world) { w.crash(w.on(1)) },
		"expired":   func(w *world) { w.expireOn(w.on(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			i := w.on(1)
			for k := range w.agents {
				w.agents[k].connected = false
			}
			loss(w)
			w.killManager()
			w.want(t, Active, 2)
			w.watchAll(1)
			w.connect(i)
			if n := len(w.out.Withdrawals); n != 3 {
				t.Fatalf("%d withdrawals", n)
			}
			w.reconnect()
			w.run(time.Minute)
			w.checkSwitches()
			w.want(t, Active, 4)
		})
	}
}

// Two trees at once survive, too, and the older goes when it is left.
func TestRestartWithTwoTrees(t *testing.T) {
	w := running(t)
	w.enterAll(2)
	w.ask(Drain{Switch: w.agents[w.on(0)].name, On: true})
	w.settle()
	w.want(t, Active, 4)
	w.killManager()
	w.reconnect()
	w.watchAll(1)
	w.run(time.Minute)
	e, _ := w.core.Group(1)
	if len(e.Trees) != 2 || e.Trees[0].Epoch != 2 || e.Trees[0].Stage != TreeDraining {
		t.Fatalf("%+v", e.Trees)
	}
	if s := w.core.Switches()[3]; !s.Drained {
		t.Fatalf("the drain is forgotten: %+v", s)
	}
	w.enterAll(4)
	w.run(time.Minute)
	w.checkSwitches()
	w.want(t, Active, 4)
}

func TestRestartOfReleased(t *testing.T) {
	w := running(t)
	w.ask(Release{Group: 1})
	w.killManager()
	w.reconnect()
	w.run(time.Minute)
	w.checkSwitches()
	if len(w.core.Groups()) != 0 || w.fault != nil {
		t.Fatalf("%+v; %v", w.core.Groups(), w.fault)
	}
	if r := w.create("again", 8, 0, 1); r.Group != 2 {
		t.Fatalf("group %d", r.Group)
	}
}

// Nothing that a later manager must know leaves before it is stored.
func TestStoredFirst(t *testing.T) {
	w := connected(1000)
	w.nextReq++
	w.step(Create{Req: w.nextReq, Name: "g", Members: []string{"h0", "h2"}, ChunkBytes: 64, Window: 8, Secret: [32]byte{1}})
	if len(w.replies) != 0 || len(w.out.Persist) != 2 {
		t.Fatalf("%+v", w.out)
	}
	w.store()
	if len(w.replies) != 1 {
		t.Fatal("no reply")
	}
	w.watchAll(1)
	w.plan()
	if len(w.out.Prepares) != 0 || len(w.out.Persist) != 1 {
		t.Fatalf("%+v", w.out)
	}
	w.store()
	if len(w.out.Prepares) != 3 {
		t.Fatalf("%d prepares", len(w.out.Prepares))
	}
	for len(w.toStore) == 0 {
		for i := range w.agents {
			w.deliver(i, 0)
			w.bind(i)
			w.answer(i)
		}
	}
	w.want(t, Preparing, 0)
	w.store()
	if len(w.out.Offers) != 2 {
		t.Fatalf("%d offers", len(w.out.Offers))
	}
	w.step(Report{Group: 1, Rank: 0, Entered: 2, Lost: 2})
	if len(w.out.Withdrawals) != 2 || len(w.out.Removes) != 0 {
		t.Fatalf("%+v", w.out)
	}
	w.store()
	if len(w.out.Removes) != 3 || w.fault != nil {
		t.Fatalf("%d removes; %v", len(w.out.Removes), w.fault)
	}
}

// What a store refuses is answered at once, and the groups that were asked for are
// neither in the manager nor, after a restart, in the store. What runs goes on.
func TestUnstored(t *testing.T) {
	w := running(t)
	w.full = true
	names := []string{"other", "more"}
	for i := range names { // before anybody knows that the store fails
		w.nextReq++
		w.step(Create{Req: w.nextReq, Name: names[i], Members: []string{"h0", "h2"}, ChunkBytes: 64, Window: 8, Secret: [32]byte{1}})
	}
	w.watchAll(2) // by a member that has guessed its number
	w.store()
	late := w.create("late", 8, 0, 2)
	root := w.on(0)
	drained := w.ask(Drain{Switch: w.agents[root].name, On: true})
	for _, r := range []Reply{w.replies[w.nextReq-3], w.replies[w.nextReq-2], late, drained} {
		if !errors.Is(r.Err, ErrNotStored) || !errors.Is(r.Err, errFull) || r.Group != 0 {
			t.Errorf("answered %+v", r)
		}
	}
	if again := w.create("g", 16, 0, 2, 4); again.Err != nil || !again.Found {
		t.Errorf("the group that runs: %+v", again)
	}
	if all := w.core.Groups(); len(all) != 1 || w.fault != nil {
		t.Errorf("groups %+v, %v", all, w.fault)
	}
	w.want(t, Active, 2)

	w.full = false
	w.settle()
	if r := w.create("late", 8, 0, 2); r.Err != nil || r.Found {
		t.Errorf("with room again: %+v", r)
	}
	w.killManager()
	if all := w.core.Groups(); len(all) != 2 || all[1].Name != "late" || !w.core.Switches()[root].Drained || w.fault != nil {
		t.Errorf("after a restart: %+v, %v", all, w.fault)
	}
}

// What the driver keeps is stored at its place, and answered if somebody waits.
func TestKeep(t *testing.T) {
	w := running(t)
	var out Output
	w.core.Step(w.now, []Input{
		Keep{Kind: HistoryRecord, Place: 7, Kept: []byte("a")}, Keep{Kind: MapRecord, Kept: []byte("b")}, Keep{Kind: HistoryRecord, Place: 7, Kept: []byte("c")},
		Keep{Req: 1, Kind: MapRecord, Place: 1, Kept: []byte("d")}, Keep{Req: 2, Kind: TreesRecord, Kept: []byte("e")}, Keep{Req: 3, Kind: HistoryRecord},
	}, &out)
	var kept []string
	for _, r := range out.Persist {
		kept = append(kept, fmt.Sprintf("%d %d %s", r.Kind, r.Group, r.Kept))
	}
	if want := []string{"6 7 a", "5 0 b", "6 7 c"}; !slices.Equal(kept, want) {
		t.Errorf("stored are %q, want %q", kept, want)
	}
	if len(out.Replies) != 3 || !errors.Is(out.Replies[0].Err, ErrRequest) || !errors.Is(out.Replies[1].Err, ErrRequest) || !errors.Is(out.Replies[2].Err, ErrRequest) {
		t.Errorf("replies %+v", out.Replies)
	}
}

// asJSON writes records as a store does, with the secrets that they hide from JSON.
func asJSON(records []Record) []byte {
	type spec struct {
		*Spec
		Secret [32]byte
	}
	type disclosed struct {
		Record
		Spec *spec
	}
	all := make([]disclosed, len(records))
	for i, r := range records {
		if all[i].Record = r; r.Spec != nil {
			all[i].Spec = &spec{r.Spec, r.Spec.Secret}
		}
	}
	return must(json.Marshal(all))
}

// Records are plain values: they survive a store that writes JSON.
func TestRecordsAsJSON(t *testing.T) {
	w := running(t)
	var read []Record
	text := asJSON(w.records())
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if again := asJSON(read); !bytes.Equal(again, text) {
		t.Errorf("%s, want %s", again, text)
	}
	w.core = must(Restore(w.graph, w.cfg, read))
	w.want(t, Active, 2)
}

func TestRestoreErrors(t *testing.T) {
	w := running(t)
	for _, c := range []struct {
		name   string
		change func(*Record)
		want   error
	}{
		{"no value", func(r *Record) { r.Trees = nil }, ErrRequest},
		{"unknown kind", func(r *Record) {
			if r.Kind == FleetRecord {
				r.Fleet = nil
			}
		}, ErrRequest},
	} {
		records := w.records()
		for i := range records {
			c.change(&records[i])
		}
		if _, err := Restore(w.graph, w.cfg, records); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A tree that the fabric no longer has, because somebody has redrawn it, is
// removed from the switches that hold it, and its epoch is not used again.
func TestRestoreRedrawnFabric(t *testing.T) {
	w := running(t)
	records := w.records()
	for i := range records {
		if r := &records[i]; r.Trees != nil {
			trees := *r.Trees
			trees.Live = append([]Tree(nil), trees.Live...)
			trees.Live[0].Switches = append([]Site(nil), trees.Live[0].Switches...)
			trees.Live[0].Switches[1].Name = "other"
			r.Trees = &trees
		}
	}
	c := must(Restore(w.graph, w.cfg, records))
	var out Output
	a := w.agents[0]
	c.Step(w.now, []Input{SwitchUp{Switch: a.name, Incarnation: a.lives, Capability: a.core.Capability(), Holds: a.core.Holds()}}, &out)
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	e, _ := c.Group(1)
	if e.Epoch != 0 || len(out.Loads)+len(out.Removes) != 0 || len(out.Persist) != 1 || len(out.Persist[0].Trees.Live) != 0 {
		t.Fatalf("%+v; %+v", e, out)
	}
	// A later manager, with the fabric as it was, must not go on with it.
	stored := Stored{out.Persist[0].Seq}
	out.Reset()
	c.Step(c.Deadline(), []Input{stored}, &out)
	if len(out.Removes) != 1 || out.Removes[0].Epoch != 2 {
		t.Fatalf("%+v", out)
	}
	if used := c.Switches()[0].Used; used != 32 {
		t.Fatalf("%d slots count while the switch has not answered", used)
	}
	// Asked again until it is answered.
	out.Reset()
	at := c.Deadline()
	c.Step(at, nil, &out)
	if len(out.Removes) != 1 {
		t.Fatalf("%+v", out)
	}
	out.Reset()
	c.Step(at, []Input{Answer{Switch: a.name, Reply: agent.Reply{Incarnation: a.lives, Kind: agent.Removed, Group: 1, Epoch: 2}}}, &out)
	if used := c.Switches()[0].Used; used != 0 || c.groups[1].epoch != 2 {
		t.Fatalf("%d slots, epoch %d", used, c.groups[1].epoch)
	}
}

// The same inputs make the same outputs.
func TestDeterministic(t *testing.T) {
	graph := smallFabric()
	for seed := range uint64(5) {
		var sums [2][]byte
		for i := range sums {
			sum := sha256.New()
			random := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(graph, smallConfig(), 64)
			w.watcher = func(out *Output) { digest(sum, out) }
			for range 300 {
				w.play(byte(random.IntN(kinds)), byte(random.Uint32()), byte(random.Uint32()))
			}
			sums[i] = sum.Sum(nil)
		}
		if string(sums[0]) != string(sums[1]) {
			t.Fatalf("seed %d has two outcomes", seed)
		}
	}
}

func digest(sum hash.Hash, out *Output) {
	fmt.Fprintln(sum, out.Loads, out.Unloads, out.Plans, out.Prepares, out.Commits, out.Removes, out.Offers, out.Withdrawals)
	for _, r := range out.Persist {
		fmt.Fprintln(sum, r.Seq, r.Kind, r.Group, r.Delete)
	}
	for _, n := range out.Notices {
		fmt.Fprintln(sum, n)
	}
}
