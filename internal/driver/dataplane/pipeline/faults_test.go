package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// unusable waits until the plane offers nothing, for a reason that has a text.
func (b *bench) unusable(says string) {
	b.t.Helper()
	for {
		o := await[dataplane.Offer](b)
		if o.Unusable == "" {
			continue
		}
		if o.Capability != (topology.Capability{}) {
			b.t.Fatalf("offered: %+v", o)
		}
		if strings.Contains(o.Unusable, says) {
			return
		}
	}
}

// inUse returns a plane with an epoch.
func inUse(t *testing.T, target *p4rttest.Target) *bench {
	t.Helper()
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	b.installs(1, root(7, 2))
	return b
}

func TestRestartEndsAllEpochs(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	if err := target.Restart(); err != nil {
		t.Fatal(err)
	}
	if e := await[dataplane.Ended](b); e.Socket != 1 || e.Epoch != 2 || !errors.Is(e.Err, p4rt.ErrRestarted) {
		t.Errorf("%+v", e)
	}
	b.usable()
	if len(target.Entries(p4.TableEpochs)) != 0 || len(target.Entries(p4.TableRoutes)) != 5 {
		t.Errorf("the target holds %v", target.Entries(0))
	}
	if err := b.epoch(1, root(7, 2)); !errors.Is(err, ErrStale) {
		t.Errorf("the same epoch again: %v", err)
	}
	b.installs(1, root(7, 4))
}

func TestABrokenConnectionEndsNothing(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	before := target.Updates()
	if err := target.Disconnect(); err != nil {
		t.Fatal(err)
	}
	b.unusable("p4rt: the target cannot be reached")
	b.usable()
	b.counted() // nothing else is reported
	if again := target.Updates(); len(before) == 0 || len(again) != 0 {
		t.Errorf("written again: %v", again)
	}
	b.installs(1, root(7, 4))
}

func TestWithoutATarget(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	target.Stop()
	b.unusable("cannot be reached")
	b.Open(2, 8)
	if o := await[dataplane.Opened](b); !errors.Is(o.Err, ErrUnusable) || !errors.Is(o.Err, p4rt.ErrUnavailable) {
		t.Errorf("open: %v", o.Err)
	}
	if err := b.epoch(1, root(7, 4)); !errors.Is(err, ErrUnusable) {
		t.Errorf("install: %v", err)
	}
	if n := b.counted(); len(n.Trees) != 1 {
		t.Errorf("counted: %+v", n)
	}
	b.Shut(1)
	b.counted()
}

func TestWedged(t *testing.T) {
	target := newTarget(t)
	c := configOf(target.Address())
	quick := c.adjust
	c.adjust = func(s *p4rt.Config) { quick(s); s.Deadline = 2 * time.Second }
	b := newBench(t, c)
	b.usable()
	b.tree(1, 7)
	hung := target.Hang(p4rttest.Write)
	if err := b.epoch(1, root(7, 2)); !errors.Is(err, p4rt.ErrWedged) {
		t.Errorf("install: %v", err)
	}
	b.Open(2, 8)
	if o := await[dataplane.Opened](b); !errors.Is(o.Err, ErrUnusable) || !strings.Contains(o.Err.Error(), "restart it") {
		t.Errorf("open: %v", o.Err)
	}
	hung.Release()
	b.usable()
	if n := len(target.Entries(p4.TableEpochs)); n != 0 {
		t.Errorf("what was refused is there: %d epochs", n)
	}
	b.installs(1, root(7, 4))
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		code codes.Code
		want error
	}{
		"for no reason": {codes.InvalidArgument, p4rt.ErrRefused},
		"full":          {codes.ResourceExhausted, p4rt.ErrTableFull},
	} {
		t.Run(name, func(t *testing.T) {
			target := newTarget(t)
			b := inUse(t, target)
			before := rows(target)
			target.Refuse(func(u *p4v1.Update) error {
				if u.GetType() == p4v1.Update_INSERT && u.GetEntity().GetTableEntry().GetTableId() == p4.TableNeighbours {
					return status.Error(test.code, "")
				}
				return nil
			})
			b.tree(2, 8)
			if err := b.epoch(2, root(8, 2)); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "neighbours") {
				t.Errorf("got %v", err)
			}
			target.Refuse(nil)
			b.Shut(2)
			if b.counted(); rows(target) != before || len(target.Groups()) != 1 {
				t.Errorf("%d entries, there were %d", rows(target), before)
			}
			b.tree(3, 9)
			b.installs(3, root(9, 2)) // nobody has lost anything
		})
	}
}

