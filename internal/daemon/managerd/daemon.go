package managerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/topology"
)

// queue is the inputs that wait for the core at most.
const queue = 4096

// Daemon is a running manager.
type Daemon struct {
	cfg     Config
	log     *slog.Logger
	started time.Time // core.Time 0
	core    *manager.Core
	loop    *runner.Loop[manager.Input, manager.Output] // owns core
	planner *planner
	writer  *writer
	term    uint64                           // of this manager, for agents: above those of all before it
	links   atomic.Pointer[map[string]*link] // by switch; those of switches with an agent
	server  *rpc.Server
	counts  *counts

	once    sync.Once
	life    context.Context    // of planner, writer and links
	cancel  context.CancelFunc // ends it
	running sync.WaitGroup     // planner, writer, links, sessions
	gone    chan struct{}      // closed when the daemon ends

	desk        runner.Desk[manager.Reply]
	lastSession atomic.Uint32 // last number given to a session

	mu       sync.Mutex
	sessions map[uint32]*session

	fabric  sync.Mutex // orders changes of the fabric, and guards all up to history
	overlay *topology.Overlay
	agents  map[string]string // "host:port" by switch
	outages outages
	foreign map[string]float64       // by a link's end, as EndName writes it: the share that traffic of no tree has
	closing map[string]chan struct{} // by switch: closed when the last link to its agent has ended
	ended   bool                     // no link begins any more
	history history

	editing  sync.Mutex    // orders changes of operator
	operator Operator      // guarded by fabric
	maps     chan Operator // has room for one: the map in effect, to be stored; who holds fabric sends. Used where there is discovery

	alarms alarms
	zone   *zone // nil: it is in none

	discoverer *discoverer.Discoverer // nil: the fabric is what it was given
	raised     runner.Mailbox[string] // what is to be in the history of alarms
	unnamed    atomic.Int64           // of those, how many raised has no room for
}

// Start starts a manager with what its store has kept. The caller owns it and
// must Close or Kill it.
func Start(c Config) (*Daemon, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	isKept := c.Store != nil
	c = c.withDefaults()
	records, err := c.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("managerd: loading the store: %w", err)
	}
	wasKept := isKept && len(records) > 0
	records, term, err := c.newTerm(records)
	if err != nil {
		c.Log.Warn("the term of this manager is not stored: if the clock is set back before the next start, agents have to be restarted then", slog.Any("error", err))
	}
	d := &Daemon{
		cfg: c, log: c.Log, counts: newCounts(records),
		term:     term,
		gone:     make(chan struct{}),
		sessions: map[uint32]*session{},
		outages:  outages{},
		foreign:  map[string]float64{},
		closing:  map[string]chan struct{}{},
		maps:     make(chan Operator, 1),
		history:  newHistory(),
	}
	d.raised.Limit = maxDifferences
	if c.Discovery != nil {
		d.cfg.Merge = func(o Operator, _ string) { d.discoverer.SetOperator(operatorGraph(&o)) }
	}
	if err := d.restoreOperator(records); err != nil {
		return nil, err
	}
	if err := d.restoreCore(records); err != nil {
		return nil, fmt.Errorf("managerd: %w", err)
	}
	d.restoreHistory(records)
	listener, err := rpc.Listen(c.Listen, c.server())
	if err != nil {
		return nil, fmt.Errorf("managerd: %w", err)
	}
	if err := d.joinZone(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := d.run(); err != nil {
		d.leaveZone(false)
		return nil, errors.Join(err, listener.Close())
	}
	if wasKept {
		d.fabric.Lock()
		d.remember(&d.history.changes, d.entry("the manager was started", []string{"manager restarted: its changes of the map are counted anew"}, 0))
		d.fabric.Unlock()
	}
	if err := d.discover(); err != nil {
		d.leaveZone(false)
		d.end()
		return nil, errors.Join(fmt.Errorf("managerd: %w", err), listener.Close())
	}
	g := d.view().Graph()
	d.server = rpc.Serve(listener, rpc.Services{Manager: d, Members: d}, c.server())
	d.log.Info("manager started", slog.String("address", d.Addr()), slog.String("fabric", g.Fabric()),
		slog.Int("hosts", g.Hosts()), slog.Int("switches", g.Switches()),
		slog.Int("agents", len(d.agents)), slog.Int("records", len(records)))
	return d, nil
}

// newTerm returns a term that no manager before had: above the stored one, and the time,
// where there is no store or it was lost. It is stored in what it makes of the records.
func (c Config) newTerm(records []manager.Record) ([]manager.Record, uint64, error) {
	fleet := manager.Record{Kind: manager.FleetRecord, Fleet: &manager.Fleet{}}
	at := slices.IndexFunc(records, func(r manager.Record) bool { return r.Kind == manager.FleetRecord })
	if at >= 0 {
		kept := *records[at].Fleet
		fleet.Seq, fleet.Fleet = records[at].Seq, &kept
		records = slices.Delete(slices.Clone(records), at, at+1)
	}
	fleet.Fleet.Term = max(fleet.Fleet.Term+1, uint64(max(0, c.Now().UnixNano())))
	return append(records, fleet), fleet.Fleet.Term, c.Store.Save([]manager.Record{fleet})
}

