package hostlib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// TestGoldenWords: the bytes of words, as docs/protocol.md has them.
func TestGoldenWords(t *testing.T) {
	open := word{kind: opens, from: 5, own: 0x0102030405060708, hello: hello{group: digest{31: 9}, rank: 3, of: 1, met: 2, name: "job"}}
	for want, w := range map[string]word{
		"01000000 00000000 00000005 0102030405060708 " + strings.Repeat("00", 31) + "09 00000003 00000001 0000000000000002 6a6f62": open,
		"02000000 00000005 00000007 0000000000000004":      {kind: accepts, to: 5, from: 7, own: 4},
		"03000000 00000005 00000000 0000000000000000 6e6f": {kind: refuses, to: 5, rest: []byte("no")},
		"04000000 00000007 00000000 0000000000000000":      {kind: confirms, to: 7},
		"05000000 00000005 00000000 0000000000000000 09":   {kind: lastWord, to: 5, rest: []byte{9}},
		"06000000 00000005 00000007 0000000000000000":      {kind: closes, to: 5, from: 7},
		"07000000 00000000 00000000 0000000000000000 08":   {kind: revokes, rest: []byte{8}},
	} {
		if got := fmt.Sprintf("%x", w.bytes()); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%+v is %s, want %s", w, got, want)
		}
	}
}

// TestMalformedWords: who says them loses the connection, and is counted.
func TestMalformedWords(t *testing.T) {
	h := joinOne(t, "h0")
	f := newFake(t, "h1", h)
	good := opening("test", []Member{h.Member(), f.member()}, 5)
	for i, say := range [][]byte{
		nil, []byte("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n"), {99: 0},
		(&word{kind: opens, from: 5, own: 1}).bytes(),
		(&word{kind: opens, own: 1, hello: good.hello}).bytes(),
		(&word{kind: opens, from: 5, hello: good.hello}).bytes(),
		(&word{kind: opens, from: maxStream + 1, own: 1, hello: good.hello}).bytes(),
		(&word{kind: accepts, to: 5}).bytes(),
		(&word{kind: closes}).bytes(),
		(&word{kind: revokes, rest: make([]byte, revoke.NoticeSize+1)}).bytes(),
		(&word{kind: revokes, rest: make([]byte, revoke.NoticeSize)}).bytes(), // of no life
		(&word{kind: revokes, to: 1, rest: bytes.Repeat([]byte{1}, revoke.NoticeSize)}).bytes(),
		(&word{kind: kinds, to: 1}).bytes(),
	} {
		f.bytes(peer.Control, 0, say)
		until(within(t), t, "the connection has ended", func() bool { return f.downsAre(i + 1) })
		until(within(t), t, "there is another", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.conns[0]) == i+2 })
		if n := h.malformed.Load(); n != uint64(i+1) {
			t.Errorf("%x: %d are counted, want %d", say, n, i+1)
		}
	}
}

// TestParentOfALaterVersion: the child's error has its words.
func TestParentOfALaterVersion(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = listener.Close() }()
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			const why = "this host speaks version 5"
			_, _ = conn.Write(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(why))}, why...))
			conn.Close()
		}
	})
	h := joinOne(t, "h1")
	members := []Member{{Host: "h0", Addr: listener.Addr().String()}, h.Member()}
	if _, err := h.Communicator(within(t), "test", members); !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "speaks version 5") {
		t.Errorf("%v, want the parent's words", err)
	}
}

func TestMalformedFramesNameTheirSender(t *testing.T) {
	for name, test := range map[string]struct {
		bytes []byte
		says  string
	}{
		"empty":   {nil, "a malformed frame of 0 bytes"},
		"no kind": {make([]byte, lead), "a malformed frame of 7 bytes"},
		"unknown": {append(make([]byte, lead), 99), "kind 99"},
		"short":   {append(make([]byte, lead), 7, 1), "kind 7"},
	} {
		t.Run(name, func(t *testing.T) {
			h := joinOne(t, "h0")
			f := newFake(t, "h1", h)
			members := []Member{h.Member(), f.member()}
			var wg sync.WaitGroup
			wg.Go(func() {
				c, err := h.Communicator(within(t), "test", members)
				if err == nil {
					<-c.Done()
					err = c.Err()
				}
				wantMember(t, err, 1, test.says)
			})
			f.bytes(peer.Control, f.link("test", members), test.bytes)
			until(within(t), t, "who is at fault is reported", func() bool { return f.hasFrame(wire.FrameFail, test.says) })
			wg.Wait()
		})
	}
}

