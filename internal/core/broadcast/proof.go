package broadcast

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Bounds of the requests that wait until their root has answered: no longer than their
// senders wait, whose word that is.
const (
	parkedMost = 4096 // in all
	parkedFrom = 256  // from one host
	parkedFor  = time.Minute
)

// proofs are whom a node believes, and who believes it.
type proofs struct {
	roots   map[broadcastmsg.Node]*trust    // who have answered
	readers map[broadcastmsg.Node]hash.Hash // who have asked: what tags for them are made with
	asked   map[broadcastmsg.Node]*asking
	parked  map[string]int         // messages that wait, by their senders' hosts
	waiting int                    // of all senders
	floor   uint64                 // this root's lowest sequence number that has not ended
	said    broadcastmsg.Statement // of the request that is looked at
	sum     []byte
	scratch []byte
	made    broadcastmsg.Proof // of the request that is being sent
}

// trust is by what requests of a root are known to be its own.
type trust struct {
	incarnation uint64
	public      ed25519.PublicKey
	tags        hash.Hash
}

// asking is a root that has been asked, and has not answered.
type asking struct {
	root   broadcastmsg.Node
	secret [broadcastmsg.SecretSize]byte
	called bool // the question is on its way
	cut    bool // the connection has ended since
	cuts   uint
	parked []parked
	alarm  core.Timer[any]
}

// parked is a request that waits for its root's answer.
type parked struct {
	from  broadcastmsg.Node
	bytes []byte
	until core.Time // when its sender waits no more
}

func newProofs() proofs {
	return proofs{
		roots: map[broadcastmsg.Node]*trust{}, readers: map[broadcastmsg.Node]hash.Hash{},
		asked: map[broadcastmsg.Node]*asking{}, parked: map[string]int{}, floor: 1,
	}
}

// proves reports whether requests have to prove their roots.
func (c *Core) proves() bool { return c.cfg.Key != nil }

// standing is what is known of a request's root.
type standing uint8

const (
	isProven standing = iota
	isForged
	isStale
	isUnknown // its root is to be asked
)

// examine finds out whether a request is its root's. The connection shows who has sent
// it, so that only what others pass on needs a proof.
func (c *Core) examine(from broadcastmsg.Node, m *broadcastmsg.Request) standing {
	if !c.proves() || from == m.Root {
		return isProven
	}
	t := c.proofs.roots[m.Root]
	switch {
	case m.Proof == nil:
		return isForged
	case t == nil || t.incarnation < m.Incarnation:
		return isUnknown
	case t.incarnation > m.Incarnation:
		return isStale
	case !c.verify(t, m):
		return isForged
	}
	return isProven
}

func (c *Core) verify(t *trust, m *broadcastmsg.Request) bool {
	c.said(m)
	if m.Proof.Signature != nil {
		return ed25519.Verify(t.public, c.proofs.said[:], m.Proof.Signature)
	}
	own := c.tag(t.tags)
	for tags := m.Proof.Tags; len(tags) > 0; tags = tags[broadcastmsg.TagSize:] {
		if hmac.Equal(own, tags[:broadcastmsg.TagSize]) {
			return true
		}
	}
	return false
}

// said notes the statement of a request.
func (c *Core) said(m *broadcastmsg.Request) {
	c.proofs.said, c.proofs.scratch = m.Statement(c.proofs.scratch)
}

// tag returns the tag by a secret of the statement that was noted, until the next call.
func (c *Core) tag(h hash.Hash) []byte {
	h.Reset()
	h.Write(c.proofs.said[:])
	c.proofs.sum = h.Sum(c.proofs.sum[:0])
	return c.proofs.sum[:broadcastmsg.TagSize]
}

// prove has a message of a root's own carry its proof, where others than its children
// get it: tags if all of those have asked, there are few and they fit, or a signature.
func (c *Core) prove(m *broadcastmsg.Request, t *route) {
	if !c.proves() || t.reach < 2 {
		return
	}
	size := m.Size()
	p := &c.proofs.made
	*p = broadcastmsg.Proof{Floor: c.proofs.floor, Tags: p.Tags[:0]}
	m.Flags, m.Proof = m.Flags|broadcastmsg.Proven, p
	c.said(m)
	if len(t.deep) > 0 && size+broadcastmsg.ProofRoom(len(t.deep)) <= broadcastmsg.MaxRequest {
		for _, node := range t.deep {
			h := c.proofs.readers[node]
			if h == nil {
				p.Tags = p.Tags[:0]
				break
			}
			p.Tags = append(p.Tags, c.tag(h)...)
		}
		if len(p.Tags) > 0 {
			return
		}
	}
	p.Signature = ed25519.Sign(c.cfg.Key, c.proofs.said[:])
}

// park keeps a request until its root has answered, which is asked. It reports why not.
func (c *Core) park(from broadcastmsg.Node, b []byte, m *broadcastmsg.Request) (why string) {
	q := &c.proofs
	if q.waiting >= parkedMost || q.parked[hostOf(from)] >= parkedFrom {
		return "too many requests wait for their roots to answer"
	}
	a := q.asked[m.Root]
	if a == nil {
		a = &asking{root: m.Root, secret: c.newSecret()}
		a.alarm.Of = a
		q.asked[m.Root] = a
		c.ask(a, 0)
	}
	q.waiting++
	q.parked[hostOf(from)]++
	until := c.now.Add(min(m.Level+m.Patience-m.Late, parkedFor) + c.cfg.RoundTrip)
	a.parked = append(a.parked, parked{from, bytes.Clone(b), until})
	if !a.alarm.Running() || until < a.alarm.At {
		c.timers.Set(&a.alarm, until)
	}
	return ""
}

