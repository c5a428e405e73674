package broadcast

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// phase is where a request is on its way through a node. All nodes go the same
// way; a root enters it by Send, another by a message.
type phase uint8

const (
	idle      phase = iota // root: made, not sent
	queued                 // root: waits for the first broadcast over its group
	mapping                // the service maps the out-of-band group to members
	fetching               // the parameters of creation are pulled
	preparing              // pre-request runs
	pulling                // bulk data is pulled
	running                // forwarded; incoming-request and incoming-reply run
	posting                // post-reply runs
	replying               // waits for the service's reply, and for its way out
	leaving                // reply-out runs
)

var phaseNames = [...]string{"idle", "queued", "mapping", "fetching", "preparing", "pulling", "running", "posting", "replying", "leaving"}

func (p phase) String() string { return phaseNames[p] }

type childPhase uint8

const (
	unasked  childPhase = iota // nothing sent
	waiting                    // sent, no whole reply
	reported                   // incoming-reply runs
	over                       // it has returned
)

// child is what a request knows of one of its children.
type child struct {
	state  childPhase
	called bool // a message is on its way to it
	cut    bool // its connection has ended since that was begun
	cuts   uint // how often that led to another call
	posted bool
	buf    []byte
	lent   *buffer // buf's, if it is the library's
	got    uint64  // bytes of the reply that are here
	parts  []bool  // that are here
	count  int     // of them
	last   bool    // the last is here, and reports
	of     int     // how many there are
	size   uint64  // the bytes of all
	ran    uint32
	lost   []broadcastmsg.Missing
}

// request is one broadcast on one node.
type request struct {
	id      uint64
	key     broadcastmsg.Key
	service broadcastmsg.Service
	group   *group
	digest  broadcastmsg.Digest // of all the group's members
	tree    broadcastmsg.Tree
	subset  broadcastmsg.Subset
	chosen  broadcastmsg.Digest // of the living members
	filter  broadcastmsg.Filter // in raw, or the root's
	without bool                // root: it is not among those that are to run it
	route   *route
	members *Members          // root: who has to live, of those that filter chooses; until it is sent
	from    broadcastmsg.Node // the parent, and who is answered; "" at the root
	since   core.Time         // when it came, or the root began

	root, own, last bool
	creation        *broadcastmsg.Creation // aboard
	blob            []byte                 // the same, to be pulled
	phase           phase

	patience         time.Duration // P
	level, late      time.Duration // as they came
	forLevel, behind time.Duration // the same for the children
	wait             time.Duration // P for the wait for them, or what is left of it
	chosenWait       bool          // by pre-request

	bulk       uint64 // bytes of bulk data
	source     uint64 // the parent's key to it
	exposed    uint64 // this node's, 0: none
	bulkStatus broadcastmsg.Status

	proof    broadcastmsg.Proof // as it came, in raw
	isProven bool               // it has one
	rivals   []parked           // the same from others, while it is not known who the parent is

	raw     *buffer // the message as it came
	payload []byte  // in raw, or the root service's: what is forwarded
	copied  *buffer // the payload for the service, to do with as it likes

	children []child
	open     int  // children that are not over
	asked    bool // incoming-request runs
	ran      bool // it has returned without error
	reached  int  // nodes beneath the children that ran the request
	missing  []broadcastmsg.Missing

	fail     broadcastmsg.Status // why the library replies itself
	reason   string
	silent   bool                // nobody wants the reply
	aborting broadcastmsg.Status // once a callback or a pull has returned
	overdue  bool                // the parent has given up

	alarm  core.Timer[any]
	sent   core.Time // to the children
	oldest int       // no child behind it is waited for
	giveUp core.Time // when the parent surely waits no more; 0: that does not matter

	answer
}

// begin makes a root's request over g.
func (c *Core) begin(g *group, kind broadcastmsg.Tree, route *route) *request {
	r := c.spares.request()
	r.id, r.root = c.next(), true
	r.key = broadcastmsg.Key{Root: c.cfg.Node, Incarnation: c.cfg.Incarnation}
	r.service, r.group, r.digest, r.tree = g.key.service, g, g.key.digest, kind
	if g.key.outOfBand {
		r.digest = route.digest
	}
	r.place(route)
	c.requests[r.id] = r
	return r
}

