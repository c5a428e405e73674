package scoll_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// forger is a node that says what it likes.
type forger struct {
	t    *testing.T
	host *peer.Host
	got  chan []byte   // messages
	sent chan error    // of try
	deaf chan struct{} // it reads nothing of large messages until this is closed
}

// forge starts one, which the cluster's nodes find.
func (c *cluster) forge(name string) *forger { return c.forgeIn(name, 1) }

func (c *cluster) forgeIn(name string, incarnation uint64, change ...func(*peer.Config)) *forger {
	t := c.t.(*testing.T)
	t.Helper()
	f := &forger{t: t, got: make(chan []byte, 1000), sent: make(chan error, 1), deaf: make(chan struct{})}
	cfg := peer.Config{
		Name: name, Incarnation: incarnation, Listen: "127.0.0.1:0", Resolve: c.resolve,
		Handlers:    map[peer.Service]peer.Handler{peer.Collectives: (*forgery)(f)},
		GreetWithin: patience, DeadAfter: patience, Log: slog.New(slog.DiscardHandler),
	}
	for _, do := range change {
		do(&cfg)
	}
	var err error
	if f.host, err = peer.Listen(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	c.set(name, f.host.Addr())
	return f
}

func (f *forger) close() {
	if err := f.host.Close(); err != nil {
		f.t.Error(err)
	}
}

// forgery is what a forger makes of what comes. It implements peer.Handler.
type forgery forger

func (*forgery) Failed(string, peer.Class, error) {}

func (*forgery) Up(*peer.Conn)                    {}
func (*forgery) Down(*peer.Conn, error)           {}
func (*forgery) Restarted(string, uint64, uint64) {}
func (f *forgery) Sent(_ []uint64, err error)     { f.sent <- err }

func (f *forgery) Received(c *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	if c.Class() == peer.Large {
		<-f.deaf
	}
	for _, frame := range frames {
		f.got <- bytes.Clone(frame.Bytes)
	}
	b.Release()
}

// send sends a message to a node.
func (f *forger) send(to string, message []byte) {
	f.t.Helper()
	f.lay(to, message, 0)
}

// try sends a message to a node, and returns what came of that.
func (f *forger) try(to string, message []byte) error {
	f.t.Helper()
	if f.lay(to, message, 1) {
		return nil
	}
	return <-f.sent
}

func (f *forger) lay(to string, message []byte, number uint64) (isSent bool) {
	f.t.Helper()
	l := f.host.Channel(to, peer.Control)
	if err := l.Send(&peer.Send{Service: peer.Collectives, Body: message, Number: number}); err != nil {
		f.t.Fatal(err)
	}
	return len(l.Flush(peer.Collectives, nil)) > 0
}

// next returns the next message that comes.
func (f *forger) next() []byte {
	f.t.Helper()
	select {
	case b := <-f.got:
		return b
	case <-time.After(patience):
		f.t.Fatal("nothing comes")
		return nil
	}
}

func (f *forger) nextReply() *broadcastmsg.Reply {
	f.t.Helper()
	r, err := decodeReply(f.next())
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *forger) nextRequest() *broadcastmsg.Request {
	f.t.Helper()
	r, err := decodeRequest(f.next())
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// request is one that a root of that name may send: it makes the group of all
// targets.
func request(root string, targets []scoll.Target) *broadcastmsg.Request {
	var all []broadcastmsg.Target
	for _, t := range targets {
		all = append(all, broadcastmsg.Target{Node: broadcastmsg.Node(t.Node), Tags: t.Tags})
	}
	r := &broadcastmsg.Request{
		Flags: broadcastmsg.Creates, Service: broadcastmsg.Service(testService), Tree: broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: 2},
		Key: broadcastmsg.Key{Root: broadcastmsg.Node(root), Incarnation: 1, Sequence: 1}, Patience: patience,
		Index: broadcastmsg.MakeIndex(broadcastmsg.Node(root), 1, 1), Creation: &broadcastmsg.Creation{Name: "forged", Targets: all}, Payload: []byte("forged"),
	}
	r.Digest = broadcastmsg.DigestOf(r.Service, all)
	return r
}

// TestForgedRequests: what each lie is answered, by a node that keeps nothing of
// it.
func TestForgedRequests(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	f := c.forge("x")
	defer f.close()
	// In the tree from x the node n1 is a leaf beneath x; in that from y, x is
	// none of n1's business.
	members := []scoll.Target{{Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1], {Node: "y", Tags: []scoll.Tag{{}}}}
	sequence := uint64(0)
	for name, lie := range map[string]struct {
		report func(*broadcastmsg.Request)
		want   broadcastmsg.Status
	}{
		"the truth":            {func(*broadcastmsg.Request) {}, broadcastmsg.OK},
		"an unknown service":   {func(r *broadcastmsg.Request) { r.Service++ }, broadcastmsg.NoService},
		"a forged index":       {func(r *broadcastmsg.Request) { r.Index[8] ^= 1 }, broadcastmsg.NoGroup},
		"another's index":      {func(r *broadcastmsg.Request) { r.Index = broadcastmsg.MakeIndex("y", 1, 1) }, broadcastmsg.NoGroup},
		"a group never made":   {func(r *broadcastmsg.Request) { r.Flags, r.Creation, r.Index = 0, nil, broadcastmsg.Index{1} }, broadcastmsg.NoGroup},
		"a wrong digest":       {func(r *broadcastmsg.Request) { r.Digest[31] ^= 1 }, broadcastmsg.Disagree},
		"another's tree":       {func(r *broadcastmsg.Request) { r.Root, r.Index = "y", broadcastmsg.MakeIndex("y", 1, 1) }, broadcastmsg.WrongParent},
		"no member":            {func(r *broadcastmsg.Request) { r.Root, r.Index = "z", broadcastmsg.MakeIndex("z", 1, 1) }, broadcastmsg.NotMember},
		"an unknown tree":      {func(r *broadcastmsg.Request) { r.Tree.Kind = 77 }, broadcastmsg.NoTree},
		"the node's own":       {func(r *broadcastmsg.Request) { r.Root, r.Index = "n1", broadcastmsg.MakeIndex("n1", 1, 1) }, broadcastmsg.StaleRoot},
		"another life":         {func(r *broadcastmsg.Request) { r.Incarnation, r.Index = 2, broadcastmsg.MakeIndex("x", 2, r.Sequence) }, broadcastmsg.StaleRoot},
		"out of band, unasked": {func(r *broadcastmsg.Request) { r.Flags, r.Creation = broadcastmsg.OutOfBand, nil }, broadcastmsg.NoGroup},
		"a node twice": {func(r *broadcastmsg.Request) {
			r.Creation.Targets = append(r.Creation.Targets, r.Creation.Targets[0])
		}, broadcastmsg.NoGroup},
	} {
		r := request("x", members)
		sequence++
		r.Sequence = sequence
		r.Index = broadcastmsg.MakeIndex("x", 1, sequence)
		r.Flags |= broadcastmsg.Last // so that the truth leaves nothing either
		lie.report(r)
		f.send("n1", r.Append(nil))
		if reply := f.nextReply(); reply.Status != lie.want || !reply.Final || reply.Key != r.Key {
			t.Errorf("%s: %+v, want %v", name, reply, lie.want)
		}
		await(t, name+" to be forgotten", func() bool { k := c.nodes[1].Counters(); return k.Requests+k.Groups+k.LentBuffers == 0 })
	}
	if ran := rolls[1].has(); len(ran) != 1 || ran[0] != "forged" {
		t.Errorf("n1 ran %q", ran)
	}
}

// TestStaleGroup: a group that was freed is not known any more, and a copy of a
// request does not run again, nor is it answered.
func TestStaleGroup(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	f := c.forge("x")
	defer f.close()
	r := request("x", []scoll.Target{{Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1]})
	r.Flags |= broadcastmsg.Last
	wire := r.Append(nil)
	for range 3 {
		f.send("n1", wire)
	}
	if reply := f.nextReply(); reply.Status != broadcastmsg.OK || reply.Ran != 1 || string(reply.Body) != "n1" {
		t.Errorf("%+v", reply)
	}
	r.Flags, r.Creation, r.Sequence = 0, nil, 2
	f.send("n1", r.Append(nil))
	if reply := f.nextReply(); reply.Status != broadcastmsg.NoGroup || reply.Sequence != 2 {
		t.Errorf("%+v", reply)
	}
	if k := c.nodes[1].Counters(); k.Copies != 2 || k.Refusals != 1 || len(rolls[1].has()) != 1 {
		t.Errorf("%+v, ran %q", k, rolls[1].has())
	}
}

// TestForgedReplies: a child that replies twice, with too much, for somebody
// else, or with counts that cannot be; and messages that are none.
func TestForgedReplies(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	f := c.forge("x")
	defer f.close()
	members := append(c.targets()[:1], scoll.Target{Node: "x", Tags: []scoll.Tag{{}}})
	var g *scoll.Group
	if err := c.service[0].CreateGroup(scoll.GroupSpec{Name: "all", Targets: members, Delayed: true}, func(made *scoll.Group, _ error) { g = made }); err != nil {
		t.Fatal(err)
	}
	for i, what := range []struct {
		name   string
		report func(*broadcastmsg.Reply)
		want   scoll.Status
	}{
		{"the truth", func(*broadcastmsg.Reply) {}, scoll.StatusOK},
		{"too much", func(r *broadcastmsg.Reply) { r.Body = make([]byte, 17) }, scoll.StatusOverflow},
		{"more than there are", func(r *broadcastmsg.Reply) { r.Ran = 2 }, scoll.StatusUnreadable},
		{"nobody ran it", func(r *broadcastmsg.Reply) { r.Ran = 0 }, scoll.StatusUnreadable},
		{"an error", func(r *broadcastmsg.Reply) { r.Ran, r.Status, r.Reason = 0, broadcastmsg.Failed, "so it says" }, scoll.StatusFailed},
	} {
		req, err := g.NewRequest(scoll.Broadcast{Payload: []byte(what.name)})
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Send(); err != nil {
			t.Fatal(err)
		}
		got := f.nextRequest()
		// Point 5: the members travel with the first broadcast alone.
		if creates := got.Flags&broadcastmsg.Creates != 0; creates != (i == 0) || (got.Creation != nil) != creates || string(got.Payload) != what.name {
			t.Errorf("%s: the request has flags %b", what.name, got.Flags)
		}
		reply := broadcastmsg.Reply{Key: got.Key, Final: true, Ran: 1, Body: []byte("x")}
		elsewhere := reply
		elsewhere.Sequence += 1000
		f.send("n0", elsewhere.Append(nil))
		what.report(&reply)
		f.send("n0", reply.Append(nil))
		<-req.Done()
		f.send("n0", reply.Append(nil))
		all := rolls[0].replies()
		if len(all) != i+1 || all[i].Status != what.want || all[i].Status == scoll.StatusFailed && all[i].Reason != "so it says" {
			t.Errorf("%s: %+v", what.name, all)
		}
		if (what.want == scoll.StatusOK) != (req.Err() == nil) {
			t.Errorf("%s: %v", what.name, req.Err())
		}
		await(t, "what came late", func() bool { return c.nodes[0].Counters().Unmatched == uint64(2*(i+1)) })
	}
	before := c.nodes[0].Counters()
	f.send("n0", []byte("what?"))
	f.send("n0", make([]byte, broadcastmsg.MaxRequest+1)) // point 33: a request is at most 4 KiB
	long := request("x", members)
	long.Payload = make([]byte, broadcastmsg.MaxRequest)
	f.send("n0", append(long.Append(nil), 0)[:broadcastmsg.MaxRequest+100])
	await(t, "what is no message", func() bool { return c.nodes[0].Counters().Unreadable == before.Unreadable+3 })
}

// TestPoint45Priority: a reply of some bytes does not wait behind one of many
// that nobody reads.
func TestPoint45Priority(t *testing.T) {
	const large = 64 << 20
	c := start(t, 2, func(_ int, cfg *config) { cfg.PartBytes = large })
	c.register(func(int) scoll.Callbacks {
		call := silent(true)
		call.PostReply = func(r *scoll.Request) {
			size := 10
			if string(r.Payload()) == "much" {
				size = large
			}
			_ = r.Reply(make([]byte, size))
		}
		return call
	})
	f := c.forge("x")
	defer f.close()
	r := request("x", []scoll.Target{{Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1]})
	r.Payload = []byte("much")
	f.send("n1", r.Append(nil))
	r.Flags, r.Creation, r.Sequence, r.Payload = 0, nil, 2, []byte("little")
	f.send("n1", r.Append(nil))
	if reply := f.nextReply(); reply.Sequence != 2 || len(reply.Body) != 10 {
		t.Errorf("first comes %d with %d bytes", reply.Sequence, len(reply.Body))
	}
	close(f.deaf)
	if reply := f.nextReply(); reply.Sequence != 1 || len(reply.Body) != large {
		t.Errorf("then comes %d with %d bytes", reply.Sequence, len(reply.Body))
	}
}

// trusted returns the files of hosts' certificates by one authority.
func trusted(t testing.TB, names ...string) func(i int) *hostlib.TLS {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trust")
	ids := make([]pki.Identity, len(names))
	for i, n := range names {
		ids[i] = pki.Identity{Role: pki.Host, Name: n}
	}
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	return func(i int) *hostlib.TLS {
		return &hostlib.TLS{Cert: filepath.Join(dir, pki.CertFile(ids[i])), Key: filepath.Join(dir, pki.KeyFile(ids[i])), CA: filepath.Join(dir, pki.AuthorityFile)}
	}
}

// TestFinding3HopIsItsCertificatesHost: a request is the message of the host that the
// sender's certificate names, whatever it says of itself; and it runs only if that host is
// the root, or proves that the root has sent it.
func TestFinding3HopIsItsCertificatesHost(t *testing.T) {
	all := append(names(2), "x", "y")
	files := trusted(t, all...)
	c := start(t, 2, func(i int, cfg *config) { cfg.host.TLS = files(i) })
	rolls := c.rolls()
	source, err := pki.Load(pki.Files{Cert: files(2).Cert, Key: files(2).Key, CA: files(2).CA}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	x := c.forgeIn("x", 1, func(cfg *peer.Config) { cfg.TLS = source })
	defer x.close()
	if _, err := peer.Listen(t.Context(), peer.Config{Name: "y", Incarnation: 1, Listen: "127.0.0.1:0", Resolve: c.resolve, TLS: source}); !errors.Is(err, peer.ErrConfig) {
		t.Errorf("y with the certificate of x: %v", err)
	}
	// In the tree from x, n1 is beneath x; in that from y it is not.
	members := []scoll.Target{{Node: "x", Tags: []scoll.Tag{{}}}, c.targets()[1], {Node: "y", Tags: []scoll.Tag{{}}}}
	for i, root := range []string{"y", "x"} {
		r := request(root, members)
		r.Key.Sequence, r.Flags = uint64(i+1), r.Flags|broadcastmsg.Last
		r.Index = broadcastmsg.MakeIndex(broadcastmsg.Node(root), 1, r.Key.Sequence)
		x.send("n1", r.Append(nil))
		want := map[string]broadcastmsg.Status{"x": broadcastmsg.OK, "y": broadcastmsg.Unproven}[root]
		if reply := x.nextReply(); reply.Status != want || !reply.Final {
			t.Errorf("a request of root %s through x: %+v, want %v", root, reply, want)
		}
	}
	if ran := rolls[1].has(); len(ran) != 1 {
		t.Errorf("n1 ran %q", ran)
	}
}

// TestTLS: nodes with certificates take part, bulk data and large replies
// included; one with another's certificate does not start, one without does not
// reach them.
func TestTLS(t *testing.T) {
	files := trusted(t, names(4)...)
	c := start(t, 4, func(i int, cfg *config) { cfg.host.TLS = files(i) })
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	for range 20 {
		r, err := call(t, g, scoll.Broadcast{Payload: []byte("secret"), Bulk: [][]byte{make([]byte, 100_000)}})
		if err != nil || heard(r) != sorted(4) {
			t.Fatalf("%v, %s", err, heard(r))
		}
	}
	if _, err := hostlib.Join(t.Context(), hostlib.Config{Name: "n1", TLS: files(2)}); !errors.Is(err, hostlib.ErrConfig) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("with another's certificate: %v", err)
	}
	f := c.forge("n3")
	defer f.close()
	if err := f.try("n0", []byte("hello")); err == nil {
		t.Error("somebody without a certificate is taken for n3")
	}
	if k := c.nodes[0].host.Connections(); k.Rejected == 0 {
		t.Errorf("%+v", k)
	}
}

// TestChildIsLost: a process that dies while its reply is awaited, and of whose
// death nobody reports, is found out by the end of its connection, not after P.
func TestChildIsLost(t *testing.T) {
	c := start(t, 1, func(_ int, cfg *config) { cfg.Timeout = time.Hour })
	c.rolls()
	f := c.forge("f")
	targets := append(c.targets(), scoll.Target{Node: "f", Tags: []scoll.Tag{{}}})
	g := c.group(0, scoll.GroupSpec{Name: "with f", Targets: targets, Delayed: true, Tree: scoll.Flat()})
	r, err := g.NewRequest(scoll.Broadcast{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(); err != nil {
		t.Fatal(err)
	}
	f.nextRequest()
	f.close()
	select {
	case <-r.Done():
	case <-time.After(patience):
		t.Fatal("it is waited for")
	}
	if m := missing(t, r.Err()); m != (scoll.Missing{Node: "f", Nodes: 1, Status: scoll.StatusUnsent}) {
		t.Errorf("%+v", m)
	}
}

func decodeRequest(b []byte) (*broadcastmsg.Request, error) {
	r := new(broadcastmsg.Request)
	return r, r.Decode(b)
}

func decodeReply(b []byte) (*broadcastmsg.Reply, error) {
	r := new(broadcastmsg.Reply)
	return r, r.Decode(b)
}
