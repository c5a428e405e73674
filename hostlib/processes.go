package hostlib

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/node"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/sharedmemory"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

const (
	sharedSlots  = 4         // segments under way in shared memory
	sharedArea   = 256 << 10 // bytes of a segment where nothing limits it
	leastShared  = 8 << 20   // of Config.SharedMemory: it has a packet for 64 processes
	maxProcesses = sharedmemory.MaxProcesses
)

// processes is what a communicator has where several processes of a host are its members:
// memory that they share, and a communicator of the lowest rank of each host, the leaders,
// which has the trees of switches. Who waits for an operation runs it; while nobody does, a
// goroutine of the process.
type processes struct {
	base          *Communicator
	leaders       *Communicator // nil: this process is none
	hosts         [][]int       // ranks by host, in the order of the lowest ones
	host, process int           // of this member
	area          int           // bytes of a segment at most
	board         *sharedmemory.Board
	group         *sharedmemory.Group // nil: this process is alone on its host

	order    sync.Mutex // of operations
	jobs     runner.Mailbox[*sharedOperation]
	isBroken atomic.Bool // the base has ended
	closed   chan struct{}
	tasks    sync.WaitGroup

	needed chan struct{} // for the goroutine: something is to be done, and nobody does it. It has room for one
	stir   stir          // ends a wait in the leaders' loop
	calls  watch         // of the contexts of those who wait

	driving sync.Mutex      // held by who runs operations, as all below is
	quit    <-chan struct{} // of its context

	core    node.Core
	active  []*sharedOperation
	between []*crossing // operations of leaders that are not finished, in order
	next    uint64      // number of the next segment
	isLost  bool        // nothing goes on until the base has ended
}

// hostsOf returns the ranks of each host's processes.
func hostsOf(members []Member) (hosts [][]int) {
	at := map[string]int{}
	for rank, m := range members {
		i, known := at[m.Host]
		if !known {
			i = len(hosts)
			at[m.Host] = i
			hosts = append(hosts, nil)
		}
		hosts[i] = append(hosts[i], rank)
	}
	return hosts
}

// placeOf returns the host of a rank, and its place among the host's processes.
func (p *processes) placeOf(rank int) (host, process int) {
	for i, ranks := range p.hosts {
		if at := slices.Index(ranks, rank); at >= 0 {
			return i, at
		}
	}
	return 0, 0
}

// most returns the processes of the host that has most.
func (p *processes) most() (n int) {
	for _, ranks := range p.hosts {
		n = max(n, len(ranks))
	}
	return n
}

// leads reports whether this process has the lowest rank of its host.
func (p *processes) leads() bool { return p.process == 0 }

// gatherProcesses has the processes of each host share memory, and makes the leaders'
// communicator. Where some cannot, all operations go over the tree of all processes. After an error
// the communicator has ended.
func (c *Communicator) gatherProcesses(ctx context.Context) error {
	p := &processes{base: c, hosts: hostsOf(c.members), closed: make(chan struct{}), needed: make(chan struct{}, 1)}
	p.calls.wake = p.wake
	p.host, p.process = p.placeOf(c.rank)
	p.core = node.Core{Processes: len(p.hosts[p.host]), Own: p.process, Slots: sharedSlots}
	ctx, cancel := c.untilEnd(ctx)
	why, err := p.form(ctx)
	cancel()
	if err == nil {
		c.mu.Lock()
		if err = c.err; err == nil && why == "" {
			c.processes = p
		} else if err == nil {
			c.apart = "processes of a host do not share memory: " + why
		}
		c.mu.Unlock()
	}
	if err == nil && why == "" {
		return nil
	}
	p.close(false)
	if err == nil {
		c.explain(c.apart)
		c.host.cfg.Log.Warn("operations run over the tree of all processes, since those of a host do not share memory",
			slog.String("communicator", c.name), slog.String("reason", why))
		return nil
	}
	c.abort("it could not form the group of its host's processes: " + err.Error())
	<-c.done
	return fmt.Errorf("%w: %w", ErrFormation, cmp.Or(c.cause(err), err))
}

// cause returns why the communicator has ended, if it is that by which err came.
func (c *Communicator) cause(err error) error {
	if errors.Is(err, context.Canceled) {
		return c.Err()
	}
	return nil
}

// form returns why memory is not shared, on which all members agree.
func (p *processes) form(ctx context.Context) (why string, err error) {
	if err := p.agreeOnArea(ctx); err != nil {
		return "", err
	}
	var failed error
	if p.area == 0 {
		return "a member has Config.SharedMemory below 0", nil
	}
	failed = p.share(ctx)
	if why, err := p.agree(ctx, failed); err != nil || why != "" {
		return why, err
	}
	if p.leads() {
		if err := p.makeLeaders(ctx); err != nil {
			return "", err
		}
	}
	if p.group != nil {
		p.group.Watch(p.died)
	}
	p.tasks.Go(p.run)
	p.tasks.Go(p.awaitEnd)
	return "", p.inner(ctx, session.Operation{Collective: wire.Barrier})
}

