package hostlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/forming"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	packetsAtOnce = 32   // datagrams, or batches of them, of one step
	postedAtMost  = 1024 // items that wait for the loop
	gsoBatch      = 44   // chunks that one system call sends: who waits for more is in bulk mode
)

// item is an input of the core on its way to the loop.
type item struct {
	in     endpoint.Input
	burst  *peer.Burst // in's bytes, and those of items before it, lie there: released after the step
	stream *stream     // of endpoint.Connected: the stream, and
	number uint32      // its number
	final  bool        // the communicator is over after this step, come what may

	roll *wire.Waiting // this member's own operation is late
	wish bool          // the lowest rank may want another policy
}

// stepper is the core as the loop steps it, and the loop's own state. What it
// does in Step and apply happens on the loop's goroutine.
type stepper struct {
	*Communicator
	inputs   []endpoint.Input
	messages []transport.Message
	roll     roll
	policies settingLoop
	spoken   [choices]spoken

	final     bool // an item was
	rests     bool // the step's memory is to be given back
	connected bool // a link was, since the last flush
	isOver    bool
}

// startLoop starts the goroutine that owns core and data socket.
func (c *Communicator) startLoop() error {
	s := &stepper{Communicator: c}
	config := runner.Config[item, endpoint.Output]{
		Core: s, Clock: c.host.clock, Apply: s.apply, Queue: postedAtMost, Ended: func(error) { c.conclude(false) },
	}
	if c.conn != nil {
		config.Source = dataSource{runner.FromConn(c.conn, packetsAtOnce, func(p *transport.Packet) item {
			return item{in: endpoint.Input{Kind: endpoint.Packet, From: p.From, Bytes: p.Data, Size: p.Size}}
		}), &c.offload}
	}
	loop, err := runner.Start(config)
	if err != nil {
		return err
	}
	c.loop = loop
	c.watch.wake = loop.Wake
	c.host.counts.begin(c)
	return nil
}

// dataSource is the data socket. Nothing comes from there while the communicator
// is on its tree of hosts.
type dataSource struct {
	*runner.Packets[item]
	offload *atomic.Bool
}

// Open implements runner.Closable.
func (d dataSource) Open() bool { return d.offload.Load() }

// conclude has the communicator, which is over, closed, once. With force, it is
// made to be over first: its host is closing.
func (c *Communicator) conclude(force bool) {
	c.concluding.Do(func() {
		c.host.tasks.Go(func() {
			select {
			case <-c.opened:
			case <-c.done: // it could not be opened
				return
			}
			if force {
				c.cancel()
			}
			c.finish()
		})
	})
}

// cancel ends the communicator for all members, and waits until its loop knows.
func (c *Communicator) cancel() {
	c.ends(fmt.Errorf("%w: %w", ErrEnded, ErrClosed))
	c.post(item{in: endpoint.Input{Kind: endpoint.Cancel, News: &endpoint.News{Reason: "it closed its host"}}, final: true})
	select {
	case <-c.over:
	case <-c.loop.Done():
	}
}

// finish closes what the communicator ran on.
func (c *Communicator) finish() {
	c.loop.Close()
	if err := c.loop.Err(); err != nil {
		c.ends(fmt.Errorf("%w: %w", ErrEnded, err))
		if whole := c.sub.of; whole != nil { // neighbours find c dead; it may have none
			whole.abort(fmt.Sprintf("its tree %q has ended: %v", c.name, err))
		}
	}
	c.watch.end()
	c.refuseAll(ErrEnded)
	if why := c.endOfMessages(); why != nil {
		c.endDirect(why)
	}
	c.host.keepRecovery(c) // before the next of the same members may open its own
	c.messaging.close()
	c.host.leaveTombstone(c, c.word)
	for _, l := range c.links {
		l.shut(c.word)
	}
	c.stop()
	c.endTrees()
	c.tasks.Wait()
	c.endPart()
	if c.conn != nil {
		if err := c.conn.Close(); err != nil {
			c.host.cfg.Log.Warn("closing the data socket",
				slog.String("communicator", c.name), slog.Any("error", err))
		}
	}
	c.host.counts.end(c)
	close(c.done)
}

