package client

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// fakeManager is a manager as simple as it can be, in which a client's messages meet
// what they must not do.
type fakeManager struct {
	*rapid.T
	core  *Core
	now   core.Time
	out   Output
	up    bool // the connection
	calls bool // the client dials

	last    uint32            // number given to a group
	groups  map[uint32]uint64 // the member that created it
	numbers map[uint64]uint32 // groups by the member that created them
	watched map[place]manager.Watch
	reports map[place]manager.Report
	asked   []manager.Input // created or released, to be answered
	ended   []place         // watches of groups that are over, of which their members are to hear

	members map[uint64]*expected
	heard   int // numbers so far
}

// expected is what must hold of a member in the end.
type expected struct {
	Joined
	group   uint32
	heard   int // when it heard that
	report  manager.Report
	leaving bool
	over    bool // leaving: by a revoke
	lasting bool // it was reported so
	gone    int
}

func (d *fakeManager) step(batch ...Input) {
	d.out.Reset()
	d.core.Step(d.now, batch, &d.out)
	if d.out.Dial {
		if d.up || d.calls {
			d.Fatalf("a call while there is a connection, or a call")
		}
		d.calls = true
	}
	for _, m := range d.out.Messages {
		if !d.up {
			d.Fatalf("%T without a connection", m)
		}
		d.take(m)
	}
	for _, g := range d.out.Gone {
		d.members[g.Member].gone++
	}
	for i := range d.out.Notify {
		t := &d.out.Notify[i]
		if d.members[t.Member].gone > 0 {
			d.Fatalf("member %d gets a notice after its end", t.Member)
		}
		if t.Err != nil && IsLasting(t.Err) {
			d.members[t.Member].lasting = true
		}
	}
	for len(d.ended) > 0 {
		p := d.ended[0]
		d.ended = d.ended[1:]
		d.step(notice(p.group, p.rank, manager.ErrReleased, true))
	}
}

func (d *fakeManager) take(in manager.Input) {
	switch v := in.(type) {
	case manager.Create:
		if m := d.members[v.Req]; m.Create == nil || m.leaving {
			d.Fatalf("member %d creates a group", v.Req)
		}
		d.asked = append(d.asked, v)
	case manager.Release:
		if m := d.members[v.Req]; m.Create == nil || !m.leaving || d.groups[v.Group] != v.Req {
			d.Fatalf("member %d releases group %d, which member %d has made: %+v", v.Req, v.Group, d.groups[v.Group], m)
		}
		d.asked = append(d.asked, v)
	case manager.Watch:
		p := place{v.Group, v.Rank}
		if w, is := d.watched[p]; is && w.DataAddr == v.DataAddr {
			d.Fatalf("%+v is watched twice", p)
		}
		d.watched[p] = v
		d.reports[p] = manager.Report{}
	case manager.Unwatch:
		p := place{v.Group, v.Rank}
		w, is := d.watched[p]
		if !is {
			d.Fatalf("%+v is not watched", p)
		}
		if m := d.members[uint64(w.DataAddr.Port())]; v.Over != (m.leaving && m.over) {
			d.Fatalf("%+v of %+v", v, m)
		}
		delete(d.watched, p)
		if v.Over {
			d.end(p.group)
		}
	case manager.Report:
		p := place{v.Group, v.Rank}
		if _, is := d.watched[p]; !is {
			d.Fatalf("a report for %+v, which is not watched", p)
		}
		if r := d.reports[p]; v.Lost == 0 && r.Lost >= v.Entered { // what it said of a loss stays
			v.Lost, v.Silent, v.Reason = r.Lost, r.Silent, r.Reason
		}
		d.reports[p] = v
	}
}

// end ends a group, of which all that watch it hear.
func (d *fakeManager) end(group uint32) {
	delete(d.numbers, d.groups[group])
	for rank := range uint32(3) {
		p := place{group, rank}
		if _, is := d.watched[p]; is {
			delete(d.watched, p)
			d.ended = append(d.ended, p)
		}
	}
}

// answer answers one request, in order.
func (d *fakeManager) answer(err error) {
	if len(d.asked) == 0 {
		return
	}
	in := d.asked[0]
	d.asked = d.asked[1:]
	r := manager.Reply{Err: err}
	switch v := in.(type) {
	case manager.Create:
		if r.Req = v.Req; err == nil {
			if d.numbers[v.Req] == 0 {
				d.last++
				d.numbers[v.Req], d.groups[d.last] = d.last, v.Req
			}
			r.Group = d.numbers[v.Req]
		}
	case manager.Release:
		r.Req, r.Group = v.Req, v.Group
	}
	d.step(Input{Kind: Said, Event: manager.Event{Reply: &r}})
	if r.Err == nil && d.members[r.Req].gone == 0 {
		d.number(r.Req, r.Group) // as the members' agreement brings it
	}
}