// Broadcast is what a request is made of.
type Broadcast struct {
	Group    uint64
	Payload  []byte        // not to be changed before the request ends
	Bulk     uint64        // bytes of bulk data that members pull; 0: none
	Last     bool          // nothing follows over the group
	Patience time.Duration // P: how long members need to process it, pessimistically; 0 is allowed
	Members  *Members      // of an out-of-band group, as they are now

	// Only and Except choose among the members; Only nil: all. This node is the
	// root in any case, and does not run what is not for it.
	Only, Except []broadcastmsg.Node
}

// bulkLength is what the descriptor of bulk data takes in a request.
const bulkLength = 16

// NewRequest makes a request that is not sent yet, and returns its handle.
// Reply buffers are to be posted for all of its children.
func (c *Core) NewRequest(b Broadcast) (uint64, error) {
	h := c.handles[b.Group]
	if h == nil || !h.group.ready {
		return 0, fmt.Errorf("broadcast: %w", ErrGroup)
	}
	if b.Patience < 0 || b.Patience > broadcastmsg.MaxPatience {
		return 0, fmt.Errorf("broadcast: %w", ErrPatience)
	}
	r, err := c.newRequest(h, &b)
	if err != nil {
		return 0, fmt.Errorf("broadcast over %q: %w", h.group.name, err)
	}
	return r.id, nil
}

func (c *Core) newRequest(h *handle, b *Broadcast) (*request, error) {
	g := h.group
	m, err := g.membersOr(b.Members)
	if err != nil {
		return nil, err
	}
	f, me, err := filterOf(m, b, c.cfg.Node)
	if err != nil {
		return nil, err
	}
	subset := subsetOf(f, h.alive)
	if b.Last && subset != broadcastmsg.Everybody {
		return nil, fmt.Errorf("%w: the last broadcast is for all members", ErrGroup)
	}
	t, all, err := c.ownPlace(g, h.tree, m, subset, f)
	if err != nil {
		return nil, err
	}
	if err := c.fits(g, b, subset, f); err != nil {
		return nil, err
	}
	r := c.begin(g, h.tree, t)
	r.payload, r.bulk, r.last, r.patience = b.Payload, b.Bulk, b.Last, b.Patience
	r.subset, r.filter, r.without, r.members = subset, f, !me, m
	if h.alive {
		r.members, r.chosen = nil, all.Digest() // who dies from now on is found out
	}
	return r, nil
}

// fits returns an error if a broadcast is larger than a message.
func (c *Core) fits(g *group, b *Broadcast, s broadcastmsg.Subset, f broadcastmsg.Filter) error {
	room := c.room(0)
	if s&broadcastmsg.Alive != 0 {
		room -= len(broadcastmsg.Digest{})
	}
	if f != nil {
		room -= broadcastmsg.FilterSize(f)
	}
	if b.Bulk > 0 {
		room -= bulkLength
	}
	if len(b.Payload) > room {
		return fmt.Errorf("%w: a payload of %d, room for %d", ErrTooLarge, len(b.Payload), room)
	}
	if g.spread == unsent && s == broadcastmsg.Everybody {
		creation := broadcastmsg.Creation{Name: g.name, Targets: g.members.targets}
		if size := creation.Size(); len(b.Payload)+size > room {
			return fmt.Errorf("the first: %w: payload and members have %d bytes, room for %d", ErrDelayed, len(b.Payload)+size, room)
		}
	}
	return nil
}

// PostReplyBuffer posts the buffer for a child's reply: buf, or, where it is
// nil, one of size bytes of the library's. The child's incoming-reply
// gives it back. It is legal before Send, and in the pre-request callback.
func (c *Core) PostReplyBuffer(id uint64, number int, buf []byte, size int) error {
	r := c.requests[id]
	if r == nil || r.own || r.phase > preparing {
		return fmt.Errorf("post reply buffer: %w", ErrRequest)
	}
	if number < 0 || number >= len(r.children) || size < 0 {
		return fmt.Errorf("post reply buffer: %w: %d of %d", ErrChild, number, len(r.children))
	}
	k := &r.children[number]
	if k.posted {
		return fmt.Errorf("post reply buffer: %w: %s", ErrPosted, r.route.children[number].Node)
	}
	k.posted, k.buf = true, buf
	if buf == nil && size > 0 {
		k.lent = c.pool.get(size)
		k.buf = k.lent.b[:size]
	}
	c.counters.Posted++
	return nil
}

