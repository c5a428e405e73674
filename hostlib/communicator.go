package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/sealed"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Communicator is an ordered group of members that can run collective
// operations. Its methods, and the operations on it, may be called from any
// goroutine; but the members must call their operations in one order.
type Communicator struct {
	host     *Host
	name     string
	members  []Member
	arranged []int // ranks by leaf and host; nil: they are so already
	options  groupOptions
	rank     int
	sub      subcommunicator // if it serves another communicator
	manager  *control        // nil: operations run over hosts
	member   uint64          // its name there; 0: it takes no part
	part     *participant    // likewise; nil: it takes none
	group    digest
	own      attempt
	core     *endpoint.Core // the loop's
	conn     transport.Conn // for packets to and from switches; nil without a manager
	sealed   *sealed.Conn   // conn, if packets are protected
	offload  atomic.Bool    // it is on a tree of switches; changes in the loop's steps
	setBulk  func(is bool)  // conn's reader need not have each datagram at once
	batches  bool           // chunks that follow each other are given to conn as one
	loop     *runner.Loop[item, endpoint.Output]
	watch    watch // of the context of calls
	frames   tally
	links    map[int]*link // of the neighbours in the tree of hosts
	isOpen   bool          // of the host's lock: callers are taken. Before, they are parked

	gathered   gathering // the loop's
	messaging  messaging
	direct     direct
	recovery   recovery
	revocation revocation

	ctx   context.Context // of links
	stop  context.CancelFunc
	tasks sync.WaitGroup

	over    chan struct{} // closed by the loop: the communicator has ended
	done    chan struct{} // closed when everything has ended
	word    []byte        // what neighbours that ask later are answered; set before stop is called
	hasLeft bool          // it was left in good order; set before over is closed

	hasParted bool // from what it takes part in at the manager. Of the loop, and then of finish

	opened     chan struct{} // closed when all has been started
	concluding sync.Once     // see conclude

	formed  chan struct{} // closed when every member is there
	settled chan struct{} // closed when it is known whether a first tree comes
	number  atomic.Uint32 // the manager's of the group; 0: it has none

	// Of Host.restIdle.
	seenID, restID uint64
	restEpoch      uint32
	isResting      bool

	order sync.Mutex // of operations: held while one gets its number and is posted

	mu         sync.Mutex
	requests   pending
	successors uint64 // communicators that were made of this one's members
	status     status
	other      atomic.Pointer[string] // process that has called with other members or settings
	absent     wire.Missing           // who is not there, as far as is known, while it is formed
	err        error                  // why no operation can be started
	end        error                  // how the loop has ended: err may have been known before
	endKind    wire.FailKind          // 0: it has not, or in good order
	isLeaving  bool                   // the last operation was started
	late       lateness
	multitree  *multitree // if it has several trees; set before it is handed out
	apart      string     // why processes of a host do not share memory; "": they do, or there is one of each
	processes  *processes // if several processes of a host are members, and share memory; likewise

	shrunkFrom *Communicator // of recovery.turn: what this one was shrunk from; nil: it was not, or that is forgotten
}