// inner runs an operation on the tree of all processes.
func (p *processes) inner(ctx context.Context, o session.Operation) error {
	r := newRequest(p.base)
	r.collective, r.inner = schedule.Collective(o.Collective), true
	p.base.submit(r, &o, p.base.tagOf(&o))
	_, err := r.finish(ctx)
	return err
}

// least returns the least number of all members.
func (p *processes) least(ctx context.Context, own uint64) (uint64, error) {
	b := binary.LittleEndian.AppendUint64(nil, own)
	err := p.inner(ctx, session.Operation{Collective: wire.Allreduce, Function: reduce.Min, Element: reduce.Uint64, Elements: 1, In: b, Out: b})
	return binary.LittleEndian.Uint64(b), err
}

// agreeOnArea sets the bytes of a segment that all members have room for; 0: one has none.
func (p *processes) agreeOnArea(ctx context.Context) error {
	cfg := &p.base.host.cfg
	want := max(sharedArea, p.base.options.mostStripes()*stripeChunks*p.base.chunkBytes())
	area := min(want, max(0, cfg.SharedMemory)/(sharedSlots*p.most())) &^ 63
	least, err := p.least(ctx, uint64(area))
	p.area = int(least)
	return err
}

// agree returns why some process does not share memory: of the lowest rank of these.
func (p *processes) agree(ctx context.Context, own error) (why string, err error) {
	rank := uint64(math.MaxUint64)
	if own != nil {
		rank = uint64(p.base.rank)
	}
	if rank, err = p.least(ctx, rank); err != nil || rank == math.MaxUint64 {
		return "", err
	}
	words := make([]byte, 256)
	o := session.Operation{Collective: wire.Broadcast, Root: uint32(rank), Element: reduce.Uint64, Elements: len(words) / 8}
	if o.Out = words; rank == uint64(p.base.rank) {
		copy(words, own.Error())
		o.In, o.Out = words, nil
	}
	err = p.inner(ctx, o)
	text, _, _ := strings.Cut(string(words), "\x00")
	return fmt.Sprintf("rank %d (%s): %s", rank, p.base.hostOf(uint32(rank)), strings.ToValidUTF8(text, "")), err
}

// Tags of the messages with which memory is offered and taken. No operation has them.
const (
	offerTag rail.Tag = 1
	takenTag rail.Tag = 2
)

// share has this host's processes share memory.
func (p *processes) share(ctx context.Context) error {
	ranks := p.hosts[p.host]
	if len(ranks) == 1 {
		p.board = sharedmemory.Alone(sharedSlots)
		return nil
	}
	if err := p.base.messaging.err; err != nil {
		return err
	}
	shape := sharedmemory.Shape{Processes: len(ranks), Slots: sharedSlots, Area: p.area}
	if p.leads() {
		return p.offer(ctx, shape)
	}
	name, err := p.receive(ctx, ranks[0], offerTag)
	if err == nil {
		p.group, err = sharedmemory.Take(ctx, name, shape, p.process)
	}
	if err == nil {
		p.board = p.group.Board
	}
	return errors.Join(err, p.send(ctx, ranks[0], takenTag, "", err))
}

// offer has the others take memory.
func (p *processes) offer(ctx context.Context, shape sharedmemory.Shape) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	others := p.hosts[p.host][1:]
	offer, err := sharedmemory.MakeOffer(shape)
	name := ""
	if err == nil {
		name = offer.Name()
	}
	for _, rank := range others {
		err = errors.Join(err, p.send(ctx, rank, offerTag, name, err))
	}
	if offer == nil {
		return err
	}
	var receiving sync.WaitGroup
	for _, rank := range others {
		receiving.Go(func() {
			if _, err := p.receive(ctx, rank, takenTag); err != nil {
				cancel(err)
			}
		})
	}
	group, failed := offer.Accept(ctx)
	receiving.Wait()
	if err = errors.Join(err, failed, context.Cause(ctx)); err != nil {
		if group != nil {
			err = errors.Join(err, group.Close())
		}
		return err
	}
	p.group, p.board = group, group.Board
	return nil
}

// send sends a text or, if there is one, an error.
func (p *processes) send(ctx context.Context, rank int, tag rail.Tag, text string, failed error) error {
	to, err := p.base.peer(rank)
	if err != nil {
		return err
	}
	b := append([]byte{0}, text...)
	if failed != nil {
		b = append([]byte{1}, failed.Error()...)
	}
	_, err = p.await(ctx, func() *rail.Request { return p.base.messaging.calls.StartSend(to, tag, b[:min(len(b), 256)]) })
	return err
}

// await waits for a message that start starts, again if the first news of the other's present life
// ends it: nothing of it has gone to that. If another one begins, the base ends.
func (p *processes) await(ctx context.Context, start func() *rail.Request) (rail.Status, error) {
	for {
		r := start()
		s, err := r.Wait(ctx)
		if err == nil {
			return s, nil
		}
		r.Cancel()
		<-r.Done()
		if !p.base.isOfEarlierLife(err) || ctx.Err() != nil {
			return s, err
		}
	}
}

