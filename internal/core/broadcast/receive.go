package broadcast

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// message takes what a node has sent. Who it is, is the transport's word.
func (c *Core) message(from broadcastmsg.Node, incarnation uint64, b []byte) {
	switch {
	case broadcastmsg.IsReply(b):
		c.replyMessage(from, b)
	case broadcastmsg.IsQuestion(b):
		c.question(from, b)
	case broadcastmsg.IsAnswer(b):
		c.answered(from, b)
	default:
		c.requestMessage(from, incarnation, b, false)
	}
}

// requestMessage takes a request, from a node in a life, 0: not known in which; isAsked
// reports that its root has been asked about it.
func (c *Core) requestMessage(from broadcastmsg.Node, incarnation uint64, b []byte, isAsked bool) {
	if len(b) > broadcastmsg.MaxRequest {
		c.counters.Unreadable++
		return
	}
	raw := c.pool.get(broadcastmsg.MaxRequest) // whoever sends, there is a buffer
	raw.b = append(raw.b, b...)
	m := &c.request
	if err := m.Decode(raw.b); err != nil {
		c.counters.Unreadable++
		c.pool.release(raw)
		return
	}
	if r := c.active[m.Key]; r != nil && r.from == from || r == nil && c.finished.has(m.Key) {
		c.counters.Copies++
		c.pool.release(raw)
		return
	} else if r != nil {
		if c.rivals(r, from, m) {
			r.rivals = append(r.rivals, parked{from: from, bytes: bytes.Clone(raw.b)})
			c.pool.release(raw)
			return
		}
		c.pool.release(raw)
		c.reject(from, m.Key, broadcastmsg.WrongParent, "another node has sent the same")
		return
	}
	if status := c.check(from, incarnation, m); status != broadcastmsg.OK {
		c.pool.release(raw)
		c.reject(from, m.Key, status, "")
		return
	}
	if !c.admit(from, raw.b, m, isAsked) {
		c.pool.release(raw)
		return
	}
	r := c.spares.request()
	r.id, r.from, r.since, r.raw = c.next(), from, c.now, raw
	r.key, r.service, r.digest, r.tree = m.Key, m.Service, m.Digest, m.Tree
	r.subset, r.chosen, r.filter = m.Subset, m.SubsetDigest, m.Filter
	r.own, r.last = m.Flags&broadcastmsg.Own != 0, m.Flags&broadcastmsg.Last != 0
	r.creation, r.payload = m.Creation, m.Payload
	if m.Proof != nil && c.proves() {
		r.isProven, r.proof = true, *m.Proof
		c.finished.raise(life{m.Root, m.Incarnation}, m.Proof.Floor)
	}
	r.patience, r.level, r.late = m.Patience, m.Level, m.Late
	r.bulk, r.source = m.Bulk.Length, m.Bulk.Key
	c.requests[r.id], c.active[r.key] = r, r
	c.quotas.begin(m.Root)
	c.find(r, m)
}

// rivals reports whether a request that is here already may have come from another than
// the parent, so that the same from a second node is kept until that is known.
func (c *Core) rivals(r *request, from broadcastmsg.Node, m *broadcastmsg.Request) bool {
	const most = 4
	return c.proves() && r.route == nil && len(r.rivals) < most && c.examine(from, m) == isProven
}

// check returns what is wrong with a request before its group is looked up.
func (c *Core) check(from broadcastmsg.Node, incarnation uint64, m *broadcastmsg.Request) broadcastmsg.Status {
	isLiar := from == m.Root && incarnation != 0 && incarnation != m.Incarnation
	if isLiar || m.Root == c.cfg.Node || m.Incarnation < max(c.dead[m.Root], c.incarnations[m.Root]) {
		return broadcastmsg.StaleRoot
	}
	s, ok := c.services[m.Service]
	switch {
	case !ok:
		return broadcastmsg.NoService
	case m.Flags&broadcastmsg.OutOfBand != 0 && !s.OutOfBand:
		return broadcastmsg.NoGroup
	}
	return broadcastmsg.OK
}

// admit reports whether a request is its root's, and allowed to that. If that is not known
// yet, it keeps b, the message.
func (c *Core) admit(from broadcastmsg.Node, b []byte, m *broadcastmsg.Request, isAsked bool) bool {
	why := ""
	switch v := c.examine(from, m); {
	case v == isProven:
		if why = c.services[m.Service].denies(m); why != "" {
			c.counters.Denied++
			c.deny(from, m, broadcastmsg.Denied, why)
			return false
		}
		if why = c.crowded(m.Root); why == "" {
			return true
		}
		c.reject(from, m.Key, broadcastmsg.Refused, why)
	case v == isStale:
		c.reject(from, m.Key, broadcastmsg.StaleRoot, "")
	case v == isForged:
		c.refuseUnproven(from, m, "its proof is not of its root")
	case isAsked:
		c.refuseUnproven(from, m, "its root is of an earlier incarnation")
	default:
		if why = c.park(from, b, m); why != "" {
			c.refuseUnproven(from, m, why)
		}
	}
	return false
}

