package sim

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
)

func TestConnectionIsOrdered(t *testing.T) {
	cfg := slow()
	cfg.Link.Jitter = 1000
	p := newPair(t, cfg)
	p.Connect(0, 1)
	p.run(10_000)
	var want []string
	for i := range 100 {
		text := fmt.Sprint(i)
		want = append(want, text)
		p.do(0, write(text))
	}
	p.run(10_000)
	p.want("b", p.b, append([]string{"up"}, want...)...)
}

// Over many seeds, a break lets every prefix of what is in flight arrive, and
// nothing else; then comes the news, and then what was written after it.
func TestBreakLosesASuffix(t *testing.T) {
	lengths := map[int]bool{}
	for seed := range uint64(100) {
		cfg := slow()
		cfg.Seed, cfg.Reconnect = seed, 50
		p := connected(t, cfg)
		for i := range 4 {
			p.do(0, write(fmt.Sprint(i)))
		}
		if !p.Break(0, 1) || p.Break(0, 1) || p.Connected(0, 1) {
			t.Fatal("broken not once")
		}
		p.do(0, func(h Handle) {
			if h.Write(1, nil, []byte("while down")) {
				t.Error("written while down")
			}
		})
		p.run(100)
		p.want("a", p.a, "up")
		p.do(0, write("after"))
		p.run(100)
		arrived := len(p.b.got) - 2
		lengths[arrived] = true
		p.want("b", p.b, append([]string{"0", "1", "2", "3"}[:arrived], "up", "after")...)
	}
	if len(lengths) != 5 {
		t.Errorf("arrived %v of 4, want 0 to 4 to happen", lengths)
	}
}

func TestCrashIsReportedAndLosesASuffix(t *testing.T) {
	lengths := map[int]bool{}
	for seed := range uint64(100) {
		cfg := slow()
		cfg.Seed = seed
		p := connected(t, cfg)
		for i := range 3 {
			p.do(1, write(fmt.Sprint(i)))
		}
		p.do(0, write("to the dead"))
		p.Crash(1)
		p.run(99)
		lengths[len(p.a.got)] = true
		p.want("a", p.a, []string{"0", "1", "2"}[:len(p.a.got)]...)
		p.run(1)
		p.want("a", p.a, "dead")
		p.want("b", p.b)
		p.do(0, dial)
		p.run(20)
		p.want("a", p.a, "refused")
	}
	if len(lengths) != 4 {
		t.Errorf("arrived %v of 3, want 0 to 3 to happen", lengths)
	}
}

// Who is born again soon dials before the others know that it had died.
func TestNextLifeComesAfterTheNews(t *testing.T) {
	p := connected(t, slow())
	second := &probe{deadline: core.Never}
	p.Restart(1, second)
	p.do(1, func(h Handle) {
		h.Dial(0)
		h.Notify(0, "control")
	})
	p.run(20)
	p.want("the second b", second, "up")
	p.do(1, write("hello"))
	p.do(0, func(h Handle) {
		if h.Write(1, nil, []byte("to the first life")) {
			t.Error("written to a connection that was not notified of")
		}
	})
	p.run(200)
	p.want("a", p.a, "dead", "control", "up", "hello")
	p.want("the second b", second)
}

// A break loses what travels, and not the news of an earlier life's end.
func TestNewsOutlivesABreak(t *testing.T) {
	p := connected(t, slow())
	p.Restart(1, &probe{deadline: core.Never})
	p.do(1, dial)
	p.run(50)
	if !p.Break(0, 1) {
		t.Fatal("nothing to break")
	}
	p.run(200)
	if len(p.a.got) == 0 || p.a.got[0] != "dead" {
		t.Errorf("a got %q, want to be notified of the death first", p.a.got)
	}
}

// Who is to be connected learns of the other's death, whichever of them would
// have dialled.
func TestDeathBeforeTheConnection(t *testing.T) {
	for crashes := range NodeID(2) {
		p := newPair(t, slow())
		p.Connect(0, 1)
		p.Crash(crashes)
		p.run(1000)
		p.want("a", p.a, []string{"dead"}[:crashes]...)
		p.want("b", p.b, []string{"dead"}[crashes:]...)
	}
}