// TestRefusesToForget has a target that does not let entries go.
func TestRefusesToForget(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	target.Refuse(func(u *p4v1.Update) error {
		if u.GetType() == p4v1.Update_DELETE {
			return status.Error(codes.InvalidArgument, "not now")
		}
		return nil
	})
	b.Retire(1, 2)
	b.unusable("not now")
	target.Refuse(nil)
	b.usable()
	if n := len(target.Entries(p4.TableEpochs)); n != 0 {
		t.Errorf("%d epochs are left", n)
	}
}

func TestAnotherController(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	second := newBench(t, configOf(target.Address())) // the later one wins
	if e := await[dataplane.Ended](b); e.Epoch != 2 || !errors.Is(e.Err, p4rt.ErrNotPrimary) {
		t.Errorf("%+v", e)
	}
	b.unusable("another controller is primary")
	second.usable()
	if n := rows(target); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	second.Close()
	b.usable()
	b.installs(1, root(7, 4))
}

// TestTouched has somebody take an epoch away while the agent does not look.
func TestTouched(t *testing.T) {
	target := newTarget(t)
	b := inUse(t, target)
	target.Mangle(func(m *p4v1.ReadResponse) {
		kept := m.Entities[:0]
		for _, e := range m.GetEntities() {
			if e.GetTableEntry().GetTableId() != p4.TableNeighbours {
				kept = append(kept, e)
			}
		}
		m.Entities = kept
	})
	if err := target.Disconnect(); err != nil {
		t.Fatal(err)
	}
	if e := await[dataplane.Ended](b); e.Epoch != 2 || !errors.Is(e.Err, ErrTouched) {
		t.Errorf("%+v", e)
	}
	target.Mangle(nil)
	b.usable()
}

// toy returns the program of package p4rt's tests, or one of its own with
// another version.
func pushed(t *testing.T, target *p4rttest.Target, program p4rt.Pipeline) {
	t.Helper()
	c := p4rt.Config{Target: target.Address(), Election: p4rt.Election{Low: 1}, Pipeline: program}
	client, err := p4rt.Dial(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := testContext(t)
	for {
		events, err := client.Events(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if events[len(events)-1].Kind == p4rt.Primary {
			break
		}
	}
	if _, err := client.Push(ctx); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../p4rt/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAStrangersProgram(t *testing.T) {
	target := newTarget(t)
	pushed(t, target, p4rt.Pipeline{P4Info: string(read(t, "toy.p4info.txt")), Device: read(t, "toy.json")})
	c := configOf(target.Address())
	b := newBench(t, c)
	b.unusable("a program that is not Tributary's; restart it without one")
	if name := target.Info().GetPkgInfo().GetName(); name == p4.Name {
		t.Error("it was replaced")
	}
	b.Close()
	c.Target.Replace = true
	newBench(t, c).usable()
	if name := target.Info().GetPkgInfo().GetName(); name != p4.Name {
		t.Errorf("the target holds %q", name)
	}
}

func TestAnotherVersion(t *testing.T) {
	target := newTarget(t)
	older := p4rt.Pipeline{P4Info: strings.Replace(p4.Info(), `version: "`+p4.Version, `version: "0.`+p4.Version, 1), Device: p4.DeviceConfig()}
	pushed(t, target, older)
	newBench(t, configOf(target.Address())).usable()
	if v := target.Info().GetPkgInfo().GetVersion(); v != p4.Version {
		t.Errorf("the target holds version %s", v)
	}
}

// TestPushFails has a target that takes no program, and then does.
func TestPushFails(t *testing.T) {
	target := newTarget(t)
	target.Fail(p4rttest.Set, codes.Internal, "no room for it")
	b := newBench(t, configOf(target.Address()))
	b.unusable("no room for it")
	target.Fail(p4rttest.Set, codes.OK, "")
	b.usable()
}

func TestCloseWhileTheTargetHangs(t *testing.T) {
	target := newTarget(t)
	target.Hang(p4rttest.Set)
	b := newBench(t, configOf(target.Address()))
	b.unusable("it is being prepared")
	b.Open(1, 7)
	if o := await[dataplane.Opened](b); !errors.Is(o.Err, ErrUnusable) {
		t.Errorf("open: %v", o.Err)
	}
	b.Close()
	b.Close()
	if _, err := b.Census(testContext(t)); !errors.Is(err, runner.ErrClosed) {
		t.Errorf("census of what is closed: %v", err)
	}
}
