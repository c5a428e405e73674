package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// probe is a node that writes down what it gets and does what it is given.
type probe struct {
	deadline core.Time
	steps    []core.Time
	got      []string
	batches  []int
}

func (p *probe) Deadline() core.Time { return p.deadline }

func (p *probe) Step(now core.Time, batch []Delivery, h Handle) {
	p.steps = append(p.steps, now)
	p.batches = append(p.batches, len(batch))
	if p.deadline <= now {
		p.deadline = core.Never
	}
	for _, d := range batch {
		if do, ok := d.Value.(func(h Handle)); ok && d.Kind == Command {
			do(h)
			continue
		}
		switch {
		case d.Bytes != nil:
			p.got = append(p.got, string(d.Bytes))
		case d.Value != nil:
			p.got = append(p.got, fmt.Sprint(d.Value))
		default:
			p.got = append(p.got, d.Kind.String())
		}
	}
}

// pair is a world of two probes, a and b.
type pair struct {
	*testing.T
	*World
	a, b *probe
}

func newPair(t *testing.T, cfg Config) *pair {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t, w, &probe{deadline: core.Never}, &probe{deadline: core.Never}}
	w.Add("a", p.a)
	w.Add("b", p.b)
	return p
}

// do has node id do something now, without letting anything else happen.
func (p *pair) do(id NodeID, do func(h Handle)) {
	p.Helper()
	p.Command(id, do)
	p.run(0)
}

func (p *pair) run(d time.Duration) {
	p.Helper()
	if err := p.RunFor(d); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) want(which string, node *probe, want ...string) {
	p.Helper()
	if !slices.Equal(node.got, want) {
		p.Errorf("at %v %s got %q, want %q", time.Duration(p.Now()), which, node.got, want)
	}
	node.got = nil
}

// slow is a config of round numbers and without chance.
func slow() Config {
	return Config{Link: Link{Delay: 10}, Reconnect: 0, Death: 100, Patience: 1000, Poison: true}
}

// connected returns a pair that is connected, at time 20.
func connected(t *testing.T, cfg Config) *pair {
	t.Helper()
	p := newPair(t, cfg)
	p.Connect(0, 1)
	p.run(20)
	p.want("a", p.a, "up")
	p.want("b", p.b, "up")
	if !p.Connected(0, 1) || !p.Connected(1, 0) {
		t.Fatal("not connected")
	}
	return p
}

func write(text string) func(Handle) {
	return func(h Handle) { h.Write(1-h.ID(), nil, []byte(text)) }
}

func TestDatagrams(t *testing.T) {
	send := func(h Handle) { h.Send(7, Addr{1, 9}, []byte("head "), []byte("body")) }
	for name, test := range map[string]struct {
		link Link
		fate *Fate
		want []string
		at   []core.Time
	}{
		"plain":       {Link{Delay: 10}, nil, []string{"head body"}, []core.Time{10}},
		"lost":        {Link{Loss: 1}, nil, nil, nil},
		"doubled":     {Link{Delay: 5, Duplicate: 1}, nil, []string{"head body", "head body"}, []core.Time{5, 5}},
		"intercepted": {Link{Delay: 5}, &Fate{Delay: 70}, []string{"head body"}, []core.Time{70}},
		"made lost":   {Link{Delay: 5}, &Fate{Lose: true}, nil, nil},
		"lost but for a copy, two windows later": {Link{Delay: 5}, &Fate{Lose: true, Copy: true, CopyDelay: 90},
			[]string{"head body"}, []core.Time{90}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, slow())
			p.SetLink(0, 1, test.link)
			p.Intercept(func(k Kind, from, to Addr, bytes []byte, fate *Fate) {
				if k != Datagram || from != (Addr{0, 7}) || to != (Addr{1, 9}) || string(bytes) != "head body" {
					t.Errorf("intercepted %v from %v to %v: %q", k, from, to, bytes)
				}
				if test.fate != nil {
					*fate = *test.fate
				}
			})
			p.do(0, send)
			p.run(100)
			p.want("b", p.b, test.want...)
			if !slices.Equal(p.b.steps, test.at) {
				t.Errorf("arrived at %v, want %v", p.b.steps, test.at)
			}
			if got := p.Traffic(0, 1, Datagrams); got.Sent != (Count{1, 9}) || got.Delivered.Packets != uint64(len(test.want)) || got.InFlight() != 0 {
				t.Errorf("traffic %+v", got)
			}
		})
	}
}