// Send sends a request. It fails at once, and the request has ended without a
// callback, if a member is dead. Behind the first broadcast over a delayed group
// it waits for its end, and behind a broadcast of the library's own that brings the
// members along where others may lack the group.
func (c *Core) Send(now core.Time, id uint64, out *Output) error {
	c.enter(now, out)
	r := c.requests[id]
	if r == nil || r.phase != idle || !r.root {
		return fmt.Errorf("send: %w", ErrRequest)
	}
	g := r.group
	if g.first == 0 && (g.spread == somewhere || g.spread == unsent && r.subset != broadcastmsg.Everybody) {
		c.populate(g) // nobody knows who has it; this broadcast cannot bring it to all
	}
	if g.first != 0 {
		r.phase = queued
		g.queue = append(g.queue, r.id)
		return nil
	}
	if err := c.launch(r); err != nil {
		err = fmt.Errorf("send: %w", err)
		c.end(r, err)
		return err
	}
	return nil
}

// launch lets a root's request enter the way that it takes on every node.
func (c *Core) launch(r *request) error {
	if r.members != nil { // all of them are needed
		if dead := c.deadOf(r.members, r.filter); len(dead) > 0 {
			return deadError(dead)
		}
	}
	g := r.group
	if g.spread == unsent && r.subset == broadcastmsg.Everybody && !r.own {
		r.creation = &broadcastmsg.Creation{Name: g.name, Targets: g.members.targets}
		g.first = r.id
	}
	r.members, r.since = nil, c.now
	c.sequence++ // in the order of sending, by which members remember
	r.key.Sequence = c.sequence
	c.active[r.key] = r
	c.prepare(r)
	return nil
}

// prepare has the service look at a request before anything else happens.
func (c *Core) prepare(r *request) {
	r.phase = preparing
	r.wait = r.patience
	if r.own {
		c.forward(r)
		return
	}
	r.copied = c.pool.copyOf(r.payload)
	if !r.root && len(r.children) == 0 {
		c.pool.release(r.raw) // nothing to forward
		r.raw, r.payload = nil, nil
	}
	c.call(Call{Kind: PreRequest, Service: r.service, Request: r.id})
}

// prepared goes on after pre-request.
func (c *Core) prepared(r *request, in *Input) {
	switch {
	case r.aborting != broadcastmsg.OK:
		c.refuse(r, r.aborting, "")
		return
	case in.Err != nil:
		c.refuse(r, broadcastmsg.Refused, in.Err.Error())
		return
	}
	if in.PatienceSet && in.Patience >= 0 {
		r.wait, r.chosenWait = min(in.Patience, broadcastmsg.MaxPatience), true
	}
	for i := range r.children {
		if !r.children[i].posted {
			c.refuse(r, broadcastmsg.NoBuffer, "for the reply of "+string(r.route.children[i].Node))
			return
		}
	}
	switch {
	case r.root || r.bulk == 0:
		c.forward(r)
	case in.BulkRoom < r.bulk:
		c.bulkFailed(r, broadcastmsg.NoBuffer, fmt.Sprintf("%d bytes for %d of bulk data", in.BulkRoom, r.bulk))
	default:
		r.phase = pulling
		c.out.Pulls = append(c.out.Pulls, Pull{Request: r.id, From: r.from, Key: r.source, Length: r.bulk, Until: c.parentGivesUp(r)})
	}
}

