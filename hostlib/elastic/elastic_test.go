package elastic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

const (
	patience  = 60 * time.Second // ends a test that would wait for ever
	deadAfter = 5 * time.Second  // of those of whose end nobody can say anything
	steps     = 6
	shards    = 12
)

// process is a member or a spare of a test's job.
type process struct {
	host    *hostlib.Host
	step    int64 // that it has come to
	model   []int64
	changes []Change
	err     error // of Run

	isCalled bool // work was
}

// rig is a job: its model is, after each step, the sum of what all shards give.
type rig struct {
	*testing.T
	Config
	all  []*process // members, then spares
	work func(p *process, at point, step int64, comm *hostlib.Communicator) error

	isFormed sync.WaitGroup // at all members: before that, a death is an error of Run
}

// point is a place in the work, at which a test intervenes.
type point int

const (
	begins   point = iota // before anything is agreed
	restored              // it has the newest model
	computes              // before a step's allreduce
	reduced               // after it
	returns               // all is done
	points
)

func newRig(t *testing.T, members, spares int) *rig {
	r := &rig{T: t, Config: Config{Name: "job", SpareWait: patience}}
	r.work = func(*process, point, int64, *hostlib.Communicator) error { return nil }
	for i := range members + spares {
		h, err := hostlib.Join(t.Context(), hostlib.Config{Name: fmt.Sprintf("h%d", i), DeadAfter: deadAfter})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close(context.Background()) })
		p := &process{host: h, model: make([]int64, 3)}
		r.all = append(r.all, p)
		if i < members {
			r.isFormed.Add(1)
			r.Members = append(r.Members, h.Member())
		} else {
			r.Spares = append(r.Spares, h.Member())
		}
	}
	return r
}

// run runs the job to its end at all that live.
func (r *rig) run() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range r.all {
		wg.Go(func() {
			c := r.Config
			c.Changed = func(x Change) { p.changes = append(p.changes, x) }
			p.err = Run(ctx, p.host, c, func(ctx context.Context, comm *hostlib.Communicator) error { return r.advance(ctx, p, comm) })
		})
	}
	wg.Wait()
}

// advance is the work of a process.
func (r *rig) advance(ctx context.Context, p *process, comm *hostlib.Communicator) error {
	if !p.isCalled && slices.Contains(r.Members, p.host.Member()) {
		p.isCalled = true
		r.isFormed.Done()
		r.isFormed.Wait()
	}
	if err := r.work(p, begins, p.step, comm); err != nil {
		return err
	}
	newest, err := Newest(ctx, comm, p.step)
	if err != nil {
		return err
	}
	next := append([]int64(nil), p.model...)
	if _, err := hostlib.Broadcast(ctx, comm, newest.Rank, next); err != nil {
		return err
	}
	p.model, p.step = next, newest.Step
	if err := r.work(p, restored, p.step, comm); err != nil {
		return err
	}
	for p.step < steps {
		if err := r.work(p, computes, p.step, comm); err != nil {
			return err
		}
		gives := make([]int64, len(p.model))
		for shard := comm.Rank(); shard < shards; shard += comm.Size() {
			for i := range gives {
				gives[i] += (p.step + 1) * int64(shard+i)
			}
		}
		if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, gives, gives); err != nil {
			return err
		}
		for i := range gives {
			p.model[i] += gives[i]
		}
		p.step++
		if err := r.work(p, reduced, p.step, comm); err != nil {
			return err
		}
	}
	return r.work(p, returns, p.step, comm)
}

var errDied = errors.New("a test's death")

// die ends a process: others see that its host is gone.
func (p *process) die() error {
	p.host.Close(context.Background())
	return errDied
}

// wantModel checks that a process has done all the work.
func (r *rig) wantModel(processes ...*process) {
	r.Helper()
	for _, p := range processes {
		if p.err != nil || p.step != steps {
			r.Errorf("%s: %v at step %d", p.host.Name(), p.err, p.step)
			continue
		}
		for i, x := range p.model {
			if want := int64(steps * (steps + 1) / 2 * (shards*(shards-1)/2 + shards*i)); x != want {
				r.Errorf("%s: element %d is %d, want %d", p.host.Name(), i, x, want)
			}
		}
	}
}

// TestUndisturbed: without deaths work is called once, and the spare is not needed.
func TestUndisturbed(t *testing.T) {
	r := newRig(t, 3, 2)
	r.run()
	r.wantModel(r.all[:3]...)
	for _, p := range r.all {
		if p.err != nil || len(p.changes) != 0 {
			t.Errorf("%s: %v after %v", p.host.Name(), p.err, p.changes)
		}
	}
}