// formed returns a communicator of two, of which the second is a fake.
func (f *fake) formed(ctx context.Context, h *Host, name string) (c *Communicator, number uint32) {
	f.t.Helper()
	members := []Member{h.Member(), f.member()}
	formed := make(chan *Communicator)
	go func() {
		c, err := h.Communicator(ctx, name, members)
		if err != nil {
			f.t.Error(err)
		}
		formed <- c
	}()
	number = f.link(name, members)
	if c = <-formed; c == nil {
		f.t.FailNow()
	}
	return c, number
}

// TestCallersOfAWrongPlace are refused; and so is each frame, and word, of a host on a
// stream that is another's.
func TestCallersOfAWrongPlace(t *testing.T) {
	h := joinOne(t, "h0")
	f, other := newFake(t, "h1", h), newFake(t, "h2", h)
	c, number := f.formed(within(t), h, "test")
	f.frame(peer.Control, number, []byte{byte(wire.FramePacket), 2, 3, 4, 5})
	until(within(t), t, "the packet has come", func() bool { return c.Stats().Hosts.FramesIn == 2 })

	valid := opening("test", c.Members(), 9)
	for name, test := range map[string]struct {
		by     *fake
		class  peer.Class
		change func(*word)
		says   string
	}{
		"another host":      {other, peer.Control, func(*word) {}, "not the caller's parent"},
		"another rank":      {f, peer.Control, func(w *word) { w.rank = 2 }, "not the caller's parent"},
		"wrong rank":        {f, peer.Control, func(w *word) { w.of = 1 }, "not the caller's parent"},
		"unknown attempt":   {f, peer.Control, func(w *word) { w.met = 99 }, "no more"},
		"second attempt":    {f, peer.Control, func(w *word) { w.met, w.own = c.own, 78 }, "another communicator"},
		"data before it":    {f, peer.Data, func(*word) {}, "have not met"},
		"not in that group": {other, peer.Data, func(w *word) { w.met = c.own }, "not the caller's parent"},
	} {
		w := valid
		test.change(&w)
		if a := test.by.answer(test.class, w); a.kind != refuses || !strings.Contains(string(a.rest), test.says) {
			t.Errorf("%s: answered %+v, %s; want a refusal that says %q", name, a, a.rest, test.says)
		}
	}
	// Another host knows the number: it can neither speak nor end there, nor can the right
	// one on another connection.
	fail := (&wire.Fail{Kind: wire.FailCancel, Rank: 1, Reason: "forged"}).Append(nil)
	for by, class := range map[*fake]peer.Class{other: peer.Control, f: peer.Data} {
		by.frame(class, number, fail)
		by.say(class, word{kind: lastWord, to: number, rest: fail})
		by.say(class, word{kind: closes, to: number})
		by.say(class, word{kind: refuses, to: number, rest: []byte("forged")})
		by.say(class, word{kind: confirms, to: number})
		by.say(class, word{kind: accepts, to: number, from: 4, own: 8})
		by.answer(class, word{kind: opens, from: 3, own: 77, hello: hello{met: 1234, name: "nothing"}}) // when it is through
	}
	f.frame(peer.Control, number, []byte{byte(wire.FramePacket), 2, 3, 4, 5})
	until(within(t), t, "the stream goes on", func() bool { return c.Stats().Hosts.FramesIn == 3 })
	if c.Err() != nil {
		t.Errorf("the communicator has ended: %v", c.Err())
	}
}

