package client

import (
	"errors"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/topology"
)

// Core is the client of one host.
type Core struct {
	cfg    Config
	random core.Chance
	speed  topology.Speed // of the host
	rails  []manager.Rail // of the host
	only   bool           // manager.Watch.OnlyRails

	link    link
	redial  core.Time // of a paused link
	pause   time.Duration
	upSince core.Time
	why     error // why there is no connection; nil: none was tried, or it is up

	members map[uint64]*member
	order   []*member         // by joining
	byRank  map[place]*member // of those whose group has that number, who heard it last
	timed   []*member         // those that are waiting or leaving
	numbers uint64            // inputs of that kind so far

	now core.Time
	out *Output
}

// link is the state of the connection.
type link uint8

const (
	idle link = iota
	dialing
	up
	paused
)

// place is a member as the manager names it.
type place struct{ group, rank uint32 }

// member is one communicator.
type member struct {
	Joined
	id        uint64
	state     state
	group     uint32    // 0: not known, or none
	heard     uint64    // Core.numbers, when group was heard of
	made      uint32    // what the manager of this connection has answered Create with; 0: it has not
	asks      bool      // leaving: Create was not answered yet
	explained bool      // it knows why there is no connection
	said      uint32    // lost epoch of which the manager knows by this watch
	at        core.Time // waiting: start then; leaving: give up then
	pause     time.Duration
}

type state uint8

const (
	resting state = iota // the table's idle
	asking
	watching
	waiting
	failed
	leaving
)

// New returns a core without members.
func New(c Config) (*Core, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Core{
		cfg: c, random: core.Chance(c.Seed), redial: core.Never, members: map[uint64]*member{}, byRank: map[place]*member{},
	}, nil
}

// Deadline is when Step wants to be called next without input.
func (c *Core) Deadline() core.Time {
	at := core.Never
	if c.link == paused {
		at = c.redial
	}
	for _, m := range c.timed {
		at = at.Earlier(m.at)
	}
	return at
}

// Step takes inputs, and what is due.
func (c *Core) Step(now core.Time, batch []Input, out *Output) {
	c.now, c.out = now, out
	for i := range batch {
		c.take(&batch[i])
	}
	for _, m := range slices.Clone(c.timed) {
		switch {
		case m.at > now:
		case m.state == leaving:
			c.gone(m, errNoAnswer)
		default:
			c.start(m)
		}
	}
	if c.link == paused && c.redial <= now {
		c.dial()
	}
	c.out = nil
}

func (c *Core) take(in *Input) {
	switch in.Kind {
	case Up:
		c.connected(in.Speed)
	case Down:
		c.lost(in.Err, in.Final)
	case Said:
		c.said(&in.Event)
	case Join:
		c.join(in.Member, in.Joined)
	case Rails:
		c.railed(in.Rails, in.OnlyRails)
	default:
		if m := c.members[in.Member]; m != nil && m.state != leaving {
			c.takeOf(m, in)
		}
	}
}

func (c *Core) takeOf(m *member, in *Input) {
	switch in.Kind {
	case Number:
		c.number(m, in.Group)
	case News:
		m.learn(&in.Report)
		c.report(m)
	case Leave:
		c.leave(m, in.Over)
	default: // an unknown kind of input says nothing
	}
}

// send sends a message on the connection, which is up.
func (c *Core) send(m manager.Input) { c.out.Messages = append(c.out.Messages, m) }

func (c *Core) notify(t Notify) { c.out.Notify = append(c.out.Notify, t) }

// dial calls the manager, if there is a reason to.
func (c *Core) dial() {
	if len(c.order) == 0 {
		c.link = idle
		return
	}
	c.link, c.redial, c.out.Dial = dialing, core.Never, true
}

func (c *Core) connected(speed topology.Speed) {
	if c.link != dialing {
		return
	}
	c.link, c.why, c.upSince, c.speed = up, nil, c.now, speed
	for _, m := range c.order {
		c.start(m)
	}
}

// lost takes the end of the connection, or that there is none.
func (c *Core) lost(err error, final bool) {
	switch c.link {
	case idle, paused:
		return
	case up:
		if c.now.Sub(c.upSince) >= c.cfg.RetryMax {
			c.pause = 0 // it had worked for a while
		}
	case dialing:
	}
	isNews := c.why == nil || c.why.Error() != err.Error()
	c.why = err
	if final {
		c.link = idle
	} else {
		c.link = paused
		c.pause = c.longer(c.pause)
		c.redial = c.now.Add(c.jittered(c.pause))
	}
	for _, m := range slices.Clone(c.order) {
		m.made = 0
		switch m.state {
		case leaving:
			c.gone(m, err)
		case failed:
		default:
			c.become(m, resting)
			m.pause = 0
			if isNews || !m.explained {
				m.explained = true
				c.explain(m, err, final)
			}
		}
	}
	if len(c.order) == 0 {
		c.link, c.redial = idle, core.Never
	}
}

