package hostlib

import (
	"context"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/node"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// stir ends waits.
type stir struct {
	mu sync.Mutex
	c  chan struct{}
}

// channel returns a channel that is closed by the next end.
func (s *stir) channel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *stir) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// run runs operations that nobody waits for, until close.
func (p *processes) run() {
	for isOver := false; !isOver; {
		select {
		case <-p.needed:
		case <-p.closed:
			isOver = true
		}
		p.driving.Lock()
		p.work(nil)
		if isOver { // nobody else runs any from now on
			return
		}
		p.driving.Unlock()
		p.resume(false)
	}
}

// drive has the caller run operations until one of its own is done, or ctx ends. It returns earlier
// where another one runs them.
func (p *processes) drive(ctx context.Context, r *Request) {
	if !p.driving.TryLock() {
		p.wake()
		return
	}
	if p.quit = ctx.Done(); p.quit != nil {
		if stop := p.calls.over(ctx); stop != nil {
			defer stop()
		} else {
			defer p.calls.leave()
		}
	}
	p.work(r)
	isLeft := len(p.active) > 0
	p.quit = nil
	p.driving.Unlock()
	p.resume(isLeft)
}

// resume has the goroutine run what is left, or was called while this one could not look.
func (p *processes) resume(isLeft bool) {
	if isLeft || p.jobs.Some() {
		p.callGoroutine()
	}
}

func (p *processes) callGoroutine() {
	select {
	case p.needed <- struct{}{}:
	default:
	}
}

// hurry has somebody look at what has changed.
func (p *processes) hurry() {
	if !p.driving.TryLock() {
		p.wake()
		return
	}
	p.driving.Unlock()
	p.callGoroutine()
}

// wake has who runs operations look at what has changed.
func (p *processes) wake() {
	p.board.Ring(p.process)
	if p.leads() {
		p.stir.end()
		p.leaders.loop.Wake()
	}
}

// work runs operations until none is left, or one is done.
func (p *processes) work(until *Request) {
	for {
		p.take(p.jobs.Poll())
		if p.isBroken.Load() {
			p.failAll()
		}
		if len(p.active) == 0 || until != nil && until.over.Happened() || runner.IsClosed(p.quit) {
			return
		}
		if a := p.action(); a.Kind != node.Wait {
			p.do(a)
			continue
		}
		if q, isDead := p.board.Dead(); isDead && !p.isLost {
			p.isLost = true
			p.mourn(q)
		}
		p.rest(until != nil)
	}
}

// rest waits until there may be something to do.
func (p *processes) rest(isAwaited bool) {
	if isAwaited && p.driveLeaders() {
		return
	}
	for _, b := range p.between {
		b.begin()
	}
	if isAwaited && p.board.Sleep(p.mayGoOn) {
		return
	}
	p.board.Wait(p.mayGoOn)
}

// driveLeaders steps the leaders' loop where nothing but an operation of theirs is waited for. It
// reports whether there may be something to do.
func (p *processes) driveLeaders() bool {
	if len(p.between) == 0 || p.leaders.multitree != nil || p.core.Started() < p.next || runner.IsClosed(p.leaders.loop.Done()) {
		return false
	}
	stirred := p.stir.channel()
	if !p.mayGoOn() {
		p.leaders.loop.Drive(&p.between[0].request.over, stirred, p.leaders.isBusy)
	}
	return !runner.IsClosed(p.leaders.loop.Done())
}

// mayGoOn reports whether there is anything to do.
func (p *processes) mayGoOn() bool {
	p.take(p.jobs.Poll())
	_, isDead := p.board.Dead()
	return p.isBroken.Load() || runner.IsClosed(p.quit) || isDead && !p.isLost || p.action().Kind != node.Wait
}

// begin has the leaders' loop do it on its own.
func (b *crossing) begin() {
	if !b.isBegun {
		b.isBegun = true
		b.request.begin()
	}
}