func (d *fakeManager) number(id uint64, group uint32) {
	m := d.members[id]
	if m.leaving {
		return
	}
	if m.group != group {
		d.heard++
		m.group, m.heard = group, d.heard
	}
	d.step(Input{Kind: Number, Member: id, Group: group})
}

func (d *fakeManager) cut() {
	if !d.up && !d.calls {
		return
	}
	d.up, d.calls, d.asked = false, false, nil
	clear(d.watched)
	d.step(Input{Kind: Down, Err: errGone})
}

// some returns a member that has not left, if there is one.
func (d *fakeManager) some(leaving bool) (uint64, *expected) {
	var ids []uint64
	for id, m := range d.members {
		if m.leaving == leaving && m.gone == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		d.Skip("no such member")
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(d.T, "member")
	return id, d.members[id]
}

// TestRandom: whatever happens, a client speaks only where there is a connection,
// watches once, notifies each end once, and in the end the manager knows of every
// member what it said last.
func TestRandom(t *testing.T) {
	passing := errors.New("not now")
	rapid.Check(t, func(t *rapid.T) {
		k, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		d := &fakeManager{
			T: t, core: k, groups: map[uint32]uint64{}, numbers: map[uint64]uint32{}, watched: map[place]manager.Watch{},
			reports: map[place]manager.Report{}, members: map[uint64]*expected{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				d.T = t
				id := uint64(len(d.members) + 1)
				in := join(id, rapid.Uint32Range(0, 2).Draw(t, "rank"))
				in.Joined.Data = netip.AddrPortFrom(data.Addr(), uint16(id)) // by which it is known
				d.members[id] = &expected{Joined: *in.Joined, report: in.Joined.Report}
				d.step(in)
			},
			"number": func(t *rapid.T) { // of a member that has it from another; two may have the same for a while
				d.T = t
				if id, m := d.some(false); m.Create == nil {
					d.number(id, rapid.SampledFrom([]uint32{0, 1000, 1001, 2000 + uint32(id)}).Draw(t, "group"))
				}
			},
			"news": func(t *rapid.T) {
				d.T = t
				id, m := d.some(false)
				r := manager.Report{Demand: rapid.Uint32Range(0, 3).Draw(t, "demand")}
				switch rapid.IntRange(0, 2).Draw(t, "kind") {
				case 0:
					r.Entered, r.Transport = m.report.Entered+1, manager.HostTree
					m.report.Entered, m.report.Lost, m.report.Reason = r.Entered, 0, ""
				case 1:
					r.Lost, r.Reason = m.report.Entered, "silence"
					m.report.Lost, m.report.Reason = r.Lost, r.Reason
				}
				if r.Demand != 0 {
					m.report.Demand = r.Demand
				}
				d.step(Input{Kind: News, Member: id, Report: r})
			},
			"leave": func(t *rapid.T) {
				d.T = t
				id, m := d.some(false)
				m.leaving = true
				d.step(leave(id))
			},
			"revoke": func(t *rapid.T) {
				d.T = t
				id, m := d.some(false)
				m.leaving, m.over = true, true
				isAsking := slices.ContainsFunc(d.asked, func(in manager.Input) bool { c, is := in.(manager.Create); return is && c.Req == id })
				d.step(over(id))
				if w, is := d.watched[place{m.group, m.Rank}]; is && w.DataAddr == m.Data {
					t.Fatalf("member %d is over, and watches group %d", id, m.group)
				}
				if m.gone != 1 && !isAsking {
					t.Fatalf("member %d is over, and waits: %+v", id, m)
				}
			},
			"connect": func(t *rapid.T) {
				d.T = t
				if d.calls {
					d.up, d.calls = true, false
					d.step(Input{Kind: Up})
				}
			},
			"cut": func(t *rapid.T) { d.T = t; d.cut() },
			"lose": func(t *rapid.T) { // the manager loses its memory, and gives its numbers anew
				d.T = t
				d.last = 0
				clear(d.groups)
				clear(d.numbers)
				d.cut()
			},
			"answer": func(t *rapid.T) {
				d.T = t
				d.answer(rapid.SampledFrom([]error{nil, nil, passing, manager.ErrRequest}).Draw(t, "error"))
			},
			"forget": func(t *rapid.T) { // the manager has no such group any more
				d.T = t
				if id, m := d.some(false); m.group != 0 {
					if _, is := d.watched[place{m.group, m.Rank}]; is {
						delete(d.watched, place{m.group, m.Rank})
						delete(d.numbers, id)
						d.step(notice(m.group, m.Rank, manager.ErrUnknownGroup, true))
					}
				}
			},
			"time": func(t *rapid.T) {
				d.T = t
				d.now = d.now.Add(time.Duration(rapid.Int64Range(0, int64(6*time.Second)).Draw(t, "time")))
				d.step()
			},
			"": func(t *rapid.T) {
				d.T = t
				for id, m := range d.members {
					if m.gone > 1 || m.gone > 0 && !m.leaving {
						t.Fatalf("member %d is gone %d times: %+v", id, m.gone, m)
					}
				}
			},
		})
		d.T = t
		d.settle()
	})
}