// longer returns the pause after a pause.
func (c *Core) longer(pause time.Duration) time.Duration {
	return min(max(2*pause, c.cfg.RetryMin), c.cfg.RetryMax)
}

// jittered returns a pause that is longer or shorter by up to a quarter, so that
// the hosts of a manager that was away do not all call at once.
func (c *Core) jittered(pause time.Duration) time.Duration {
	if c.cfg.Seed == 0 {
		return pause
	}
	return pause*3/4 + time.Duration(c.random.Below(int(pause/2)+1))
}

// join takes a new member.
func (c *Core) join(id uint64, j *Joined) {
	if id == 0 || j == nil || c.members[id] != nil {
		return
	}
	m := &member{id: id, Joined: *j, at: core.Never}
	c.members[id] = m
	c.order = append(c.order, m)
	switch c.link {
	case up:
		c.start(m)
	case paused:
		m.explained = true
		c.explain(m, c.why, false)
	case idle:
		c.dial()
	case dialing:
	}
}

// start begins or repeats what a member asks of the manager.
func (c *Core) start(m *member) {
	switch {
	case c.link != up || m.state == leaving || m.state == failed:
	case m.Create != nil && m.made == 0:
		c.become(m, asking)
		ask := *m.Create
		ask.Req = m.id
		c.send(ask)
	case m.group == 0 || m.Create != nil && m.group != m.made || c.byRank[m.place()] != m:
		c.become(m, resting)
	default:
		c.become(m, watching)
		m.said = 0
		c.watch(m)
		c.report(m)
	}
}

func (c *Core) watch(m *member) {
	c.send(manager.Watch{
		Group: m.group, Rank: m.Rank, Of: m.Of, DataAddr: m.Data, Entered: m.Report.Entered, Speed: c.speed, Rails: c.rails, OnlyRails: c.only,
	})
}

// railed takes the rails of the host, and reports them for each member that watches.
func (c *Core) railed(rails []manager.Rail, only bool) {
	if c.only == only && slices.Equal(c.rails, rails) {
		return
	}
	c.rails, c.only = rails, only
	for _, m := range c.order {
		if m.state == watching {
			c.watch(m)
		}
	}
}

func (m *member) place() place { return place{m.group, m.Rank} }

// takePlace gives m the place of its number. Two members may claim one after the
// manager has lost its memory, and has given the number of one's group to the
// other's: who heard it last is right, or will hear another one soon.
func (c *Core) takePlace(m *member) {
	if o := c.byRank[m.place()]; o != nil && o.state == watching {
		c.become(o, resting)
	}
	c.byRank[m.place()] = m
}

// leavePlace ends m's watch, in favour of another one that claims its place.
// If over, the group ends with it.
func (c *Core) leavePlace(m *member, over bool) {
	p := m.place()
	if p.group == 0 || c.byRank[p] != m {
		return
	}
	delete(c.byRank, p)
	var heir *member
	for _, o := range c.order {
		if o != m && o.group == m.group && o.Rank == m.Rank && o.state != leaving && (heir == nil || heir.heard < o.heard) {
			heir = o
		}
	}
	if heir != nil {
		c.byRank[p] = heir
	}
	if m.state != watching {
		return
	}
	c.become(m, resting)
	if heir != nil && heir.state == resting {
		c.start(heir)
	}
	if heir == nil || heir.state != watching {
		c.send(manager.Unwatch{Group: p.group, Rank: p.rank, Over: over})
	}
}

// become changes a member's state, which ends what it waited for.
func (c *Core) become(m *member, to state) {
	if m.state == waiting || m.state == leaving {
		c.timed = slices.DeleteFunc(c.timed, func(o *member) bool { return o == m })
		m.at = core.Never
	}
	m.state = to
}

// wait has a member start again, or give up, at a time.
func (c *Core) wait(m *member, to state, at core.Time) {
	c.become(m, to)
	m.at = at
	c.timed = append(c.timed, m)
}

// fails takes that a member's request has failed.
func (c *Core) fails(m *member, err error) {
	if IsLasting(err) {
		c.become(m, failed)
		c.explain(m, err, true)
		return
	}
	m.pause = c.longer(m.pause)
	c.wait(m, waiting, c.now.Add(c.jittered(m.pause)))
	c.explain(m, err, false)
}

// explain reports to a member why it has no tree. All others of its communicator hear
// it from the lowest rank, unless they have a group that may come back.
func (c *Core) explain(m *member, err error, final bool) {
	c.notify(Notify{Member: m.id, Err: err, All: m.Create != nil && (final || m.group == 0)})
}