// TestLastWordOnTheNewestStream: a neighbour that has a stream for vectors takes nothing
// but packets from the other one; so it hears of the end by the former, also where this
// host does not use that yet.
func TestLastWordOnTheNewestStream(t *testing.T) {
	h := joinOne(t, "h0")
	f := newFake(t, "h1", h)
	c, _ := f.formed(within(t), h, "test")
	w := opening("test", c.Members(), 6)
	w.met = c.own
	if a := f.answer(peer.Data, w); a.kind != accepts || a.to != 6 {
		t.Fatalf("answered by %+v: %s", a, a.rest)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	last := f.heard(lastWord)
	if len(last) != 1 || last[0].to != 6 || !strings.Contains(string(last[0].rest), "it closed its host") {
		t.Errorf("%+v", last)
	}
}

// TestOneHostOpensWithoutEnd: it holds as many places as one host may, the newest; others
// form their groups meanwhile.
func TestOneHostOpensWithoutEnd(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h2"})
	f := newFake(t, "h1", hosts[0])
	parked := func() int {
		hosts[0].mu.Lock()
		defer hosts[0].mu.Unlock()
		return len(hosts[0].parked.all)
	}
	const n = 20_000
	c := f.conn(peer.Control)
	for i := range n {
		w := word{kind: opens, from: uint32(i + 1), own: 1, hello: hello{name: fmt.Sprint("none ", i)}}
		for c.Send(&peer.Send{Service: peer.Communicators, Body: w.bytes()}) != nil {
			c.Flush(peer.Communicators, nil)
		}
		if i%100 == 99 {
			c.Flush(peer.Communicators, nil)
		}
		if i == n/2 {
			comms := form(t, "test", hosts, members)
			sum(t, comms, 10)
			leave(t, comms)
		}
		if got := parked(); got > maxParkedOfOne+1 {
			t.Fatalf("%d callers are parked", got)
		}
	}
	until(within(t), t, "all others were given up", func() bool { return f.count(closes) == n-maxParkedOfOne })
	f.say(peer.Control, word{kind: closes, from: n})
	until(within(t), t, "one is forgotten", func() bool { return parked() == maxParkedOfOne-1 })
	f.close(t.Context())
	until(within(t), t, "all are forgotten", func() bool { return parked() == 0 })
}

// TestProcessesShareParkedPlaces: a host has as many places as one may, whatever labels its
// processes have.
func TestProcessesShareParkedPlaces(t *testing.T) {
	h := joinOne(t, "h0")
	const each = maxParkedOfOne / 2
	var fakes []*fake
	for _, label := range []string{"a", "b", "c"} {
		f := newFake(t, "h1#"+label, h)
		fakes = append(fakes, f)
		for i := range uint32(each) {
			f.say(peer.Control, word{kind: opens, from: i + 1, own: 1, hello: hello{name: fmt.Sprint("none ", i)}})
		}
		all := 0
		until(within(t), t, "it to be parked", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			mine := 0
			all = len(h.parked.all)
			for _, k := range h.parked.all {
				if k.conn.Peer().Name == f.host.Name() {
					mine++
				}
			}
			return mine == each
		})
		if all > maxParkedOfOne {
			t.Errorf("%d callers of one host are parked", all)
		}
	}
	until(within(t), t, "the first ones were given up", func() bool { return len(fakes[0].heard(closes)) == each })
}

// TestNewestCallOfAMemberCounts: while its communicator is not made.
func TestNewestCallOfAMemberCounts(t *testing.T) {
	h := joinOne(t, "h0")
	f := newFake(t, "h1", h)
	members := []Member{h.Member(), f.member()}
	for i := range uint32(10) {
		f.say(peer.Control, opening("test", members, 50+i))
	}
	until(within(t), t, "the others were given up", func() bool { return len(f.heard(closes)) == 9 })
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	had := len(f.words)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = h.Communicator(ctx, "test", members) })
	if a := f.next(had); a.kind != accepts || a.to != 59 {
		t.Errorf("%+v", a)
	}
	cancel()
	wg.Wait()
}

// TestStreamNumbersWrap: one that is in use is not given twice.
func TestStreamNumbersWrap(t *testing.T) {
	k := newLinks()
	var a, b stream
	if n := k.number(&a); n != 1 || k.find(1) != &a {
		t.Errorf("the first is %d", n)
	}
	k.last = maxStream - 1
	if n := k.number(&b); n != maxStream {
		t.Errorf("the last is %d", n)
	}
	if n := k.number(&b); n != 2 {
		t.Errorf("after it comes %d", n)
	}
	k.free(1)
	if k.find(1) != nil || k.find(2) != &b {
		t.Error("it is not free")
	}
}
