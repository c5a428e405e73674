package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func prepareOf(group, epoch, window uint32) Prepare {
	return Prepare{
		Incarnation: 7, Group: group, Epoch: epoch, Children: 2, Window: window, ChunkBytes: 1024,
		Functions: topology.AllFunctions(), Types: topology.AllTypes(),
	}
}

func commitOf(group, epoch, window uint32) Commit {
	return Commit{Incarnation: 7, Config: aggregateConfig(group, epoch, window)}
}

func removeOf(group, epoch uint32) Remove { return Remove{Incarnation: 7, Group: group, Epoch: epoch} }

// wait lets time pass.
type wait time.Duration

func (wait) input() {}

// TestTransitions gives each state of an epoch each request, and checks the
// last answer.
func TestTransitions(t *testing.T) {
	bound := Bound{Socket: 1, Addr: testAddr(1)}
	changed := func(f func(*Prepare)) Prepare {
		p := prepareOf(1, 2, 8)
		f(&p)
		return p
	}
	otherConfig := commitOf(1, 2, 8)
	otherConfig.Config.Probes++
	sealedCommit := commitOf(1, 2, 8)
	sealedCommit.Config.Protection = wire.Encrypted
	none := ReplyKind(0)
	for _, c := range []struct {
		name  string
		in    []Input
		want  ReplyKind
		error error
	}{
		{"unknown: prepare waits for its socket", []Input{prepareOf(1, 2, 8)}, none, nil},
		{"unknown: prepare", []Input{prepareOf(1, 2, 8), bound}, Prepared, nil},
		{"unknown: commit", []Input{commitOf(1, 2, 8)}, Refused, ErrStaleEpoch},
		{"unknown: remove", []Input{removeOf(1, 2)}, Removed, nil},
		{"unknown: prepare after its remove", []Input{removeOf(1, 2), prepareOf(1, 2, 8)}, Refused, ErrStaleEpoch},
		{"unknown: prepare of a later epoch after remove", []Input{removeOf(1, 2), prepareOf(1, 4, 8), bound}, Prepared, nil},

		{"opening: prepare again", []Input{prepareOf(1, 2, 8), prepareOf(1, 2, 8)}, Refused, ErrSuperseded},
		{"opening: prepare again, then bound", []Input{prepareOf(1, 2, 8), prepareOf(1, 2, 8), bound}, Prepared, nil},
		{"opening: commit", []Input{prepareOf(1, 2, 8), commitOf(1, 2, 8)}, Refused, ErrRequest},
		{"opening: remove", []Input{prepareOf(1, 2, 8), removeOf(1, 2)}, Removed, nil},
		{"opening: socket fails", []Input{prepareOf(1, 2, 8), Bound{Socket: 1, Failed: "no port"}}, Refused, ErrSocket},
		{"opening: a second epoch", []Input{prepareOf(1, 2, 8), prepareOf(1, 4, 8), bound}, Prepared, nil},
		{"opening: runs out", []Input{prepareOf(1, 2, 8), wait(time.Second)}, Refused, ErrStaleEpoch},

		{"prepared: prepare again", []Input{prepareOf(1, 2, 8), bound, prepareOf(1, 2, 8)}, Prepared, nil},
		{"prepared: prepare on other terms", []Input{prepareOf(1, 2, 8), bound, prepareOf(1, 2, 4)}, Refused, ErrConflict},
		{"prepared: commit", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8)}, Committed, nil},
		{"prepared: commit of sealed packets", []Input{prepareOf(1, 2, 8), bound, sealedCommit}, Refused, ErrConflict},
		{"prepared: commit of another window", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 4)}, Refused, ErrConflict},
		{"prepared: commit of nonsense", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 3)}, Refused, ErrRequest},
		{"prepared: commit when the lease is over", []Input{prepareOf(1, 2, 8), bound, wait(time.Second), commitOf(1, 2, 8)}, Refused, ErrStaleEpoch},
		{"prepared: commit just in time", []Input{prepareOf(1, 2, 8), bound, wait(time.Second - 1), commitOf(1, 2, 8)}, Committed, nil},
		{"prepared: an earlier epoch", []Input{prepareOf(1, 4, 8), bound, prepareOf(1, 2, 8)}, Refused, ErrStaleEpoch},

		{"committed: commit again", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), commitOf(1, 2, 8)}, Committed, nil},
		{"committed: commit of something else", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), otherConfig}, Refused, ErrConflict},
		{"committed: prepare again", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), prepareOf(1, 2, 8)}, Prepared, nil},
		{"committed: stays without its prepare lease", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), wait(time.Hour), commitOf(1, 2, 8)}, Committed, nil},
		{"committed: expired, commit", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), Expired{Socket: 1, Epoch: 2}, commitOf(1, 2, 8)}, Refused, ErrStaleEpoch},
		{"committed: remove, prepare", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), removeOf(1, 2), prepareOf(1, 2, 8)}, Refused, ErrStaleEpoch},
		{"committed: next epoch", []Input{prepareOf(1, 2, 8), bound, commitOf(1, 2, 8), prepareOf(1, 4, 16), commitOf(1, 4, 16)}, Committed, nil},
		{"committed: earlier epoch overtaken", []Input{prepareOf(1, 2, 8), prepareOf(1, 4, 8), bound, commitOf(1, 4, 8), commitOf(1, 2, 8)}, Refused, ErrStaleEpoch},

		{"committed: earlier epoch overtaken by one that is gone", []Input{prepareOf(1, 2, 8), prepareOf(1, 4, 8), bound, commitOf(1, 4, 8), Expired{Socket: 1, Epoch: 4}, commitOf(1, 2, 8)}, Refused, ErrStaleEpoch},

		{"another incarnation: prepare", []Input{changed(func(p *Prepare) { p.Incarnation = 6 })}, Refused, ErrIncarnation},
		{"another incarnation: commit", []Input{Commit{Incarnation: 6}}, Refused, ErrIncarnation},
		{"another incarnation: remove", []Input{Remove{Incarnation: 6}}, Refused, ErrIncarnation},
		{"too many children", []Input{changed(func(p *Prepare) { p.Children = 5 })}, Refused, ErrResource},
		{"too large a chunk", []Input{changed(func(p *Prepare) { p.ChunkBytes = 1025 })}, Refused, ErrResource},
		{"too many slots", []Input{prepareOf(1, 2, 64)}, Refused, ErrResource},
		{"all slots", []Input{prepareOf(1, 2, 32), bound}, Prepared, nil},
		{"too many epochs", []Input{prepareOf(1, 2, 8), prepareOf(1, 4, 8), prepareOf(1, 6, 8), prepareOf(1, 8, 8), prepareOf(1, 10, 8)}, Refused, ErrResource},
		{"odd epoch", []Input{prepareOf(1, 3, 8)}, Refused, ErrRequest},
		{"no window", []Input{prepareOf(1, 2, 0)}, Refused, ErrRequest},
		{"drained", []Input{Drain{On: true}, prepareOf(1, 2, 8)}, Refused, ErrDraining},
		{"drained: what was there stays", []Input{prepareOf(1, 2, 8), bound, Drain{On: true}, commitOf(1, 2, 8)}, Committed, nil},
		{"no longer drained", []Input{Drain{On: true}, Drain{}, prepareOf(1, 2, 8), bound}, Prepared, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(testConfig())
			var last *Reply
			for _, in := range c.in {
				if w, ok := in.(wait); ok {
					b.now = b.now.Add(time.Duration(w))
					in = nil
				}
				b.bind(in)
				if out := b.step(in); len(out.Replies) > 0 {
					reply := out.Replies[len(out.Replies)-1]
					last = &reply
				}
			}
			if b.fault != nil {
				t.Fatal(b.fault)
			}
			if c.want == none {
				if last != nil {
					t.Fatalf("answered %v, want no answer", last.Kind)
				}
				return
			}
			if last == nil || last.Kind != c.want {
				t.Fatalf("last answer %+v, want %v", last, c.want)
			}
			if c.error != nil && !errors.Is(last.Refusal, c.error) {
				t.Fatalf("refused with %q, want %q", last.Refusal, c.error)
			}
		})
	}
}

