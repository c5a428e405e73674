package rail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// pair returns the nodes of two hosts, and each as the other's peer.
func pair(t testing.TB, rails int, cfg Config) (f *fabric, a, b *Peer) {
	f = newFabric(t, rails)
	na, nb := f.add("a", cfg), f.add("b", cfg)
	return f, peerOf(t, na, "b"), peerOf(t, nb, "a")
}

func peerOf(t testing.TB, n *Node, name string) *Peer {
	p, err := n.Peer(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// pattern returns bytes by which messages are distinguished, and their parts.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for i := 0; i < n; i += 8 {
		v := r.Uint64()
		for k := i; k < min(i+8, n); k++ {
			b[k] = byte(v >> (8 * (k - i)))
		}
	}
	return b
}

// TestSizes: a message of any size arrives whole, whether a receive awaits it or not.
func TestSizes(t *testing.T) {
	eager := DefaultConfig().Eager
	for _, rails := range []int{1, 2, 3} {
		for _, size := range []int{0, 1, 7, eager - 1, eager, eager + 1, 256 << 10, 1<<20 + 3} {
			for _, isAwaited := range []bool{false, true} {
				t.Run(fmt.Sprintf("rails=%d/size=%d/awaited=%v", rails, size, isAwaited), func(t *testing.T) {
					_, a, b := pair(t, rails, Config{})
					want, got := pattern(size, size), make([]byte, size)
					var sent, received *Request
					if isAwaited {
						received = b.StartRecv(3, got)
						sent = a.StartSend(3, want)
					} else {
						sent = a.StartSend(3, want)
						await(t, "the message", func() bool { s, ok := b.Probe(3); return ok && s.Size == size })
						received = b.StartRecv(AnyTag, got)
					}
					if _, err := sent.Wait(background(t)); err != nil {
						t.Fatal(err)
					}
					if s, err := received.Wait(background(t)); err != nil || s != (Status{3, size}) || !bytes.Equal(got, want) {
						t.Fatalf("%+v, %v, %v", s, err, bytes.Equal(got, want))
					}
				})
			}
		}
	}
}

