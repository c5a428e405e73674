package attack_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// requestFields are those of every request, docs/server-collectives.md.
var requestFields = []field{
	{"version, type", 0, 1}, {"flags", 1, 1}, {"bytes of the payload", 2, 2}, {"service", 4, 4}, {"tree kind", 8, 1}, {"subset", 9, 1},
	{"radix", 10, 2}, {"bytes of the root's name", 12, 1}, {"zero", 13, 3}, {"root's incarnation", 16, 8}, {"sequence", 24, 8}, {"P", 32, 8},
	{"time of a level", 40, 8}, {"forwarding delay", 48, 8}, {"index", 56, 24}, {"digest", 80, 32}, {"root's name", 112, 2},
}

const service = 7

// ran is whose requests a service has run.
type ran struct {
	mu    sync.Mutex
	roots []string
}

func (r *ran) callbacks() scoll.Callbacks {
	return scoll.Callbacks{IncomingRequest: func(q *scoll.Request) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.roots = append(r.roots, q.Root())
		return nil
	}}
}

// liar is mallory as a node of server collectives.
type liar struct {
	got chan []byte
}

func (l *liar) Up(*peer.Conn)                    {}
func (l *liar) Down(*peer.Conn, error)           {}
func (l *liar) Failed(string, peer.Class, error) {}
func (l *liar) Restarted(string, uint64, uint64) {}
func (l *liar) Sent([]uint64, error)             {}
func (l *liar) Received(_ *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	for _, x := range frames {
		l.got <- bytes.Clone(x.Bytes)
	}
	b.Release()
}

// testServers: mallory, who is a hop in a tree from h1 to h0, sends h0 requests in h1's name, which h1 has
// never sent, with every field forged; and messages about other nodes. No service runs them.
func (f *fabric) testServers(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 5))
	services, nodes := make([]ran, 2), make([]*scoll.Node, 2)
	for i := range services {
		n, err := scoll.On(f.hosts[i], scoll.Config{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
		if _, err := n.Register(service, services[i].callbacks()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // what hangs is not waited for
			_ = n.Close(ctx)
		})
	}
	l := &liar{got: make(chan []byte, 1000)}
	own, err := peer.Listen(f.ctx, peer.Config{
		Name: mallory, Incarnation: f.last, Listen: "127.0.0.1:0", DeadAfter: patience, GreetWithin: patience,
		Resolve:  func(context.Context, string) (string, error) { return f.hosts[0].Addr(), nil },
		Handlers: map[peer.Service]peer.Handler{peer.Collectives: l}, Log: slog.New(slog.DiscardHandler),
		TLS: f.source(pki.Identity{Role: pki.Host, Name: mallory}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	r := f.matrix.of("a host's certificate", "server collectives")
	send := func(b []byte) {
		c := own.Channel("h0", peer.Control)
		if err := c.Send(&peer.Send{Service: peer.Collectives, Body: b}); err != nil {
			t.Fatal(err)
		}
		c.Flush(peer.Collectives, nil)
	}
	sequence := uint64(1 << 20)
	// say sends a message, and then a request of mallory's own, for a service that is not there, whose
	// answer comes after what is said at once to the message.
	say := func(what string, b []byte) {
		send(b)
		sequence++
		fence := broadcastmsg.Request{
			Service: service + 1, Tree: broadcastmsg.Tree{Kind: broadcastmsg.Flat}, Patience: time.Second,
			Key: broadcastmsg.Key{Root: mallory, Incarnation: f.last, Sequence: sequence},
		}
		send(fence.Append(nil))
		got, isAnswered := 0, false
		for {
			var answer []byte
			select {
			case answer = <-l.got:
			case <-f.ctx.Done():
				t.Fatalf("%s: the request after it is not answered", what)
			}
			var a broadcastmsg.Reply
			isReply := a.Decode(answer) == nil
			if isReply && a.Key == fence.Key {
				break
			}
			isAnswered = isAnswered || isReply && a.Status == broadcastmsg.OK
			got += len(answer)
		}
		r.tried, r.in, r.out = r.tried+1, r.in+len(b), r.out+got
		if isAnswered {
			r.answered++
			t.Errorf("%s: it is answered as done", what)
		} else {
			r.refused++
		}
	}
	f.under(t, func() {
		for i, m := range f.requests() {
			for k, x := range fewer(append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})) {
				if len(x.bytes) > 32 && x.field != "sequence" { // each is another request
					copy(x.bytes[24:], []byte{0, 0, 0, 0, byte(i), byte(k >> 8), byte(k), 1})
				}
				say(x.what, x.bytes)
			}
		}
		for _, m := range golden(t, "../../wire/broadcastmsg/testdata/golden", 8) {
			for _, x := range fewer(append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})) {
				say(x.what, x.bytes)
			}
		}
	})
	for i := range services {
		f.until("all requests have ended", func() bool { return nodes[i].Counters().Requests == 0 })
		services[i].mu.Lock()
		if others := slices.DeleteFunc(slices.Clone(services[i].roots), func(root string) bool { return root == mallory }); len(others) > 0 {
			t.Errorf("h%d has run requests in the names of %v", i, others)
		}
		services[i].mu.Unlock()
	}
}

// requests are those that mallory sends in h1's name: with the making of a group of which it is a hop, over
// a group that is there already, and to end it.
func (f *fabric) requests() (all []message) {
	targets := []broadcastmsg.Target{
		{Node: "h1", Tags: []broadcastmsg.Tag{{}}}, {Node: mallory, Tags: []broadcastmsg.Tag{{}}}, {Node: "h0", Tags: []broadcastmsg.Tag{{}}},
	}
	life := f.hosts[1].Incarnation()
	for name, flags := range map[string]broadcastmsg.Flags{
		"creates": broadcastmsg.Creates, "creates and ends": broadcastmsg.Creates | broadcastmsg.Last, "known": 0,
		"ends": broadcastmsg.Last, "out-of-band": broadcastmsg.OutOfBand,
	} {
		q := broadcastmsg.Request{
			Flags: flags, Service: service, Tree: broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 1}, Patience: time.Second,
			Key: broadcastmsg.Key{Root: "h1", Incarnation: life, Sequence: 1}, Index: broadcastmsg.MakeIndex("h1", life, 1),
			Digest: broadcastmsg.DigestOf(service, targets), Payload: []byte("forged"),
		}
		if flags&broadcastmsg.Creates != 0 {
			q.Creation = &broadcastmsg.Creation{Name: "forged", Targets: targets}
		}
		b := q.Append(nil)
		all = append(all, message{fmt.Sprintf("request that %s", name), b, slices.Concat(requestFields, words(len(b), 8)[15:])})
	}
	slices.SortFunc(all, func(x, y message) int { return len(y.bytes) - len(x.bytes) })
	return all
}
