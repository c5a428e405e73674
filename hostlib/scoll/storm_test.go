package scoll

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
)

const (
	stormNodes      = 8
	stormBroadcasts = 300
)

// storm is nodes whose services fail, whose connections break, and the books
// about their broadcasts.
type storm struct {
	t     *testing.T
	hosts []*hostlib.Host
	nodes []*Node
	made  []*Service

	mu        sync.Mutex
	rand      *rand.Rand
	addresses map[string]string
	ran       map[[2]int]int // by broadcast and node
}

var errStorm = errors.New("a wave")

func (s *storm) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand != nil && s.rand.Float64() < p
}

func (s *storm) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// trouble returns an error, or panics, now and then.
func (s *storm) trouble() error {
	switch {
	case s.chance(0.004):
		return errStorm
	case s.chance(0.004):
		panic(errStorm)
	}
	return nil
}

// service's replies are the numbers of the nodes that ran a request.
func (s *storm) service(node int) Callbacks {
	type gathered struct {
		mu   sync.Mutex
		body []byte
	}
	own := binary.BigEndian.AppendUint32(nil, uint32(node))
	return Callbacks{
		Inline: node%3 == 0,
		PreRequest: func(r *Request) error {
			if r.Private() == nil {
				r.SetPrivate(&gathered{})
			}
			if !r.IsRoot() {
				r.SetBulk([][]byte{make([]byte, r.BulkLen())})
			}
			for i := range r.NumChildren() {
				if err := r.PostReplySize(i, 4*r.Child(i).Nodes, nil); err != nil {
					return err
				}
			}
			return s.trouble()
		},
		IncomingRequest: func(r *Request) error {
			if err := s.trouble(); err != nil {
				return err
			}
			if r.BulkErr() != nil {
				return nil
			}
			s.mu.Lock()
			s.ran[[2]int{int(binary.BigEndian.Uint32(r.Payload())), node}]++
			s.mu.Unlock()
			if s.chance(0.004) {
				r.Abort()
			}
			return nil
		},
		IncomingReply: func(reply *Reply) {
			if reply.Status == StatusOK {
				g := reply.Request.Private().(*gathered)
				g.mu.Lock()
				g.body = append(g.body, reply.Body...)
				g.mu.Unlock()
			}
			if err := s.trouble(); err != nil {
				panic(err)
			}
		},
		PostReply: func(r *Request) {
			g := r.Private().(*gathered)
			g.body = append(g.body, own...)
			_ = r.Reply(g.body) // refused where the library replies
		},
		ReplyOut: func(*Request, error) { _ = s.trouble() },
	}
}

func (s *storm) start() {
	for i := range stormNodes {
		host, err := hostlib.Join(s.t.Context(), hostlib.Config{
			Name: fmt.Sprint("n", i),
			Resolve: func(_ context.Context, node string) (string, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.addresses[node], nil
			},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		n, err := On(host, Config{RoundTrip: 200 * time.Millisecond, Timeout: time.Nanosecond})
		if err != nil {
			s.t.Fatal(err)
		}
		s.hosts = append(s.hosts, host)
		s.mu.Lock()
		s.addresses[n.Name()] = host.Addr()
		s.mu.Unlock()
		service, err := n.Register(1, s.service(i))
		if err != nil {
			s.t.Fatal(err)
		}
		s.nodes, s.made = append(s.nodes, n), append(s.made, service)
	}
}

// group makes a group of all nodes in some order, from one of them.
func (s *storm) group() *Group {
	s.mu.Lock()
	order := s.rand.Perm(stormNodes)
	s.mu.Unlock()
	spec := GroupSpec{Name: "storm", Tree: []Tree{Binomial(), KNomial(3), KAry(2), Flat(), KAry(1)}[s.pick(5)], Delayed: s.pick(2) == 0}
	for _, i := range order {
		spec.Targets = append(spec.Targets, Target{Node: fmt.Sprint("n", i), Tags: []Tag{{byte(i)}}})
	}
	var group *Group
	done := make(chan error, 1)
	if err := s.made[s.pick(stormNodes)].CreateGroup(spec, func(g *Group, err error) { group = g; done <- err }); err != nil {
		s.t.Fatal(err)
	}
	if <-done != nil {
		return nil // a connection broke
	}
	return group
}

// breakOne ends a node's connections to another one.
func (s *storm) breakOne() {
	s.nodes[s.pick(stormNodes)].host.Disconnect(fmt.Sprint("n", s.pick(stormNodes)), errStorm)
}

// TestStorm: callbacks fail and panic, services abort, connections break. Every
// request ends once; success means that every member ran it, once; no member
// runs any twice; and nothing is left of it all.
func TestStorm(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	s := &storm{t: t, rand: rand.New(rand.NewPCG(1, 2)), addresses: map[string]string{}, ran: map[[2]int]int{}}
	s.start()
	var groups []*Group
	requests := map[int]*Request{}
	var under []*Request
	for i := range stormBroadcasts {
		for len(groups) < 6 {
			if g := s.group(); g != nil {
				groups = append(groups, g)
			}
		}
		if s.pick(25) == 0 {
			s.breakOne()
		}
		g := groups[s.pick(len(groups))]
		b := Broadcast{Payload: binary.BigEndian.AppendUint32(nil, uint32(i))}
		if s.pick(4) == 0 {
			b.Bulk = [][]byte{make([]byte, 10_000)}
		}
		b.Last = s.pick(50) == 0
		r, err := g.NewRequest(b)
		if err == nil {
			err = r.Send()
		}
		if err != nil || b.Last {
			groups = slices.DeleteFunc(groups, func(o *Group) bool { return o == g })
		}
		if err != nil {
			continue // of a group that is gone
		}
		requests[i], under = r, append(under, r)
		if len(under) == 32 {
			<-under[0].Done()
			under = under[1:]
		}
	}
	succeeded := 0
	for i, r := range requests {
		<-r.Done()
		s.check(i, r.Err())
		if r.Err() == nil {
			succeeded++
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var closing sync.WaitGroup
	for _, h := range s.hosts {
		closing.Go(func() {
			if err := h.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	for _, n := range s.nodes {
		if k := n.Counters(); k.Requests+k.Callbacks+k.Waiting+k.Pulls+k.LentBuffers+k.ReplyBuffers+k.Exposed != 0 {
			t.Errorf("%s holds %+v", n.Name(), k)
		}
	}
	for key, times := range s.ran {
		if times != 1 {
			t.Errorf("n%d ran broadcast %d %d times", key[1], key[0], times)
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-goroutines)
		}
	}
	if t.Logf("%d of %d broadcasts succeeded", succeeded, len(requests)); succeeded < len(requests)/4 || succeeded == len(requests) {
		t.Error("that was no storm, or too much of it")
	}
}

// check compares what the root was notified of with the books.
func (s *storm) check(number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := 0
	for i := range stormNodes {
		ran += s.ran[[2]int{number, i}]
	}
	if err == nil && ran != stormNodes {
		s.t.Errorf("broadcast %d succeeded, and %d ran it", number, ran)
	}
}
