package broadcast

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestRules: who is not allowed to call, or to make groups, is refused with the reason,
// which the root hears of from wherever it was, and nothing is kept.
func TestRules(t *testing.T) {
	may := map[broadcastmsg.Node]Caller{"n0": {Creates: true, Calls: true}, "n1": {Calls: true}}
	rule := func(caller Caller) string {
		m := may[caller.Root]
		if caller.Creates && !m.Creates || caller.Calls && !m.Calls {
			return fmt.Sprintf("the rule is not for %s", caller.Root)
		}
		return ""
	}
	for _, keys := range []bool{false, true} {
		c := newClusterOf(&cluster{shape: binomial, keys: keys, allow: rule}, 8)
		c.world = c.members()
		if err := c.create(0, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.node(0).must(t, Broadcast{})
		for i := range c.names {
			if c.node(i).ran != 1 {
				t.Errorf("n%d has run %d", i, c.node(i).ran)
			}
		}
		// Another may call, but not make groups.
		for i := 1; i <= 2; i++ {
			n := c.node(i)
			group, err := n.CreateOutOfBand(testService, broadcastmsg.Index{1}, binomial)
			if err != nil {
				t.Fatal(err)
			}
			id := n.must(t, Broadcast{Group: group, Members: c.world})
			if c.node(3).ran != 2 {
				t.Errorf("n3 has run %d, one of n0 and one of n1", c.node(3).ran)
			}
			o := n.end(t, id).Outcome
			if i == 1 && o.Ran != 8 || i == 2 && (o.Ran != 1 || o.Missing[0].Status != broadcastmsg.Denied || o.Missing[0].Reason != "the rule is not for n2") {
				t.Errorf("from n%d: %+v", i, o)
			}
		}
		if err := c.create(1, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		for i := range c.names {
			if i != 1 && (len(c.node(i).groups) > 2 || c.node(i).Counters().LentBuffers > 0) {
				t.Errorf("n%d keeps %d groups", i, len(c.node(i).groups))
			}
		}
		if err := c.node(1).created[0]; err == nil {
			t.Error("n1 has made a group")
		}
		if d := c.node(3).denials; len(d) == 0 && c.node(2).Counters().Denied == 0 {
			t.Error("no denial is reported")
		}
	}
}

// TestDeniedBeneath: of a denial deep in the tree the root hears the reason.
func TestDeniedBeneath(t *testing.T) {
	c := newProven(3, chain)
	c.allow = func(Caller) string { return "nobody may" }
	c.add("n2", 1)
	if err := c.create(0, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	var e *IncompleteError
	if !errors.As(c.node(0).created[0], &e) || len(e.Missing) != 1 || e.Missing[0] != (broadcastmsg.Missing{Node: "n2", Nodes: 1, Status: broadcastmsg.Denied, Reason: "nobody may"}) {
		t.Errorf("%v, %+v", c.node(0).created, e)
	}
}

// TestFinding3GroupIsItsCreators: a member that makes another's group before that does,
// along another tree or under another name, does not keep it from being made as its
// creator says.
func TestFinding3GroupIsItsCreators(t *testing.T) {
	for name, change := range map[string]func(m *broadcastmsg.Request){
		"another tree": func(m *broadcastmsg.Request) { m.Tree = broadcastmsg.Tree{Kind: broadcastmsg.Flat} },
		"another name": func(m *broadcastmsg.Request) { m.Creation.Name, m.Tree = "not g", chain },
	} {
		c := newProven(4, chain)
		m := &broadcastmsg.Request{
			Flags: broadcastmsg.Own | broadcastmsg.Creates, Service: testService,
			Key: broadcastmsg.Key{Root: "n1", Incarnation: 1, Sequence: 1}, Index: broadcastmsg.MakeIndex("n0", 1, 1),
			Digest: c.members().digest, Creation: &broadcastmsg.Creation{Name: "g", Targets: c.targets()},
		}
		change(m)
		n := c.node(2)
		n.step(Input{Kind: Message, Node: "n1", Bytes: m.Append(nil)})
		if len(n.groups) != 1 {
			t.Fatalf("%s: n2 has %d groups", name, len(n.groups))
		}
		n.queue = nil
		if err := c.create(0, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		if err := c.node(0).created[0]; err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		id := c.node(0).must(t, Broadcast{})
		if e := c.node(0).end(t, id); e.Err != nil {
			t.Errorf("%s: %v", name, e.Err)
		}
		for _, g := range n.groups {
			if g.tree != chain || g.name != "g" || g.hearsay {
				t.Errorf("%s: n2 has %q along %+v", name, g.name, g.tree)
			}
		}
	}
}

// TestQuotas: one root neither fills a node with requests that do not end, nor with
// groups; what others ask for goes on.
func TestQuotas(t *testing.T) {
	c := made(t, 3, broadcastmsg.Tree{Kind: broadcastmsg.Flat})
	n := c.node(2)
	n.cfg.Requests, n.cfg.Groups = 16, 4
	c.world = c.members()
	n.held[IncomingRequest] = true
	refused := func(root int) (outcome string) {
		id := c.node(root).must(t, Broadcast{Group: c.known(t, root), Members: c.world})
		for _, e := range c.node(root).ends {
			if e.Request == id {
				outcome = missing(e.Outcome)
			}
		}
		return outcome
	}
	for i := range 6 {
		if got := refused(0); (got == "n2 refused") != (i >= 4) {
			t.Errorf("request %d of n0: %q", i, got)
		}
	}
	for i := range 4 {
		if got := refused(1); got != "" {
			t.Errorf("request %d of n1: %q", i, got)
		}
	}
	n.release()
	c.settle()
	if got := refused(0); got != "" {
		t.Errorf("when they have ended: %q", got)
	}
	for i := 2; i < 6; i++ { // it has made one, and is a root of another
		if err := c.create(0, false); err != nil {
			t.Fatal(err)
		}
		c.settle()
		if err := c.node(0).created[len(c.node(0).created)-1]; (err != nil) != (i >= 4) {
			t.Errorf("group %d of n0: %v", i, err)
		}
	}
	if err := c.create(1, false); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if err := c.node(1).created[0]; err != nil {
		t.Errorf("a group of n1: %v", err)
	}
}

// TestQuotasAreByHost: a host's processes, however many names they have, share what one
// host may have a node keep: requests, groups, members that are pulled, and requests that
// wait for their roots.
func TestQuotasAreByHost(t *testing.T) {
	process := func(i int) broadcastmsg.Node { return broadcastmsg.Node(fmt.Sprintf("evil#%03d", i)) }
	// made is a request of a process that makes a group of itself and n0.
	made := func(i int) *broadcastmsg.Request {
		m := &broadcastmsg.Request{
			Flags: broadcastmsg.Creates, Service: testService, Tree: broadcastmsg.Tree{Kind: broadcastmsg.Flat}, Patience: time.Second, Level: time.Second,
			Key: broadcastmsg.Key{Root: process(i), Incarnation: 1, Sequence: 1}, Index: broadcastmsg.MakeIndex(process(i), 1, 1),
			Creation: &broadcastmsg.Creation{Name: "g", Targets: []broadcastmsg.Target{{Node: process(i), Tags: []broadcastmsg.Tag{{}}}, {Node: "n0", Tags: []broadcastmsg.Tag{{}}}}},
		}
		m.Digest = broadcastmsg.DigestOf(testService, m.Creation.Targets)
		return m
	}
	fetched := func(i int, bytes uint64) *broadcastmsg.Request {
		m := made(i)
		m.Flags, m.Creation, m.Bulk = broadcastmsg.Own|broadcastmsg.HasBulk, nil, broadcastmsg.Bulk{Key: 1, Length: bytes}
		return m
	}
	const processes = 400
	for name, attack := range map[string]struct {
		message func(i int) *broadcastmsg.Request
		most    int
		kept    func(n *testNode) int
	}{
		"requests":          {made, 4, func(n *testNode) int { return len(n.requests) }},
		"groups":            {made, 4, func(n *testNode) int { n.release(); return len(n.groups) }},
		"members":           {func(i int) *broadcastmsg.Request { return fetched(i, 64<<20) }, 1, func(n *testNode) int { return len(n.requests) }},
		"members of groups": {made, 10, func(n *testNode) int { n.release(); return len(n.groups) }},
	} {
		c := newCluster(1, binomial)
		n := c.node(0)
		n.slowPull = func(Pull) {}
		switch n.cfg.Requests, n.cfg.Groups = 1<<16, 1000; name {
		case "requests":
			n.cfg.Requests = 16
		case "groups":
			n.cfg.Groups = 4
		case "members of groups":
			n.cfg.CreationBytes = uint64(10 * made(0).Creation.Size() / membersKept)
		}
		n.held[IncomingRequest] = name == "requests"
		for i := range processes {
			n.step(Input{Kind: Message, Node: process(i), Bytes: attack.message(i).Append(nil)})
		}
		if got := attack.kept(n); got != attack.most {
			t.Errorf("%s: %d are kept for one host, want %d", name, got, attack.most)
		}
		refusals := n.Counters().Refusals
		honest := attack.message(0)
		honest.Root, honest.Index = "n1", broadcastmsg.MakeIndex("n1", 1, 1)
		if honest.Creation != nil {
			honest.Creation.Targets[0].Node = "n1"
			honest.Digest = broadcastmsg.DigestOf(testService, honest.Creation.Targets)
		}
		if n.step(Input{Kind: Message, Node: "n1", Bytes: honest.Append(nil)}); n.Counters().Refusals != refusals {
			t.Errorf("%s: another host is refused", name)
		}
	}
	c := newProven(1, binomial)
	n := c.node(0)
	n.mute = true
	for _, root := range []broadcastmsg.Node{"n1", "n2"} {
		c.add(root, 1) // it can be asked
	}
	for i := range processes {
		m := made(0)
		m.Root, m.Sequence, m.Flags, m.Proof = "n1", uint64(i+1), m.Flags|broadcastmsg.Proven, &broadcastmsg.Proof{Signature: make([]byte, broadcastmsg.SignatureSize)}
		n.step(Input{Kind: Message, Node: process(i), Bytes: m.Append(nil)})
	}
	if n.proofs.waiting != parkedFrom {
		t.Errorf("%d of one host wait for their root, want %d", n.proofs.waiting, parkedFrom)
	}
}

// TestOneHostLeavesMemoryToOthers: a host whose requests take up all that is remembered of
// what has ended, by many names or by leaps of their numbers, forgets its own alone: another
// root's next request runs, and none of its earlier ones does again.
func TestOneHostLeavesMemoryToOthers(t *testing.T) {
	for name, attack := range map[string]func(i int, m *broadcastmsg.Request){
		"many names": func(i int, m *broadcastmsg.Request) { m.Root = broadcastmsg.Node(fmt.Sprint("evil#", i)) },
		"leaps":      func(i int, m *broadcastmsg.Request) { m.Root, m.Sequence = "evil", uint64(i)*pageBits },
	} {
		c := newCluster(1, binomial)
		n := c.node(0)
		n.finished = newMemory(16 * pageBits)
		give := func(m *broadcastmsg.Request) {
			targets := []broadcastmsg.Target{{Node: m.Root, Tags: []broadcastmsg.Tag{{}}}, {Node: "n0", Tags: []broadcastmsg.Tag{{}}}}
			m.Flags, m.Service, m.Tree = broadcastmsg.Creates|broadcastmsg.Last, testService, broadcastmsg.Tree{Kind: broadcastmsg.Flat}
			m.Index, m.Creation = broadcastmsg.MakeIndex(m.Root, 1, 1), &broadcastmsg.Creation{Name: "g", Targets: targets}
			m.Incarnation, m.Digest, m.Patience = 1, broadcastmsg.DigestOf(testService, targets), broadcastmsg.MaxPatience
			n.step(Input{Kind: Message, Node: m.Root, Bytes: m.Append(nil)})
			c.pass(time.Second) // its reply is given up
		}
		other := func(sequence uint64) *broadcastmsg.Request {
			return &broadcastmsg.Request{Key: broadcastmsg.Key{Root: "n1", Sequence: sequence}}
		}
		give(other(1))
		for i := range 100 {
			m := &broadcastmsg.Request{Key: broadcastmsg.Key{Sequence: 1}}
			attack(i, m)
			give(m)
		}
		if n.ran != 101 {
			t.Fatalf("%s: %d have run", name, n.ran)
		}
		give(other(1))
		if give(other(2)); n.ran != 102 || n.Counters().Copies != 1 {
			t.Errorf("%s: %d have run, %d were copies; want one more, and one", name, n.ran, n.Counters().Copies)
		}
	}
}

// known returns a handle to the out-of-band group of all, at a node.
func (c *cluster) known(t *testing.T, at int) uint64 {
	t.Helper()
	group, err := c.node(at).CreateOutOfBand(testService, broadcastmsg.Index{1}, c.shape)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestFetchEnds: members that are announced, and not given, are not waited for longer
// than the sender waits.
func TestFetchEnds(t *testing.T) {
	c := newCluster(2, chain)
	n := c.node(1)
	var until core.Time
	n.slowPull = func(p Pull) { until = p.Until }
	m := &broadcastmsg.Request{
		Flags: broadcastmsg.Own | broadcastmsg.HasBulk, Service: testService, Tree: chain, Bulk: broadcastmsg.Bulk{Key: 1, Length: 1000},
		Key: broadcastmsg.Key{Root: "n0", Incarnation: 1, Sequence: 1}, Index: broadcastmsg.MakeIndex("n0", 1, 1),
		Patience: time.Minute, Level: time.Second,
	}
	n.step(Input{Kind: Message, Node: "n0", Bytes: m.Append(nil)})
	if want := c.clock.Add(time.Minute + time.Second + n.cfg.RoundTrip); until != want {
		t.Errorf("until %v, want %v", until, want)
	}
}
