package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

const (
	group      = "demo"           // name of the communicator
	window     = 64               // chunks in flight
	chunkBytes = 1432             // fills a packet of 1,500 bytes
	offerWait  = 30 * time.Second // a busy machine is no reason to show the host tree
)

// Run demonstrates what c says. A report comes with every run that came to its
// end, also with results that are wrong; Report.Err reports that.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	g, err := c.open()
	if err != nil {
		return nil, err
	}
	// Each host's own, its result, and what that should be.
	if err := process.CheckMemory(process.Vectors{Members: g.Hosts(), Bytes: c.Bytes, Each: 3}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c.Progress(fmt.Sprintf("starting fabric %s: %d hosts, %d switches", g.Fabric(), g.Hosts(), g.Switches()))
	fabric, err := embedded.Start(ctx, embedded.Config{
		Topology: g, Window: window, ChunkBytes: chunkBytes, OfferWait: offerWait, Progress: c.Progress,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fabric.Close()) }()
	s, err := newStage(c, fabric)
	if err != nil {
		return nil, err
	}
	if err := s.play(ctx); err != nil {
		return nil, err
	}
	return s.report, nil
}

// stage is where the operations run.
type stage struct {
	cfg     Config
	fabric  *embedded.Fabric
	graph   *topology.Graph
	vectors *vectors
	kernel  reduce.Kernel
	report  *Report
	known   []seen // all trees that were seen, also in the middle of an operation
}

func newStage(c Config, f *embedded.Fabric) (*stage, error) {
	g := f.Topology()
	kernel, err := reduce.KernelOf(c.Function, c.Type)
	if err != nil {
		return nil, err
	}
	v, err := newVectors(c, g.Hosts())
	if err != nil {
		return nil, err
	}
	return &stage{
		cfg: c, fabric: f, graph: g, vectors: v, kernel: kernel,
		report: &Report{
			Fabric: c.Fabric, Hosts: g.Hosts(), Switches: g.Switches(), graph: g, killed: topology.NoNode,
			title: fmt.Sprintf("%d members, %d bytes each: %d of %s, reduced by %s; seed %d",
				g.Hosts(), c.Bytes, c.Bytes/reduce.ElementSize(c.Function, c.Type), c.Type, c.Function, c.Seed),
		},
	}, nil
}

// play runs the three operations.
func (s *stage) play(ctx context.Context) error {
	comms, err := s.fabric.Communicators(ctx, group)
	if err != nil {
		return err
	}
	if err := s.remember(s.fabric.AwaitTree(ctx, group, 0)); err != nil {
		return err
	}
	chunks, err := s.run(ctx, "allreduce", comms, nil)
	if err != nil {
		return err
	}
	s.check()
	if len(s.report.trees) == 0 {
		s.say("there is no tree, and so no root to kill")
	} else if err := s.survive(ctx, comms, chunks); err != nil {
		return err
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		return err
	}
	apart, err := s.fabric.CommunicatorsApart(ctx, group)
	if err != nil {
		return err
	}
	if _, err := s.run(ctx, "allreduce over hosts alone", apart, nil); err != nil {
		return err
	}
	s.check()
	return embedded.Leave(ctx, apart)
}

// survive runs the operation in whose middle the root dies.
func (s *stage) survive(ctx context.Context, comms []*hostlib.Communicator, chunks int) error {
	lost := s.known[len(s.known)-1]
	victim := s.graph.Name(lost.tree.Root())
	k := &killing{stage: s, victim: victim, chunks: chunks, withhold: chunks < enough*window}
	title := fmt.Sprintf("allreduce, root %s dies", victim)
	_, err := s.run(ctx, title, comms, k)
	if k.late && err == nil {
		s.say("it was over too early to be hit; once more, with a member that waits for the death")
		s.report.Operations = s.report.Operations[:len(s.report.Operations)-1]
		k.withhold = true
		_, err = s.run(ctx, title, comms, k)
	}
	if err != nil {
		return err
	}
	s.report.killed, _ = s.graph.Lookup(victim)
	if err := s.remember(s.fabric.AwaitTree(ctx, group, lost.epoch)); err != nil {
		return err
	}
	s.check()
	return nil
}

