package pipeline

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/p4"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// bench is a plane and the events that it reports.
type bench struct {
	*Plane
	t        *testing.T
	events   runner.Mailbox[dataplane.Event]
	reported []dataplane.Event
}

func newTarget(t *testing.T) *p4rttest.Target {
	t.Helper()
	target, err := p4rttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	target.Cable(p4.CPUPort, p4.CPUPort)
	target.Cable(p4.LoopOutPort, p4.LoopInPort)
	return target
}

func configOf(address string) Config {
	c := Config{Target: network(), Capability: Limits(), Clock: runner.NewClock(), Log: slog.New(slog.DiscardHandler)}
	c.Target.Address, c.checks = address, patience
	c.adjust = func(s *p4rt.Config) {
		s.MinPause, s.MaxPause, s.Heartbeat = time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
		s.Deadline = patience // unless a test is about it
	}
	return c
}

func newBench(t *testing.T, c Config) *bench {
	t.Helper()
	b := &bench{t: t}
	c.Notify = func(e dataplane.Event) { b.events.Put(e) }
	plane, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	b.Plane = plane
	t.Cleanup(plane.Close)
	return b
}

// next returns the next event.
func (b *bench) next() dataplane.Event {
	b.t.Helper()
	for len(b.reported) == 0 {
		var err error
		if b.reported, err = b.events.Take(testContext(b.t)); err != nil {
			b.t.Fatalf("waiting for an event: %v", err)
		}
	}
	e := b.reported[0]
	b.reported = b.reported[1:]
	return e
}

// await returns the next event of a kind. Offers in between are left out;
// nothing else may be there.
func await[E dataplane.Event](b *bench) E {
	b.t.Helper()
	for {
		switch e := b.next().(type) {
		case E:
			return e
		case dataplane.Offer:
		default:
			b.t.Fatalf("got the event %#v", e)
		}
	}
}

// usable waits until the target can be used.
func (b *bench) usable() {
	b.t.Helper()
	for {
		if o := await[dataplane.Offer](b); o.Unusable == "" {
			if o.Capability != b.cfg.Capability {
				b.t.Fatalf("offered: %+v", o)
			}
			return
		}
	}
}

// tree opens a tree, which gets its address.
func (b *bench) tree(socket uint64, group uint32) {
	b.t.Helper()
	b.Open(socket, group)
	if o := await[dataplane.Opened](b); o.Err != nil || o.Socket != socket || !o.Addr.Addr().IsUnspecified() {
		b.t.Fatalf("%+v", o)
	}
}

func (b *bench) epoch(socket uint64, c *switchreduce.Config) error {
	b.t.Helper()
	b.Install(socket, c)
	i := await[dataplane.Installed](b)
	if i.Socket != socket || i.Epoch != c.Epoch {
		b.t.Fatalf("%+v", i)
	}
	return i.Err
}

func (b *bench) installs(socket uint64, c *switchreduce.Config) {
	b.t.Helper()
	if err := b.epoch(socket, c); err != nil {
		b.t.Fatal(err)
	}
}

// counted returns what was counted. All that was asked of the plane before is
// done then, and written.
func (b *bench) counted() dataplane.Census {
	b.t.Helper()
	ctx := testContext(b.t)
	if _, err := b.Census(ctx); err != nil { // what came in one batch with it is written after
		b.t.Fatal(err)
	}
	c, err := b.Census(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// rows returns how many entries a target has in tables of trees.
func rows(target *p4rttest.Target) (n int) {
	for _, table := range append(ofEpochs, p4.TableTrees) {
		n += len(target.Entries(table))
	}
	return n
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
