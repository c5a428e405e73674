package offload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/reduce"
)

// Result is what came of a request.
type Result[T reduce.Element] struct {
	Vector    []T               // the replies of all that ran it, reduced
	Outcome   scoll.Outcome     // who that was
	Transport hostlib.Transport // how the replies came: Offload, HostTree, or Mixed where the tree was lost on the way
	Why       string            // that way
}

// flight is a request under way from the root.
type flight[T reduce.Element] struct {
	number  uint64
	slot    lock // held
	payload []byte
	words   []uint32
	own     []T // with the flag
	sum     []T // the same of all
	request *hostlib.Request
	reply   *hostlib.Request
	vector  []T // of what came over hosts
}

// Broadcast broadcasts a request and returns the replies. It may be called from
// several goroutines; more than Config.Ahead wait for each other. If not all
// members have run it the error is scoll's, such as a *scoll.IncompleteError, and
// the Result says what the others have. The payload is free when Broadcast
// returns. If ctx ends first the group gives the switches up, for the request
// has to end in them.
func (g *Group[T]) Broadcast(ctx context.Context, payload []byte) (Result[T], error) {
	switch cfg := &g.service.cfg; {
	case g.rank != g.spec.Root:
		return Result[T]{}, fmt.Errorf("broadcast over %q: %w: that is %s", g.name, ErrRoot, g.spec.Members[g.spec.Root].Host)
	case len(payload) > cfg.RequestBytes:
		return Result[T]{}, fmt.Errorf("broadcast over %q: %w: %d bytes, at most %d", g.name, ErrPayload, len(payload), cfg.RequestBytes)
	}
	f, why, err := g.launch(ctx, payload)
	if err != nil {
		return Result[T]{}, fmt.Errorf("broadcast over %q: %w", g.name, err)
	}
	defer f.slot.release()
	if f.request != nil {
		var r Result[T]
		if r, why = g.await(ctx, f); why == "" {
			return r, nil
		}
	}
	r, err := g.overHosts(ctx, f)
	r.Why = why
	if err != nil {
		err = fmt.Errorf("broadcast over %q: %w", g.name, err)
	}
	return r, err
}

// launch gives a request its number and, if it goes that way, to the switches,
// with this node's own reply to it; otherwise it says why not.
func (g *Group[T]) launch(ctx context.Context, payload []byte) (f *flight[T], why string, err error) {
	if err := g.acquire(ctx, g.order); err != nil {
		return nil, "", err
	}
	defer g.order.release()
	number := g.sequence + 1
	slot := g.slots[number%uint64(len(g.slots))]
	if err := g.acquire(ctx, slot); err != nil {
		return nil, "", err
	}
	g.sequence = number
	f = &flight[T]{number: number, slot: slot, payload: payload}
	transport, why := g.Transport()
	if transport != hostlib.Offload {
		return f, why, nil
	}
	cfg := &g.service.cfg
	f.words, f.own, f.sum = make([]uint32, cfg.words()), make([]T, cfg.Elements+1), make([]T, cfg.Elements+1)
	pack(f.words, f.number, payload, uint32(len(payload)))
	f.request = hostlib.StartBroadcast(g.down, g.spec.Root, f.words)
	v, failed := g.run(f.number, &Request{Payload: payload, IsRoot: true, Transport: hostlib.Offload, Group: g.name})
	g.lay(f.own, v, failed)
	f.reply = hostlib.StartReduce(g.up, cfg.Function, g.spec.Root, f.own, f.sum)
	return f, "", nil
}

// await waits for what comes back from the switches, and says why that is not
// enough.
func (g *Group[T]) await(ctx context.Context, f *flight[T]) (r Result[T], why string) {
	cfg := &g.service.cfg
	late, cancel := context.WithTimeoutCause(ctx, 2*cfg.RoundTrip+cfg.Timeout, errLate)
	defer cancel()
	outcome, err := f.reply.Wait(late)
	if err == nil {
		_, err = f.request.Wait(late)
	}
	if err != nil {
		if late.Err() != nil {
			err = context.Cause(late)
		}
		g.lose(err.Error())
		<-f.reply.Done()
		<-f.request.Done()
		return r, err.Error()
	}
	if f.sum[cfg.Elements] != g.service.flag.fine {
		return r, "a member has failed"
	}
	n := len(g.spec.Members)
	return Result[T]{
		Vector: f.sum[:cfg.Elements], Outcome: scoll.Outcome{Nodes: n, Ran: n}, Transport: outcome.Transport, Why: outcome.Reason,
	}, ""
}

// overHosts broadcasts a request over hosts. Who has run it replies from memory.
func (g *Group[T]) overHosts(ctx context.Context, f *flight[T]) (Result[T], error) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, headBytes+len(f.payload)), g.number)
	b = append(binary.BigEndian.AppendUint64(b, f.number), f.payload...)
	r, err := g.over.NewRequest(scoll.Broadcast{Payload: b, Timeout: g.service.cfg.Timeout, Private: f})
	if err != nil {
		return Result[T]{Transport: hostlib.HostTree}, err
	}
	if err := r.Send(); err != nil {
		return Result[T]{Transport: hostlib.HostTree}, err
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		r.Abort()
		<-r.Done()
	}
	return Result[T]{Vector: f.vector, Outcome: r.Outcome(), Transport: hostlib.HostTree}, errors.Join(r.Err(), ctx.Err())
}

// shutdown notifies members that no requests follow: every credit of theirs is used
// up by that.
func (g *Group[T]) shutdown(ctx context.Context) error {
	if g.down == nil || g.isLost() {
		return nil
	}
	var all []*hostlib.Request
	for range g.service.cfg.Ahead {
		words := make([]uint32, g.service.cfg.words())
		pack(words, 0, nil, shutdownLength)
		all = append(all, hostlib.StartBroadcast(g.down, g.spec.Root, words))
	}
	for _, r := range all {
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errLate is why a request that did not come back from the switches goes over
// hosts.
var errLate = errors.New("a request did not come back from the switches in time")
