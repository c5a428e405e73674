package p4rt

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// short is a configuration with deadlines that a test can wait for. Whatever is
// to answer in time should have been there before: see adopt.
func short(address string) Config {
	c := configOf(address)
	c.Deadline, c.PushDeadline = 500*time.Millisecond, 500*time.Millisecond
	return c
}

// adopt returns a client with short deadlines of a target that has the program.
func adopt(t *testing.T, server *p4rttest.Target) *owned {
	t.Helper()
	newPrimary(t, configOf(server.Address())).Close()
	c := dial(t, short(server.Address()))
	c.await(Primary)
	return c
}

func TestTargetThatHangs(t *testing.T) {
	t.Run("when connecting", func(t *testing.T) {
		t.Parallel()
		server := target(t)
		hung := server.Hang(p4rttest.Capabilities)
		c := dial(t, short(server.Address()))
		if e := c.next(); e.Kind != Lost || !errors.Is(e.Err, ErrWedged) {
			t.Errorf("event: %+v", e)
		}
		hung.Release()
		c.await(Primary)
	})
	t.Run("in the election", func(t *testing.T) {
		t.Parallel()
		server := target(t)
		hung := server.Hang(p4rttest.Stream)
		c := dial(t, short(server.Address()))
		if e := c.next(); e.Kind != Lost || !errors.Is(e.Err, ErrWedged) {
			t.Errorf("event: %+v", e)
		}
		hung.Release()
		c.await(Primary)
	})
	t.Run("in calls", func(t *testing.T) {
		t.Parallel()
		server := target(t)
		c := adopt(t, server)
		for _, m := range []p4rttest.Method{p4rttest.Write, p4rttest.Read, p4rttest.Set} {
			defer server.Hang(m).Release()
		}
		ctx := testContext(t)
		for name, err := range map[string]error{
			"write":     c.Write(ctx, []Update{{Op: Insert, Entry: new(pair(1))}}),
			"read":      errOf(c.Read(ctx)),
			"reconcile": errOf(c.Reconcile(ctx, someState())),
			"push":      errOf(c.Push(ctx)),
			"counter":   errOf(c.Counter(ctx, seen)),
		} {
			if !errors.Is(err, ErrWedged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("at rest", func(t *testing.T) {
		t.Parallel()
		server := target(t)
		c := adopt(t, server)
		hung := server.Hang(p4rttest.Get)
		if e := c.await(Lost); !errors.Is(e.Err, ErrWedged) || !strings.Contains(e.Err.Error(), "cookie") {
			t.Errorf("event: %+v, want that the cookie was not reported", e)
		}
		if err := c.Write(testContext(t), nil); err == nil {
			t.Error("a write to a target that does not answer succeeded")
		}
		hung.Release()
		if e := c.await(Primary); e.Err != nil {
			t.Errorf("event: %+v, want nothing lost", e)
		}
	})
	t.Run("not taking packets", func(t *testing.T) {
		t.Parallel()
		server := target(t)
		c := adopt(t, server)
		defer server.Hang(p4rttest.Stream).Release()
		large := Packet{Payload: make([]byte, 64<<10)}
		var err error
		for err == nil { // until the windows of the connection are full
			err = c.PacketOut(large)
		}
		if e := c.await(Lost); !errors.Is(e.Err, ErrWedged) {
			t.Errorf("event: %+v after %v", e, err)
		}
	})
}

func TestBrokenDeviceConfiguration(t *testing.T) {
	server := target(t)
	config := short(server.Address())
	config.Pipeline.Device = []byte("not JSON")
	c := dial(t, config)
	c.await(Primary)
	if _, err := c.Push(testContext(t)); !errors.Is(err, ErrRefused) {
		t.Errorf("push: %v", err)
	}
	if e := c.await(Lost); !errors.Is(e.Err, ErrWedged) {
		t.Errorf("event: %+v, want wedged", e)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if e := c.await(Primary); !errors.Is(e.Err, ErrNoPipeline) {
		t.Errorf("event: %+v", e)
	}
}

func TestRefusedUpdates(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	var updates []Update
	for label := range byte(pairsRoom + 2) {
		updates = append(updates, Update{Op: Insert, Entry: new(pair(label))})
	}
	updates = append(updates, Update{Op: Insert, Entry: new(guard(1, 1))}) // comes after pairs
	err := c.Write(ctx, updates)
	var w *WriteError
	if !errors.As(err, &w) || !errors.Is(err, ErrTableFull) {
		t.Fatalf("write: %v, want a full table", err)
	}
	if len(w.Failed) != 2 || w.Tried != pairsRoom+2 || w.Left != 1 {
		t.Errorf("%d failed of %d, %d left; want 2 of 6, 1 left", len(w.Failed), w.Tried, w.Left)
	}
	const words = "insert entry of table ingress.pairs for port 510, label 4: ingress.forward(port 1, next 02:00:00:00:00:04)"
	if got := w.Failed[0].Words; got != words {
		t.Errorf("words: %s\n want: %s", got, words)
	}
	if n := len(server.Entries(pairs)); n != pairsRoom {
		t.Errorf("%d entries; the batch is not atomic, want %d", n, pairsRoom)
	}
	for name, test := range map[string]struct {
		update Update
		want   error
	}{
		"insert again":       {Update{Op: Insert, Entry: new(pair(0))}, ErrExists},
		"modify what is not": {Update{Op: Modify, Entry: new(pair(99))}, ErrMissing},
		"delete what is not": {Update{Op: Delete, Group: &p4.Group{ID: 9}}, ErrMissing},
	} {
		if err := c.Write(ctx, []Update{test.update}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestUnexplainedRefusalIsNoFullTable(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	server.Refuse(func(u *p4v1.Update) error {
		if u.GetEntity().GetTableEntry().GetTableId() == pairs {
			return status.Error(codes.Unknown, "")
		}
		return nil
	})
	report, err := c.Reconcile(testContext(t), someState())
	var w *WriteError
	if errors.Is(err, ErrTableFull) || !errors.Is(err, ErrRefused) || !errors.As(err, &w) {
		t.Fatalf("reconcile: %v", err)
	}
	missing := len(w.Failed) + w.Left
	if all := len(someState().Entries) + len(someState().Groups); len(w.Failed) != 1 || w.Left != 2 || report.Inserted != all-missing {
		t.Errorf("report: %+v after %v; want all but a pair, and the two guards that come after it", report, err)
	}
	server.Refuse(nil)
	if report, err := c.Reconcile(testContext(t), someState()); err != nil || report.Inserted != missing {
		t.Errorf("again: %+v, %v; want what is missing", report, err)
	}
}

func TestWholeCallRefused(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	for code, want := range map[codes.Code]error{
		codes.PermissionDenied:   ErrNotPrimary,
		codes.FailedPrecondition: ErrNoPipeline,
		codes.Unavailable:        ErrUnavailable,
		codes.DeadlineExceeded:   ErrWedged,
		codes.Unimplemented:      ErrUnsupported,
		codes.Internal:           ErrRefused,
	} {
		server.Fail(p4rttest.Write, code, "because")
		err := c.Write(testContext(t), []Update{{Op: Insert, Entry: new(pair(1))}})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "because") {
			t.Errorf("%v: %v, want %v", code, err, want)
		}
	}
}

func TestNothingIsSentUnlessAllFits(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	bad := pair(1)
	bad.Params = bad.Params[:1]
	err := c.Write(testContext(t), []Update{{Op: Insert, Entry: new(pair(1))}, {Op: Insert, Entry: &bad}})
	if !errors.Is(err, ErrEntry) || len(server.Updates()) != 0 {
		t.Errorf("write: %v, with %d updates sent", err, len(server.Updates()))
	}
}

func TestFaults(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	for range 3 {
		if err := server.Notify(streamError("no such port")); err != nil {
			t.Fatal(err)
		}
	}
	packet := &p4v1.StreamMessageResponse_Packet{Packet: new(p4v1.PacketIn)}
	for _, m := range []*p4v1.StreamMessageResponse{
		{Update: packet}, {Update: new(p4v1.StreamMessageResponse_Digest)}, {},
	} {
		if err := server.Notify(m); err != nil {
			t.Fatal(err)
		}
	}
	reported, texts := uint64(0), ""
	for reported < 6 {
		e := c.await(Fault)
		reported += e.Count
		texts += e.Err.Error() + "\n"
	}
	for _, part := range []string{"no such port", "packet_in without port", "Digest", "<nil>"} {
		if !strings.Contains(texts, part) {
			t.Errorf("no fault reports %q:\n%s", part, texts)
		}
	}
	if s := c.Stats(); s.Faults != 6 || s.In != 0 || s.Sessions != 1 {
		t.Errorf("stats: %+v, want 6 faults in one session", s)
	}
}

func TestMalformedAnswers(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	if _, err := c.Reconcile(ctx, someState()); err != nil {
		t.Fatal(err)
	}
	edit := func(f func(*p4v1.TableEntry)) func(*p4v1.ReadResponse) {
		return func(m *p4v1.ReadResponse) { f(m.Entities[0].GetTableEntry()) }
	}
	for name, mangle := range map[string]func(*p4v1.ReadResponse){
		"unknown table":   edit(func(e *p4v1.TableEntry) { e.TableId++ }),
		"unknown field":   edit(func(e *p4v1.TableEntry) { e.Match[0].FieldId = 9 }),
		"unknown action":  edit(func(e *p4v1.TableEntry) { e.GetAction().GetAction().ActionId++ }),
		"no action":       edit(func(e *p4v1.TableEntry) { e.Action = nil }),
		"no parameters":   edit(func(e *p4v1.TableEntry) { e.GetAction().GetAction().Params = nil }),
		"wide parameter":  edit(func(e *p4v1.TableEntry) { e.GetAction().GetAction().Params[0].Value = []byte{2, 0} }),
		"other kind":      edit(func(e *p4v1.TableEntry) { e.Match[0].FieldMatchType = nil }),
		"program's table": edit(func(e *p4v1.TableEntry) { e.TableId = kinds }),
		"an entry twice":  func(m *p4v1.ReadResponse) { m.Entities = append(m.Entities, m.Entities[0]) },
		"a group twice": func(m *p4v1.ReadResponse) {
			m.Entities = append(m.Entities, m.Entities[len(m.Entities)-1])
		},
		"an entity of another kind": func(m *p4v1.ReadResponse) {
			m.Entities = append(m.Entities, &p4v1.Entity{Entity: new(p4v1.Entity_RegisterEntry)})
		},
	} {
		server.Mangle(mangle)
		if _, err := c.Read(ctx); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is only another way of saying the same is understood.
	server.Mangle(func(m *p4v1.ReadResponse) {
		for _, e := range m.Entities {
			for _, p := range e.GetTableEntry().GetAction().GetAction().GetParams() {
				p.Value = append([]byte{0, 0, 0}, p.Value...)
			}
			slices.Reverse(e.GetTableEntry().GetMatch())
		}
		m.Entities = append(m.Entities, tableEntity(&p4v1.TableEntry{TableId: kinds, IsConst: true}))
	})
	got, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, someState())
}

func TestPushIsReadBack(t *testing.T) {
	server := target(t)
	c := dial(t, configOf(server.Address()))
	c.await(Primary)
	for name, forge := range map[string]func(*p4v1.ForwardingPipelineConfig){
		"another cookie":               func(f *p4v1.ForwardingPipelineConfig) { f.Cookie.Cookie++ },
		"another P4Info":               func(f *p4v1.ForwardingPipelineConfig) { f.P4Info = new(p4config.P4Info) },
		"another device configuration": func(f *p4v1.ForwardingPipelineConfig) { f.P4DeviceConfig = []byte("{}") },
	} {
		server.Forge(forge)
		if _, err := c.Push(testContext(t)); !errors.Is(err, ErrOtherPipeline) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Forge(func(f *p4v1.ForwardingPipelineConfig) { f.P4DeviceConfig = nil })
	if _, err := c.Push(testContext(t)); err != nil {
		t.Errorf("a target that does not report its device configuration: %v", err)
	}
}

func TestMalformedCounters(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	if _, err := c.Reconcile(ctx, someState()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		mangle func(*p4v1.Entity)
	}{
		{"negative cell", func(e *p4v1.Entity) { e.GetCounterEntry().Index.Index = -1 }},
		{"cell beyond the last", func(e *p4v1.Entity) { e.GetCounterEntry().Index.Index = 4 }},
		{"another counter", func(e *p4v1.Entity) { e.GetCounterEntry().CounterId++ }},
		{"another entity", func(e *p4v1.Entity) { e.Entity = new(p4v1.Entity_RegisterEntry) }},
		{"negative count", func(e *p4v1.Entity) { e.GetCounterEntry().Data.ByteCount = -1 }},
	} {
		server.Mangle(func(m *p4v1.ReadResponse) { test.mangle(m.Entities[0]) })
		if err := errOf(c.Counter(ctx, seen)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	server.Mangle(nil)
	if err := errOf(c.Counter(ctx, seen)); err != nil {
		t.Error(err)
	}
}
