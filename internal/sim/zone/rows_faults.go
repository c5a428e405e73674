package zone

import (
	"runtime"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
)

// RecoveryResult reports how long after a disaster all views were equal again,
// versions included. They were those of who was up: nobody was dead in a view
// and alive elsewhere.
type RecoveryResult struct {
	Equal time.Duration
	Wall  time.Duration
}

// RunHalf has every other node of a zone die at once.
func RunHalf(cfg Config, silent bool) (RecoveryResult, error) {
	return recover(cfg, "half of the zone died", func(w *World) {
		for i := 1; i < cfg.Nodes; i += 2 {
			if silent {
				w.Silence(i)
			} else {
				w.Kill(i)
			}
		}
	})
}

// RunPartition cuts a zone into halves for so long. The time counts from when it
// is whole again.
func RunPartition(cfg Config, long time.Duration) (RecoveryResult, error) {
	return recover(cfg, "partition", func(w *World) {
		w.Partition(func(i int) int { return i & 1 })
		w.RunFor(long)
		w.Heal()
	})
}

// RunFlap kills a node every second and starts it again half a second later, so
// many times. The time counts from the last start.
func RunFlap(cfg Config, times int) (RecoveryResult, error) {
	return recover(cfg, "flapping", func(w *World) {
		node := cfg.Nodes - 1
		for range times {
			w.RunFor(time.Second / 2)
			w.Kill(node)
			w.RunFor(time.Second / 2)
			w.Start(node)
		}
	})
}

func recover(cfg Config, what string, disaster func(w *World)) (RecoveryResult, error) {
	began := time.Now()
	w, err := boot(cfg)
	if err != nil {
		return RecoveryResult{}, err
	}
	disaster(w)
	took, err := w.equal(what)
	return RecoveryResult{took, time.Since(began)}, err
}

// IdleResult reports what a stable zone sends.
type IdleResult struct {
	Packets  uint64 // datagrams but for heartbeats
	Frames   uint64
	BeatRate float64 // heartbeats a node and second
}

// RunIdle watches a stable zone for so long.
func RunIdle(cfg Config, long time.Duration) (IdleResult, error) {
	w, err := boot(cfg)
	if err != nil {
		return IdleResult{}, err
	}
	before := w.Traffic
	w.RunFor(long)
	return IdleResult{
		Packets: w.Traffic.Packets - before.Packets, Frames: w.Traffic.Frames - before.Frames,
		BeatRate: float64(w.Traffic.Beats-before.Beats) / float64(cfg.Nodes) / long.Seconds(),
	}, nil
}

// LossResult reports how a zone fares in which packets are lost.
type LossResult struct {
	FalseDeaths int    // lives that somebody held for dead though they went on
	Probes      uint64 // datagrams other than heartbeats
	Beats       uint64
	Events      uint64
	Wall        time.Duration
}

// RunLoss boots a zone and then loses packets for so long. Progress is called
// every virtual minute; nil: not at all.
func RunLoss(cfg Config, loss float64, long time.Duration, progress func(past time.Duration)) (LossResult, error) {
	began := time.Now()
	w, err := boot(cfg)
	if err != nil {
		return LossResult{}, err
	}
	type death struct {
		node    member.Index
		version member.Version
	}
	deaths := map[death]bool{}
	w.cfg.Observe = func(_ int, _ core.Time, out *member.Output) {
		for _, n := range out.Notices {
			if n.Kind == member.Leave {
				deaths[death{n.Node, n.Version}] = true
			}
		}
	}
	w.cfg.Loss = loss
	before, events := w.Traffic, w.events
	for past := time.Duration(0); past < long; past += time.Minute {
		w.RunFor(min(time.Minute, long-past))
		if progress != nil {
			progress(min(past+time.Minute, long))
		}
	}
	return LossResult{
		FalseDeaths: len(deaths), Probes: w.Traffic.Packets - before.Packets, Beats: w.Traffic.Beats - before.Beats,
		Events: w.events - events, Wall: time.Since(began),
	}, nil
}