// Communicator forms a group with the other members, who all call it with the
// same name and the same members in the same order; the place in it is a
// member's rank. It returns when all of them have, and the first tree of switches
// has been entered or is known not to come soon; or, so that it can be shrunk as at the other members,
// when one has died or revoked it after all had come. If ctx ends before that, the error wraps
// ErrFormation and names those that have not called. Members that have met this one then
// get an ErrFormation, too, or see Done closed if Communicator has returned already;
// others wait until their own ctx ends.
func (h *Host) Communicator(ctx context.Context, name string, members []Member, options ...GroupOption) (*Communicator, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("hostlib: communicator %.32q: %w: a name of %d bytes, want 1 to %d", name, ErrArgument, len(name), maxName)
	}
	if strings.HasPrefix(name, pairPrefix) {
		return nil, fmt.Errorf("hostlib: communicator %q: %w: the name is one of an invitation", name, ErrArgument)
	}
	if i := slices.IndexFunc(options, func(o GroupOption) bool { return o == nil }); i >= 0 {
		return nil, fmt.Errorf("hostlib: communicator %q: %w: option %d is nil", name, ErrArgument, i)
	}
	chosen := optionsOf(options)
	if err := chosen.validate(); err != nil {
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	if chosen.wantsMultitree() && len(name) > maxName-maxSuffix {
		return nil, fmt.Errorf("hostlib: communicator %q: %w: a name of %d bytes, want at most %d for several trees", name, ErrArgument, len(name), maxName-maxSuffix)
	}
	several := len(hostsOf(members)) < len(members)
	if several && len(name) > maxName-2*maxSuffix {
		return nil, fmt.Errorf("hostlib: communicator %q: %w: a name of %d bytes, want at most %d for several processes of a host", name, ErrArgument, len(name), maxName-2*maxSuffix)
	}
	c, err := h.single(ctx, name, members, chosen, subcommunicator{onHosts: several})
	if err != nil {
		return nil, err
	}
	if several && len(chosen.algorithms) == 0 {
		if err := c.gatherProcesses(ctx); err != nil && !c.canShrink() {
			return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
		}
		return c, nil
	}
	if several || !chosen.wantsMultitree() {
		return c, nil
	}
	if err := c.branch(ctx); err != nil && !c.canShrink() {
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	return c, nil
}

// single forms a communicator with one tree.
func (h *Host) single(ctx context.Context, name string, members []Member, options groupOptions, sub subcommunicator) (*Communicator, error) {
	own, err := h.checkMembers(members)
	if err == nil {
		err = options.checkCoding(len(members))
	}
	if err == nil {
		err = h.expelled()
	}
	if err != nil {
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	c := &Communicator{
		host: h, name: name, members: slices.Clone(members), arranged: arrange(members), options: options, rank: own, own: newAttempt(),
		sub:   sub,
		links: map[int]*link{},
		over:  make(chan struct{}), opened: make(chan struct{}), done: make(chan struct{}),
		formed: make(chan struct{}), settled: make(chan struct{}),
		messaging: messaging{closed: make(chan struct{})},
		recovery:  recovery{turn: make(chan struct{}, 1)},
		status:    status{epoch: endpoint.FirstEpoch, epochs: []uint32{endpoint.FirstEpoch}},
	}
	if !sub.onHosts && !options.noSwitches {
		c.manager = h.manager
	}
	c.group = digestOf(name, members, h.cfg.ChunkBytes, h.cfg.Window, c.options)
	c.place()
	c.gathered = c.gather()
	if err := c.openRevocation(); err != nil {
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	c.ctx, c.stop = context.WithCancel(h.ctx)
	if err := h.register(c); err != nil {
		c.stop()
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	if err := c.open(); err != nil {
		c.discard()
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	h.welcome(c)
	if err := c.form(ctx); err != nil && !c.canShrink() {
		return nil, fmt.Errorf("hostlib: communicator %q: %w", name, err)
	}
	return c, nil
}

// canShrink reports whether a communicator that has ended was formed, and has ended by a death or a
// revoke: others may have it, and wait for this member when they shrink it.
func (c *Communicator) canShrink() bool {
	c.mu.Lock()
	kind := c.endKind
	c.mu.Unlock()
	return (kind == wire.FailDead || kind == wire.FailRevoked) && c.isFormed()
}

// open starts what the communicator runs on.
func (c *Communicator) open() error {
	cfg := &c.host.cfg
	group, cookie := c.group.numbers()
	core := endpoint.Config{
		Group: group, Cookie: cookie, Rank: uint32(c.rank), Size: len(c.members), Radix: c.sub.radix,
		ChunkBytes: c.chunkBytes(), Window: cfg.Window, Timing: session.DefaultTiming(), Linger: endpoint.DefaultLinger,
	}
	var err error
	if c.core, err = endpoint.New(core); err != nil {
		return err
	}
	if err := c.openMessaging(); err != nil {
		return err
	}
	if c.manager != nil {
		if err := c.openData(); err != nil {
			c.messaging.close()
			return err
		}
	}
	if err := c.startLoop(); err != nil {
		c.messaging.close()
		if c.conn != nil {
			err = errors.Join(err, c.conn.Close())
		}
		return err
	}
	c.begin()
	close(c.opened) // not before: what waits for the tasks' end would race with their start
	return nil
}

// openData opens the socket that speaks to switches.
func (c *Communicator) openData() error {
	hooks := &c.host.hooks
	conn, err := transport.ListenUDP(netip.AddrPortFrom(c.host.data.bind, 0), transport.Config{ReceiveBuffer: receiveBuffer(&c.host.cfg), Without: hooks.Without, Batches: true})
	if err != nil {
		return err
	}
	c.conn, c.setBulk, c.batches = conn, conn.SetBulk, hooks.Without&transport.GROBatches == 0
	if hooks.Data != nil {
		c.conn = hooks.Data(conn)
	}
	if c.options.protection != wire.Plain {
		c.sealed = sealed.Over(c.conn)
		c.conn = c.sealed
	}
	return nil
}

// discard ends a communicator that could not be opened.
func (c *Communicator) discard() {
	c.forget()
	c.messaging.close()
	c.host.leaveTombstone(c, nil)
	c.stop()
	for _, l := range c.links {
		l.shut(nil)
	}
	close(c.done)
}

// place makes the links to the neighbours in the tree of hosts.
func (c *Communicator) place() {
	t := endpoint.Config{Size: len(c.members), Radix: c.sub.radix}.Tree()
	if parent, ok := t.Parent(c.rank); ok {
		c.links[parent] = newLink(c, parent, true)
	}
	for _, child := range t.Children(c.rank) {
		c.links[child] = newLink(c, child, false)
	}
}

// receiveBuffer returns the bytes that a window of results takes in a socket,
// as the kernel accounts for them, twice over.
func receiveBuffer(cfg *Config) int { return 2 * int(cfg.Window) * 2 * (cfg.ChunkBytes + 512) }

// begin starts the links, and what speaks to the manager.
func (c *Communicator) begin() {
	switch {
	case len(c.members) == 1:
		c.settle("a group of one completes locally")
	case c.manager == nil:
		c.settle("this host has no offload manager")
	default:
		c.explain("no tree of switches has been offered yet")
		c.takePart()
	}
	for _, l := range c.links {
		l.begin()
	}
	if len(c.links) == 0 {
		c.revokes(revoke.Input{Kind: revoke.Formed, Life: c.gathered.core.Life()})
		close(c.formed)
	}
}

// form waits until the communicator can be used.
func (c *Communicator) form(ctx context.Context) error {
	if err := c.allThere(ctx); err != nil {
		return err
	}
	c.host.cfg.Log.Info("formed a communicator", slog.String("communicator", c.name), slog.Int("members", len(c.members)))
	timer := time.NewTimer(c.host.cfg.OfferWait)
	defer timer.Stop()
	select {
	case <-c.settled:
	case <-timer.C:
		c.mu.Lock()
		c.status.isLate = true
		c.mu.Unlock()
		c.wish()
	case <-c.done:
		return fmt.Errorf("%w: %w", ErrFormation, c.Err())
	case <-ctx.Done(): // it can be used, if over hosts
	}
	return nil
}

// Rank returns this member's rank.
func (c *Communicator) Rank() int { return c.rank }

// Size returns the number of members.
func (c *Communicator) Size() int { return len(c.members) }

// Name returns the communicator's name.
func (c *Communicator) Name() string { return c.name }

// Members returns the members in the order of their ranks.
func (c *Communicator) Members() []Member { return slices.Clone(c.members) }

// Done returns a channel that is closed when the communicator has ended. After the death of a member
// Send and Recv between others still go on.
func (c *Communicator) Done() <-chan struct{} { return c.done }

// Err returns nil while operations can be started, and otherwise why they
// cannot: ErrEnded after Leave, or what ended the communicator. After the death of a member
// that is not true of Send and Recv between others.
func (c *Communicator) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Transport reports the transport of an operation begun now, and the reason. With
// several trees it is that of all of them, or Mixed, with each one's reason.
func (c *Communicator) Transport() (Transport, string) {
	switch {
	case c.processes != nil:
		return c.processes.transport()
	case c.multitree != nil:
		return c.multitree.transport()
	}
	return c.ownTransport()
}

// ownTransport is Transport for the communicator's own tree.
func (c *Communicator) ownTransport() (Transport, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.offload {
		return Offload, c.status.why
	}
	return HostTree, c.status.why
}

// Leave ends the communicator in good order. It is collective, and completes
// the operations before it: it returns when every member has called it. After
// an error the communicator has ended otherwise: for all members, if ctx ended first.
func (c *Communicator) Leave(ctx context.Context) error {
	c.finishMessages(ctx)
	c.findStrays()
	if c.processes != nil {
		c.processes.leave()
	}
	_, err := c.start(session.Operation{Collective: wire.Barrier, Last: true}, nil, asked).finishOrEnd(ctx)
	if err != nil {
		if c.Err() != nil {
			c.endDirect(fmt.Errorf("%w: it was left", ErrEnded))
		}
		return fmt.Errorf("hostlib: leaving %q: %w", c.name, err)
	}
	return nil
}

// Abort ends the communicator for all members, at once: their operations, and
// those of this member, fail with a *MemberError that names this member and the
// reason, of which 512 bytes count. It returns when the communicator has ended
// here. After an end by another member it has a Shrink of the others not wait for this member, and
// ends the messages of this member that another's death has left.
func (c *Communicator) Abort(reason string) {
	c.abort(strings.ToValidUTF8(reason, "?"))
	<-c.done
	c.quit()
	c.endDirect(fmt.Errorf("%w: this member has called Abort", ErrEnded))
}

// start queues an operation. Its request is completed by the loop, once that is
// begun or waited for.
func (c *Communicator) start(o session.Operation, after func(), chosen choice) *Request {
	r := newRequest(c)
	r.collective, r.after, r.chosen = schedule.Collective(o.Collective), after, chosen
	if err := c.options.allow(o.Function, o.Element); err != nil {
		r.fail(err)
		return r
	}
	r.coding, r.marks = c.code(&o)
	switch err := o.Validate(session.Config{Rank: uint32(c.rank), Members: len(c.members)}); {
	case err != nil: // it has no place in the order of operations
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
	case c.processes != nil && !o.Last:
		c.processes.start(r, &o)
	case c.multitree != nil:
		c.multitree.start(r, o)
	default:
		c.submit(r, &o, c.tagOf(&o))
	}
	return r
}

// submit has the loop run o on the communicator's own tree.
func (c *Communicator) submit(r *Request, o *session.Operation, tag func(serial uint16) uint64) {
	if o.Elements > 0 {
		r.function, r.element = o.Function, o.Element
	}
	c.order.Lock()
	defer c.order.Unlock()
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		r.fail(err)
		return
	}
	if c.isLeaving && !o.Last {
		c.mu.Unlock()
		r.fail(fmt.Errorf("%w: it is being left", ErrEnded))
		return
	}
	c.isLeaving = c.isLeaving || o.Last
	o.ID = c.requests.add(r)
	r.position, r.tag = c.messaging.called(tag)
	c.mu.Unlock()
	if !o.Whole.IsSet { // members compare its place among all operations, also those by messages
		o.Whole = session.Whole{IsSet: true, Elements: o.Elements, Serial: uint16(r.position)}
	}
	r.operation = *o
	// The only error is that the loop has ended, which fails all requests.
	_ = c.loop.Queue(context.Background(), item{in: endpoint.Input{Kind: endpoint.Start, Operation: &r.operation}})
}

// isBusy reports whether operations are in flight.
func (c *Communicator) isBusy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests.areSome()
}

// abort gives the communicator up.
func (c *Communicator) abort(reason string) {
	c.news(endpoint.Cancel, endpoint.News{Reason: reason})
}

// leaving reports whether its name will be free, and a successor may be called.
func (c *Communicator) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isLeaving || c.err != nil
}

// explain sets why operations run as they do, while no epoch says more.
func (c *Communicator) explain(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.status.offload {
		c.status.why = why
	}
}

// settle ends the wait for the first tree.
func (c *Communicator) settle(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.status.offload && why != "" {
		c.status.why = why
	}
	if !c.status.isFinal {
		c.status.isFinal = true
		close(c.settled)
	}
}