// forward sends a request to the children, deepest first, and has it run here,
// side by side.
func (c *Core) forward(r *request) {
	r.phase = running
	if r.root && r.creation != nil && !r.own {
		r.group.spread = everywhere
	}
	c.budget(r)
	if r.bulk > 0 && len(r.children) > 0 {
		if r.own && r.blob == nil {
			r.blob = r.group.ownBlob()
			r.bulk = uint64(len(r.blob))
		}
		r.exposed = c.memoryKey()
		c.counters.Exposed++
		c.out.Exposes = append(c.out.Exposes, Expose{Key: r.exposed, Request: r.id, Length: r.bulk, Bytes: r.blob, To: r.route.children})
	}
	if len(r.children) > 0 {
		c.sendDown(r)
	}
	c.pool.release(r.raw)
	r.raw, r.payload = nil, nil
	if !r.root && !r.own {
		r.giveUp = c.parentGivesUp(r)
	}
	c.rearm(r)
	switch {
	case r.own:
		r.ran = true
	case r.without: // it only stands at the top
	default:
		r.asked = true
		c.call(Call{Kind: IncomingRequest, Service: r.service, Request: r.id})
	}
	c.advance(r)
}

// memoryKey returns a key to memory that was not given out before, and that
// nobody guesses who does not know the secret.
func (c *Core) memoryKey() uint64 {
	if c.cfg.Secret == [16]byte{} {
		return c.next()
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(c.cfg.Secret[:], c.next()))
	return max(1, binary.BigEndian.Uint64(sum[:]))
}

// sendDown sends one message to all children.
func (c *Core) sendDown(r *request) {
	m := c.downMessage(r)
	wire := c.pool.get(m.Size())
	wire.b = m.Append(wire.b)
	r.sent = c.now
	for i := range r.children {
		to := &r.route.children[i]
		if _, dead := c.dead[to.Node]; dead {
			c.settle(r, i, verdict{status: broadcastmsg.Dead})
			continue
		}
		r.children[i].state = waiting
		wire.refs++
		r.children[i].called = true
		c.send(to.Node, wire, r.id, i)
	}
	c.pool.release(wire)
}

// downMessage returns the message for r's children.
func (c *Core) downMessage(r *request) broadcastmsg.Request {
	m := broadcastmsg.Request{
		Service: r.service, Tree: r.tree, Key: r.key, Patience: r.patience, Level: r.forLevel, Late: r.behind,
		Index: r.group.key.index, Digest: r.digest, Subset: r.subset, SubsetDigest: r.chosen, Filter: r.filter,
		Creation: r.creation, Payload: r.payload,
	}
	m.Flags = flag(broadcastmsg.Last, r.last) | flag(broadcastmsg.OutOfBand, r.group.key.outOfBand) |
		flag(broadcastmsg.Creates, r.creation != nil) | flag(broadcastmsg.HasBulk, r.exposed != 0) | flag(broadcastmsg.Own, r.own)
	if r.exposed != 0 {
		m.Bulk = broadcastmsg.Bulk{Key: r.exposed, Length: r.bulk}
	}
	switch {
	case r.root:
		c.prove(&m, r.route)
	case r.isProven:
		m.Flags, m.Proof = m.Flags|broadcastmsg.Proven, &r.proof
	}
	return m
}

func flag(f broadcastmsg.Flags, on bool) broadcastmsg.Flags {
	if on {
		return f
	}
	return 0
}

// pulled goes on after a pull.
func (c *Core) pulled(id uint64, err error) {
	r := c.requests[id]
	switch {
	case r == nil:
	case r.phase == fetching:
		c.fetched(r, err)
	case r.phase != pulling:
	case r.aborting != broadcastmsg.OK:
		c.bulkFailed(r, r.aborting, "")
	case err != nil:
		c.bulkFailed(r, broadcastmsg.BulkFailed, err.Error())
	default:
		c.forward(r)
	}
}

// bulkFailed runs a request without its bulk data: the parent is notified at once,
// nothing is forwarded, and the service gets all its callbacks.
func (c *Core) bulkFailed(r *request, status broadcastmsg.Status, reason string) {
	r.phase, r.bulkStatus = running, status
	r.fail, r.reason = status, clip(reason)
	if !r.silent {
		c.finalReply(r)
	}
	r.asked = true
	c.call(Call{Kind: IncomingRequest, Service: r.service, Request: r.id})
	for i := range r.children {
		c.settle(r, i, verdict{status: broadcastmsg.BulkFailed})
	}
	c.advance(r)
}

func clip(reason string) string {
	return reason[:min(len(reason), broadcastmsg.MaxReason)]
}

func (c *Core) call(call Call) { c.out.Calls = append(c.out.Calls, call) }