// ImpairedResult reports how a zone fares in which one node hears or says only a
// part.
type ImpairedResult struct {
	FalseLeaves int // notices, at all nodes but that one, that another left, which was there all the time
	Lost        int // notices that that one left
	Probes      uint64
	Frames      uint64
}

// RunImpaired boots a zone and then impairs one node for so long.
func RunImpaired(cfg Config, what Impairment, long time.Duration) (ImpairedResult, error) {
	var r ImpairedResult
	w, err := boot(cfg)
	if err != nil {
		return r, err
	}
	impaired := w.rand.IntN(cfg.Nodes)
	w.cfg.Observe = func(node int, _ core.Time, out *member.Output) {
		for _, n := range out.Notices {
			switch {
			case n.Kind != member.Leave || node == impaired:
			case w.Node(n.Node) == impaired:
				r.Lost++
			default:
				r.FalseLeaves++
			}
		}
	}
	before := w.Traffic
	w.Impair(impaired, what)
	w.RunFor(long)
	r.Probes, r.Frames = w.Traffic.Packets-before.Packets, w.Traffic.Frames-before.Frames
	w.cfg.Observe = nil
	w.Impair(impaired, 0)
	_, err = w.equal("impairment")
	return r, err
}

// ChurnResult reports how a zone fares in which many leave and join.
type ChurnResult struct {
	Changes      int
	Equal        time.Duration // from the last change until all views were equal
	Events       uint64
	Wall         time.Duration
	EventsPerSec float64 // of the simulation
}

// RunChurn has so many leaves and joins happen to a zone within a time, evenly:
// a node drawn at random leaves in order, or comes back if it is away. Progress is
// called about a hundred times with how many have happened; nil: not at all.
func RunChurn(cfg Config, changes int, within time.Duration, progress func(done int)) (ChurnResult, error) {
	r := ChurnResult{Changes: changes}
	w, err := boot(cfg)
	if err != nil {
		return r, err
	}
	began, events := time.Now(), w.events
	for done := range changes {
		if progress != nil && done%max(1, changes/100) == 0 {
			progress(done)
		}
		w.RunFor(within / time.Duration(changes))
		i := w.rand.IntN(cfg.Nodes)
		if w.Up(i) {
			w.Notify(i, member.Input{Kind: member.Depart})
		} else {
			w.Start(i)
		}
	}
	if r.Equal, err = w.equal("churn"); err != nil {
		return r, err
	}
	r.Events, r.Wall = w.events-events, time.Since(began)
	r.EventsPerSec = float64(r.Events) / r.Wall.Seconds()
	return r, nil
}

// MemoryResult reports what cores take.
type MemoryResult struct {
	Cores     uint64 // bytes a node: what its cores hold
	Directory uint64 // bytes a node: of the IDs that it knows
}

// Bytes is what a node holds.
func (r MemoryResult) Bytes() uint64 { return r.Cores + r.Directory }

// directories are how many of them RunMemory weighs.
const directories = 16

// RunMemory boots a zone and weighs its cores: what the process has less once
// they are gone. To each comes a directory of the zone, of which the nodes of a
// simulation share one.
func RunMemory(cfg Config) (MemoryResult, error) {
	w, err := boot(cfg)
	if err != nil {
		return MemoryResult{}, err
	}
	with := heap()
	for i := range w.nodes {
		w.nodes[i].core, w.nodes[i].step = nil, nil
	}
	without := heap()
	var own [directories]*member.Directory
	for k := range own {
		own[k] = member.NewDirectory()
		for i := range w.nodes {
			own[k].Hold(own[k].Add(w.id(i)))
		}
		own[k].Sweep()
	}
	directory := (heap() - without) / directories
	runtime.KeepAlive(own)
	runtime.KeepAlive(w)
	return MemoryResult{(with - without) / uint64(cfg.Nodes), directory}, nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
