package scoll_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

const testService scoll.ServiceID = 7

// names returns the names of n nodes.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("n%d", i)
	}
	return all
}

// server is a host with a node of server collectives.
type server struct {
	*scoll.Node
	host *hostlib.Host
}

// config is how a server is made.
type config struct {
	scoll.Config
	host hostlib.Config
}

func open(ctx context.Context, c config) (*server, error) {
	host, err := hostlib.Join(ctx, c.host)
	if err != nil {
		return nil, err
	}
	node, err := scoll.On(host, c.Config)
	if err != nil {
		return nil, errors.Join(err, host.Close(ctx))
	}
	return &server{node, host}, nil
}

// Close closes the host, and the node before it.
func (s *server) Close(ctx context.Context) error { return s.host.Close(ctx) }

// connections returns how many carry frames.
func (s *server) connections() int { return s.host.Connections().Open }

// cluster is servers on the loopback interface, each with one service.
type cluster struct {
	t     testing.TB
	nodes []*server
	*directory
	service []*scoll.Service
}

// directory knows where nodes are.
type directory struct {
	mu        sync.Mutex
	addresses map[string]string
}

var errNowhere = errors.New("nobody knows where it is")

func (d *directory) set(node, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addresses == nil {
		d.addresses = map[string]string{}
	}
	d.addresses[node] = address
}

func (d *directory) resolve(_ context.Context, node string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := d.addresses[node]; ok {
		return a, nil
	}
	return "", errNowhere
}

// settings returns those of a server whose requests do not expire.
func (d *directory) settings(name string) config {
	return config{
		Config: scoll.Config{RoundTrip: patience, Timeout: time.Nanosecond},
		host:   hostlib.Config{Name: name, Resolve: d.resolve, DeadAfter: patience},
	}
}

