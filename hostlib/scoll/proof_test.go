package scoll_test

import (
	"log/slog"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// hop is a certified host x between n0 and n1 in the chain from n0, which says what it
// likes.
type hop struct {
	*cluster
	*forger
	rolls   []*rollCall
	members []scoll.Target
}

func newHop(t *testing.T) *hop {
	t.Helper()
	files := trusted(t, append(names(2), "x")...)
	c := start(t, 2, func(i int, cfg *config) { cfg.host.TLS = files(i) })
	h := &hop{cluster: c, rolls: c.rolls()}
	source, err := pki.Load(pki.Files{Cert: files(2).Cert, Key: files(2).Key, CA: files(2).CA}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h.forger = c.forgeIn("x", 1, func(cfg *peer.Config) { cfg.TLS = source })
	t.Cleanup(h.forger.close)
	h.members = []scoll.Target{c.targets()[0], {Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1]}
	return h
}

// inventsOf returns a request that n0 has never sent.
func (h *hop) inventsOf(root string, incarnation, sequence uint64) *broadcastmsg.Request {
	r := request(root, h.members)
	r.Tree = broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 1}
	r.Incarnation, r.Sequence = incarnation, sequence
	r.Index = broadcastmsg.MakeIndex(broadcastmsg.Node(root), incarnation, sequence)
	return r
}

// TestFinding3ForgedRoot: a certified host makes a group in the name of n0, and has the
// next in the chain run a request of it; without a proof, and with one that is none.
func TestFinding3ForgedRoot(t *testing.T) {
	h := newHop(t)
	r := h.inventsOf("n0", h.nodes[0].host.Incarnation(), 7)
	h.send("n1", r.Append(nil))
	if reply := h.nextReply(); reply.Status != broadcastmsg.Unproven {
		t.Errorf("%+v", reply)
	}
	r.Flags, r.Proof = r.Flags|broadcastmsg.Proven, &broadcastmsg.Proof{Signature: make([]byte, broadcastmsg.SignatureSize)}
	h.send("n1", r.Append(nil))
	if reply := h.nextReply(); reply.Status != broadcastmsg.Unproven {
		t.Errorf("%+v", reply)
	}
	// And in a name that nobody has.
	r = h.inventsOf("x", 1, 8)
	r.Root = "nobody"
	r.Flags, r.Proof = r.Flags|broadcastmsg.Proven, &broadcastmsg.Proof{Signature: make([]byte, broadcastmsg.SignatureSize)}
	h.send("n1", r.Append(nil))
	if reply := h.nextReply(); reply.Status != broadcastmsg.Unproven {
		t.Errorf("%+v", reply)
	}
	if ran := h.rolls[1].has(); len(ran) > 0 {
		t.Errorf("n1 has run %q for n0", ran)
	}
	if k := h.nodes[1].Counters(); k.Unproven != 3 || k.Groups != 0 {
		t.Errorf("%+v", k)
	}
}

// TestFinding3HopAltersAndReplays: a hop passes on what the root has sent, and nothing
// else: neither another payload, nor the same again.
func TestFinding3HopAltersAndReplays(t *testing.T) {
	h := newHop(t)
	var g *scoll.Group
	spec := scoll.GroupSpec{Name: "chain", Targets: h.members, Tree: scoll.KAry(1), Delayed: true}
	if err := h.service[0].CreateGroup(spec, func(made *scoll.Group, _ error) { g = made }); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true} { // the second by tags, if n1 has asked by then
		r, err := g.NewRequest(scoll.Broadcast{Payload: []byte("hello")})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		got := h.nextRequest()
		if tagged := got.Proof != nil && got.Proof.Tags != nil; tagged != want {
			t.Errorf("request %d has %+v", i, got.Proof)
		}
		altered := *got
		altered.Payload = []byte("HELLO")
		h.send("n1", altered.Append(nil))
		if reply := h.nextReply(); reply.Status != broadcastmsg.Unproven {
			t.Errorf("altered: %+v", reply)
		}
		before := h.nodes[1].Counters().Copies
		for range 3 {
			h.send("n1", got.Append(nil))
		}
		if reply := h.nextReply(); reply.Status != broadcastmsg.OK || string(reply.Body) != "n1" {
			t.Errorf("%+v", reply)
		}
		await(t, "the copies to be dropped", func() bool { return h.nodes[1].Counters().Copies == before+2 })
		reply := broadcastmsg.Reply{Key: got.Key, Final: true, Ran: 2, Body: []byte("x n1")}
		h.send("n0", reply.Append(nil))
		<-r.Done()
		if r.Err() != nil || heard(r) != "n0 n1 x" {
			t.Errorf("%v, %s", r.Err(), heard(r))
		}
	}
	if ran := h.rolls[1].has(); len(ran) != 2 || ran[0] != "hello" {
		t.Errorf("n1 has run %q", ran)
	}
}

