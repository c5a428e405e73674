package soft

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// sealedTree is an open tree, and a configuration of its epochs: two children, whose packets are encrypted.
func sealedTree(t *testing.T) (*Plane, *tree, switchreduce.Config) {
	t.Helper()
	p, err := New(Config{
		Switch: "s", Data: netip.MustParseAddr("127.0.0.1"), Chunk: 64, Clock: runner.NewClock(), Log: slog.New(slog.DiscardHandler),
		Notify: func(e dataplane.Event) {
			if i, is := e.(dataplane.Installed); is && i.Err != nil {
				t.Error(i.Err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Open(1, 7)
	c := switchreduce.Config{Group: 7, Window: 8, ChunkBytes: 64, Protection: wire.Encrypted}
	for i := range uint32(2) {
		c.Children = append(c.Children, switchreduce.Child{
			Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(i+1)), Lowest: i, Cookie: 5, Key: wire.Secret{byte(i + 1)},
		})
	}
	return p, p.find(1), c
}

// within returns a context that ends a test that would wait for ever.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// has reports whether there are keys of an epoch.
func (t *tree) has(epoch uint32) bool {
	of, _ := t.conn.RefusedIn(epoch)
	return len(of) > 0
}

// TestKeysOutliveTheirEpoch: as long as the core has an epoch, what it sends is sealed.
func TestKeysOutliveTheirEpoch(t *testing.T) {
	p, tree, c := sealedTree(t)
	c.Epoch = 2
	p.Install(1, &c)
	held, release, over := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() { over <- tree.loop.Do(t.Context(), func() { close(held); <-release }) }()
	<-held // between two steps
	p.Retire(1, 2)
	if !tree.has(2) {
		t.Error("the keys are gone before the core has left the epoch")
	}
	close(release)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	for tree.has(2) { // a step later, or two
		if err := tree.loop.Do(ctx, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	c.Epoch = 4
	p.Install(1, &c)
	if !tree.has(4) {
		t.Error("the next epoch has no keys")
	}
}

// TestInstallAndRetireAtOnce: epochs come and go while packets do, and who counts looks on.
func TestInstallAndRetireAtOnce(t *testing.T) {
	p, tree, c := sealedTree(t)
	forger, err := transport.ListenUDP(netip.AddrPortFrom(p.cfg.Data, 0), transport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forger.Close() }()
	const epochs = 200
	var all sync.WaitGroup
	installed, done := make(chan uint32, 2), make(chan struct{})
	all.Go(func() {
		defer close(installed)
		for epoch := uint32(2); epoch <= 2*epochs; epoch += 2 {
			c := c
			c.Epoch = epoch
			p.Install(1, &c)
			installed <- epoch
		}
	})
	all.Go(func() {
		defer close(done)
		for epoch := range installed {
			p.Retire(1, epoch)
		}
	})
	all.Go(func() {
		message := []transport.Message{{To: tree.conn.LocalAddr(), Body: make([]byte, 200), Size: 100}}
		for open := true; open; {
			select {
			case <-done:
				open = false
			default:
			}
			if err := forger.WriteBatch(message); err != nil {
				t.Error(err)
			}
			// What the core sends as an epoch goes.
			_ = tree.conn.WriteBatch([]transport.Message{{To: c.Children[0].Addr, Body: make([]byte, 64)}})
			if _, err := p.Census(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	ctx := within(t)
	for tree.has(2 * epochs) {
		if err := tree.loop.Do(ctx, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	for epoch := uint32(2); epoch <= 2*epochs; epoch += 2 {
		if tree.has(epoch) {
			t.Errorf("epoch %d has keys after its end", epoch)
		}
	}
	for refused := uint64(0); refused == 0; { // until it has read what came
		census, err := p.Census(ctx)
		if err != nil || len(census.Epochs) != 0 || census.Trees[0].PacketsOut != 0 {
			t.Fatalf("%+v, %v", census, err)
		}
		refused = census.Trees[0].Drops["unauthentic"]
	}
}
