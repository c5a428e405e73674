package scoll_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// TestRollCall: on every tree and from several roots, all run a request, and
// their replies reach the root.
func TestRollCall(t *testing.T) {
	for _, tree := range []scoll.Tree{scoll.Binomial(), scoll.KNomial(4), scoll.KAry(3), scoll.Flat()} {
		c := start(t, 16, nil)
		rolls := c.rolls()
		for root := range 3 {
			g := c.group(root, scoll.GroupSpec{Name: "all", Tree: tree})
			r, err := call(t, g, scoll.Broadcast{Payload: []byte("here?")})
			if err != nil {
				t.Fatal(err)
			}
			if got := heard(r); got != sorted(16) {
				t.Errorf("replies of %s", got)
			}
			for _, s := range rolls {
				if ran := s.has(); len(ran) != root+1 || ran[root] != "here?" {
					t.Errorf("%s ran %q", s.node, ran)
				}
			}
		}
	}
}

// TestInline: the same where callbacks run on the loop.
func TestInline(t *testing.T) {
	c := start(t, 16, nil)
	var rolls []*rollCall
	c.register(func(i int) scoll.Callbacks {
		rolls = append(rolls, &rollCall{node: c.nodes[i].Name()})
		call := rolls[i].callbacks()
		call.Inline = true
		return call
	})
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	for range 10 {
		r, err := call(t, g, scoll.Broadcast{Payload: []byte("here?")})
		if err != nil || heard(r) != sorted(16) {
			t.Fatalf("%v, replies of %s", err, heard(r))
		}
	}
	if n := len(rolls[15].has()); n != 10 {
		t.Errorf("n15 ran %d", n)
	}
}

func TestPoint01Services(t *testing.T) {
	c := start(t, 1, nil)
	n := c.nodes[0]
	none := scoll.Callbacks{
		PreRequest:      func(*scoll.Request) error { return nil },
		IncomingRequest: func(*scoll.Request) error { return nil },
		PostReply:       func(*scoll.Request) {},
	}
	first, err := n.Register(1, none)
	if err != nil || first.ID() != 1 {
		t.Fatal(err)
	}
	if _, err := n.Register(2, none); err != nil {
		t.Errorf("a second service: %v", err)
	}
	if _, err := n.Register(1, none); !errors.Is(err, scoll.ErrService) {
		t.Errorf("the same number twice: %v", err)
	}
	if _, err := n.Register(0, none); !errors.Is(err, scoll.ErrService) {
		t.Errorf("number 0: %v", err)
	}
	if _, err := n.Register(3, scoll.Callbacks{}); !errors.Is(err, scoll.ErrConfig) {
		t.Errorf("no callbacks: %v", err)
	}
	if err := first.Close(background(t)); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(background(t)); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := first.OutOfBand(scoll.OutOfBandSpec{}); !errors.Is(err, scoll.ErrClosed) {
		t.Errorf("a group of a closed service: %v", err)
	}
	if _, err := n.Register(1, none); err != nil {
		t.Errorf("the number is not free again: %v", err)
	}
}

func TestPoint02SameTagUnderTwoServices(t *testing.T) {
	c := start(t, 4, nil)
	one := c.rolls()
	first := c.service[0]
	var other []*rollCall
	c.service = nil
	for _, n := range c.nodes {
		s := &rollCall{node: n.Name()}
		service, err := n.Register(testService+1, s.callbacks())
		if err != nil {
			t.Fatal(err)
		}
		other, c.service = append(other, s), append(c.service, service)
	}
	second := c.group(0, scoll.GroupSpec{Name: "objects"})
	c.service[0] = first
	g := c.group(0, scoll.GroupSpec{Name: "objects"})
	if _, err := call(t, g, scoll.Broadcast{Payload: []byte("to the first")}); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, second, scoll.Broadcast{Payload: []byte("to the second")}); err != nil {
		t.Fatal(err)
	}
	for i := range one {
		if a, b := one[i].has(), other[i].has(); !slices.Equal(a, []string{"to the first"}) || !slices.Equal(b, []string{"to the second"}) {
			t.Errorf("node %d: %q and %q", i, a, b)
		}
	}
}

