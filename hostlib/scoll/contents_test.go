package scoll_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// The services of TestContentsOfPermittedRequests, beside testService, which x may call.
const (
	openService   = testService + 1 // for all
	closedService = testService + 2 // for n0 alone
)

// TestContentsOfPermittedRequests: a certified host that may call a service, and is a
// member of a group, says in such requests that they are another's, in another life, for
// another's group or another service's, and names memory that is exposed to others. None
// of them runs, and groups stay as they are.
func TestContentsOfPermittedRequests(t *testing.T) {
	files := trusted(t, append(names(2), "x", "y")...)
	c := start(t, 2, func(i int, cfg *config) {
		if cfg.host.TLS = files(i); i == 1 {
			cfg.RoundTrip = time.Millisecond // how much longer than x says that it waits n1 pulls memory that is not there
		}
	})
	rolls := c.rollsFor(scoll.Access{Call: scoll.Hosts("n0", "x"), Create: scoll.Hosts("n0")})
	for _, n := range c.nodes {
		for id, access := range map[scoll.ServiceID]scoll.Access{openService: {}, closedService: {Call: scoll.Hosts("n0")}} {
			other := (&rollCall{node: n.Name(), also: func(string, *scoll.Request) error { panic("it runs") }}).callbacks()
			other.Access = access
			if _, err := n.Register(id, other); err != nil {
				t.Fatal(err)
			}
		}
	}
	source, err := pki.Load(pki.Files{Cert: files(2).Cert, Key: files(2).Key, CA: files(2).CA}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	x := c.forgeIn("x", 1, func(cfg *peer.Config) { cfg.TLS = source })
	defer x.close()
	targets := []scoll.Target{c.targets()[0], {Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1]}
	two := c.group(0, scoll.GroupSpec{Name: "two", Targets: c.targets(), Tree: scoll.Flat()})
	var ours *scoll.Group
	if err := c.service[0].CreateGroup(scoll.GroupSpec{Name: "ours", Targets: targets, Tree: scoll.Flat(), Delayed: true}, func(g *scoll.Group, _ error) { ours = g }); err != nil {
		t.Fatal(err)
	}
	// send has n0 send a request over the group, which x gets, and does not answer yet.
	send := func() (*scoll.Request, *broadcastmsg.Request) {
		r, err := ours.NewRequest(scoll.Broadcast{Payload: []byte("n0's"), Bulk: [][]byte{make([]byte, 100)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		return r, x.nextRequest()
	}
	finish := func(r *scoll.Request, got *broadcastmsg.Request) {
		reply := broadcastmsg.Reply{Key: got.Key, Final: true, Ran: 1, Body: []byte("x")}
		x.send("n0", reply.Append(nil))
		if <-r.Done(); r.Err() != nil || heard(r) != "n0 n1 x" {
			t.Errorf("n0's request: %v, %s", r.Err(), heard(r))
		}
	}
	finish(send())
	held, theirs := send() // so that its memory is exposed

	sequence := uint64(0)
	give := func(what string, want broadcastmsg.Status, lie func(m *broadcastmsg.Request)) {
		sequence++
		m := &broadcastmsg.Request{
			Service: theirs.Service, Tree: theirs.Tree, Index: theirs.Index, Digest: theirs.Digest, Patience: patience, Payload: []byte("x's"),
			Key: broadcastmsg.Key{Root: "x", Incarnation: 1, Sequence: sequence},
		}
		lie(m)
		x.send("n1", m.Append(nil))
		if reply := x.nextReply(); reply.Status != want || !reply.Final || reply.Key != m.Key {
			t.Errorf("%s: %v %q of %+v, want %v", what, reply.Status, reply.Reason, reply.Key, want)
		}
	}
	index := func(root broadcastmsg.Node, life, number uint64) broadcastmsg.Index {
		return broadcastmsg.MakeIndex(root, life, number)
	}
	creates := func(m *broadcastmsg.Request) {
		all := request("x", targets)
		m.Flags, m.Creation, m.Digest = m.Flags|broadcastmsg.Creates, all.Creation, broadcastmsg.DigestOf(m.Service, all.Creation.Targets)
	}
	life := theirs.Incarnation
	give("the truth", broadcastmsg.OK, func(*broadcastmsg.Request) {})

	give("n0 for its root", broadcastmsg.Unproven, func(m *broadcastmsg.Request) { m.Root, m.Incarnation, m.Sequence = "n0", life, 1000 })
	give("its other process for its root", broadcastmsg.Unproven, func(m *broadcastmsg.Request) {
		m.Root, m.Flags, m.Proof = "x#1", broadcastmsg.Proven, &broadcastmsg.Proof{Signature: make([]byte, broadcastmsg.SignatureSize)}
	})
	give("n1 itself for its root", broadcastmsg.StaleRoot, func(m *broadcastmsg.Request) { m.Root = "n1" })
	give("a life that it is not in", broadcastmsg.StaleRoot, func(m *broadcastmsg.Request) { m.Incarnation = 2 })

	give("a group that it is no member of", broadcastmsg.NotMember, func(m *broadcastmsg.Request) {
		m.Index, m.Digest = index("n0", life, 1), request("x", c.targets()).Digest
	})
	give("that group, with its own members", broadcastmsg.NoGroup, func(m *broadcastmsg.Request) { m.Index = index("n0", life, 1) })
	give("another tree of the group", broadcastmsg.NoTree, func(m *broadcastmsg.Request) { m.Tree = broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: 2} })
	give("the group in another life of its creator", broadcastmsg.NoGroup, func(m *broadcastmsg.Request) { m.Index = index("n0", life+1, 2) })
	give("the group, of a service that it may call", broadcastmsg.NoGroup, func(m *broadcastmsg.Request) { m.Service = broadcastmsg.Service(openService) })
	give("the group, of a service that it may not call", broadcastmsg.Denied, func(m *broadcastmsg.Request) { m.Service = broadcastmsg.Service(closedService) })

	give("a group of its own", broadcastmsg.Denied, func(m *broadcastmsg.Request) { m.Index = index("x", 1, 1); creates(m) })
	give("the end of the group", broadcastmsg.Denied, func(m *broadcastmsg.Request) { m.Flags |= broadcastmsg.Last })
	give("the group's destruction", broadcastmsg.Denied, func(m *broadcastmsg.Request) {
		m.Flags, m.Payload = broadcastmsg.Own|broadcastmsg.Last, nil
		creates(m)
	})
	for what, of := range map[string]broadcastmsg.Index{"n0": index("n0", life, 7), "its next life": index("x", 2, 1), "nobody": {1}} {
		give("a new group, with an index of "+what, broadcastmsg.NoGroup, func(m *broadcastmsg.Request) {
			m.Service, m.Index = broadcastmsg.Service(openService), of
			creates(m)
		})
	}

	rolls[1].set(func(s *rollCall) {
		s.also = func(callback string, r *scoll.Request) error {
			if callback == "incoming-request" && r.Root() == "x" && r.BulkErr() == nil {
				t.Errorf("n1 has %d bytes of memory that was not for x", r.BulkLen())
			}
			return nil
		}
	})
	give("memory of n0's", broadcastmsg.BulkFailed, func(m *broadcastmsg.Request) {
		m.Flags, m.Bulk, m.Patience = broadcastmsg.HasBulk, theirs.Bulk, 0
	})
	rolls[1].set(func(s *rollCall) { s.also = nil })
	give("the truth again", broadcastmsg.OK, func(*broadcastmsg.Request) {})
	y, err := hostlib.Join(t.Context(), hostlib.Config{Name: "y", Resolve: c.resolve, TLS: files(3), DeadAfter: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := y.Close(background(t)); err != nil {
			t.Error(err)
		}
	}()
	if err := readOf(t, y, "n0", theirs.Bulk); !errors.Is(err, rail.ErrAccess) {
		t.Errorf("y reads memory whose key x has given it: %v", err)
	}
	finish(held, theirs)
	all := rolls[1].has()
	slices.Sort(all)
	if want := []string{"n0's", "n0's", "x's", "x's", "x's"}; !slices.Equal(all, want) { // one of x's without its memory
		t.Errorf("n1 has run %q, want %q", all, want)
	}
	if r, err := call(t, two, scoll.Broadcast{}); err != nil || heard(r) != sorted(2) {
		t.Errorf("over the other group: %v, %s", err, heard(r))
	}
	finish(send())
}

// rollsFor registers a roll call at all nodes, which some may call.
func (c *cluster) rollsFor(access scoll.Access) (all []*rollCall) {
	for _, n := range c.nodes {
		all = append(all, &rollCall{node: n.Name()})
	}
	c.register(func(i int) scoll.Callbacks {
		call := all[i].callbacks()
		call.Access = access
		return call
	})
	return all
}

// readOf reads bulk data that a node has exposed, by its key alone.
func readOf(t *testing.T, h *hostlib.Host, node string, bulk broadcastmsg.Bulk) error {
	t.Helper()
	n, err := rail.On(h, rail.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Peer(node)
	if err != nil {
		t.Fatal(err)
	}
	var key rail.Key
	binary.BigEndian.PutUint64(key[:], bulk.Key)
	copy(key[8:], "scoll:io")
	_, err = p.StartGet(key, 0, make([]byte, bulk.Length)).Wait(background(t))
	return err
}