// Step implements runner.Core.
func (s *stepper) Step(now core.Time, items []item, out *endpoint.Output) {
	s.inputs = s.inputs[:0]
	for i := range items {
		it := &items[i]
		if k := it.in.Kind; k == endpoint.Packet || k == endpoint.Start || !s.takes(it) {
			s.inputs = append(s.inputs, it.in)
		}
	}
	s.rolls(out)
	s.core.Step(now, s.inputs, out)
	s.gathers(now, out)
	s.agrees(out)
	for i := range items {
		if b := items[i].burst; b != nil {
			b.Release()
		}
		if o := items[i].in.Operation; o != nil {
			o.In, o.Out, o.Marks, o.Parts = nil, nil, nil, nil // the caller's
		}
	}
	clear(items) // whose bursts are others' now
	clear(s.inputs)
}

// takes reports whether an item, neither packet nor operation, is not for the core.
func (s *stepper) takes(it *item) bool {
	if it.stream != nil && !s.connects(it) {
		return true
	}
	if s.gathered.takes(it) || s.roll.takes(s.Communicator, it) || s.policies.takes(it) {
		return true
	}
	s.final = s.final || it.final
	s.rests = s.rests || it.in.Kind == endpoint.Rest
	return false
}

// Deadline implements runner.Core.
func (s *stepper) Deadline() core.Time {
	if s.isOver {
		return core.Never
	}
	return s.core.Deadline().Earlier(s.gathered.core.Deadline())
}

// connects lets frames be sent on a stream, if it is still that one, and reports whether
// the core is to repeat what matters on it.
func (s *stepper) connects(it *item) bool {
	is, isCurrent := it.stream.opened(it.number)
	s.connected = s.connected || is
	if is && it.stream.class == peer.Control {
		s.gathered.inputs = append(s.gathered.inputs, forming.Input{From: it.in.Rank})
	}
	if is {
		s.policies.connected(it)
	}
	return isCurrent
}

// apply does what a step has put out: first what lends memory of the callers'
// vectors, then what gives these back.
func (s *stepper) apply(now core.Time, out *endpoint.Output) []item {
	if out.Ended != nil || out.Left {
		// Before others hear of it, who may call the name's next communicator.
		s.retire()
	}
	var lost []item
	for _, e := range out.Entered {
		lost = append(lost, s.takeRail(e)...)
	}
	s.sendDatagrams(out)
	if s.setBulk != nil {
		s.setBulk(s.core.Streams(gsoBatch))
	}
	s.sendFrames(out)
	if out.Notice != nil {
		s.noticed(out.Notice)
	}
	for _, e := range out.Entered {
		s.entered(e)
	}
	if out.Loss != nil {
		s.lost(out.Loss)
	}
	if s.rank == 0 && (out.Notice != nil || len(out.Entered) > 0) {
		lost = append(lost, item{wish: true})
	}
	if out.Demand != 0 {
		s.report(manager.Report{Demand: out.Demand})
	}
	s.complete(now, out)
	if out.Ended != nil {
		s.word = out.Ended.Append(nil)
		if out.Ended.Kind == wire.FailRevoked { // which another may have said on the tree of hosts alone
			s.revokes(revoke.Input{Kind: revoke.Revoke, From: out.Ended.Rank})
		}
		s.mu.Lock()
		s.endKind = out.Ended.Kind
		s.mu.Unlock()
		s.refuseAll(s.failure(out.Ended))
		s.endMessages(out.Ended)
		s.leavePart() // before all is closed, which may wait
		s.sub.notify(s.Communicator, out.Ended)
	}
	if out.Left {
		s.word, s.hasLeft = wire.AppendGoodbye(nil), true
		s.refuseAll(ErrEnded)
		s.endDirect(ErrEnded)
	}
	if !s.isOver && (out.Ended != nil || out.Gone || s.final) {
		s.isOver = true
		close(s.over)
		s.conclude(false)
	}
	out.Reset()
	if s.rests {
		s.rests, s.inputs, s.messages, *out = false, nil, nil, endpoint.Output{}
	}
	out.TakesBatches = s.batches // in the next step
	return lost
}

// sendFrames sends messages to neighbours in the tree of hosts, those of a step
// to one neighbour at once.
func (s *stepper) sendFrames(out *endpoint.Output) {
	var last *link
	to := -1
	for i := range out.Messages {
		m := &out.Messages[i]
		if int(m.To) != to {
			to, last = int(m.To), s.links[int(m.To)]
		}
		if last != nil {
			last.send(m.Head, m.Body)
		}
	}
	if len(out.Messages) > 0 || s.connected {
		s.connected = false
		for _, l := range s.links {
			l.flush()
		}
	}
}