// denies returns why the service does not allow a request to its root.
func (s Service) denies(m *broadcastmsg.Request) (why string) {
	if s.Allow == nil {
		return ""
	}
	is := func(f broadcastmsg.Flags) bool { return m.Flags&f != 0 }
	frees := is(broadcastmsg.Last) && !is(broadcastmsg.OutOfBand) // of an out-of-band group, the root's own tree
	return s.Allow(Caller{Root: m.Root, Creates: is(broadcastmsg.Own|broadcastmsg.Creates) || frees, Calls: !is(broadcastmsg.Own)})
}

// find comes by the group's members: from the table, from the message, from the
// sender's memory, or from the service.
func (c *Core) find(r *request, m *broadcastmsg.Request) {
	key := groupKey{service: m.Service, index: m.Index, digest: m.Digest}
	g := c.groups[key]
	if g != nil && c.contradicts(g, r) {
		c.freeGroup(g)
		g = nil
	}
	switch {
	case m.Flags&broadcastmsg.OutOfBand != 0:
		key.outOfBand, key.digest = true, broadcastmsg.Digest{}
		if r.group = c.groups[key]; r.group == nil {
			r.group = &group{key: key, ready: true, roots: map[broadcastmsg.Node]*places{}}
		}
		r.phase = mapping
		c.call(Call{Kind: Map, Service: r.service, Request: r.id, Index: m.Index})
	case g != nil:
		r.group = g
		c.place(r, g.members)
	case r.creation != nil:
		r.group = &group{key: key}
		c.create(r, r.creation)
	case r.own && r.bulk > 0:
		r.group = &group{key: key}
		if why := c.whyNotPull(r); why != "" {
			c.refuse(r, broadcastmsg.NoGroup, why)
			return
		}
		c.quotas.pull(r)
		r.phase, r.blob = fetching, make([]byte, r.bulk)
		c.out.Pulls = append(c.out.Pulls, Pull{Request: r.id, From: r.from, Key: r.source, Length: r.bulk, Into: r.blob, Until: r.since.Add(r.level + r.patience - r.late + c.cfg.RoundTrip)})
	default:
		c.refuse(r, broadcastmsg.NoGroup, "")
	}
}

// contradicts reports that a group's creator makes it otherwise than another member has
// said that it did: what that has said is void.
func (c *Core) contradicts(g *group, r *request) bool {
	if !g.hearsay || r.creation == nil || !g.key.index.MadeBy(r.key.Root, r.key.Incarnation) {
		return false
	}
	g.hearsay = false
	return r.tree != g.tree || r.creation.Name != g.name
}

const notItsIndex = "its index is of another root"

// fetched goes on when the parameters of creation were pulled.
func (c *Core) fetched(r *request, err error) {
	c.quotas.pulledAll(r)
	if r.aborting != broadcastmsg.OK {
		c.refuse(r, r.aborting, "")
		return
	}
	if err != nil {
		c.refuse(r, broadcastmsg.BulkFailed, err.Error())
		return
	}
	creation, err := broadcastmsg.DecodeCreation(r.blob)
	if err != nil {
		c.refuse(r, broadcastmsg.NoGroup, err.Error())
		return
	}
	c.create(r, creation)
}

// create makes a group as its creator says, or another member that has it, if the
// identity is that of these members and one of them.
func (c *Core) create(r *request, p *broadcastmsg.Creation) {
	key := r.group.key
	if g := c.groups[key]; g != nil { // made while this request was waiting
		r.group = g
		c.place(r, g.members)
		return
	}
	m, err := NewMembers(r.service, p.Targets)
	switch {
	case err != nil:
		c.refuse(r, broadcastmsg.NoGroup, err.Error())
		return
	case m.digest != r.digest:
		c.refuse(r, broadcastmsg.Disagree, "")
		return
	}
	creator := key.index.MadeBy(r.key.Root, r.key.Incarnation)
	if !creator && !(r.own && m.made(key.index)) {
		c.refuse(r, broadcastmsg.NoGroup, notItsIndex)
		return
	}
	r.group = &group{
		key: key, name: p.Name, tree: r.tree, members: m, bytes: p.Size(), hearsay: !creator, ready: true, roots: map[broadcastmsg.Node]*places{},
	}
	if !creator || !r.own {
		r.group.spread = somewhere
	}
	c.place(r, m)
}