func dial(h Handle) { h.Dial(1 - h.ID()) }

func TestRefusal(t *testing.T) {
	p := newPair(t, slow())
	p.Crash(1)
	p.do(0, dial)
	p.run(100)
	p.want("a", p.a, "refused")
	p.want("b", p.b)
	p.Restart(1, p.b)
	p.do(0, dial)
	p.run(100)
	p.want("a", p.a, "up")
}

func TestClose(t *testing.T) {
	p := connected(t, slow())
	p.do(1, write("lost"))
	p.do(0, func(h Handle) {
		h.Write(1, nil, []byte("last"))
		h.Close(1)
	})
	p.run(100)
	p.want("a", p.a)
	p.want("b", p.b, "last", "closed")
	if p.Connected(0, 1) || len(p.Peers(0)) != 0 {
		t.Error("still connected")
	}
}

// A close whose sender crashes is reported, or else the crash is.
func TestCrashAfterClose(t *testing.T) {
	ends := map[string]bool{}
	for seed := range uint64(50) {
		cfg := slow()
		cfg.Seed, cfg.Death = seed, 40
		p := connected(t, cfg)
		p.do(0, func(h Handle) { h.Close(1) })
		p.Crash(0)
		p.run(100)
		last := p.b.got[len(p.b.got)-1]
		p.want("b", p.b, last)
		ends[last] = true
	}
	if len(ends) != 2 || !ends["closed"] || !ends["dead"] {
		t.Errorf("b was notified %v, want closed and dead to happen", ends)
	}
}

func TestCutHoldsUp(t *testing.T) {
	p := connected(t, slow())
	p.do(0, write("before"))
	p.do(0, func(h Handle) { h.Notify(1, "control") })
	p.Cut(0, 1)
	p.do(0, write("during"))
	p.do(0, func(h Handle) { h.Send(1, Addr{1, 1}, nil, []byte("datagram")) })
	p.run(900)
	p.want("b", p.b)
	p.Repair(0, 1)
	p.run(2000)
	p.want("b", p.b, "before", "during", "control")
	p.want("a", p.a)
}

func TestPatienceEnds(t *testing.T) {
	for name, cut := range map[string]func(p *pair){
		"cut":                 func(p *pair) { p.Cut(0, 1) },
		"partition":           func(p *pair) { p.Partition([]NodeID{1}) },
		"cut and then broken": func(p *pair) { p.Cut(0, 1); p.Break(0, 1) },
		"broken and then cut": func(p *pair) { p.Break(0, 1); p.Cut(0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := connected(t, slow())
			cut(p)
			p.do(0, write("lost"))
			p.run(999)
			p.want("a", p.a)
			p.run(1)
			p.want("a", p.a, "dead")
			p.want("b", p.b, "dead")
			p.Heal()
			p.run(5000)
			p.want("a", p.a)
			p.want("b", p.b)
		})
	}
}

func TestDialAcrossACut(t *testing.T) {
	for _, repaired := range []bool{false, true} {
		p := newPair(t, slow())
		p.Cut(0, 1)
		p.do(0, dial)
		p.run(900)
		if repaired {
			p.Heal()
		}
		p.run(200)
		if repaired {
			p.want("a", p.a, "up")
			p.want("b", p.b, "up")
		} else {
			p.want("a", p.a, "refused")
			p.want("b", p.b)
		}
	}
}

// Late news of a connection that is gone opens no later one: what an end wrote because of it came out of
// that.
func TestLateUp(t *testing.T) {
	p := newPair(t, slow())
	p.SetLink(0, 1, Link{Delay: 100})
	p.do(1, dial)
	p.run(20)
	p.want("a", p.a, "up")
	p.SetLink(0, 1, Link{Delay: 10})
	p.do(0, func(h Handle) {
		h.Close(1)
		h.Dial(1)
	})
	if err := p.Await(1000, func() bool { return len(p.b.got) == 1 }); err != nil {
		t.Fatal(err)
	}
	p.want("b", p.b, "up")
	if p.Connected(0, 1) {
		t.Error("b knows of a connection that it has not heard of")
	}
	p.run(100)
	p.want("b", p.b, "closed", "up")
	if !p.Connected(0, 1) {
		t.Error("not connected")
	}
}