// bind marks the socket that in has opened.
func (b *bench) bind(in Input) {
	if in, ok := in.(Bound); ok {
		if s := b.sockets[in.Socket]; s != nil && in.Failed == "" {
			s.bound = true
		}
	}
}

func TestCapabilityIsChecked(t *testing.T) {
	cfg := testConfig()
	cfg.Capability.Functions = topology.FunctionsOf(reduce.Sum)
	cfg.Capability.Types = topology.TypesOf(reduce.Float32)
	for _, c := range []struct {
		functions topology.Functions
		types     topology.Types
		want      Cause
	}{
		{topology.FunctionsOf(reduce.Sum, reduce.Min), topology.TypesOf(reduce.Float32), Functions},
		{topology.FunctionsOf(reduce.Sum), topology.TypesOf(reduce.Int32), Types},
	} {
		b := newBench(cfg)
		p := prepareOf(1, 2, 8)
		p.Functions, p.Types = c.functions, c.types
		out := b.step(p)
		if got := out.Replies[0].Refusal; got == nil || got.Cause != c.want || !errors.Is(got, ErrCapability) {
			t.Errorf("%v over %v: %v, want %v", c.functions, c.types, got, c.want)
		}
	}
}

// A refusal for slots names the switch, what is free, and the largest holders.
// TestOffer has a data plane that fails, and comes back with less.
func TestOffer(t *testing.T) {
	c, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	step := func(in ...Input) *Output {
		out := new(Output)
		c.Step(0, in, out)
		return out
	}
	step(prepareOf(1, 2, 8), Bound{Socket: 1, Addr: testAddr(1)}, commitOf(1, 2, 8))
	refused := step(Offer{Unusable: "the target is wedged; restart it"}, prepareOf(2, 2, 1), prepareOf(1, 4, 8)).Replies
	if len(refused) != 2 || c.Capability() != (topology.Capability{}) || c.Unusable() == "" {
		t.Errorf("%d replies, offered %+v, unusable: %q", len(refused), c.Capability(), c.Unusable())
	}
	for _, r := range refused {
		if r.Kind != Refused || !errors.Is(r.Refusal, ErrSocket) || !strings.Contains(r.Refusal.Error(), "restart it") {
			t.Errorf("got %+v", r)
		}
	}
	if used, all := c.Slots(); used != 16 || all != 0 {
		t.Errorf("%d of %d slots are used; what is promised stays", used, all)
	}
	lost := step(Expired{Socket: 1, Epoch: 2, Lost: true}).Ended
	if len(lost) != 1 || lost[0].Why != PlaneFailed || lost[0].Epoch != 2 {
		t.Errorf("got %+v", lost)
	}
	less := testConfig().Capability
	less.Slots = 8
	out := step(Offer{Capability: less}, prepareOf(1, 4, 8), prepareOf(1, 6, 4))
	if len(out.Replies) != 1 || !errors.Is(out.Replies[0].Refusal, ErrResource) || out.Replies[0].Refusal.Free != 8 || len(out.Actions) != 1 {
		t.Errorf("got %+v, %+v", out.Replies, out.Actions)
	}
}