// start starts n servers. change may change what one is given. When the test
// ends all are closed, and nothing may be left.
func start(t testing.TB, n int, change func(i int, c *config)) *cluster {
	t.Helper()
	before := runtime.NumGoroutine()
	c := &cluster{t: t, directory: &directory{}}
	for i, name := range names(n) {
		cfg := c.settings(name)
		if change != nil {
			change(i, &cfg)
		}
		node, err := open(background(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.set(name, node.host.Addr())
		c.nodes = append(c.nodes, node)
	}
	t.Cleanup(func() { c.close(before) })
	return c
}

func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// close closes all nodes, checks that they hold nothing, and that no goroutine
// is left.
func (c *cluster) close(before int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !c.t.Failed() { // what somebody still waits for would not come from who has left
		await(c.t, "all requests to end", func() bool {
			return !slices.ContainsFunc(c.nodes, func(n *server) bool { return n.Counters().Requests > 0 })
		})
	}
	var group sync.WaitGroup
	for _, n := range c.nodes {
		group.Go(func() {
			if err := n.Close(ctx); err != nil {
				c.t.Errorf("closing %s: %v; it holds %+v", n.Name(), err, n.Counters())
			}
		})
	}
	group.Wait()
	for _, n := range c.nodes {
		if k := n.Counters(); k.Requests+k.Callbacks+k.Waiting+k.Pulls+k.LentBuffers+k.ReplyBuffers+k.Exposed != 0 {
			c.t.Errorf("%s holds %+v", n.Name(), k)
		}
		if k := n.host.Connections(); k.Open+k.BufferBytes != 0 {
			c.t.Errorf("%s holds %+v", n.Name(), k)
		}
	}
	await(c.t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// await waits for a condition.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("gave up waiting for %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// targets returns all nodes in their order, with two entities each.
func (c *cluster) targets() []scoll.Target {
	var all []scoll.Target
	for i, n := range c.nodes {
		all = append(all, scoll.Target{Node: n.Name(), Tags: []scoll.Tag{{byte(i), 1}, {byte(i), 2}}})
	}
	return all
}

// register registers a service at all nodes.
func (c *cluster) register(call func(i int) scoll.Callbacks) {
	c.t.Helper()
	for i, n := range c.nodes {
		s, err := n.Register(testService, call(i))
		if err != nil {
			c.t.Fatal(err)
		}
		c.service = append(c.service, s)
	}
}

// group makes a group of all nodes, from node i.
func (c *cluster) group(i int, spec scoll.GroupSpec) *scoll.Group {
	c.t.Helper()
	g, err := c.tryGroup(i, spec)
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

func (c *cluster) tryGroup(i int, spec scoll.GroupSpec) (*scoll.Group, error) {
	if spec.Targets == nil {
		spec.Targets = c.targets()
	}
	type result struct {
		group *scoll.Group
		err   error
	}
	done := make(chan result, 1)
	if err := c.service[i].CreateGroup(spec, func(g *scoll.Group, err error) { done <- result{g, err} }); err != nil {
		return nil, err
	}
	r := <-done
	return r.group, r.err
}

// rollCall is a service whose reply names the nodes that ran a request.
type rollCall struct {
	node string

	mu     sync.Mutex
	room   int // of a reply buffer; 0: enough
	quiet  bool
	also   func(callback string, r *scoll.Request) error // what a callback does first
	ran    []string                                      // payloads
	heard  []scoll.Reply
	called []string // callbacks, in the order in which they began
	out    []error  // of reply-out
}

// roll is the names that a request has gathered.
type roll struct {
	mu    sync.Mutex
	names []string
}

func (r *roll) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.names)
	return strings.Join(r.names, " ")
}

// set changes what the service does.
func (s *rollCall) set(change func(*rollCall)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// holds sends a request to a group, and returns once this member's incoming-request runs,
// which waits for its release.
func (s *rollCall) holds(t *testing.T, g *scoll.Group) (r *scoll.Request, release chan struct{}) {
	t.Helper()
	there, release := make(chan struct{}), make(chan struct{})
	s.set(func(s *rollCall) {
		s.also = func(callback string, _ *scoll.Request) error {
			if callback == "incoming-request" {
				close(there)
				<-release
			}
			return nil
		}
	})
	r, err := g.NewRequest(scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(); err != nil {
		t.Fatal(err)
	}
	<-there
	return r, release
}

// copied returns what others append to.
func copied[T any](mu *sync.Mutex, all *[]T) []T {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(*all)
}

// has returns the payloads that were run.
func (s *rollCall) has() []string { return copied(&s.mu, &s.ran) }

func (s *rollCall) replies() []scoll.Reply { return copied(&s.mu, &s.heard) }

func (s *rollCall) calls() []string { return copied(&s.mu, &s.called) }

func (s *rollCall) outs() []error { return copied(&s.mu, &s.out) }

// first notes a callback and does what else it is to do.
func (s *rollCall) first(callback string, r *scoll.Request) error {
	s.mu.Lock()
	s.called = append(s.called, callback)
	also := s.also
	s.mu.Unlock()
	if also != nil {
		return also(callback, r)
	}
	return nil
}

func (s *rollCall) callbacks() scoll.Callbacks {
	return scoll.Callbacks{
		PreRequest: s.prepare, IncomingRequest: s.run, IncomingReply: s.gather, PostReply: s.reply,
		ReplyOut: func(r *scoll.Request, err error) {
			_ = s.first("reply-out", r)
			s.mu.Lock()
			s.out = append(s.out, err)
			s.mu.Unlock()
		},
	}
}

func (s *rollCall) prepare(r *scoll.Request) error {
	if r.Private() == nil {
		r.SetPrivate(&roll{})
	}
	if !r.IsRoot() && r.BulkLen() > 0 {
		r.SetBulk([][]byte{make([]byte, r.BulkLen())})
	}
	if err := s.first("pre-request", r); err != nil {
		return err
	}
	s.mu.Lock()
	room := s.room
	s.mu.Unlock()
	for i := range r.NumChildren() {
		size := room
		if size == 0 {
			size = 16 * r.Child(i).Nodes
		}
		if err := r.PostReplySize(i, size, nil); err != nil && !errors.Is(err, scoll.ErrPosted) {
			return err
		}
	}
	return nil
}

func (s *rollCall) run(r *scoll.Request) error {
	if err := s.first("incoming-request", r); err != nil {
		return err
	}
	s.mu.Lock()
	s.ran = append(s.ran, string(r.Payload()))
	s.mu.Unlock()
	clear(r.Payload()) // the copy is the service's
	all := r.Private().(*roll)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.names = append(all.names, s.node)
	return nil
}

func (s *rollCall) gather(reply *scoll.Reply) {
	if err := s.first("incoming-reply", reply.Request); err != nil {
		panic(err)
	}
	kept := *reply
	kept.Body = slices.Clone(reply.Body)
	s.mu.Lock()
	s.heard = append(s.heard, kept)
	s.mu.Unlock()
	if reply.Status == scoll.StatusOK {
		all := reply.Request.Private().(*roll)
		all.mu.Lock()
		all.names = append(all.names, strings.Fields(string(reply.Body))...)
		all.mu.Unlock()
	}
}

func (s *rollCall) reply(r *scoll.Request) {
	if err := s.first("post-reply", r); err != nil {
		panic(err)
	}
	s.mu.Lock()
	quiet := s.quiet
	s.mu.Unlock()
	if !r.IsRoot() && !quiet {
		_ = r.Reply([]byte(r.Private().(*roll).String()))
	}
}

// rolls registers a roll call at all nodes.
func (c *cluster) rolls() []*rollCall {
	var all []*rollCall
	for _, n := range c.nodes {
		all = append(all, &rollCall{node: n.Name()})
	}
	c.register(func(i int) scoll.Callbacks { return all[i].callbacks() })
	return all
}

// heard returns the nodes that have answered a request.
func heard(r *scoll.Request) string { return r.Private().(*roll).String() }

// sorted returns the names of n nodes as a roll has them.
func sorted(n int) string {
	r := roll{names: names(n)}
	return r.String()
}

// call broadcasts and waits for the end.
func call(t testing.TB, g *scoll.Group, b scoll.Broadcast) (*scoll.Request, error) {
	t.Helper()
	r, err := g.NewRequest(b)
	if err != nil {
		return nil, err
	}
	if err := r.Send(); err != nil {
		return r, err
	}
	select {
	case <-r.Done():
	case <-time.After(patience):
		t.Fatal("the request does not end")
	}
	return r, r.Err()
}