func TestRestartedNodeGetsOldDatagrams(t *testing.T) {
	p := newPair(t, slow())
	p.do(0, func(h Handle) { h.Send(1, Addr{1, 1}, nil, []byte("old")) })
	second := &probe{deadline: core.Never}
	p.Restart(1, second)
	p.run(100)
	p.want("the first b", p.b)
	p.want("the second b", second, "old")
}

func TestCutLosesDatagramsInFlight(t *testing.T) {
	p := newPair(t, slow())
	p.do(0, func(h Handle) { h.Send(1, Addr{1, 1}, nil, []byte("lost")) })
	p.Cut(0, 1)
	p.run(100)
	p.want("b", p.b)
	if lost := p.Traffic(0, 1, Datagrams).Lost; lost != (Count{1, 4}) {
		t.Errorf("lost %+v", lost)
	}
}

func TestDeadlines(t *testing.T) {
	p := newPair(t, slow())
	p.a.deadline = 50
	p.do(0, func(Handle) {}) // the world learns of the deadline after a step
	p.run(40)
	p.a.deadline = 70 // later: the timer is lazy
	p.do(0, func(Handle) {})
	p.run(1000)
	if want := []core.Time{0, 40, 70}; !slices.Equal(p.a.steps, want) {
		t.Errorf("stepped at %v, want %v", p.a.steps, want)
	}
	if n := p.queue.Len(); n != 0 {
		t.Errorf("%d events left", n)
	}
}

// Timers do not pile up where a near deadline comes again and again before a
// far one.
func TestTimersDoNotPileUp(t *testing.T) {
	p := newPair(t, slow())
	p.b.deadline = core.Time(time.Minute)
	p.do(1, func(Handle) {})
	for range 1000 {
		p.a.deadline = p.Now().Add(time.Hour)
		p.do(0, func(Handle) {})
		p.a.deadline = p.Now().Add(5)
		p.do(0, func(Handle) {})
		p.run(10)
	}
	if n := p.queue.Len(); n != 2 {
		t.Errorf("%d events, want a timer for each node", n)
	}
}

func TestServiceMakesBatches(t *testing.T) {
	cfg := slow()
	cfg.Service = 1000
	p := newPair(t, cfg)
	p.do(0, func(h Handle) {})
	p.run(2000)
	p.b.deadline = core.Never
	for range 20 {
		p.notify(0, 1, "value")
	}
	p.run(2000)
	if len(p.b.batches) != 1 || p.b.batches[0] != 20 {
		t.Errorf("batches of %v, want one of 20", p.b.batches)
	}
}

func TestPause(t *testing.T) {
	p := newPair(t, slow())
	p.b.deadline = 30
	p.do(1, func(Handle) {})
	p.Pause(1, time.Hour)
	for range 3 {
		p.do(0, func(h Handle) { h.Notify(1, "value") })
		p.run(20)
	}
	p.run(2 * time.Hour)
	if want := []core.Time{0, core.Time(time.Hour)}; !slices.Equal(p.b.steps, want) {
		t.Errorf("stepped at %v, want %v", p.b.steps, want)
	}
	p.want("b", p.b, "value", "value", "value")
}