// TestDeaths: whoever dies, at whatever point, in the first step, a later one or the last, the others
// have the model of an undisturbed run, with a spare and without.
func TestDeaths(t *testing.T) {
	for _, spares := range []int{0, 1} {
		for _, dead := range []int{0, 1, 2} {
			for at := range points {
				for _, step := range []int64{0, 2, steps - 1, steps} {
					if (at == begins || at == restored) && step != 0 || at == returns && step != steps || at == computes && step == steps || at == reduced && step == 0 {
						continue
					}
					t.Run(fmt.Sprintf("rank %d of 3 at point %d of step %d, %d spares", dead, at, step, spares), func(t *testing.T) {
						r := newRig(t, 3, spares)
						r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
							if p == r.all[dead] && is == at && of == step {
								return p.die()
							}
							return nil
						}
						r.run()
						for i, p := range r.all[:3] {
							switch {
							case i == dead && !errors.Is(p.err, errDied):
								t.Errorf("who has died: %v", p.err)
							case i != dead:
								r.wantModel(p)
							}
						}
						if at != returns && step < steps && spares > 0 {
							r.wantModel(r.all[3])
						}
						for _, p := range r.all[3:] {
							if p.err != nil {
								t.Errorf("the spare: %v", p.err)
							}
						}
					})
				}
			}
		}
	}
}

// TestInterruptsMessages: a member that waits for a message of one that has found a death goes on, too.
func TestInterruptsMessages(t *testing.T) {
	r := newRig(t, 3, 0)
	r.work = func(p *process, is point, of int64, comm *hostlib.Communicator) error {
		switch {
		case is != computes || of != 2 || comm.Name() != r.Name:
		case p == r.all[0]:
			return p.die()
		case p == r.all[1]:
			_, err := hostlib.Recv(t.Context(), comm, 2, 1, make([]int64, 1))
			return err
		}
		return nil
	}
	r.run()
	r.wantModel(r.all[1:]...)
}

// TestTwoDie: two members die at once, or the second one when the first interrupts the others.
func TestTwoDie(t *testing.T) {
	for dead := range 4 {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d and %d, later: %v", dead, (dead+1)%4, later), func(t *testing.T) {
				t.Parallel() // some wait for deadAfter
				r := newRig(t, 4, 1)
				other := r.all[(dead+1)%4]
				r.work = func(p *process, is point, of int64, comm *hostlib.Communicator) error {
					switch {
					case p == r.all[dead] && is == computes && of == 2, p == other && !later && is == computes && of == 2:
						return p.die()
					case p == other && later && is == begins && comm.Name() != r.Name:
						return p.die()
					}
					return nil
				}
				r.run()
				for _, p := range r.all {
					if p != r.all[dead] && p != other {
						r.wantModel(p)
					}
				}
			})
		}
	}
}

// TestDeathInAnOperation: a member dies at any moment of an operation, the last one too, so that some
// have its result and others have not.
func TestDeathInAnOperation(t *testing.T) {
	for i := range 24 {
		dead, step := i%4, []int64{0, 3, steps - 1}[i%3]
		t.Run(fmt.Sprintf("rank %d of 4 in step %d", dead, step), func(t *testing.T) {
			r := newRig(t, 4, i%2)
			died := make(chan struct{})
			r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
				if p == r.all[dead] && is == computes && of == step {
					go func() { p.die(); close(died) }()
				}
				return nil
			}
			r.run()
			<-died
			for k, p := range r.all[:4] {
				if k != dead {
					r.wantModel(p)
				}
			}
			for _, p := range r.all[4:] {
				if p.err != nil {
					t.Errorf("the spare: %v", p.err)
				}
			}
		})
	}
}

// TestDeathsDownToMinMembers: members die one after the other; spares take their places while there
// are any, also one that dies itself when it is a member; then the job shrinks, down to MinMembers.
func TestDeathsDownToMinMembers(t *testing.T) {
	r := newRig(t, 3, 2)
	r.MinMembers = 2
	var second sync.Once
	joined := -1 // the spare that is taken first
	r.work = func(p *process, is point, of int64, comm *hostlib.Communicator) (err error) {
		switch {
		case is != computes:
		case of == 0 && p == r.all[1], of == 2 && p == r.all[0]:
			return p.die()
		case of == 1 && (p == r.all[3] || p == r.all[4]):
			second.Do(func() {
				joined = slices.Index(r.all, p)
				err = p.die()
			})
		}
		return err
	}
	r.run()
	first, last := r.all[joined], r.all[7-joined]
	r.wantModel(r.all[2], last)
	if n := len(r.all[2].changes); n != 3 {
		t.Fatalf("%d changes: %+v", n, r.all[2].changes)
	}
	for i, want := range []string{"[h1] [FIRST]", "[FIRST] [LAST]", "[h0] []"} {
		want = strings.NewReplacer("FIRST", first.host.Name(), "LAST", last.host.Name()).Replace(want)
		x := r.all[2].changes[i]
		if got := fmt.Sprint(hosts(x.Lost), hosts(x.Joined)); got != want || x.Took <= 0 || !errors.Is(x.Cause, hostlib.ErrEnded) {
			t.Errorf("change %d: %s because %v after %v, want %s", i, got, x.Cause, x.Took, want)
		}
	}
}

