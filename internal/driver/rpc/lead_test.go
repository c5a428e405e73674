package rpc

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
)

// readyAgent reports its state to everyone who watches.
type readyAgent struct{ fakeAgent }

func (a *readyAgent) Watch(ctx context.Context, _ time.Duration, event func(AgentEvent) error) error {
	if err := event(AgentEvent{State: &someState}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// A switch has one manager at a time; who only looks on is none.
func TestSecondManager(t *testing.T) {
	s := serve(t, Services{Agent: new(readyAgent)})
	enough := errors.New("enough")
	ctx := testContext(t)
	watch := func(number uint64, meanwhile func()) error {
		c, err := DialAgent(s.Addr().String(), ClientConfig{Manager: number})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.Watch(ctx, time.Minute, func(AgentEvent) error { meanwhile(); return enough })
	}
	nothing := func() {}
	err := watch(1, func() {
		if err := watch(2, nothing); !errors.Is(err, ErrLed) || strings.Count(err.Error(), "at 127.0.0.1:") != 2 {
			t.Errorf("another manager: %v, want %v, and both addresses", err, ErrLed)
		}
		for _, number := range []uint64{0, 1} {
			if err := watch(number, nothing); !errors.Is(err, enough) {
				t.Errorf("number %d: %v", number, err)
			}
		}
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for err = ErrLed; errors.Is(err, ErrLed); { // until the agent has heard that the first one has gone
		err = watch(2, nothing)
	}
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// askAll makes every call that changes a switch.
func askAll(ctx context.Context, c *AgentClient) map[string]error {
	_, prepare := c.Prepare(ctx, agent.Prepare{})
	_, commit := c.Commit(ctx, agent.Commit{})
	return map[string]error{
		"prepare": prepare, "commit": commit, "remove": c.Remove(ctx, agent.Remove{}), "set routes": c.SetRoutes(ctx, portmap.Assignment{}),
	}
}

// TestCallsOfTerms: a switch does what the manager that leads asks, and nothing that
// another one does, in either order of their coming; also after the one that leads has gone.
func TestCallsOfTerms(t *testing.T) {
	for name, test := range map[string]struct {
		first, second uint64
		want          error // of the first one's calls, and its watch, after the second has come
		is            error // of the second one's
	}{
		"a later one":   {first: 5, second: 6, want: ErrStale},
		"an earlier":    {first: 6, second: 5, is: ErrStale},
		"the same":      {first: 5, second: 5},
		"no manager":    {first: 5, second: 0, is: ErrNotLeading},
		"lost its term": {first: 1 << 60, second: 1, is: ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeAgent{addr: someState.Holds[0].Addr}
			s := serve(t, Services{Agent: f})
			dial := func(term uint64) *AgentClient {
				c := dialAgent(t, s)
				c.manager = term
				return c
			}
			first, second := dial(test.first), dial(test.second)
			expect := func(who string, c *AgentClient, want error) {
				t.Helper()
				for call, err := range askAll(testContext(t), c) {
					if !errors.Is(err, want) || want == ErrStale && strings.Count(err.Error(), "at 127.0.0.1:") != 2 {
						t.Errorf("%s: %s: %v, want %v, and both addresses", who, call, err, want)
					}
				}
			}
			expect("before it watches", first, ErrNotLeading)
			expect("the first", leads(t, first), nil)
			f.asked = nil
			leads(t, second)
			expect("the second", second, test.is)
			if test.is != nil && f.asked != nil {
				t.Errorf("the switch was asked %+v", f.asked)
			}
			f.asked = nil
			expect("the first, late", first, test.want)
			if test.want != nil {
				if f.asked != nil {
					t.Errorf("the switch was asked %+v", f.asked)
				}
				err := first.Watch(testContext(t), time.Minute, func(AgentEvent) error { return nil })
				if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "restart the agent") {
					t.Errorf("it leads again: %v", err)
				}
			}
		})
	}
}

// TestSecondWatchOfATerm: a manager may watch twice, of which the agent hears the end late. Neither watch
// begins before the calls of the term before have ended, and another manager leads only after both.
func TestSecondWatchOfATerm(t *testing.T) {
	var l lead
	leave, err := l.take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end, err := l.call(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	watches := make(chan func())
	for range 2 {
		go func() {
			leave, err := l.take(t.Context(), 2)
			if err != nil {
				t.Error(err)
			}
			watches <- leave
		}()
	}
	<-ctx.Done()
	for standing := 0; standing < 2; runtime.Gosched() {
		l.mu.Lock()
		standing = l.streams
		l.mu.Unlock()
	}
	if _, _, err := l.call(t.Context(), 2); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a call beside one of the term before: %v", err)
	}
	select {
	case <-watches:
		t.Fatal("a watch begins beside a call of the term before")
	default:
	}
	end()
	first, second := <-watches, <-watches
	_, end, err = l.call(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	end()
	first()
	if _, _, err := l.call(t.Context(), 2); err != nil {
		t.Errorf("a call after the end of the first watch: %v", err)
	}
	if _, err := l.take(t.Context(), 3); !errors.Is(err, ErrLed) {
		t.Errorf("another manager beside the second watch: %v", err)
	}
	second()
	if _, err := l.take(t.Context(), 1); !errors.Is(err, ErrStale) {
		t.Errorf("the term before: %v", err)
	}
}

// slowAgent prepares until its call ends.
type slowAgent struct {
	fakeAgent
	begun, ended chan struct{}
}

func (a *slowAgent) Prepare(ctx context.Context, _ agent.Prepare) (netip.AddrPort, error) {
	close(a.begun)
	<-ctx.Done()
	close(a.ended)
	return netip.AddrPort{}, context.Cause(ctx)
}

func (a *slowAgent) Watch(ctx context.Context, _ time.Duration, event func(AgentEvent) error) error {
	select {
	case <-a.begun:
		select {
		case <-a.ended:
		default:
			return errors.New("a call of the term before is under way")
		}
	default:
	}
	return event(AgentEvent{State: &someState})
}

// TestCallsUnderWayEnd: what a manager has asked is over before a later one hears how the
// switch stands.
func TestCallsUnderWayEnd(t *testing.T) {
	a := &slowAgent{begun: make(chan struct{}), ended: make(chan struct{})}
	s := serve(t, Services{Agent: a})
	first := leads(t, dialAgent(t, s))
	prepared := make(chan error, 1)
	go func() {
		_, err := first.Prepare(testContext(t), agent.Prepare{})
		prepared <- err
	}()
	<-a.begun
	second := dialAgent(t, s)
	second.manager = 2
	seen := errors.New("seen")
	ctx, err := testContext(t), ErrLed
	for errors.Is(err, ErrLed) { // until the agent has heard that the stream of the first one has ended
		err = second.Watch(ctx, time.Minute, func(AgentEvent) error { return seen })
	}
	if !errors.Is(err, seen) {
		t.Fatal(err)
	}
	if err := <-prepared; !errors.Is(err, ErrStale) {
		t.Errorf("the call of the term before: %v", err)
	}
}