// mapped goes on when the service has reported an out-of-band group's members.
func (c *Core) mapped(r *request, in *Input) {
	switch m := in.Members; {
	case r.aborting != broadcastmsg.OK:
		c.refuse(r, r.aborting, "")
	case in.Err != nil:
		c.refuse(r, broadcastmsg.NoGroup, in.Err.Error())
	case m == nil || m.service != r.service:
		c.refuse(r, broadcastmsg.NoGroup, ErrMembers.Error())
	case m.digest != r.digest:
		c.refuse(r, broadcastmsg.Disagree, "")
	default:
		c.place(r, m)
	}
}

// place finds this node's place in the tree, checks that the request came along
// it, and only then keeps what is known of the group.
func (c *Core) place(r *request, m *Members) {
	g := r.group
	if g.members != nil && r.tree != g.tree {
		c.refuse(r, broadcastmsg.NoTree, "not the group's")
		return
	}
	t := g.roots[r.key.Root].known(r.tree, m.digest, r.subset, r.filter)
	if t == nil {
		all, status := c.narrow(m, r.key.Root, r.subset, r.filter)
		if status == broadcastmsg.OK && r.subset&broadcastmsg.Alive != 0 && all.Digest() != r.chosen {
			c.refuse(r, broadcastmsg.Disagree, "about who is alive")
			return
		}
		if status == broadcastmsg.OK {
			t, status = newRoute(all, m.digest, c.shapes[r.tree.Kind], r.tree, r.key.Root, c.cfg.Node)
		}
		if status != broadcastmsg.OK {
			c.refuse(r, status, "")
			return
		}
	}
	if t.parent != r.from {
		c.refuse(r, broadcastmsg.WrongParent, "")
		return
	}
	if why := c.fullOf(r); why != "" {
		c.refuse(r, broadcastmsg.NoGroup, why)
		return
	}
	r.place(t)
	for _, rival := range r.rivals {
		c.reject(rival.from, r.key, broadcastmsg.WrongParent, "another node has sent the same")
	}
	r.rivals = nil
	c.keep(r)
	c.prepare(r)
}

// keep puts r's group into the table.
func (c *Core) keep(r *request) {
	g := r.group
	if known := c.groups[g.key]; known != nil {
		r.group = known
		g = known
	} else if !r.last || g.key.outOfBand {
		c.groups[g.key] = g
		g.by = r.key.Root
		c.quotas.keep(g)
	}
	g.root(r.key.Root, r.key.Incarnation).keep(r.route, r.subset, r.filter)
}

// GroupOf returns a handle to the group of a request, so that another member
// than its creator can be a root of it. It is valid as long as the group.
func (c *Core) GroupOf(id uint64) (uint64, error) {
	r := c.requests[id]
	if r == nil || r.group == nil || r.route == nil || c.groups[r.group.key] != r.group {
		return 0, fmt.Errorf("group of a request: %w", ErrRequest)
	}
	for _, id := range r.group.handles {
		if h := c.handles[id]; h != nil && !h.alive && h.tree == r.tree {
			return id, nil
		}
	}
	return c.handle(r.group, r.tree, false), nil
}

// View is what a service sees of a request.
type View struct {
	Service    broadcastmsg.Service
	Root       broadcastmsg.Node
	IsRoot     bool
	Last       bool
	Payload    []byte // the service's own copy, to do with as it likes
	Bulk       uint64 // bytes of bulk data
	BulkStatus broadcastmsg.Status
	Patience   time.Duration      // P
	Tags       []broadcastmsg.Tag // all entities of this node that are targeted; none of a root that is left out
	Children   []Branch           // by their numbers
	Local      []byte             // the local reply, if it was given before post-reply
	Outcome    Outcome            // what is known by now; final from post-reply on
}

// Request returns what a service may see of a request in its callbacks, from
// pre-request on and on the root from the beginning; its memory is valid until
// the request ends.
func (c *Core) Request(id uint64) (View, error) {
	r := c.requests[id]
	if r == nil || r.route == nil {
		return View{}, fmt.Errorf("request: %w", ErrRequest)
	}
	v := View{
		Service: r.service, Root: r.key.Root, IsRoot: r.root, Last: r.last,
		Bulk: r.bulk, BulkStatus: r.bulkStatus, Patience: r.wait,
		Tags: r.route.tags, Children: r.route.children, Outcome: r.outcome(),
	}
	if r.without {
		v.Tags = nil
	}
	if r.copied != nil {
		v.Payload = r.copied.b
	}
	if r.early {
		v.Local = r.tail
	}
	return v, nil
}