func hosts(members []hostlib.Member) []string {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.Host
	}
	return all
}

// TestTooFew: below MinMembers all that live get the error, and the spare that comes too late is not
// needed.
func TestTooFew(t *testing.T) {
	r := newRig(t, 3, 0)
	r.MinMembers = 3
	r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
		if p == r.all[1] && is == computes && of == 1 {
			return p.die()
		}
		return nil
	}
	r.run()
	for _, p := range []*process{r.all[0], r.all[2]} {
		if !errors.Is(p.err, ErrTooFew) || !strings.Contains(p.err.Error(), ": 2, want at least 3") {
			t.Errorf("%s: %v", p.host.Name(), p.err)
		}
	}
}

// TestSpareDies: one of two spares is gone before it is needed; the other one is taken.
func TestSpareDies(t *testing.T) {
	r := newRig(t, 2, 2)
	r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
		if p == r.all[0] && is == computes && of == 1 {
			r.all[2].die()
			return p.die()
		}
		return nil
	}
	r.SpareWait = time.Second // of the end, in which the dead one is awaited
	r.run()
	r.wantModel(r.all[1], r.all[3])
}

// TestWorkFails: an error of one member's own ends the job everywhere, and releases the spare.
func TestWorkFails(t *testing.T) {
	own := errors.New("a test's error")
	r := newRig(t, 3, 1)
	r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
		if p == r.all[2] && is == computes && of == 1 {
			return own
		}
		return nil
	}
	r.run()
	for i, want := range []error{ErrWork, ErrWork, own, nil} {
		if !errors.Is(r.all[i].err, want) {
			t.Errorf("%s: %v, want %v", r.all[i].host.Name(), r.all[i].err, want)
		}
	}
}

// TestDisagreement: members that call different operations all get that, and do not go on.
func TestDisagreement(t *testing.T) {
	r := newRig(t, 2, 0)
	r.work = func(p *process, is point, of int64, comm *hostlib.Communicator) error {
		if p == r.all[1] && is == computes {
			_, err := hostlib.Barrier(t.Context(), comm)
			return err
		}
		return nil
	}
	r.run()
	for _, p := range r.all {
		if !errors.Is(p.err, hostlib.ErrDisagreement) {
			t.Errorf("%s: %v", p.host.Name(), p.err)
		}
	}
}

// TestContextEnds: a member whose ctx ends counts as dead.
func TestContextEnds(t *testing.T) {
	r := newRig(t, 3, 0)
	ctx, cancel := context.WithCancel(t.Context())
	r.work = func(p *process, is point, of int64, _ *hostlib.Communicator) error {
		if p == r.all[0] && is == computes && of == 1 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	var wg sync.WaitGroup
	for i, p := range r.all {
		with := t.Context()
		if i == 0 {
			with = ctx
		}
		wg.Go(func() {
			p.err = Run(with, p.host, r.Config, func(ctx context.Context, comm *hostlib.Communicator) error { return r.advance(ctx, p, comm) })
		})
	}
	wg.Wait()
	r.wantModel(r.all[1:]...)
	if !errors.Is(r.all[0].err, context.Canceled) {
		t.Error(r.all[0].err)
	}
}

// TestConfig: a host that has no place in the job, or two, does not begin.
func TestConfig(t *testing.T) {
	r := newRig(t, 2, 1)
	other := r.Spares[0]
	for what, change := range map[string]func(*Config){
		"neither":             func(c *Config) { c.Members = c.Members[1:] },
		"both":                func(c *Config) { c.Spares = append(c.Spares, c.Members[0]) },
		"too many needed":     func(c *Config) { c.MinMembers = 3 },
		"a negative number":   func(c *Config) { c.MinMembers = -1 },
		"a negative duration": func(c *Config) { c.SpareWait = -1 },
	} {
		c := r.Config
		c.Spares = []hostlib.Member{other}
		change(&c)
		if err := Run(t.Context(), r.all[0].host, c, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
