package zone

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// ErrUnstable is wrapped by the errors of rows whose views did not become equal
// in time.
var ErrUnstable = errors.New("zone: the views are not equal")

// patience is the longest that a row waits for equal views.
const patience = time.Minute

// calm is how long a zone is left alone before something happens to it: its
// overlay has settled by then.
const calm = 5 * time.Second

// start starts all nodes at once, waits until all views are equal, and returns how
// long that took.
func start(cfg Config) (*World, time.Duration, error) {
	w, err := New(cfg)
	if err != nil {
		return nil, 0, err
	}
	for i := range w.nodes {
		w.Start(i)
	}
	took, err := w.stable("boot")
	return w, took, err
}

// boot starts a zone and waits until nothing changes any more.
func boot(cfg Config) (*World, error) {
	w, _, err := start(cfg)
	if err == nil {
		w.RunFor(calm)
	}
	return w, err
}

// stable waits until everybody's view is of those who are up, and returns how
// long that took.
func (w *World) stable(what string) (time.Duration, error) {
	took, ok := w.Await(patience, w.Agreed)
	if !ok {
		return took, fmt.Errorf("%s: %w after %v: %d of %d nodes see who is up", what, ErrUnstable, took, w.agreeing, w.up)
	}
	return took, nil
}

// equal waits until all views are the same, versions included, and returns how
// long that took.
func (w *World) equal(what string) (time.Duration, error) {
	from := w.now
	if _, err := w.stable(what); err != nil {
		return 0, err
	}
	for !w.Equal() {
		if w.now.Sub(from) > patience {
			return 0, fmt.Errorf("%s: %w after %v", what, ErrUnstable, patience)
		}
		w.RunFor(time.Millisecond)
	}
	return w.now.Sub(from), nil
}

// BootResult reports how a zone booted, all nodes at once.
type BootResult struct {
	Stable   time.Duration // until all views had everybody
	Diameter int           // of the overlay, in links
	Log      float64       // the paper's bound on it, log n to the base of Kr
	Wall     time.Duration
}

// RunBoot boots a zone.
func RunBoot(cfg Config) (BootResult, error) {
	began := time.Now()
	w, took, err := start(cfg)
	if err != nil {
		return BootResult{}, err
	}
	r := BootResult{Stable: took, Wall: time.Since(began)}
	w.RunFor(calm)
	r.Diameter = w.Diameter()
	r.Log = math.Log(float64(cfg.Nodes)) / math.Log(float64(max(2, cfg.Settings.Kr)))
	return r, nil
}

// ChangeResult reports how long a leave and a join of one node took to be known
// everywhere.
type ChangeResult struct {
	LeaveEccentricity int // of the node that left, before
	Leave             time.Duration
	LeaveBound        time.Duration // (eccentricity + 1) Tau
	JoinEccentricity  int           // of the node that joined, after
	Join              time.Duration
	JoinBound         time.Duration // (eccentricity + 2) Tau
}

// RunChange has a node leave a zone in order, and join it again.
func RunChange(cfg Config) (ChangeResult, error) {
	w, err := boot(cfg)
	if err != nil {
		return ChangeResult{}, err
	}
	node := cfg.Nodes - 1
	r := ChangeResult{LeaveEccentricity: w.Eccentricity(node)}
	w.Leave(node, gossip.Exit{Given: true, Code: 3})
	if r.Leave, err = w.stable("leave"); err != nil {
		return r, err
	}
	w.RunFor(calm)
	w.Start(node)
	if r.Join, err = w.stable("join"); err != nil {
		return r, err
	}
	w.RunFor(calm)
	r.JoinEccentricity = w.Eccentricity(node)
	r.LeaveBound = time.Duration(r.LeaveEccentricity+1) * cfg.Settings.Tau
	r.JoinBound = time.Duration(r.JoinEccentricity+2) * cfg.Settings.Tau
	return r, nil
}

// MonitorResult reports when a high priority monitor knew of failures that
// happened at once.
type MonitorResult struct {
	Notice       time.Duration // until the monitor knew of the last failure that had a neighbour left
	Bound        time.Duration
	Orphans      int           // failures without: all their neighbours failed, too
	OrphanNotice time.Duration // until the monitor knew of the last of these
	Messages     int           // most suspicions of one failure that were sent to the monitor
}

// HPMLatency is what a notice to a monitor may take beyond detection.
const HPMLatency = 30 * time.Millisecond

// RunMonitor fails so many nodes at once, with node 0 as the monitor: their hosts fall
// silent, or their processes are killed.
func RunMonitor(cfg Config, failures int, silent bool) (MonitorResult, error) {
	r := MonitorResult{Bound: HPMLatency}
	if silent {
		r.Bound += 3 * cfg.Settings.Heartbeat
	}
	w, err := boot(cfg)
	if err != nil {
		return r, err
	}
	for i := range w.nodes {
		w.Notify(i, member.Input{Kind: member.SetMonitors, Nodes: []member.Index{0}})
	}
	w.RunFor(calm)
	m := &monitored{failed: make([]bool, cfg.Nodes), noticed: make([]core.Time, cfg.Nodes), messages: make([]int, cfg.Nodes)}
	for left := failures; left > 0; {
		if i := 1 + w.rand.IntN(cfg.Nodes-1); !m.failed[i] {
			m.failed[i] = true
			left--
		}
	}
	neighbours := w.neighbours()
	w.cfg.Observe = m.observe
	from := w.now
	for i, failed := range m.failed {
		switch {
		case !failed:
		case silent:
			w.Silence(i)
		default:
			w.Kill(i)
		}
	}
	if _, err := w.stable("failures"); err != nil {
		return r, err
	}
	m.result(&r, from, neighbours)
	return r, nil
}

// monitored is what becomes known of failures.
type monitored struct {
	failed   []bool
	noticed  []core.Time // by the monitor
	messages []int       // to the monitor
}

func (m *monitored) observe(node int, now core.Time, out *member.Output) {
	if node == 0 {
		for _, n := range out.Notices {
			if n.Kind == member.Leave && m.failed[n.Node] && m.noticed[n.Node] == 0 {
				m.noticed[n.Node] = now
			}
		}
	}
	for _, p := range out.Packets {
		if p.To == 0 && p.Message.Type == gossip.Update {
			for _, s := range p.Message.Suspicions {
				m.messages[s.Suspect]++
			}
		}
	}
}

func (m *monitored) result(r *MonitorResult, from core.Time, neighbours [][]int32) {
	for i, failed := range m.failed {
		if !failed {
			continue
		}
		orphan := true
		for _, j := range neighbours[i] {
			orphan = orphan && m.failed[j]
		}
		took := m.noticed[i].Sub(from)
		r.Messages = max(r.Messages, m.messages[i])
		if orphan {
			r.Orphans++
			r.OrphanNotice = max(r.OrphanNotice, took)
		} else {
			r.Notice = max(r.Notice, took)
		}
	}
}