// learn merges news into what the member says of itself.
func (m *member) learn(r *manager.Report) {
	n := &m.Report
	if r.Entered != 0 {
		n.Entered, n.Transport = r.Entered, r.Transport
	}
	if r.Demand != 0 {
		n.Demand = r.Demand
	}
	if r.Lost != 0 {
		n.Lost, n.Silent, n.Reason = r.Lost, r.Silent, r.Reason
	}
	if n.Lost < n.Entered { // it has left that epoch, which says the same
		n.Lost, n.Silent, n.Reason = 0, false, ""
	}
}

// report reports a member's news, if the manager knows the member.
func (c *Core) report(m *member) {
	if m.state != watching {
		return
	}
	r := m.Report
	r.Group, r.Rank = m.group, m.Rank
	if r.Lost == m.said {
		r.Lost, r.Silent, r.Reason = 0, false, ""
	} else {
		m.said = r.Lost
	}
	c.send(r)
}

// number takes the number of a member's group.
func (c *Core) number(m *member, group uint32) {
	if group == m.group {
		return
	}
	c.leavePlace(m, false)
	c.numbers++
	m.group, m.heard = group, c.numbers
	if group != 0 {
		c.takePlace(m)
	}
	switch {
	case m.state == asking:
	case group == 0 && m.state == waiting && m.Create != nil: // to ask again
	case group == 0 && m.state == failed:
	case group == 0:
		c.become(m, resting)
	default:
		if m.state == failed {
			m.state = resting
		}
		m.pause = 0
		c.start(m)
	}
}

// leave ends a member. What it releases is the group that the manager of this
// connection has made for it: another number may be another's by now. If over, each member ends
// its group, and none waits for the answer.
func (c *Core) leave(m *member, over bool) {
	if c.link == up && over && m.state != asking {
		c.leavePlace(m, true)
		if m.made != 0 { // it may not watch, or the manager not know what over is
			c.release(m)
		}
		c.gone(m, nil)
		return
	}
	if c.link == up && (m.made != 0 || m.state == asking) {
		m.asks = m.made == 0
		if !m.asks {
			c.release(m)
		}
		c.wait(m, leaving, c.now.Add(c.cfg.Release))
		return
	}
	var err error
	if m.Create != nil && m.group != 0 && c.link != up {
		err = c.why // it finds out by itself that nobody watches
	}
	c.gone(m, err)
}

func (c *Core) release(m *member) { c.send(manager.Release{Req: m.id, Group: m.made}) }

var errNoAnswer = errors.New("client: the manager has not answered")

func (c *Core) gone(m *member, err error) {
	c.leavePlace(m, false)
	c.become(m, failed)
	delete(c.members, m.id)
	c.order = slices.DeleteFunc(c.order, func(o *member) bool { return o == m })
	c.out.Gone = append(c.out.Gone, Gone{m.id, err})
}

// said takes what the manager says.
func (c *Core) said(e *manager.Event) {
	if c.link != up {
		return
	}
	switch {
	case e.Reply != nil:
		c.replied(e.Reply)
	case e.Offer != nil:
		if m := c.watcher(e.Offer.Group, e.Offer.Rank); m != nil {
			m.pause = 0
			c.notify(Notify{Member: m.id, Offer: e.Offer})
		}
	case e.Withdrawal != nil:
		if m := c.watcher(e.Withdrawal.Group, e.Withdrawal.Rank); m != nil {
			c.notify(Notify{Member: m.id, Withdrawal: e.Withdrawal})
		}
	case e.Links != nil:
		if m := c.watcher(e.Links.Group, e.Links.Rank); m != nil {
			c.notify(Notify{Member: m.id, Links: e.Links})
		}
	case e.Notice != nil:
		c.noticed(e.Notice)
	}
}

// watcher returns the member that watches as a rank of a group; nil: nobody does.
func (c *Core) watcher(group, rank uint32) *member {
	if m := c.byRank[place{group, rank}]; m != nil && m.state == watching {
		return m
	}
	return nil
}

func (c *Core) replied(r *manager.Reply) {
	m := c.members[r.Req]
	switch {
	case m == nil:
	case m.state == leaving && m.asks && r.Err == nil:
		m.asks, m.made = false, r.Group
		c.release(m)
	case m.state == leaving && m.asks:
		c.gone(m, nil) // there is nothing to release
	case m.state == leaving:
		c.gone(m, r.Err)
	case m.state != asking:
	case r.Err != nil:
		c.fails(m, r.Err)
	default:
		m.made, m.pause = r.Group, 0
		c.become(m, resting)
		if r.Group == m.group {
			c.start(m)
		} else {
			c.notify(Notify{Member: m.id, Group: r.Group})
		}
	}
}

func (c *Core) noticed(n *manager.Notice) {
	m := c.watcher(n.Group, n.Rank)
	switch {
	case m == nil || n.Err == nil:
	case !n.End:
		c.notify(Notify{Member: m.id, Err: n.Err})
	default:
		m.made = 0
		c.fails(m, n.Err)
	}
}
