package rail

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func spaceOf(t *testing.T, n *Node, id uint64) *TagSpace {
	t.Helper()
	s, err := n.TagSpace(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTagSpaces: a message is received in its own space, by the bits of its tag that a receive
// does not ignore.
func TestTagSpaces(t *testing.T) {
	_, a, b := pair(t, 2, Config{})
	var of [2][2]*TagSpace
	for i := range of {
		of[i] = [2]*TagSpace{spaceOf(t, a.node, uint64(i+1)), spaceOf(t, b.node, uint64(i+1))}
	}
	var sent, received []*Request
	buffers := make([][]byte, 4)
	for i := range buffers {
		buffers[i] = make([]byte, 50_000)
	}
	received = append(received, b.StartRecv(AnyTag, buffers[0]), of[0][1].StartRecv(b, 0x1_00, 0xff, buffers[1]), of[1][1].StartRecv(b, 0x2_00, 0xff, buffers[2]), of[1][1].StartRecv(b, 0, ^Tag(0), buffers[3]))
	sent = append(sent, of[1][0].StartSend(a, 0x1_03, pattern(3, 50_000)), of[1][0].StartSend(a, 0x2_02, pattern(2, 10)), of[0][0].StartSend(a, 0x1_01, pattern(1, 20_000)), a.StartSend(9, pattern(0, 5)))
	for i, want := range []Status{{9, 5}, {0x1_01, 20_000}, {0x2_02, 10}, {0x1_03, 50_000}} {
		if s, err := received[i].Wait(background(t)); err != nil || s != want || !bytes.Equal(buffers[i][:s.Size], pattern(i, want.Size)) {
			t.Errorf("receive %d: %+v, %v", i, s, err)
		}
	}
	for _, r := range sent {
		if _, err := r.Wait(background(t)); err != nil {
			t.Error(err)
		}
	}
	other := of[0][1].Part(5).StartRecv(b, 0, ^Tag(0), nil)
	own := of[0][1].StartRecv(b, 0, ^Tag(0), nil)
	of[0][0].StartSend(a, 1, nil)
	if _, err := own.Wait(background(t)); err != nil {
		t.Error(err)
	}
	if _, isDone, _ := other.Test(); isDone {
		t.Error("a message is received in another part of its space")
	}
	if _, err := a.node.TagSpace(1, nil); !errors.Is(err, ErrArgument) {
		t.Errorf("a space that is open: %v", err)
	}
	if _, err := a.node.TagSpace(0, nil); !errors.Is(err, ErrArgument) {
		t.Errorf("space 0: %v", err)
	}
}

// TestPeersOfSpaces: a peer stays while a space that is open has it, or a caller, and no longer.
func TestPeersOfSpaces(t *testing.T) {
	_, a, _ := pair(t, 1, Config{})
	n := a.node
	has := func(name string) bool {
		return slices.ContainsFunc(n.all(), func(p *Peer) bool { return p.name == name })
	}
	one, two := spaceOf(t, n, 1), spaceOf(t, n, 2)
	var all [3]*Peer
	for i := range all {
		of := []*TagSpace{one, two.Part(3), one}[i]
		p, err := of.Peer("c")
		if err != nil {
			t.Fatal(err)
		}
		all[i] = p
	}
	if _, err := one.Peer("d"); err != nil || all[0] != all[1] || all[0] != all[2] {
		t.Error(all, err)
	}
	if p, err := one.Peer("b"); err != nil || p != a {
		t.Error(p, err)
	}
	for _, name := range []string{"b", "c", "d"} {
		if n.forget(name); !has(name) {
			t.Errorf("peer %s is forgotten", name)
		}
	}
	if one.Close(); has("d") || !has("c") {
		t.Error("the peers of one space are not those that it had alone")
	}
	if two.Close(); has("c") || !has("b") {
		t.Error("the peers of no space are not those of callers")
	}
	if _, err := two.Peer("e"); err != nil {
		t.Error(err)
	}
	if n.forget("e"); has("e") {
		t.Error("a space that is closed has a peer")
	}
	if _, err := one.Peer("a"); !errors.Is(err, ErrArgument) {
		t.Error(err)
	}
}

// TestClosedSpace: the requests of a space that is closed end, messages for it are dropped, and
// their senders are done; the peer's other messages do not suffer.
func TestClosedSpace(t *testing.T) {
	_, a, b := pair(t, 2, Config{})
	from, to := spaceOf(t, a.node, 7), spaceOf(t, b.node, 7)
	waiting := to.StartRecv(b, 99, 0, make([]byte, 10))
	short, long := from.StartSend(a, 1, pattern(1, 10)), from.StartSend(a, 2, pattern(2, 1<<20))
	await(t, "both messages", func() bool { _, ok := to.Probe(b, 2, 0); return ok })
	to.Close()
	if _, err := waiting.Wait(background(t)); !errors.Is(err, ErrCanceled) {
		t.Errorf("a receive: %v", err)
	}
	late := from.StartSend(a, 3, pattern(3, 1<<20))
	for _, r := range []*Request{short, long, late} {
		if _, err := r.Wait(background(t)); err != nil {
			t.Errorf("a send: %v", err)
		}
	}
	if c := b.node.Counters(); c.Unexpected != 0 || c.Unwanted != 3 {
		t.Errorf("%d messages are kept, and %d dropped", c.Unexpected, c.Unwanted)
	}
	if _, err := to.StartRecv(b, 1, 0, nil).Wait(background(t)); !errors.Is(err, ErrCanceled) {
		t.Errorf("a receive in a space that is closed: %v", err)
	}
	short2 := b.StartRecv(5, make([]byte, 3))
	if err := a.Send(background(t), 5, pattern(5, 70_000)); err != nil {
		t.Error(err)
	}
	if s, err := short2.Wait(background(t)); !errors.Is(err, ErrTruncated) || s.Size != 3 || short2.MessageSize() != 70_000 {
		t.Errorf("%+v of %d, %v", s, short2.MessageSize(), err)
	}
	received := b.StartRecv(4, make([]byte, 10))
	if err := a.Send(background(t), 4, pattern(4, 10)); err != nil {
		t.Error(err)
	}
	if _, err := received.Wait(background(t)); err != nil {
		t.Error(err)
	}
	spaceOf(t, b.node, 7) // it can be opened again
}

// TestBuffered: a buffered message is done before it has arrived, and its memory is the caller's;
// a long one when it has.
func TestBuffered(t *testing.T) {
	_, a, b := pair(t, 2, Config{})
	from, to := spaceOf(t, a.node, 7), spaceOf(t, b.node, 7)
	data := pattern(1, 100)
	first := from.StartBuffered(a, 1, data) // nothing is connected yet
	if _, err := first.Wait(background(t)); err != nil {
		t.Fatal(err)
	}
	clear(data)
	got := make([]byte, 1<<20)
	if s, err := to.StartRecv(b, 1, 0, got).Wait(background(t)); err != nil || !bytes.Equal(got[:s.Size], pattern(1, 100)) {
		t.Errorf("%+v, %v", s, err)
	}
	data = pattern(2, 8)
	r := from.StartBuffered(a, 2, data)
	if _, isDone, err := r.Test(); !isDone || err != nil {
		t.Errorf("done: %v, %v", isDone, err)
	}
	long := from.StartBuffered(a, 3, pattern(3, 1<<20))
	received := to.StartRecv(b, 3, 0, got)
	if _, err := long.Wait(background(t)); err != nil {
		t.Error(err)
	}
	if s, err := received.Wait(background(t)); err != nil || !bytes.Equal(got[:s.Size], pattern(3, 1<<20)) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestLostBuffered: when the last rail fails while a buffered message is on its way, the owner of its
// space learns it; the owners of others do not.
func TestLostBuffered(t *testing.T) {
	f, a, b := pair(t, 1, Config{})
	lost := make(chan *Peer, 10)
	from, err := a.node.TagSpace(7, func(p *Peer) { lost <- p })
	if err != nil {
		t.Fatal(err)
	}
	other, err := a.node.TagSpace(8, func(*Peer) { t.Error("a space without messages on their way learns of a loss") })
	if err != nil {
		t.Fatal(err)
	}
	to := spaceOf(t, b.node, 8)
	received := to.StartRecv(b, 1, 0, make([]byte, 10))
	other.StartBuffered(a, 1, make([]byte, 10))
	if _, err := received.Wait(background(t)); err != nil {
		t.Fatal(err)
	}
	if err := a.Send(background(t), 1, nil); err != nil { // what was before it is acknowledged
		t.Fatal(err)
	}
	f.mu.Lock()
	f.fault = func(*fakeFrame) verdict { return cutBefore }
	f.mu.Unlock()
	if _, err := from.StartBuffered(a, 1, make([]byte, 10)).Wait(background(t)); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-lost:
		if p != a {
			t.Errorf("%v", p)
		}
	case <-background(t).Done():
		t.Fatal("nobody learns of it")
	}
	f.mu.Lock()
	f.fault = nil
	f.mu.Unlock()
}

// TestRecvThen: who finds that a message has come calls then, with no lock held, so that the next
// receive can be begun there; also where the message was there before, and where the space is, or
// gets, closed.
func TestRecvThen(t *testing.T) {
	_, a, b := pair(t, 1, Config{})
	from, to := spaceOf(t, a.node, 1), spaceOf(t, b.node, 1)
	const n = 100
	type got struct {
		s   Status
		err error
	}
	all := make(chan got, n+2)
	into := make([]byte, 8)
	var take func(Status, error)
	take = func(s Status, err error) {
		if all <- (got{s, err}); err == nil {
			to.RecvThen(b, 0, ^Tag(0), into, take)
		}
	}
	send := func(tag Tag) {
		if _, err := from.StartSend(a, tag, into[:int(tag)%8]).Wait(background(t)); err != nil {
			t.Error(err)
		}
	}
	for i := range Tag(n / 2) {
		send(i)
	}
	to.RecvThen(b, 0, ^Tag(0), into, take)
	for i := range Tag(n / 2) {
		send(n/2 + i)
	}
	for i := range Tag(n) {
		if x, want := <-all, (Status{i, int(i) % 8}); x.err != nil || x.s != want {
			t.Fatalf("%+v, %v, want %+v", x.s, x.err, want)
		}
	}
	to.Close()
	to.RecvThen(b, 0, ^Tag(0), into, take)
	for range 2 {
		if x := <-all; !errors.Is(x.err, ErrCanceled) {
			t.Errorf("once the space is closed: %v", x.err)
		}
	}
}