// TestOrder: messages of one tag are received in the order in which they were sent, those of
// others before or after them, with many under way at once.
func TestOrder(t *testing.T) {
	for _, n := range []int{1, 20, 200, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			_, a, b := pair(t, 2, Config{Eager: 64})
			var sent, received []*Request
			var buffers [][]byte
			const tags = 3
			for i := range n {
				sent = append(sent, a.StartSend(Tag(i%tags), pattern(i, 8+i%128)))
			}
			for i := n - 1; i >= 0; i-- { // posted in another order of tags
				buffers = append(buffers, make([]byte, 200))
				received = append(received, b.StartRecv(Tag(i%tags), buffers[len(buffers)-1]))
			}
			next := [tags]int{0, 1, 2}
			for k, r := range received {
				s, err := r.Wait(background(t))
				if err != nil {
					t.Fatal(err)
				}
				i := next[s.Tag]
				next[s.Tag] += tags
				if !bytes.Equal(buffers[k][:s.Size], pattern(i, 8+i%128)) {
					t.Fatalf("receive %d of tag %d has another message than %d", k, s.Tag, i)
				}
			}
			for _, r := range sent {
				if _, err := r.Wait(background(t)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestTruncation: a longer message fills the buffer, and the next one is received.
func TestTruncation(t *testing.T) {
	for _, size := range []int{100, 300 << 10} {
		_, a, b := pair(t, 2, Config{})
		want := pattern(1, size)
		sent := a.StartSend(1, want)
		got := make([]byte, size/2+32)
		s, err := b.Recv(background(t), 1, got[:size/2])
		if !errors.Is(err, ErrTruncated) || s.Size != size/2 || !bytes.Equal(got[:size/2], want[:size/2]) || got[size/2] != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := sent.Wait(background(t)); err != nil {
			t.Error(err)
		}
		go func() { _ = a.Send(background(t), 1, want) }()
		if s, err := b.Recv(background(t), 1, make([]byte, size)); err != nil || s.Size != size {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// TestCancel: a receive without a message ends, and leaves the message to another; an
// announced message is withdrawn.
func TestCancel(t *testing.T) {
	_, a, b := pair(t, 1, Config{})
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	if _, err := b.Recv(ctx, 5, make([]byte, 8)); !errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("a receive: %v", err)
	}
	r := b.StartRecv(5, make([]byte, 8))
	r.Cancel()
	r.Cancel()
	if _, isDone, err := r.Test(); !isDone || !errors.Is(err, ErrCanceled) {
		t.Errorf("a receive: %v, %v", isDone, err)
	}
	large := a.StartSend(5, make([]byte, 1<<20))
	await(t, "the announcement", func() bool { _, ok := b.Probe(5); return ok })
	large.Cancel()
	if _, err := large.Wait(background(t)); !errors.Is(err, ErrCanceled) {
		t.Errorf("a message: %v", err)
	}
	if err := a.Send(background(t), 5, []byte("next")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 8)
	for { // the receive may have met the announcement first
		s, err := b.Recv(background(t), 5, got)
		if errors.Is(err, ErrWithdrawn) {
			continue
		}
		if err != nil || string(got[:s.Size]) != "next" {
			t.Errorf("%q, %v", got[:s.Size], err)
		}
		break
	}
}

// TestMemory: registered memory is read and written, as far as it may be.
func TestMemory(t *testing.T) {
	_, a, b := pair(t, 2, Config{})
	ctx := background(t)
	memory := pattern(1, 3<<20)
	readable, err := b.node.Register(Read, memory)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(memory)-5)
	if err := a.Get(ctx, readable.Key(), 5, got); err != nil || !bytes.Equal(got, memory[5:]) {
		t.Fatalf("get: %v", err)
	}
	wrong := readable.Key()
	wrong[15]++
	for what, err := range map[string]error{
		"a put without the right": a.Put(ctx, readable.Key(), 0, []byte{1}),
		"another key":             a.Get(ctx, wrong, 0, got),
		"out of bounds":           a.Get(ctx, readable.Key(), 6, got),
		"far out of bounds":       a.Get(ctx, readable.Key(), ^uint64(0), got),
	} {
		if !errors.Is(err, ErrAccess) {
			t.Errorf("%s: %v", what, err)
		}
	}
	readable.Release()
	readable.Release()
	if err := a.Get(ctx, readable.Key(), 0, got); !errors.Is(err, ErrAccess) {
		t.Errorf("after the release: %v", err)
	}
	target := make([]byte, 1<<20)
	writable, err := b.node.Register(Write, target)
	if err != nil {
		t.Fatal(err)
	}
	data := pattern(2, 1<<19)
	if err := a.Put(ctx, writable.Key(), 100, data); err != nil || !bytes.Equal(target[100:100+len(data)], data) || target[99] != 0 || target[100+len(data)] != 0 {
		t.Errorf("put: %v", err)
	}
	if err := a.Get(ctx, writable.Key(), 0, got[:1]); !errors.Is(err, ErrAccess) {
		t.Errorf("a get without the right: %v", err)
	}
	writable.Release()
	for what, err := range map[string]error{"nothing": second(b.node.Register(Read, nil)), "no access": second(b.node.Register(0, data))} {
		if !errors.Is(err, ErrArgument) {
			t.Errorf("registering %s: %v", what, err)
		}
	}
}

func second(_ *Memory, err error) error { return err }

// TestUnreachable: what is sent to a host that is not there fails, and names it.
func TestUnreachable(t *testing.T) {
	f, a, b := pair(t, 2, Config{})
	f.cut(0)
	f.cut(1)
	err := a.Send(background(t), 1, []byte("x"))
	var of *PeerError
	if !errors.As(err, &of) || of.Peer != "b" || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("%v", err)
	}
	f.restore(0)
	go func() { _ = a.Send(background(t), 1, []byte("x")) }()
	if _, err := b.Recv(background(t), 1, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// TestLastRail: the loss of the last rail fails all that is under way on both sides, names the
// rails, and what is sent later arrives.
func TestLastRail(t *testing.T) {
	f, a, b := pair(t, 2, Config{})
	f.restore(0)
	if err := a.Send(background(t), 9, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	var pending []*Request
	for i := range 20 {
		pending = append(pending, b.StartRecv(Tag(100+i), make([]byte, 8)), a.StartRecv(Tag(i), make([]byte, 8)), a.StartSend(3, make([]byte, 1<<20)))
	}
	f.cut(0)
	f.cut(1)
	for i, r := range pending {
		_, err := r.Wait(background(t))
		var of *PeerError
		if !errors.As(err, &of) || of.Peer != r.peer.name || !errors.Is(err, ErrLost) || !errors.Is(err, errCut) || len(of.Rails) != 2 ||
			!strings.Contains(err.Error(), "rail0") || !strings.Contains(err.Error(), "rail1") {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	f.restore(0)
	f.restore(1)
	got := make([]byte, 8)
	if s, err := b.Recv(background(t), 9, got); err != nil || string(got[:s.Size]) != "kept" {
		t.Errorf("what had arrived: %q, %v", got[:s.Size], err)
	}
	// The other side may find out late, and then drops what came meanwhile.
	for i := range 100 {
		r := b.StartRecv(7, got)
		err := a.Send(background(t), 7, []byte("later"))
		if err != nil {
			r.Cancel()
		}
		if s, failed := r.Wait(background(t)); err == nil && failed == nil {
			if string(got[:s.Size]) != "later" {
				t.Errorf("%q", got[:s.Size])
			}
			return
		}
		if i == 99 {
			t.Error("nothing arrives any more")
		}
	}
}

// exchange sends messages of all sizes in both directions at once, and checks that each
// arrives once, whole, and in its order.
func exchange(t *testing.T, a, b *Peer, rounds int, sizes []int) {
	ctx := background(t)
	var all sync.WaitGroup
	for i, p := range []*Peer{a, b} {
		all.Go(func() {
			var under []*Request
			for k := range rounds {
				under = append(under, p.StartSend(Tag(k%3), pattern(1000*i+k, sizes[k%len(sizes)])))
			}
			for k, r := range under {
				if _, err := r.Wait(ctx); err != nil {
					t.Errorf("%s: message %d: %v", p.node.Name(), k, err)
				}
			}
		})
		all.Go(func() {
			var under []*Request
			var buffers [][]byte
			for k := range rounds {
				buffers = append(buffers, make([]byte, sizes[k%len(sizes)]))
				under = append(under, p.StartRecv(Tag(k%3), buffers[k]))
			}
			for k, r := range under {
				s, err := r.Wait(ctx)
				if err != nil || s.Size != len(buffers[k]) || !bytes.Equal(buffers[k], pattern(1000*(1-i)+k, len(buffers[k]))) {
					t.Errorf("%s: receive %d: %+v, %v", p.node.Name(), k, s, err)
				}
			}
		})
	}
	all.Wait()
}

// TestCuts: whatever rails are cut, before or after a frame arrives, all messages arrive as
// long as one rail is left.
func TestCuts(t *testing.T) {
	sizes := []int{0, 8, 1000, 16 << 10, 16<<10 + 1, 300 << 10, 2 << 20}
	for seed := range fewer(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f, a, b := pair(t, 3, Config{})
			r := rand.New(rand.NewPCG(seed, 0))
			f.fault = func(frame *fakeFrame) verdict {
				if frame.pair != 0 && r.IntN(12) == 0 {
					return 1 + verdict(r.IntN(int(verdictMax)))
				}
				return pass
			}
			exchange(t, a, b, 42, sizes)
			for _, p := range []*Peer{a, b} {
				if p.under != 0 {
					t.Errorf("%d requests are under way", p.under)
				}
			}
		})
	}
}

// TestCutsOfAll: whatever rails are cut, all of them often, all messages arrive and memory is read and
// written whole, as long as some rail comes back.
func TestCutsOfAll(t *testing.T) {
	sizes := []int{0, 8, 1000, 16 << 10, 16<<10 + 1, 300 << 10, 2 << 20}
	for seed := range fewer(12) {
		rails := 1 + int(seed%3)
		t.Run(fmt.Sprintf("rails=%d/seed=%d", rails, seed), func(t *testing.T) {
			f := newFabric(t, rails)
			f.away = patience
			a, b := peerOf(t, f.add("a", Config{}), "b"), peerOf(t, f.add("b", Config{}), "a")
			r := rand.New(rand.NewPCG(seed, 0))
			f.fault = func(*fakeFrame) verdict {
				if r.IntN(40) == 0 { // a message that is cut begins anew
					return 1 + verdict(r.IntN(int(verdictMax)))
				}
				return pass
			}
			exchange(t, a, b, 21, sizes)
			access(t, a, b, 1, []int{8, 300 << 10})
			for _, p := range []*Peer{a, b} {
				if c := p.Counters(); p.under != 0 || c.Losses != 0 {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestAccessUnderCuts: memory is read and written whole, whatever rails are cut.
func TestAccessUnderCuts(t *testing.T) {
	f, a, b := pair(t, 3, Config{})
	r := rand.New(rand.NewPCG(1, 0))
	f.fault = func(frame *fakeFrame) verdict {
		if frame.pair != 0 && r.IntN(10) == 0 {
			return 1 + verdict(r.IntN(int(verdictMax)))
		}
		return pass
	}
	ctx := background(t)
	memory := pattern(1, 2<<20)
	m, err := b.node.Register(ReadWrite, memory)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		got := make([]byte, 2<<20)
		if err := a.Get(ctx, m.Key(), 0, got); err != nil || !bytes.Equal(got, memory) {
			t.Fatalf("get %d: %v", i, err)
		}
		data := pattern(i, 1<<20)
		if err := a.Put(ctx, m.Key(), uint64(i), data); err != nil || !bytes.Equal(memory[i:i+1<<20], data) {
			t.Fatalf("put %d: %v", i, err)
		}
	}
	m.Release()
}

// TestUnexpected: a sender that nobody receives from fills no more memory than is configured,
// and all arrives in the end.
func TestUnexpected(t *testing.T) {
	cfg := Config{Unexpected: 64 << 10, Announced: 64}
	_, a, b := pair(t, 2, cfg)
	const n, size = 1000, 1000
	var under []*Request
	for i := range n {
		under = append(under, a.StartSend(1, pattern(i, size)))
	}
	for i := range n {
		got := make([]byte, size)
		b.mu.Lock()
		bytesHeld, heads := b.core.Held()
		b.mu.Unlock()
		if bytesHeld > cfg.Unexpected || heads > cfg.Announced {
			t.Fatalf("%d bytes in %d messages are held", bytesHeld, heads)
		}
		if _, err := b.Recv(background(t), 1, got); err != nil || !bytes.Equal(got, pattern(i, size)) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	for _, r := range under {
		if _, err := r.Wait(background(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestart: a peer that has started again fails what was under way with its earlier life.
func TestRestart(t *testing.T) {
	f, a, b := pair(t, 1, Config{})
	if err := a.Send(background(t), 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	pending := a.StartRecv(1, make([]byte, 1))
	if err := b.node.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = peerOf(t, f.add("b", Config{}), "a")
	go func() { _ = b.Send(background(t), 2, []byte("y")) }()
	if _, err := a.Recv(background(t), 2, make([]byte, 1)); err != nil && !errors.Is(err, ErrRestarted) && !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if _, err := pending.Wait(background(t)); !errors.Is(err, ErrRestarted) && !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// TestClose: a closed node fails all that is under way, and all that begins.
func TestClose(t *testing.T) {
	_, a, b := pair(t, 2, Config{})
	pending := []*Request{a.StartRecv(1, make([]byte, 1)), a.StartSend(1, make([]byte, 1<<20))}
	if err := a.node.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(pending, a.StartSend(1, nil)) {
		if _, err := r.Wait(background(t)); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := a.node.Peer("c"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := a.node.Register(Read, make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	for _, name := range []string{"", "b", strings.Repeat("x", 256)} {
		if _, err := b.node.Peer(name); !errors.Is(err, ErrArgument) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := b.Send(background(t), AnyTag, nil); !errors.Is(err, ErrArgument) {
		t.Error(err)
	}
}

// TestManyPeers: a node exchanges a message with each of 1,000 others at once.
func TestManyPeers(t *testing.T) {
	const n = 1000
	f := newFabric(t, 1)
	hub := f.add("hub", Config{})
	var under []*Request
	got := make([][8]byte, n)
	for i := range n {
		name := fmt.Sprint("peer", i)
		p, other := peerOf(t, hub, name), peerOf(t, f.add(name, Config{}), "hub")
		under = append(under, p.StartRecv(1, got[i][:]), p.StartSend(2, fmt.Appendf(nil, "%8d", i)), other.StartSend(1, fmt.Appendf(nil, "%8d", -i)), other.StartRecv(2, make([]byte, 8)))
	}
	for i, r := range under {
		if _, err := r.Wait(background(t)); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	for i := range got {
		if string(got[i][:]) != fmt.Sprintf("%8d", -i) {
			t.Errorf("from peer %d: %q", i, got[i])
		}
	}
}

// fewer is n, or a quarter of it in short mode.
func fewer(n uint64) uint64 {
	if testing.Short() {
		return n / 4
	}
	return n
}