// settle lets everything come to rest, with a manager that does what it is asked.
func (d *fakeManager) settle() {
	for range 1000 {
		switch {
		case d.calls:
			d.up, d.calls = true, false
			d.step(Input{Kind: Up})
		case len(d.asked) > 0:
			d.answer(nil)
		case d.core.Deadline() != core.Never:
			d.now = max(d.now, d.core.Deadline())
			d.step()
		default:
			d.settled()
			return
		}
	}
	d.Fatalf("it does not come to rest")
}

func (d *fakeManager) settled() {
	alive := 0
	for id, m := range d.members {
		if m.leaving {
			if m.gone != 1 {
				d.Fatalf("member %d has left, and is gone %d times", id, m.gone)
			}
			continue
		}
		alive++
		p := place{m.group, m.Rank}
		w, watched := d.watched[p]
		if watched && d.isLater(m) {
			continue // another one has its place
		}
		if watched && w.DataAddr != m.Data {
			d.Fatalf("member %d has heard last of group %d, which is watched from %v", id, m.group, w.DataAddr)
		}
		switch {
		case m.lasting: // it may have a group all the same, from a later number
		case m.Create != nil && m.group == 0:
			d.Fatalf("member %d has no group", id)
		case watched != (m.group != 0):
			d.Fatalf("member %d, group %d: watched %v", id, m.group, watched)
		case watched:
			want := m.report
			want.Group, want.Rank = m.group, m.Rank
			if d.reports[p] != want {
				d.Fatalf("member %d: the manager has %+v, it said %+v", id, d.reports[p], want)
			}
		}
	}
	if len(d.core.order) != alive {
		d.Fatalf("%d members, want %d", len(d.core.order), alive)
	}
}

// isLater reports whether another member has heard later that m's place is its own.
func (d *fakeManager) isLater(m *expected) bool {
	for _, o := range d.members {
		if !o.leaving && o.group == m.group && o.Rank == m.Rank && o.heard > m.heard {
			return true
		}
	}
	return false
}

// FuzzStep: no order of inputs, and no event of a manager's, makes the client
// panic, or speak where there is no connection.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 1, 5, 7, 1, 2, 9, 3, 4, 6, 8, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		k, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		up := false
		now := core.Time(0)
		for len(script) > 1 {
			op, v := script[0], uint32(script[1])
			script = script[2:]
			id := uint64(v % 5)
			in := Input{Kind: Kind(op % 10), Member: id, Group: v % 7, Err: errGone, Final: v%16 == 0, Over: v%3 == 0}
			switch in.Kind {
			case Join:
				in = join(id, v%3)
			case News:
				in.Report = manager.Report{Entered: v % 4, Lost: v % 3, Demand: v % 5}
			case Up:
				up = up || k.link == dialing
			case Down:
				up = false
			case Said:
				in.Event = []manager.Event{
					{Reply: &manager.Reply{Req: id, Group: v % 7}},
					{Reply: &manager.Reply{Req: id, Err: lasting[int(v)%len(lasting)]}},
					{Offer: &manager.Offer{Group: v % 7, Rank: v % 3}},
					{Links: &manager.Links{Group: v % 7, Rank: v % 3}},
					{Withdrawal: &manager.Withdrawal{Group: v % 7, Rank: v % 3}},
					{Notice: &manager.Notice{Group: v % 7, Rank: v % 3, Err: manager.ErrUnknownGroup, End: v%2 == 0}},
					{},
				}[op/10%7]
			}
			now = now.Add(time.Duration(v) * 10 * time.Millisecond)
			out.Reset()
			k.Step(now, []Input{in}, &out)
			if len(out.Messages) > 0 && !up {
				t.Fatalf("%T without a connection", out.Messages[0])
			}
			for _, m := range out.Messages {
				if w, is := m.(manager.Watch); is && w.Group == 0 {
					t.Fatal("a watch of no group")
				}
			}
		}
	})
}
