package broadcast

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// Plan is what is measured of one tree.
type Plan struct {
	Tree        string        // its name, for people
	Kind        scoll.Tree    // the same
	Nodes       []string      // in the order of the group
	Payload     int           // bytes of a request's payload
	Concurrency int           // broadcasts under way at once
	Rate        float64       // broadcasts begun a second; 0: one begins when another ends
	Warm        int           // broadcasts before those that are measured
	Lasting     time.Duration // for how long broadcasts are begun that are measured
	Timed       bool          // report the last receipt; replies have 8 bytes then
}

// Validate reports what is wrong with p.
func (p *Plan) Validate() error {
	if len(p.Nodes) < 2 || p.Payload < 0 || p.Concurrency < 1 || p.Rate < 0 || p.Lasting <= 0 {
		return fmt.Errorf("broadcast: %d nodes, payloads of %d bytes, %d at once, %v a second, for %v: more than one node, positive times", len(p.Nodes), p.Payload, p.Concurrency, p.Rate, p.Lasting)
	}
	return nil
}

// Measure runs one measurement from this member, which is the root.
func (m *Member) Measure(ctx context.Context, p Plan) (Row, error) {
	if err := p.Validate(); err != nil {
		return Row{}, err
	}
	launch, done, err := m.prepare(ctx, &p)
	if err != nil {
		return Row{}, err
	}
	defer done()
	if p.Warm > 0 {
		warm := run{plan: &p, launch: launch, most: p.Warm}
		if err := warm.fly(ctx, time.Hour); err != nil {
			return Row{}, err
		}
	}
	r := run{plan: &p, launch: launch}
	if p.Rate > 0 {
		err = r.paced(ctx)
	} else {
		err = r.fly(ctx, p.Lasting)
	}
	return r.row(), err
}

// prepare returns what sends a broadcast of the plan, and what is to be done when
// all have ended.
func (m *Member) prepare(ctx context.Context, p *Plan) (launch func(*flight) error, done func(), err error) {
	if p.Tree == InSwitches {
		g, err := m.inSwitches(ctx, p.Timed)
		return func(f *flight) error { f.offload(ctx, g, p); return nil }, func() {}, err
	}
	s := m.counted
	if p.Timed {
		s = m.timed
	}
	g, err := group(s, p.Nodes, p.Kind)
	if err != nil {
		return nil, nil, err
	}
	// Members free it anyway when the root has gone.
	return func(f *flight) error { return f.launch(g, p.Payload) }, func() { _ = g.Destroy(ctx) }, nil
}

// run is broadcasts that are under way.
type run struct {
	plan   *Plan
	launch func(*flight) error
	most   int // to begin; 0: as many as the time allows

	mu       sync.Mutex
	room     sync.Cond // fewer fly
	begun    time.Time
	until    time.Time
	took     time.Duration
	count    int // begun
	flying   int
	reached  []time.Duration
	complete []time.Duration
	err      error // the first
}

// flight is one broadcast.
type flight struct {
	run  *run
	sent uint64 // when it was begun, by the clock of receipts
}

// launch sends a broadcast over a group.
func (f *flight) launch(g *scoll.Group, payload int) error {
	r, err := g.NewRequest(scoll.Broadcast{Payload: make([]byte, payload), Private: f})
	if err != nil {
		return err
	}
	return r.Send()
}

// fly keeps as many broadcasts under way as are allowed, for so long.
func (r *run) fly(ctx context.Context, lasting time.Duration) error {
	r.start(lasting)
	for range r.plan.Concurrency {
		r.next(time.Now())
	}
	return r.wait(ctx)
}

// paced begins broadcasts at moments that are set beforehand. They count from
// there, also where they had to wait for others to end.
func (r *run) paced(ctx context.Context) error {
	r.start(r.plan.Lasting)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := 0; ; i++ {
		at := r.begun.Add(time.Duration(float64(i) * float64(time.Second) / r.plan.Rate))
		if at.After(r.until) || ctx.Err() != nil {
			return r.wait(ctx)
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		r.mu.Lock()
		for r.flying >= r.plan.Concurrency {
			r.room.Wait()
		}
		r.mu.Unlock()
		if !r.next(at) {
			return r.wait(ctx)
		}
	}
}

func (r *run) start(lasting time.Duration) {
	r.room.L = &r.mu
	r.begun = time.Now()
	r.until = r.begun.Add(lasting)
}

// next begins a broadcast, unless there are to be no more.
func (r *run) next(at time.Time) bool {
	r.mu.Lock()
	if r.err != nil || at.After(r.until) || r.most > 0 && r.count == r.most {
		r.mu.Unlock()
		return false
	}
	r.count++
	r.flying++
	r.mu.Unlock()
	since := time.Since(at)
	f := &flight{run: r, sent: uint64(gauge.Clock()) - uint64(since)}
	if err := r.launch(f); err != nil {
		r.land(f, 0, err)
		return false
	}
	return true
}

// landed takes a request that is complete.
func (f *flight) landed(r *scoll.Request, latest uint64) {
	var err error
	if o := r.Outcome(); o.Ran != o.Nodes {
		err = &scoll.IncompleteError{Outcome: o}
	}
	f.land(latest, err)
}

func (f *flight) land(latest uint64, err error) {
	if f.run.plan.Rate == 0 {
		f.run.next(time.Now()) // before this one is noted as landed: nobody waits for no one
	}
	f.run.land(f, latest, err)
}

func (r *run) land(f *flight, latest uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	r.took = time.Since(r.begun)
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case err == nil:
		r.complete = append(r.complete, time.Duration(uint64(gauge.Clock())-f.sent))
		if latest > 0 {
			r.reached = append(r.reached, time.Duration(latest-f.sent))
		}
	}
	r.room.Broadcast()
}

// wait waits until nothing flies.
func (r *run) wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.room.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.flying > 0 && ctx.Err() == nil {
		r.room.Wait()
	}
	if r.err == nil && ctx.Err() != nil {
		r.err = context.Cause(ctx)
	}
	return r.err
}

func (r *run) row() Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan
	row := Row{
		Tree: p.Tree, Nodes: len(p.Nodes), Payload: p.Payload, Concurrency: p.Concurrency, Asked: p.Rate,
		Broadcasts: len(r.complete), Reached: spread(r.reached), Complete: spread(r.complete),
	}
	if r.took > 0 {
		row.Rate = float64(len(r.complete)) / r.took.Seconds()
	}
	return row
}