func TestRefusalNamesHolders(t *testing.T) {
	cfg := testConfig()
	cfg.Capability.Slots = 2 * 40
	b := newBench(cfg)
	b.step(prepareOf(50, 2, 16))
	for group := uint32(1); group <= 20; group++ {
		b.step(prepareOf(group, 2, 1))
	}
	out := b.step(prepareOf(99, 2, 16))
	why := out.Replies[0].Refusal
	if why.Need != 32 || why.Free != 8 || len(why.Holders) != MaxHolders || why.More != 5 || why.Holders[0] != (Holder{50, 32}) {
		t.Fatalf("%+v", why)
	}
	want := "switch s1 refuses: slots: needed 32, free 8; held by group 50 (32), group 1 (2), group 2 (2), "
	if !strings.HasPrefix(why.Error(), want) || !strings.HasSuffix(why.Error(), "group 15 (2) and 5 more") {
		t.Fatal(why)
	}
	if b.fault != nil {
		t.Fatal(b.fault)
	}
}

// Its own slots do not stand in a new epoch's way.
func TestTakeOver(t *testing.T) {
	b := newBench(testConfig())
	b.step(prepareOf(1, 2, 32))
	if out := b.step(prepareOf(1, 4, 32)); len(out.Replies) != 0 {
		t.Fatalf("refused: %v", out.Replies[0].Refusal)
	}
	if used, _ := b.core.Slots(); used != 64 {
		t.Fatalf("%d slots, want 64", used)
	}
	b.step(removeOf(1, 2))
	if used, _ := b.core.Slots(); used != 64 || b.fault != nil {
		t.Fatalf("%d slots after the first has gone, want 64; %v", used, b.fault)
	}
}

