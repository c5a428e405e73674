package scoll

import (
	"context"
	"errors"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// pulls are those that are under way: one request has one at a time.
type pulls struct {
	mu  sync.Mutex
	all map[uint64]underway // by request
}

type underway struct {
	from   broadcastmsg.Node
	cancel context.CancelFunc
}

// errGivenUp is why a pull ends that nobody waits for any more.
var errGivenUp = errors.New("scoll: the parent has given up by now")

// pull reads what a parent has exposed.
func (n *Node) pull(p broadcast.Pull) {
	into := [][]byte{p.Into}
	if p.Into == nil {
		n.mu.Lock()
		into = nil
		if r := n.requests[p.Request]; r != nil {
			into = r.bulk
		}
		n.mu.Unlock()
	}
	ctx, cancel := n.until(p.Until)
	n.pulls.begin(p.Request, underway{p.From, cancel})
	ended := func(err error) {
		cancel()
		n.pulls.end(p.Request)
		n.loop.Add(broadcast.Input{Kind: broadcast.Pulled, Request: p.Request, Err: err})
	}
	if !n.tasks.Go(func() { ended(n.bulk.Pull(ctx, string(p.From), p.Key, p.Length, into)) }) {
		ended(ErrClosed)
	}
}

// until returns a context that ends with the node, or at a moment.
func (n *Node) until(end core.Time) (context.Context, context.CancelFunc) {
	if end == core.Never {
		return context.WithCancel(n.ctx)
	}
	return context.WithTimeoutCause(n.ctx, end.Sub(n.clock.Now()), errGivenUp)
}

func (p *pulls) begin(request uint64, u underway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[uint64]underway{}
	}
	p.all[request] = u
}

func (p *pulls) end(request uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, request)
}

// cancel ends a request's pull, if there is one.
func (p *pulls) cancel(request uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u, ok := p.all[request]; ok {
		u.cancel()
	}
}

// cancelFrom ends the pulls from a node that is dead.
func (p *pulls) cancelFrom(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.all {
		if string(u.from) == node {
			u.cancel()
		}
	}
}