// restoreCore begins with the operator's part as the map, and what was stored.
func (d *Daemon) restoreCore(records []manager.Record) (err error) {
	o, err := d.restoreMap(records)
	if err != nil {
		return err
	}
	d.agents, d.overlay = agentsIn(o.Graph, o.Agents), topology.NewOverlay(o.Graph)
	d.note(marksOfOperator(Operator{}, o))
	if d.overlay, err = d.overlay.With(d.outages.changes(d.overlay.View())...); err != nil {
		return err
	}
	c := d.cfg.Core
	c.Unattended, c.Certified = unattended(o.Graph, d.agents), d.cfg.Trust != nil
	d.core, err = manager.Restore(o.Graph, c, records)
	return err
}

// run starts everything but the server.
func (d *Daemon) run() (err error) {
	clock := runner.NewClock()
	d.started = clock.At(0)
	if d.planner, err = newPlanner(d.overlay.View().Graph(), d.cfg.Model, d.counts); err != nil {
		return err
	}
	links, err := d.dial(d.agents)
	if err != nil {
		return err
	}
	d.writer = &writer{store: d.cfg.Store, log: d.log, counts: d.counts}
	d.loop, err = runner.Start(runner.Config[manager.Input, manager.Output]{
		Core: d.core, Clock: clock, Apply: d.apply, Queue: queue,
	})
	if err != nil {
		closeLinks(links)
		return fmt.Errorf("managerd: %w", err)
	}
	d.life, d.cancel = context.WithCancel(context.Background())
	d.running.Go(func() { d.planner.run(d.life, d.post) })
	d.running.Go(func() { d.writer.run(d.life, d.post) })
	d.running.Go(func() { d.keepMaps(d.life) })
	d.fabric.Lock()
	d.relink(links, d.agents)
	view := d.overlay.View()
	d.fabric.Unlock()
	if len(d.operator.Down) > 0 {
		_ = d.post(manager.TopologyChanged{View: view}) // its only error is that the manager has ended
	}
	if d.zone != nil {
		d.running.Go(d.watchZone)
	}
	return nil
}

// post gives the core inputs. The error is that the manager ends.
func (d *Daemon) post(inputs ...manager.Input) error {
	return d.loop.Post(context.Background(), inputs...)
}

// Addr returns the "host:port" of the gRPC server.
func (d *Daemon) Addr() string { return d.server.Addr().String() }

// Done is closed when the manager cannot be reached any more: after Close or
// Kill, or when its listener failed, which Err reports.
func (d *Daemon) Done() <-chan struct{} { return d.server.Done() }

// Err returns, once Done is closed, why the listener failed; nil otherwise.
func (d *Daemon) Err() error { return d.server.Err() }

// Close ends the manager: members are notified that it goes, calls under way end.
// The trees stay; the groups' own packets keep them. It returns when
// everything has ended.
func (d *Daemon) Close() {
	d.once.Do(func() {
		d.shutdown()
		d.server.Close()
		d.leaveZone(true)
		d.end()
		d.log.Info("manager closed")
	})
}

// Kill ends the manager as the death of its process would: connections just
// stop, and what was not stored yet is lost. It returns when everything has
// ended. While Close waits for calls under way, it breaks them off.
func (d *Daemon) Kill() {
	if d.ending() {
		d.server.Kill()
	}
	d.once.Do(func() {
		d.loop.Close()
		d.shutdown()
		d.server.Kill()
		d.leaveZone(false)
		d.end()
	})
}

func (d *Daemon) end() {
	if d.discoverer != nil {
		d.discoverer.Close()
	}
	d.loop.Close()
	d.fabric.Lock()
	d.ended = true
	d.fabric.Unlock()
	d.cancel()
	d.running.Wait()
}

// apply hands out what a step of the core wants, in its loop. Nothing here
// waits. The planner gets, of one step, the loads before the plans.
func (d *Daemon) apply(_ core.Time, out *manager.Output) []manager.Input {
	defer out.Reset()
	d.counts.given(out.Persist)
	d.writer.put(out.Persist)
	d.planner.put(out)
	for _, p := range out.Prepares {
		d.ask(p.Switch, request{prepare: &p.Prepare})
	}
	for _, c := range out.Commits {
		d.ask(c.Switch, request{commit: &c.Commit})
	}
	for _, r := range out.Removes {
		d.ask(r.Switch, request{remove: &r.Remove})
	}
	for _, o := range out.Offers {
		d.notify(o.Stream, manager.Event{Offer: &o})
	}
	for _, w := range out.Withdrawals {
		d.notify(w.Stream, manager.Event{Withdrawal: &w})
	}
	for _, l := range out.Links {
		d.notify(l.Stream, manager.Event{Links: &l})
	}
	for _, n := range out.Notices {
		d.notify(n.Stream, manager.Event{Notice: &n})
	}
	for _, r := range out.Replies {
		d.desk.Answer(r.Req, r)
	}
	return nil
}

func (d *Daemon) ask(name string, r request) {
	if l := d.agentLinks()[name]; l != nil {
		l.put(r)
	}
}