func (s *stepper) sendDatagrams(out *endpoint.Output) {
	if len(out.Datagrams) == 0 {
		return
	}
	s.messages = s.messages[:0]
	for i := range out.Datagrams {
		d := &out.Datagrams[i]
		m := transport.Message{To: d.To, Head: d.Head[:], Body: d.Body, Size: d.Size}
		if d.Size != 0 {
			m.Head = d.Heads
		}
		s.messages = append(s.messages, m)
	}
	// A closed socket ends the loop by its next read.
	_ = s.conn.WriteBatch(s.messages)
}

// complete ends the requests of finished operations.
func (s *stepper) complete(now core.Time, out *endpoint.Output) {
	if len(out.Completions)+len(out.Refused) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out.Completions {
		done := &out.Completions[i]
		if r := s.requests.take(done.ID); r != nil {
			epochs, why, trees := s.status.during(done.FirstEpoch, done.LastEpoch)
			r.complete(now, done, epochs, s.spoken[r.chosen].say(r.chosen, why), trees)
		}
	}
	for _, no := range out.Refused {
		if errors.Is(no.Err, endpoint.ErrEnded) {
			continue // refuseAll knows why
		}
		kind := ErrArgument
		if errors.Is(no.Err, session.ErrLeft) {
			kind = ErrEnded
		}
		if r := s.requests.take(no.ID); r != nil {
			r.fail(fmt.Errorf("%w: %w", kind, no.Err))
		}
	}
}

// ends reports why no operation can be started any more, unless that is known.
func (c *Communicator) ends(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		if c.multitree != nil {
			c.multitree.conclude(err)
		}
	}
}

// refuseAll fails every request, now and from now on.
func (c *Communicator) refuseAll(err error) {
	c.ends(err)
	c.mu.Lock()
	c.end = cmp.Or(c.end, err)
	for id := c.requests.oldest; c.requests.areSome(); id++ {
		if r := c.requests.take(id); r != nil {
			r.fail(c.err)
		}
	}
	c.messaging.refuse()
	c.mu.Unlock()
	c.messaging.end() // without the lock, since that may find a peer lost
}

// entered notes a new epoch, and notifies the manager.
func (s *stepper) entered(e endpoint.Entered) {
	s.mu.Lock()
	s.status.enter(e)
	s.mu.Unlock()
	s.offload.Store(e.Offload)
	if s.sealed != nil {
		s.sealed.RetireBefore(e.Epoch)
	}
	s.host.cfg.Log.Info("entered an epoch",
		slog.String("communicator", s.name), slog.Uint64("epoch", uint64(e.Epoch)),
		slog.Bool("offload", e.Offload), slog.String("reason", e.Reason))
	transport, via := HostTree, manager.HostTree
	if e.Offload {
		s.settle("")
		transport, via = Offload, manager.Offload
	}
	s.host.counts.entered[transport].Add(1)
	s.report(manager.Report{Entered: e.Epoch, Transport: via})
}

// lost reports to the log and the manager why the tree is given up.
func (s *stepper) lost(l *session.Loss) {
	s.host.cfg.Log.Warn("lost a tree",
		slog.String("communicator", s.name), slog.Uint64("epoch", uint64(l.Epoch)), slog.Any("parent", l.Parent),
		slog.Bool("above", l.Said), slog.Uint64("chunk", uint64(l.Chunk)), slog.Int("probes", l.Probes),
		slog.Duration("over", l.Over), slog.Duration("quiet", l.Quiet))
	s.report(manager.Report{Lost: l.Epoch, Silent: !l.Said, Reason: l.String()})
}

// called takes a call of a child in the tree of hosts, or returns why not.
func (c *Communicator) called(k *caller) (refusal string) {
	l := c.childLink(k)
	if l == nil {
		return c.members[c.rank].process() + " is not the caller's parent in the tree of hosts"
	}
	return l.called(k)
}

// met reports whether a caller's communicator is another one than that which
// has taken its place here: it calls this one's successor.
func (c *Communicator) met(k *caller) bool {
	l := c.childLink(k)
	return l != nil && l.metAnother(k)
}

// childLink returns the link to the child that a caller says it is, or nil.
func (c *Communicator) childLink(k *caller) *link {
	l := c.links[int(k.rank)]
	if l == nil || l.calls || int(k.of) != c.rank || l.name != k.conn.Peer().Name {
		return nil
	}
	return l
}

// post gives the loop an item. After the communicator's end it is dropped.
func (c *Communicator) post(i item) {
	// The only errors are that the loop has ended, which ends all else, too.
	_ = c.loop.Post(context.Background(), i)
}