func TestPoint03HandleCarriesNameAndPrivateValue(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	private := new(int)
	g := c.group(1, scoll.GroupSpec{Name: "four of us", Tree: scoll.KAry(2), Private: private})
	if g.Name() != "four of us" || g.Private() != private || g.Service() != c.service[1] {
		t.Errorf("%q, %v", g.Name(), g.Private())
	}
	var mu sync.Mutex
	tags := map[string][]scoll.Tag{}
	for _, s := range rolls {
		s.set(func(s *rollCall) {
			s.also = func(callback string, r *scoll.Request) error {
				mu.Lock()
				defer mu.Unlock()
				if callback == "incoming-request" {
					tags[r.Target().Node] = r.Target().Tags
				}
				return nil
			}
		})
	}
	if _, err := call(t, g, scoll.Broadcast{}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range c.targets() {
		if !slices.Equal(tags[want.Node], want.Tags) {
			t.Errorf("%s: a target stands for %x, want %x", want.Node, tags[want.Node], want.Tags)
		}
	}
	if err := c.service[0].CreateGroup(scoll.GroupSpec{Targets: c.targets()}, nil); !errors.Is(err, scoll.ErrConfig) {
		t.Errorf("without somebody to notify: %v", err)
	}
	for name, spec := range map[string]struct {
		scoll.GroupSpec
		is error
	}{
		"no targets":        {scoll.GroupSpec{}, scoll.ErrTargets},
		"a node twice":      {scoll.GroupSpec{Targets: append(c.targets(), c.targets()[0])}, scoll.ErrTargets},
		"no entities":       {scoll.GroupSpec{Targets: []scoll.Target{{Node: "n0"}}}, scoll.ErrTargets},
		"without itself":    {scoll.GroupSpec{Targets: c.targets()[1:]}, scoll.ErrNotMember},
		"a name too long":   {scoll.GroupSpec{Targets: c.targets(), Name: strings.Repeat("x", scoll.MaxName+1)}, scoll.ErrTooLarge},
		"an unknown tree":   {scoll.GroupSpec{Targets: c.targets(), Tree: scoll.Tree{Kind: 99}}, scoll.ErrTree},
		"a tree of radix 1": {scoll.GroupSpec{Targets: c.targets(), Tree: scoll.KNomial(1)}, scoll.ErrTree},
		"a radix too large": {scoll.GroupSpec{Targets: c.targets(), Tree: scoll.KAry(1 << 16)}, scoll.ErrTree},
	} {
		err := c.service[0].CreateGroup(spec.GroupSpec, func(*scoll.Group, error) { t.Errorf("%s: created was called", name) })
		if !errors.Is(err, spec.is) {
			t.Errorf("%s: %v, want %v", name, err, spec.is)
		}
	}
}

// TestPoint04Immediate: created comes when all members have the group.
func TestPoint04Immediate(t *testing.T) {
	c := start(t, 9, nil)
	c.rolls()
	c.group(0, scoll.GroupSpec{Name: "at once"})
	for _, n := range c.nodes {
		if k := n.Counters(); k.Groups != 1 {
			t.Errorf("%s has %d groups", n.Name(), k.Groups)
		}
	}
	if err := c.service[8].Close(background(t)); err != nil {
		t.Fatal(err)
	}
	_, err := c.tryGroup(0, scoll.GroupSpec{Name: "not all"})
	var incomplete *scoll.IncompleteError
	if !errors.As(err, &incomplete) || incomplete.Ran != 8 || len(incomplete.Missing) != 1 || incomplete.Missing[0] != (scoll.Missing{Node: "n8", Nodes: 1, Status: scoll.StatusNoService}) {
		t.Errorf("a group that one member refuses: %v", err)
	}
	await(t, "the members to free the group", func() bool {
		for _, n := range c.nodes[:8] {
			if n.Counters().Groups != 1 {
				return false
			}
		}
		return true
	})
}

func TestPoint05Delayed(t *testing.T) {
	c := start(t, 4, nil)
	c.rolls()
	var g *scoll.Group
	err := c.service[0].CreateGroup(scoll.GroupSpec{Name: "later", Targets: c.targets(), Delayed: true}, func(made *scoll.Group, err error) { g = made })
	if err != nil || g == nil {
		t.Fatalf("created was not called within the call: %v", err)
	}
	if k := c.nodes[0].Counters(); k.MessagesOut != 0 {
		t.Errorf("%d messages were sent", k.MessagesOut)
	}
	var requests []*scoll.Request
	for i := range 5 { // the others wait for the first
		r, err := g.NewRequest(scoll.Broadcast{Payload: []byte(fmt.Sprint(i))})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	for i, r := range requests {
		if <-r.Done(); r.Err() != nil || heard(r) != sorted(4) {
			t.Errorf("broadcast %d: %v, replies of %s", i, r.Err(), heard(r))
		}
	}
}

func TestPoint06TooLargeToDelay(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	many := c.targets()
	for i := range 100 {
		many[3].Tags = append(many[3].Tags, scoll.Tag{1, 2, byte(i)})
	}
	var g *scoll.Group
	err := c.service[0].CreateGroup(scoll.GroupSpec{Name: "large", Targets: many, Delayed: true}, func(made *scoll.Group, _ error) { g = made })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.NewRequest(scoll.Broadcast{Payload: make([]byte, 3000)}); !errors.Is(err, scoll.ErrDelayed) {
		t.Errorf("no room beside the first broadcast: %v", err)
	}
	for i := range 200 {
		many[2].Tags = append(many[2].Tags, scoll.Tag{1, 3, byte(i)})
	}
	err = c.service[0].CreateGroup(scoll.GroupSpec{Name: "too large", Targets: many, Delayed: true}, func(*scoll.Group, error) { t.Error("created") })
	if !errors.Is(err, scoll.ErrDelayed) {
		t.Errorf("too large for any message: %v", err)
	}
	// At once it is possible: the members are pulled.
	g = c.group(0, scoll.GroupSpec{Name: "large", Targets: many})
	if r, err := call(t, g, scoll.Broadcast{Payload: make([]byte, 3000)}); err != nil || heard(r) != sorted(4) {
		t.Errorf("at once: %v", err)
	}
	for _, s := range rolls {
		if len(s.has()) != 1 {
			t.Errorf("%s ran %d", s.node, len(s.has()))
		}
	}
}

func TestPoint08Broadcast(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	private := &roll{}
	const p = 12345678
	var mu sync.Mutex
	shown := map[string]string{}
	for _, s := range rolls {
		s.set(func(s *rollCall) {
			s.also = func(callback string, r *scoll.Request) error {
				if callback == "pre-request" {
					mu.Lock()
					defer mu.Unlock()
					shown[s.node] = fmt.Sprintf("%s %v %v %d", r.Root(), r.IsRoot(), r.Last(), r.Timeout())
				}
				return nil
			}
		})
	}
	payload := bytes.Repeat([]byte{'p'}, 3500)
	r, err := call(t, g, scoll.Broadcast{Payload: payload, Last: true, Timeout: p, Private: private})
	if err != nil || r.Private() != private || len(private.names) != 4 {
		t.Errorf("%v, %v", err, private.names)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, s := range rolls {
		if want := fmt.Sprintf("n0 %v true %d", i == 0, p); shown[s.node] != want {
			t.Errorf("%s was shown %q, want %q", s.node, shown[s.node], want)
		}
		if ran := s.has(); len(ran) != 1 || ran[0] != string(payload) {
			t.Errorf("%s ran something else", s.node)
		}
	}
	if payload[0] != 'p' {
		t.Error("the root's own payload was given to callbacks")
	}
	if _, err := g.NewRequest(scoll.Broadcast{}); !errors.Is(err, scoll.ErrGroup) {
		t.Errorf("after the last: %v", err)
	}
	g = c.group(0, scoll.GroupSpec{Name: "all"})
	for name, b := range map[string]struct {
		scoll.Broadcast
		is error
	}{
		"too large":           {scoll.Broadcast{Payload: make([]byte, scoll.MaxRequest)}, scoll.ErrTooLarge},
		"a negative time":     {scoll.Broadcast{Timeout: -1}, scoll.ErrTimeout},
		"a time without end":  {scoll.Broadcast{Timeout: 1 << 62}, scoll.ErrTimeout},
		"bulk and no room":    {scoll.Broadcast{Payload: make([]byte, 3980), Bulk: [][]byte{{1}}}, scoll.ErrTooLarge},
		"room without a bulk": {scoll.Broadcast{Payload: make([]byte, 3980)}, nil},
	} {
		r, err := g.NewRequest(b.Broadcast)
		if !errors.Is(err, b.is) {
			t.Errorf("%s: %v, want %v", name, err, b.is)
		}
		if r != nil {
			r.Abort()
			if <-r.Done(); !errors.Is(r.Err(), scoll.ErrAborted) {
				t.Errorf("%s: never sent, and it ended with %v", name, r.Err())
			}
		}
	}
}

func TestPoint09Queries(t *testing.T) {
	c := start(t, 14, nil)
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	children, err := g.Children()
	if err != nil {
		t.Fatal(err)
	}
	want := []scoll.Child{{Node: "n8", Nodes: 6, Entities: 12, Depth: 2}, {Node: "n4", Nodes: 4, Entities: 8, Depth: 2}, {Node: "n2", Nodes: 2, Entities: 4, Depth: 1}, {Node: "n1", Nodes: 1, Entities: 2}}
	if !slices.Equal(children, want) {
		t.Errorf("%+v, want %+v", children, want)
	}
	alone := c.group(0, scoll.GroupSpec{Name: "alone", Targets: c.targets()[:1]})
	if children, err := alone.Children(); err != nil || len(children) != 0 {
		t.Errorf("alone: %v, %v", children, err)
	}
	if r, err := call(t, alone, scoll.Broadcast{}); err != nil || heard(r) != "n0" {
		t.Errorf("alone: %v", err)
	}
}

func TestPoint10ReplyBuffers(t *testing.T) {
	c := start(t, 3, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.Flat()})
	r, err := g.NewRequest(scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	bufs := [2][]byte{make([]byte, 100), make([]byte, 100)}
	for i := range bufs {
		if err := r.PostReplyBuffer(i, bufs[i], fmt.Sprint("buffer ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.PostReplyBuffer(0, make([]byte, 1), nil); !errors.Is(err, scoll.ErrPosted) {
		t.Errorf("twice: %v", err)
	}
	if err := r.PostReplySize(2, 1, nil); !errors.Is(err, scoll.ErrChild) {
		t.Errorf("no such child: %v", err)
	}
	if err := r.Send(); err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if err := r.PostReplySize(0, 1, nil); !errors.Is(err, scoll.ErrRequest) {
		t.Errorf("after the end: %v", err)
	}
	for _, reply := range rolls[0].replies() {
		if reply.Private != fmt.Sprint("buffer ", reply.Child) || string(bufs[reply.Child][:len(reply.Body)]) != string(reply.Body) || string(reply.Body) != reply.Source {
			t.Errorf("%+v; the buffers have %q", reply, bufs)
		}
	}
}

// TestPoint12Callbacks: those that may be absent are, and the others race: the
// replies of two children are in their callbacks at once.
func TestPoint12Callbacks(t *testing.T) {
	c := start(t, 3, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.Flat()})
	var both sync.WaitGroup
	both.Add(3)
	rolls[0].set(func(s *rollCall) {
		s.also = func(callback string, _ *scoll.Request) error {
			if callback == "incoming-reply" || callback == "incoming-request" {
				both.Done()
				both.Wait() // until all three are here
			}
			return nil
		}
	})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) {
		t.Errorf("%v", err)
	}
	d := start(t, 4, nil)
	d.register(func(int) scoll.Callbacks { return silent(false) })
	if r, err := call(t, d.group(0, scoll.GroupSpec{}), scoll.Broadcast{}); err != nil || r.Outcome().Ran != 4 {
		t.Errorf("without incoming-reply and reply-out: %v", err)
	}
}