func TestDeadline(t *testing.T) {
	b := newBench(testConfig())
	if at := b.core.Deadline(); at != core.Never {
		t.Fatalf("deadline %v of an empty core", at)
	}
	b.step(prepareOf(1, 2, 8))
	if at := b.core.Deadline(); at != core.Time(time.Second) {
		t.Fatalf("deadline %v", at)
	}
	b.now = core.Time(time.Second / 2)
	p := prepareOf(2, 2, 8)
	p.Lease = time.Millisecond
	b.step(p)
	if at := b.core.Deadline(); at != b.now.Add(time.Millisecond) {
		t.Fatalf("deadline %v", at)
	}
	b.now = core.Time(time.Second)
	if out := b.step(nil); len(out.Ended) != 2 || b.core.Deadline() != core.Never || b.fault != nil {
		t.Fatalf("%+v; %v", out.Ended, b.fault)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no name":        func(c *Config) { c.Name = "" },
		"no incarnation": func(c *Config) { c.Incarnation = 0 },
		"lease":          func(c *Config) { c.PrepareLease = -1 },
		"epochs":         func(c *Config) { c.Epochs = 100 },
		"capability":     func(c *Config) { c.Capability.Slots = -1 },
	} {
		cfg := testConfig()
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	for c := Slots; c <= Superseded; c++ {
		if strings.HasPrefix(c.String(), "cause(") || (&Refusal{Cause: c}).Unwrap() == nil {
			t.Errorf("cause %d has no name or error", c)
		}
	}
	if Cause(200).String() != "cause(200)" || (&Refusal{Cause: 200}).Unwrap() != nil {
		t.Error("an unknown cause has a name or error")
	}
	if Open.String() != "open" || Refused.String() != "refused" || ActionKind(99).String() != "action(?)" ||
		ReplyKind(99).String() != "reply(?)" || EndReason(99).String() != "end(?)" {
		t.Error("names")
	}
}

// TestReducer: what the driver reports an epoch is reported with every later answer
// about it; what is said of one that there is not is ignored.
func TestReducer(t *testing.T) {
	c, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	p4 := topology.Reducer{Pipeline: topology.P4}
	p4.Own[reduce.Int32] = topology.FunctionsOf(reduce.Sum)
	var out Output
	c.Step(1, []Input{
		prepareOf(1, 2, 8), Bound{Socket: 1, Addr: testAddr(1)},
		Installed{Socket: 1, Epoch: 2, Reducer: topology.SoftwareReducer()}, // before it is committed
		commitOf(1, 2, 8),
	}, &out)
	if hold := c.Holds()[0]; hold.Reducer != (topology.Reducer{}) || out.Replies[len(out.Replies)-1].Reducer != (topology.Reducer{}) {
		t.Errorf("before the driver has reported: %+v, %+v", hold, out.Replies)
	}
	out.Reset()
	c.Step(2, []Input{
		Installed{Socket: 1, Epoch: 2, Reducer: p4}, Installed{Socket: 1, Epoch: 4, Reducer: topology.SoftwareReducer()},
		Installed{Socket: 9, Epoch: 2, Reducer: topology.SoftwareReducer()}, commitOf(1, 2, 8),
	}, &out)
	if hold := c.Holds()[0]; hold.Reducer != p4 || len(out.Replies) != 1 || out.Replies[0].Kind != Committed || out.Replies[0].Reducer != p4 {
		t.Errorf("%+v, %+v", hold, out.Replies)
	}
}