// remember notes a tree, for the oracle and for the reader.
func (s *stage) remember(t embedded.Tree, err error) error {
	if errors.Is(err, embedded.ErrNoTree) {
		s.say("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	is := seen{t.Epoch, t.Tree, t.Reason}
	s.report.trees, s.known = append(s.report.trees, is), append(s.known, is)
	s.say("tree of epoch %d with root %s", t.Epoch, s.graph.Name(t.Tree.Root()))
	return nil
}

// note notes the tree that the manager has put in the place of the last one, for the oracle.
func (s *stage) note(ctx context.Context) {
	if t, err := s.fabric.ActiveTree(ctx, group); err == nil && len(s.known) > 0 && t.Epoch > s.known[len(s.known)-1].epoch {
		s.known = append(s.known, seen{t.Epoch, t.Tree, t.Reason})
	}
}

func (s *stage) say(format string, args ...any) { s.cfg.Progress(fmt.Sprintf(format, args...)) }

// run runs one allreduce, and returns its number of chunks.
func (s *stage) run(ctx context.Context, title string, comms []*hostlib.Communicator, k *killing) (int, error) {
	s.say("operation %d: %s", len(s.report.Operations)+1, title)
	s.vectors.forget()
	before := embedded.TrafficOf(comms)
	begun := time.Now()
	outcomes, err := s.all(ctx, comms, k)
	if err != nil {
		return 0, fmt.Errorf("operation %d, %s: %w", len(s.report.Operations)+1, title, err)
	}
	s.note(ctx)
	o := Operation{
		Function: s.cfg.Function.String(), Bytes: s.cfg.Bytes, title: title, Seconds: time.Since(begun).Seconds(),
		Transport: transport(outcomes), Reason: outcomes[0].Reason, Epochs: epochs(outcomes),
	}
	o.HostLinkRatio = s.ratio(before, embedded.TrafficOf(comms))
	s.report.Operations = append(s.report.Operations, o)
	s.say("it took %.3f s by %s", o.Seconds, o.Transport)
	return outcomes[0].Chunks, nil
}

// all runs an operation at all members and returns their outcomes.
func (s *stage) all(ctx context.Context, comms []*hostlib.Communicator, k *killing) ([]hostlib.Outcome, error) {
	requests := make([]*hostlib.Request, len(comms))
	last := len(comms) - 1
	if k != nil {
		k.look(comms)
	}
	for rank, c := range comms[:last] {
		requests[rank] = s.vectors.start(c, rank)
	}
	if k == nil || !k.withhold {
		requests[last] = s.vectors.start(comms[last], last)
	}
	if k != nil {
		if err := k.kill(ctx, comms, requests); err != nil {
			return nil, err
		}
	}
	if requests[last] == nil {
		requests[last] = s.vectors.start(comms[last], last)
	}
	outcomes := make([]hostlib.Outcome, len(comms))
	for rank, r := range requests {
		var err error
		if outcomes[rank], err = r.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func transport(outcomes []hostlib.Outcome) string {
	for _, o := range outcomes[1:] {
		if o.Transport != outcomes[0].Transport {
			return hostlib.Mixed.String()
		}
	}
	return outcomes[0].Transport.String()
}

func epochs(outcomes []hostlib.Outcome) []uint32 {
	var all []uint32
	for _, o := range outcomes {
		all = append(all, o.Epochs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ratio returns what a host's link carried at most in one direction, in relation
// to a vector.
func (s *stage) ratio(before, after []embedded.Traffic) float64 {
	most := uint64(0)
	for i := range after {
		d := after[i].Since(before[i])
		most = max(most, d.In, d.Out)
	}
	return float64(most) / float64(s.cfg.Bytes)
}