// newSecret returns one that was not given out before.
func (c *Core) newSecret() [broadcastmsg.SecretSize]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(append(bytes.Clone(c.cfg.Secret[:]), "secret"...), c.next()))
}

// ask sends the question to a root.
func (c *Core) ask(a *asking, after uint) {
	q := broadcastmsg.Question{Secret: a.secret}
	b := c.pool.get(4 + broadcastmsg.SecretSize)
	b.b = q.Append(b.b)
	o := c.outbound(a.root, b, 0, question)
	a.called, a.cut = true, false
	if after == 0 {
		c.emit(o)
		return
	}
	c.rest(o, c.cfg.RecallAfter<<min(after-1, mostDoublings))
}

// question takes that a node wants to know this root, and answers.
func (c *Core) question(from broadcastmsg.Node, b []byte) {
	var q broadcastmsg.Question
	if err := q.Decode(b); err != nil || !c.proves() {
		c.counters.Unreadable++
		return
	}
	c.proofs.readers[from] = hmac.New(sha256.New, q.Secret[:])
	a := broadcastmsg.Answer{
		Incarnation: c.cfg.Incarnation, Floor: c.proofs.floor,
		Public: [ed25519.PublicKeySize]byte(c.cfg.Key.Public().(ed25519.PublicKey)),
	}
	out := c.pool.get(20 + ed25519.PublicKeySize)
	out.b = a.Append(out.b)
	c.send(from, out, 0, nobody)
}

// answered takes what a root says of itself, and looks at its requests again.
func (c *Core) answered(from broadcastmsg.Node, b []byte) {
	var m broadcastmsg.Answer
	if err := m.Decode(b); err != nil || !c.proves() {
		c.counters.Unreadable++
		return
	}
	a := c.proofs.asked[from]
	if a == nil || m.Incarnation < c.incarnations[from] {
		c.counters.Unmatched++
		return
	}
	if before := c.proofs.roots[from]; before != nil && before.incarnation < m.Incarnation {
		c.finished.end(life{from, before.incarnation})
	}
	c.proofs.roots[from] = &trust{
		incarnation: m.Incarnation, public: bytes.Clone(m.Public[:]), tags: hmac.New(sha256.New, a.secret[:]),
	}
	c.finished.keep(life{from, m.Incarnation})
	c.finished.raise(life{from, m.Incarnation}, m.Floor)
	for _, p := range c.release(a, core.Never) {
		c.requestMessage(p.from, 0, p.bytes, true)
	}
}

// release takes those that wait for a root's answer until a moment, Never: all of them, in
// the order in which they came.
func (c *Core) release(a *asking, until core.Time) (free []parked) {
	var kept []parked
	at := core.Never
	for _, p := range a.parked {
		if p.until > until {
			kept, at = append(kept, p), at.Earlier(p.until)
			continue
		}
		free = append(free, p)
		less(c.proofs.parked, p.from, 1)
	}
	c.proofs.waiting -= len(free)
	if a.parked = kept; len(kept) == 0 {
		delete(c.proofs.asked, a.root)
	}
	c.timers.Set(&a.alarm, at)
	return free
}

// unanswered refuses what waits for a root that does not answer.
func (c *Core) unanswered(root broadcastmsg.Node, why string) {
	if a := c.proofs.asked[root]; a != nil {
		c.unproven(a, core.Never, why)
	}
}

func (c *Core) unproven(a *asking, until core.Time, why string) {
	for _, p := range c.release(a, until) {
		m := &c.request
		if err := m.Decode(p.bytes); err == nil { // as it was before
			c.refuseUnproven(p.from, m, why)
		}
	}
}

// impatient refuses what waits for a root whose sender waits no more.
func (c *Core) impatient(a *asking) { c.unproven(a, c.now, "its root has not answered") }

// askAgain asks a root again whose connection has ended.
func (c *Core) askAgain(root broadcastmsg.Node) {
	switch a := c.proofs.asked[root]; {
	case a == nil:
	case a.called:
		a.cut = true
	default:
		a.cuts++
		c.ask(a, a.cuts)
	}
}

// questioned takes what became of a question to a root.
func (c *Core) questioned(root broadcastmsg.Node, err error) {
	a := c.proofs.asked[root]
	switch {
	case a == nil:
	case err != nil:
		c.unanswered(root, "its root cannot be asked: "+err.Error())
	default:
		if a.called = false; a.cut {
			c.askAgain(root)
		}
	}
}

// refuseUnproven refuses a request of which it is not known whether its root has sent it.
func (c *Core) refuseUnproven(from broadcastmsg.Node, m *broadcastmsg.Request, why string) {
	c.counters.Unproven++
	c.deny(from, m, broadcastmsg.Unproven, why)
}

// deny refuses a request, and reports that.
func (c *Core) deny(from broadcastmsg.Node, m *broadcastmsg.Request, status broadcastmsg.Status, why string) {
	c.out.Denials = append(c.out.Denials, Denial{Service: m.Service, Root: m.Root, From: from, Status: status, Reason: clip(why)})
	c.reject(from, m.Key, status, why)
}

// ended notes that a broadcast of this root's own has ended.
func (c *Core) ended() {
	own := broadcastmsg.Key{Root: c.cfg.Node, Incarnation: c.cfg.Incarnation}
	for q := &c.proofs; q.floor <= c.sequence; q.floor++ {
		own.Sequence = q.floor
		if c.active[own] != nil {
			return
		}
	}
}