// receive receives a text, or an error.
func (p *processes) receive(ctx context.Context, rank int, tag rail.Tag) (string, error) {
	from, err := p.base.peer(rank)
	if err != nil {
		return "", err
	}
	b := make([]byte, 256)
	s, err := p.await(ctx, func() *rail.Request { return p.base.messaging.calls.StartRecv(from, tag, 0, b) })
	switch {
	case err != nil:
		return "", err
	case s.Size == 0 || b[0] != 0:
		return "", fmt.Errorf("rank %d (%s): %s", rank, p.base.hostOf(uint32(rank)), b[min(s.Size, 1):s.Size])
	}
	return string(b[1:s.Size]), nil
}

// makeLeaders forms the leaders' communicator, with the base's options.
func (p *processes) makeLeaders(ctx context.Context) error {
	c := p.base
	sub := subcommunicator{of: c, leads: p}
	var members []Member
	for _, ranks := range p.hosts {
		members, sub.ranks = append(members, c.members[ranks[0]]), append(sub.ranks, ranks[0])
	}
	var err error
	if p.leaders, err = c.host.single(ctx, c.name+"/hosts", members, c.options, sub); err != nil {
		return err
	}
	if c.options.wantsMultitree() {
		if err := p.leaders.branch(ctx); err != nil {
			return err
		}
	}
	p.noteWay()
	return nil
}

// noteWay has all processes of the host know the leaders' transport.
func (p *processes) noteWay() {
	way, _ := p.leaders.Transport()
	atomic.StoreUint32(p.board.Way(), uint32(way))
}

// transport reports the transport of an operation begun now.
func (p *processes) transport() (Transport, string) {
	n := len(p.hosts[p.host])
	if p.leads() {
		way, why := p.leaders.Transport()
		if n == 1 {
			return way, why
		}
		return way, fmt.Sprintf("%s; for %d processes of this host", why, n)
	}
	return Transport(p.board.LastWay()), p.throughLeader()
}

func (p *processes) throughLeader() string {
	return fmt.Sprintf("in shared memory, and for the host by rank %d", p.hosts[p.host][0])
}

// died ends the communicator for a process of this host that has died.
func (p *processes) died(process int) {
	p.board.Mourn(process)
	p.mourn(process)
}

func (p *processes) mourn(process int) {
	if rank := p.hosts[p.host][process]; rank != p.base.rank {
		p.base.news(endpoint.Failed, endpoint.News{Fail: wire.Fail{Kind: wire.FailDead, Rank: uint32(rank), Reason: "its process has ended"}})
	}
}

// awaitEnd has who runs operations know when the base has ended.
func (p *processes) awaitEnd() {
	select {
	case <-p.base.over:
	case <-p.base.loop.Done():
	case <-p.closed:
	}
	p.isBroken.Store(true)
	p.hurry()
}

// leave has the leaders leave, too. It is called when this member begins no more operations.
func (p *processes) leave() {
	if p.leaders != nil {
		p.cross(&session.Operation{Collective: wire.Barrier, Last: true}, nil).begin()
	}
}

// cross makes an operation between hosts, which is to be begun or awaited. after is called when it has gone well.
func (p *processes) cross(o *session.Operation, after func()) *Request {
	r := newRequest(p.leaders)
	r.collective, r.inner, r.after = schedule.Collective(o.Collective), true, after
	r.coding.blockFloat = o.Element == reduce.Block32
	if p.leaders.multitree != nil {
		p.leaders.multitree.start(r, *o)
	} else {
		p.leaders.submit(r, o, p.leaders.tagOf(o))
	}
	return r
}

// close ends the leaders' communicator, unless it was left in good order, and frees the memory.
func (p *processes) close(left bool) {
	if p.leaders != nil {
		if !left {
			p.leaders.abort("its communicator has ended")
		}
		<-p.leaders.done
	}
	p.jobs.Close()
	close(p.closed)
	p.tasks.Wait() // nobody runs operations any more
	p.calls.end()
	if p.group != nil {
		if err := p.group.Close(); err != nil {
			p.base.host.cfg.Log.Warn("freeing shared memory", slog.String("communicator", p.base.name), slog.Any("error", err))
		}
	}
}

// translate returns an end of the leaders' communicator as one of the base's.
func (p *processes) translate(f wire.Fail) wire.Fail {
	if f.Kind != wire.FailDisagree {
		return f
	}
	for i := range f.Error.Says {
		s := &f.Error.Says[i]
		f.Error.Rank[i] = p.rankOf(f.Error.Rank[i], 0)
		if _, isMark := schedule.ReadMark(s.Root); !isMark && (s.Collective == wire.Reduce || s.Collective == wire.Broadcast) {
			s.Root = p.rankOf(s.Root, int(s.Operation%maxProcesses))
		}
		s.Operation /= maxProcesses
	}
	return f
}

// rankOf returns the rank of a process of a host.
func (p *processes) rankOf(host uint32, process int) uint32 {
	if int(host) >= len(p.hosts) || process >= len(p.hosts[host]) {
		return host
	}
	return uint32(p.hosts[host][process])
}