func TestEventHooks(t *testing.T) {
	p := newPair(t, slow())
	var seen []string
	for i := range 5 {
		p.AtEvent(uint64(4-i), "", func() { seen = append(seen, fmt.Sprintf("%d at %d", 4-i, p.Events())) })
	}
	p.AtEvent(2, "", func() { seen = append(seen, "second at 2") })
	p.AtEvent(Undisturbed, "", func() { seen = append(seen, "never") })
	for range 4 {
		p.notify(0, 1, "value")
	}
	p.run(100)
	if got, want := strings.Join(seen, ", "), "0 at 0, 1 at 1, 2 at 2, second at 2, 3 at 3"; got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// A hook may make the very event void that it comes before.
func TestHookVoidsTheEvent(t *testing.T) {
	p := newPair(t, slow())
	p.notify(0, 1, "value")
	p.AtEvent(0, "", func() { p.Crash(1) })
	p.run(100)
	p.want("b", p.b)
	if p.Events() != 0 || p.Total(Controls).Lost.Packets != 1 {
		t.Errorf("%d events, %+v", p.Events(), p.Total(Controls))
	}
}

// eager wants to be stepped all the time.
type eager struct{}

func (e *eager) Deadline() core.Time                { return 0 }
func (e *eager) Step(core.Time, []Delivery, Handle) {}

// periodic wants to be stepped every microsecond.
type periodic struct{ next core.Time }

func (p *periodic) Deadline() core.Time { return p.next }
func (p *periodic) Step(now core.Time, _ []Delivery, _ Handle) {
	p.next = now.Add(time.Microsecond)
}

func TestNoProgress(t *testing.T) {
	for name, test := range map[string]struct {
		node Node
		run  func(w *World) error
		want string
	}{
		"a node that is never content": {&eager{}, (*World).Run, "time stands still at culprit"},
		"a spent budget":               {&periodic{}, (*World).Run, "1000 events, the last one at culprit"},
		"a limit": {&periodic{}, func(w *World) error { return w.Await(10*time.Microsecond, func() bool { return false }) },
			"not done within 10µs"},
		"quiet": {&probe{deadline: core.Never}, func(w *World) error { return w.Await(time.Hour, func() bool { return false }) },
			"nothing is due any more"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig(4711)
			cfg.Keep = 3
			if cfg.Budget = 1000; name == "a node that is never content" {
				cfg.Budget = 0
			}
			w, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.Add("culprit", test.node)
			err = test.run(w)
			var failure *Failure
			if !errors.Is(err, ErrNoProgress) || !errors.As(err, &failure) {
				t.Fatalf("error %v", err)
			}
			if text := err.Error(); !strings.Contains(text, test.want) || !strings.Contains(text, "seed 4711") {
				t.Errorf("error %q", text)
			}
			if want := min(3, int(w.Events())); len(failure.Lines) != want {
				t.Errorf("lines %q, want %d", failure.Lines, want)
			}
		})
	}
}

func TestTraceLines(t *testing.T) {
	cfg := slow()
	cfg.Describe = func(head []byte) string { return fmt.Sprintf("%q", head) }
	p := newPair(t, cfg)
	p.do(0, func(h Handle) {
		h.Send(1, Addr{1, 1}, nil, []byte("hello"))
		h.Notify(1, 17)
		h.Note("epoch %d", 2)
	})
	p.run(100)
	want := `0s #0 call command to a
0s #0 a notes epoch 2
10ns #1 b <- a datagram 5 B: "hello"
10ns #2 b <- a control int`
	if got := strings.Join(p.Lines(), "\n"); got != want {
		t.Errorf("lines\n%s\nwant\n%s", got, want)
	}
}

func TestFaultsWithinAStepPanic(t *testing.T) {
	p := newPair(t, slow())
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p.do(0, func(h Handle) { h.World().Crash(1) })
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"negative service":   func(c *Config) { c.Service = -1 },
		"negative reconnect": func(c *Config) { c.Reconnect = -1 },
		"negative lines":     func(c *Config) { c.Keep = -1 },
		"negative delay":     func(c *Config) { c.Link.Delay = -1 },
		"negative chance":    func(c *Config) { c.Link.Loss = -0.1 },
		"more than certain":  func(c *Config) { c.Link.Reorder = 1.1 },
	} {
		cfg := DefaultConfig(1)
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, cfg := range map[string]Config{"zero": {}, "default": DefaultConfig(1)} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
