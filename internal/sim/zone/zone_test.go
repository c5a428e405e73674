package zone

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	corezone "github.com/tributary-fabric/tributary/internal/core/zone"
)

// The tests are the rows of `collbench membership` in small, at the same
// settings; shared/requirements/membership.md has the points that they cite.

// TestBoot (21): all nodes at once; the overlay's diameter is the paper's.
func TestBoot(t *testing.T) {
	for _, n := range []int{2, 3, 5, 32, 64, 256} {
		r, err := RunBoot(DefaultConfig(n, 1))
		if err != nil {
			t.Fatalf("%d nodes: %v", n, err)
		}
		if r.Stable > 3*time.Second {
			t.Errorf("%d nodes: stable after %v, want 3 s", n, r.Stable)
		}
		if r.Diameter < 1 || n >= 32 && float64(r.Diameter) > math.Ceil(r.Log) {
			t.Errorf("%d nodes: diameter %d, want %.1f at most", n, r.Diameter, r.Log)
		}
	}
}

// TestChange (21): a leave is known everywhere within (eccentricity + 1) Tau, a
// join one Tau later.
func TestChange(t *testing.T) {
	for _, n := range []int{32, 128} {
		r, err := RunChange(DefaultConfig(n, 1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Leave > r.LeaveBound || r.Join > r.JoinBound {
			t.Errorf("%d nodes: %+v: later than bound", n, r)
		}
	}
}

// TestMonitor (12): the monitor knows of 1 to 16 failures at once in time, and
// gets Kr + Ks messages of each at most.
func TestMonitor(t *testing.T) {
	for _, n := range []int{32, 128} {
		for _, failures := range []int{1, 4, 16} {
			for seed := range uint64(640 / n) {
				for _, silent := range []bool{false, true} {
					cfg := DefaultConfig(n, seed)
					r, err := RunMonitor(cfg, failures, silent)
					if err != nil {
						t.Fatal(err)
					}
					if r.Notice > r.Bound || r.Notice == 0 && r.Orphans < failures {
						t.Errorf("%d of %d nodes, silent %v, seed %d: %+v: later than bound", failures, n, silent, seed, r)
					}
					if r.Messages > cfg.Settings.Kr+cfg.Settings.Ks {
						t.Errorf("%d of %d nodes, silent %v, seed %d: %+v: too many messages", failures, n, silent, seed, r)
					}
				}
			}
		}
	}
}

// TestRecovery (2): after every disaster all views are equal within 10 s.
func TestRecovery(t *testing.T) {
	for _, n := range []int{4, 33, 128} {
		for seed := range uint64(3) {
			cfg := DefaultConfig(n, seed)
			for what, run := range map[string]func() (RecoveryResult, error){
				"half of the zone is killed": func() (RecoveryResult, error) { return RunHalf(cfg, false) },
				"half of the zone is silent": func() (RecoveryResult, error) { return RunHalf(cfg, true) },
				"a partition heals":          func() (RecoveryResult, error) { return RunPartition(cfg, 30*time.Second) },
				"a node flaps":               func() (RecoveryResult, error) { return RunFlap(cfg, 10) },
			} {
				if r, err := run(); err != nil || r.Equal > 10*time.Second {
					t.Errorf("%s, %d nodes, seed %d: %+v, %v", what, n, seed, r, err)
				}
			}
		}
	}
}

// TestPartitionGivesNoFalseNotices (2): when a partition heals, all that anybody
// is notified is joins of those who were away.
func TestPartitionGivesNoFalseNotices(t *testing.T) {
	const n = 64
	w, err := boot(DefaultConfig(n, 1))
	if err != nil {
		t.Fatal(err)
	}
	w.Partition(func(i int) int { return i & 1 })
	w.RunFor(30 * time.Second)
	joins := 0
	w.cfg.Observe = func(node int, _ core.Time, out *member.Output) {
		for _, notice := range out.Notices {
			if notice.Kind != member.Join || int(notice.Node)&1 == node&1 {
				t.Errorf("node %d is notified %+v", node, notice)
			}
			joins++
		}
	}
	w.Heal()
	if _, err := w.equal("heal"); err != nil {
		t.Fatal(err)
	}
	if joins != n*n/2 {
		t.Errorf("%d joins, want %d: each node half of the zone", joins, n*n/2)
	}
}

// TestIdle (11, 15): a stable zone sends heartbeats and nothing else.
func TestIdle(t *testing.T) {
	r, err := RunIdle(DefaultConfig(256, 1), time.Minute)
	if err != nil || r.Packets+r.Frames != 0 || r.BeatRate < 3.9 || r.BeatRate > 4.1 {
		t.Errorf("%+v, %v; want 4 heartbeats a second and node alone", r, err)
	}
}

// TestLoss: one packet in ten is lost, and nobody is taken for dead.
func TestLoss(t *testing.T) {
	minutes := 0
	r, err := RunLoss(DefaultConfig(64, 1), 0.1, 20*time.Minute, func(time.Duration) { minutes++ })
	if err != nil || r.FalseDeaths != 0 || minutes != 20 {
		t.Errorf("%+v, %v, progress %d times", r, err, minutes)
	}
}

// TestImpaired: a node that hears or says only a part has nobody removed who is
// there. It stays a member itself as long as it can be asked in any way.
func TestImpaired(t *testing.T) {
	for _, c := range []struct {
		what  Impairment
		stays bool
	}{
		{NoDatagrams, true}, {DeafToDatagrams, true}, {MuteInDatagrams, true},
		{DeafToStreams, true}, {MuteInStreams, true},
		{DeafToDatagrams | DeafToStreams, false}, {MuteInDatagrams | MuteInStreams, false},
		{DeafToDatagrams | MuteInStreams, false}, {MuteInDatagrams | DeafToStreams, false},
	} {
		for _, n := range []int{3, 16, 64} {
			for seed := range uint64(3) {
				r, err := RunImpaired(DefaultConfig(n, seed), c.what, time.Minute)
				if err != nil || r.FalseLeaves > 0 || c.stays && r.Lost > 0 {
					t.Errorf("%d nodes, impairment %d, seed %d: %+v, %v", n, c.what, seed, r, err)
				}
			}
		}
	}
}

// TestBlockedLink: what does not get through from one node to another, in that
// direction, has neither of them removed.
func TestBlockedLink(t *testing.T) {
	for _, n := range []int{3, 16} {
		w, err := boot(DefaultConfig(n, 1))
		if err != nil {
			t.Fatal(err)
		}
		w.cfg.Observe = func(node int, _ core.Time, out *member.Output) {
			for _, x := range out.Notices {
				t.Errorf("%d nodes: node %d is notified %+v", n, node, x)
			}
		}
		ring := w.Core(0).View()
		for k, i := range ring { // to the successor, from the predecessor, and across
			from, to := w.Node(i), w.Node(ring[(k+1+k%2)%n])
			w.Block(from, to, true)
			w.RunFor(30 * time.Second)
			w.Block(from, to, false)
			w.RunFor(10 * time.Second)
		}
	}
}

// TestChurn: of many leaves and joins all views come out equal.
func TestChurn(t *testing.T) {
	for seed := range uint64(8) {
		if r, err := RunChurn(DefaultConfig(64, seed), 300, 10*time.Second, nil); err != nil || r.Equal > 10*time.Second {
			t.Errorf("seed %d: %+v, %v", seed, r, err)
		}
	}
}

// TestMemory: what a node takes, its attributes and IDs included, grows with the
// view alone; RunMemory has the figure for 2,048.
func TestMemory(t *testing.T) {
	cfg := DefaultConfig(512, 1)
	cfg.Wrap = func(_ int, m *member.Core, _ core.Time) Stepper {
		around, err := corezone.Around(m, attribute.DefaultConfig(0))
		if err != nil {
			t.Fatal(err)
		}
		return around
	}
	r, err := RunMemory(cfg)
	t.Logf("%d bytes of cores, %d of IDs", r.Cores, r.Directory)
	if err != nil || r.Cores == 0 || r.Directory == 0 || r.Bytes() > 64<<10 {
		t.Errorf("%+v, %v; want at most 64 KiB, a quarter of what a view of 2,048 may take", r, err)
	}
}

// TestSameSeedSameTrace: and another seed another.
func TestSameSeedSameTrace(t *testing.T) {
	run := func(seed uint64) string {
		w, err := boot(DefaultConfig(64, seed))
		if err != nil {
			t.Fatal(err)
		}
		w.cfg.Loss = 0.05
		w.Kill(7)
		w.Silence(8)
		w.Partition(func(i int) int { return i / 40 })
		w.RunFor(10 * time.Second)
		w.Heal()
		w.Start(7)
		w.RunFor(10 * time.Second)
		return fmt.Sprintf("%x %d %v", w.Hash(), w.Events(), w.Traffic)
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("the same seed gives\n%s and\n%s", a, b)
	}
	if a, b := run(1), run(2); a == b {
		t.Error("another seed gives the same run")
	}
}

// TestTopology (5): every node has links to its Ks successors, Kr random
// neighbours, and no more links than it and the others need; the overlay is
// connected.
func TestTopology(t *testing.T) {
	for _, ks := range []int{1, 2} {
		cfg := DefaultConfig(100, 1)
		cfg.Settings.Ks, cfg.Settings.Theta = ks, ks
		w, err := boot(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if w.Diameter() < 0 {
			t.Fatal("the overlay is not connected")
		}
		ring := w.Core(0).View()
		for at, i := range ring {
			c := w.Core(w.Node(i))
			successors, random, chosen, watchers := 0, 0, 0, 0
			for _, p := range c.Neighbours(nil) {
				if p.Ours&1 != 0 {
					for k := 1; k <= ks; k++ {
						if p.Node == ring[(at+k)%len(ring)] {
							successors++
						}
					}
				}
				random += int(p.Ours >> 1)
				chosen += int(p.Theirs >> 1)
				if p.Ours|p.Theirs == 0 {
					t.Errorf("a link that nobody needs")
				}
				if p.Watches {
					watchers++
				}
				for k := 1; k <= ks; k++ {
					if p.Node == ring[(at-k+len(ring))%len(ring)] && !p.Watches {
						t.Errorf("node %d is not watched by %d, a predecessor", i, p.Node)
					}
				}
			}
			if successors != ks || random != cfg.Settings.Kr || chosen > 2*cfg.Settings.Kr+ks+1 || watchers != ks+cfg.Settings.Kr {
				t.Errorf("node %d has %d successors, %d random neighbours, was chosen by %d, is watched by %d", i, successors, random, chosen, watchers)
			}
		}
	}
}

// TestQuickReboot (server collectives, 42): a node that is back before anybody
// could miss it, and is silent at first, is dead for everybody before it joins
// again; each counts one death. It is silent no longer than that takes.
func TestQuickReboot(t *testing.T) {
	const n, node = 64, 9
	cfg := DefaultConfig(n, 1)
	cfg.Settings.Stealth = 2
	w, err := boot(cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := w.Core(0).Deaths(node)
	var reported [n][]member.NoticeKind
	w.cfg.Observe = func(observer int, _ core.Time, out *member.Output) {
		for _, notice := range out.Notices {
			if notice.Node == node {
				reported[observer] = append(reported[observer], notice.Kind)
			}
		}
	}
	w.Kill(node)
	w.Start(node)
	took, err := w.equal("reboot")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if i != node && (len(reported[i]) != 2 || reported[i][0] != member.Leave || reported[i][1] != member.Join || w.Core(i).Deaths(node) != before+1) {
			t.Errorf("node %d is notified %v, and counts %d deaths after %d", i, reported[i], w.Core(i).Deaths(node), before)
		}
	}
	if most := time.Duration(cfg.Settings.Stealth*6) * cfg.Settings.Tau; took > most {
		t.Errorf("it took %v, longer than the whole time of stealth, %v", took, most)
	}
}

// TestProvenZones: zones whose nodes prove what they say keep the bounds of those whose nodes
// do not.
func TestProvenZones(t *testing.T) {
	for _, n := range []int{2, 5, 64} {
		for seed := range uint64(3) {
			cfg := DefaultConfig(n, seed)
			if cfg.Proofs = true; seed == 2 {
				cfg.Settings.Theta, cfg.Settings.Ks = 2, 2
			}
			if r, err := RunBoot(cfg); err != nil || r.Stable > 3*time.Second {
				t.Errorf("%d nodes, seed %d: boot: %+v, %v", n, seed, r, err)
			}
			if n < 5 {
				continue
			}
			if r, err := RunChange(cfg); err != nil || r.Leave > r.LeaveBound || r.Join > r.JoinBound {
				t.Errorf("%d nodes, seed %d: change: %+v, %v", n, seed, r, err)
			}
			for _, silent := range []bool{false, true} {
				if r, err := RunMonitor(cfg, 1, silent); err != nil || r.Notice > r.Bound || r.Messages > cfg.Settings.Kr+cfg.Settings.Ks {
					t.Errorf("%d nodes, seed %d: failure, silent %v: %+v, %v", n, seed, silent, r, err)
				}
				if r, err := RunHalf(cfg, silent); err != nil || r.Equal > 10*time.Second {
					t.Errorf("%d nodes, seed %d: half, silent %v: %+v, %v", n, seed, silent, r, err)
				}
			}
			if r, err := RunPartition(cfg, 30*time.Second); err != nil || r.Equal > 10*time.Second {
				t.Errorf("%d nodes, seed %d: partition: %+v, %v", n, seed, r, err)
			}
			if r, err := RunFlap(cfg, 10); err != nil || r.Equal > 10*time.Second {
				t.Errorf("%d nodes, seed %d: flap: %+v, %v", n, seed, r, err)
			}
		}
	}
}
