package soft_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/soft"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

var loopback = netip.MustParseAddr("127.0.0.1")

// bench is a plane and the events that it reports.
type bench struct {
	*soft.Plane
	t        *testing.T
	events   *runner.Mailbox[dataplane.Event]
	reported []dataplane.Event
}

func newBench(t *testing.T, adjust func(*soft.Config)) *bench {
	t.Helper()
	b := &bench{t: t, events: new(runner.Mailbox[dataplane.Event])}
	c := soft.Config{
		Switch: "s", Data: loopback, Chunk: 1432, Clock: runner.NewClock(), Log: slog.New(slog.DiscardHandler),
		Notify: func(e dataplane.Event) { b.events.Put(e) },
	}
	if adjust != nil {
		adjust(&c)
	}
	var err error
	if b.Plane, err = soft.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// next returns the next event, which has to be of a kind.
func next[E dataplane.Event](b *bench) E {
	b.t.Helper()
	for len(b.reported) == 0 {
		var err error
		if b.reported, err = b.events.Take(testContext(b.t)); err != nil {
			b.t.Fatal(err)
		}
	}
	e, is := b.reported[0].(E)
	if !is {
		b.t.Fatalf("got the event %#v", b.reported[0])
	}
	b.reported = b.reported[1:]
	return e
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// member is the only child of a tree, and its configuration.
type member struct {
	conn   transport.Conn
	config switchreduce.Config
}

func newMember(t *testing.T, group uint32) *member {
	t.Helper()
	conn, err := transport.ListenUDP(netip.AddrPortFrom(loopback, 0), transport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &member{conn, switchreduce.Config{
		Group: group, Epoch: 2, Window: 8, ChunkBytes: 1432,
		Children: []switchreduce.Child{{Addr: conn.LocalAddr(), Cookie: 0xfeed0000 + wire.Cookie(conn.LocalAddr().Port())}},
	}}
}

// reduces sums one number, and wants it back.
func (m *member) reduces(t *testing.T, tree netip.AddrPort, chunk uint32) {
	t.Helper()
	h := wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Group: m.config.Group, Epoch: m.config.Epoch, Cookie: m.config.Children[0].Cookie, Chunk: chunk,
		Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 1, ChunkElements: 1},
	}
	head := make([]byte, wire.HeaderSize)
	h.Put(head)
	if err := m.conn.WriteBatch([]transport.Message{{To: tree, Head: head, Body: binary.LittleEndian.AppendUint32(nil, 7)}}); err != nil {
		t.Fatal(err)
	}
	packets := make([]transport.Packet, 1)
	if _, err := m.conn.ReadBatch(packets, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if body, fault := h.Decode(packets[0].Data); fault != wire.NoFault || h.Type != wire.Result || binary.LittleEndian.Uint32(body) != 7 {
		t.Fatalf("got %+v with %x, %v", h, body, fault)
	}
}

func TestTreesComeAndGo(t *testing.T) {
	b := newBench(t, nil)
	for socket, group := range map[uint64]uint32{1: 9, 2: 8} {
		m := newMember(t, group)
		b.Open(socket, group)
		opened := next[dataplane.Opened](b)
		if opened.Err != nil || opened.Socket != socket || opened.Addr.Addr() != loopback {
			t.Fatalf("%+v", opened)
		}
		b.Install(socket, &m.config)
		if i := next[dataplane.Installed](b); i.Err != nil || i.Socket != socket || i.Epoch != 2 {
			t.Fatalf("%+v", i)
		}
		for chunk := range uint32(5) {
			m.reduces(t, opened.Addr, chunk)
		}
		b.Retire(socket, 2)
		b.Retire(socket, 2)
	}
	c, err := b.Census(testContext(t))
	if err != nil || len(c.Trees) != 2 || c.Trees[0].Group != 8 || c.Trees[1].Events["results"] != 5 || c.Trees[1].PacketsOut != 5 {
		t.Fatalf("counted: %+v, %v", c, err)
	}
	b.Shut(1)
	b.Shut(1)
	b.Retire(1, 2)
	c, err = b.Census(testContext(t))
	if err != nil || len(c.Trees) != 1 || c.Past.Events["results"] != 5 || c.Past.PacketsIn != 5 {
		t.Errorf("counted when one is over: %+v, %v", c, err)
	}
	b.Install(1, &newMember(t, 9).config)
	if i := next[dataplane.Installed](b); i.Err == nil {
		t.Errorf("on a tree that was shut: %+v", i)
	}
}

func TestLease(t *testing.T) {
	b := newBench(t, nil)
	m := newMember(t, 7)
	m.config.Lease = 50 * time.Millisecond
	b.Open(1, 7)
	next[dataplane.Opened](b)
	b.Install(1, &m.config)
	next[dataplane.Installed](b)
	if e := next[dataplane.Ended](b); e.Socket != 1 || e.Epoch != 2 || e.Err != nil {
		t.Errorf("%+v", e)
	}
}

func TestNoSuchAddress(t *testing.T) {
	b := newBench(t, func(c *soft.Config) { c.Data = netip.MustParseAddr("192.0.2.1") }) // of no interface (RFC 5737)
	b.Open(1, 7)
	if o := next[dataplane.Opened](b); o.Err == nil || o.Socket != 1 {
		t.Errorf("%+v", o)
	}
	if c, err := b.Census(testContext(t)); err != nil || len(c.Trees) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCensusAfterTheEnd(t *testing.T) {
	b := newBench(t, nil)
	b.Open(1, 7)
	next[dataplane.Opened](b)
	b.Close()
	if c, err := b.Census(testContext(t)); err != nil || len(c.Trees) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestConfig(t *testing.T) {
	for name, spoil := range map[string]func(*soft.Config){
		"no address": func(c *soft.Config) { c.Data = netip.Addr{} },
		"multicast":  func(c *soft.Config) { c.Data = netip.MustParseAddr("224.0.0.1") },
		"buffer":     func(c *soft.Config) { c.ReceiveBuffer = -1 },
		"chunk":      func(c *soft.Config) { c.Chunk = -1 },
		"faults":     func(c *soft.Config) { c.Faults = transport.Faults{Loss: 2} },
	} {
		c := soft.Config{Data: loopback}
		spoil(&c)
		if _, err := soft.New(c); !errors.Is(err, soft.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