// TestProofsAfterRestarts: a member that has restarted, and a root, find new keys.
func TestProofsAfterRestarts(t *testing.T) {
	const nodes = 4
	files := trusted(t, names(nodes)...)
	c := start(t, nodes, func(i int, cfg *config) { cfg.host.TLS = files(i) })
	c.rolls()
	spec := scoll.GroupSpec{Name: "chain", Tree: scoll.KAry(1)}
	c.group(0, spec)
	for _, again := range []int{nodes - 1, 0} {
		if err := c.nodes[again].Close(background(t)); err != nil {
			t.Fatal(err)
		}
		cfg := c.settings(c.nodes[again].Name())
		cfg.host.TLS = files(again)
		n, err := open(background(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes[again] = n
		c.set(n.Name(), n.host.Addr())
		if c.service[again], err = n.Register(testService, (&rollCall{node: n.Name()}).callbacks()); err != nil {
			t.Fatal(err)
		}
		await(t, n.Name()+" to take part", func() bool { // others may not have noticed that it has restarted
			g, err := c.tryGroup(0, spec)
			if err != nil {
				return false
			}
			r, err := call(t, g, scoll.Broadcast{})
			return err == nil && heard(r) == sorted(nodes)
		})
	}
}

// TestReplyOfAnother: of a child's reply nobody else can give a part, though it knows the
// request; with a certificate as well.
func TestReplyOfAnother(t *testing.T) {
	h := newHop(t)
	g := h.cluster.group(0, scoll.GroupSpec{Name: "two", Targets: h.cluster.targets()})
	r, release := h.rolls[1].holds(t, g)
	key := broadcastmsg.Key{Root: "n0", Incarnation: h.nodes[0].host.Incarnation(), Sequence: 2}
	forged := broadcastmsg.Reply{Key: key, Final: true, Ran: 1, Body: []byte("x")}
	h.send("n0", forged.Append(nil))
	await(t, "the forged reply to be dropped", func() bool { return h.nodes[0].Counters().Unmatched == 1 })
	close(release)
	<-r.Done()
	if r.Err() != nil || heard(r) != "n0 n1" {
		t.Errorf("%v, %s", r.Err(), heard(r))
	}
}

// TestFinding7NameIsCertified: a stranger without a certificate, under the name of a node
// and in the latest incarnation that there is, is not heard, and does not keep that node
// out. TestFinding7NameIsFree has what holds where nobody has certificates.
func TestFinding7NameIsCertified(t *testing.T) {
	h := newHop(t)
	h.cluster.group(0, scoll.GroupSpec{Name: "before", Targets: h.cluster.targets()})
	f := h.cluster.forgeIn("n1", ^uint64(0)-1) // without a certificate
	defer f.close()
	h.cluster.set("n1", h.nodes[1].host.Addr())
	if err := f.try("n0", []byte("I am n1")); err == nil {
		t.Error("a stranger is taken for n1")
	}
	if _, err := h.cluster.tryGroup(1, scoll.GroupSpec{Name: "after", Targets: h.cluster.targets()}); err != nil {
		t.Errorf("n1 is kept out: %v", err)
	}
	if k := h.nodes[0].Counters(); k.Unreadable != 0 {
		t.Errorf("%+v", k)
	}
}
