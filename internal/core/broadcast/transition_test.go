package broadcast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// states are the phases in which n2, whose parent is n0 and whose child is n3,
// can be, and the callback that is held to keep it there; none for replying.
var states = []struct {
	name string
	held CallKind
	hold bool
}{
	{"mapping", Map, true},
	{"preparing", PreRequest, true},
	{"running", IncomingRequest, true},
	{"waiting", 0, false}, // for n3, as mute as it is
	{"reporting", IncomingReply, true},
	{"posting", PostReply, true},
	{"replying", 0, false},
	{"leaving", ReplyOut, true},
}

// events are what then happens to n2.
var events = []struct {
	name string
	do   func(c *cluster, m *testNode, request []byte, id uint64)
}{
	{"the callback returns", func(_ *cluster, m *testNode, _ []byte, _ uint64) { m.release() }},
	{"it returns an error", func(_ *cluster, m *testNode, _ []byte, _ uint64) {
		for _, call := range m.calls {
			m.errs[call.Kind] = errors.New("no")
		}
		m.release()
	}},
	{"a copy of the request", func(_ *cluster, m *testNode, request []byte, _ uint64) {
		m.step(Input{Kind: Message, Node: "n0", Bytes: request})
	}},
	{"the same from n1", func(_ *cluster, m *testNode, request []byte, _ uint64) {
		m.step(Input{Kind: Message, Node: "n1", Bytes: request})
	}},
	{"a second reply of n3", func(_ *cluster, m *testNode, request []byte, _ uint64) {
		r, _ := decodeRequest(request)
		reply := broadcastmsg.Reply{Key: r.Key, Final: true, Ran: 1}
		m.step(Input{Kind: Message, Node: "n3", Bytes: reply.Append(nil)})
	}},
	{"n3 dies", func(_ *cluster, m *testNode, _ []byte, _ uint64) { m.step(Input{Kind: Down, Node: "n3"}) }},
	{"n0 dies", func(_ *cluster, m *testNode, _ []byte, _ uint64) { m.step(Input{Kind: Down, Node: "n0"}) }},
	{"n0 reboots", func(_ *cluster, m *testNode, _ []byte, _ uint64) {
		m.step(Input{Kind: Up, Node: "n0", Incarnation: 2})
	}},
	{"abort", func(c *cluster, m *testNode, _ []byte, id uint64) {
		if err := m.Abort(c.clock, id, &m.out); err != nil {
			m.note("%v", err)
		}
		m.settleOutput()
	}},
	{"reply", func(c *cluster, m *testNode, _ []byte, id uint64) {
		if err := m.Reply(c.clock, id, []byte("r"), false, &m.out); err != nil {
			m.note("%v", err)
		}
		m.settleOutput()
	}},
	{"an hour passes", func(c *cluster, _ *testNode, _ []byte, _ uint64) { c.clock = c.clock.Add(time.Hour); c.node(2).step() }},
	{"a return that is none", func(_ *cluster, m *testNode, _ []byte, id uint64) {
		for _, kind := range []CallKind{Map, PreRequest, IncomingReply, PostReply, ReplyOut} {
			if len(m.calls) == 0 || kind != m.calls[0].Kind {
				m.step(Input{Kind: Returned, Call: kind, Request: id, Child: 5})
			}
		}
		m.step(Input{Kind: Returned, Call: PreRequest, Request: 999}, Input{Kind: Pulled, Request: id}, Input{Kind: Sent, Number: 999})
	}},
}

// table reports, for every phase and event, what n2 does, and in which phase its
// request is then.
func table() string {
	var b strings.Builder
	for _, s := range states {
		for _, e := range events {
			c := newCluster(4, binomial)
			c.world = c.members()
			group, err := c.node(0).CreateOutOfBand(testService, broadcastmsg.Index{1}, binomial)
			if err != nil {
				panic(err)
			}
			m := c.node(2)
			m.held[s.held], m.noReply = s.hold, s.name == "replying"
			c.node(3).mute = s.name == "waiting"
			if _, err := c.node(0).send(Broadcast{Group: group, Members: c.world, Payload: []byte("q")}); err != nil {
				panic(err)
			}
			request := c.node(0).queue[0].bytes
			c.settle()
			var id uint64
			for id = range m.requests {
			}
			c.trace = true
			e.do(c, m, request, id)
			after := "ended"
			if r := m.requests[id]; r != nil {
				after = r.phase.String()
			}
			for _, p := range m.queue {
				m.note("to %s: %s", p.to, describe(p.bytes))
			}
			fmt.Fprintf(&b, "%s, %s: %s\n", s.name, e.name, after)
			for line := range strings.Lines(c.log.String()) {
				b.WriteString("    " + strings.TrimPrefix(line, "n2: "))
			}
		}
	}
	return b.String()
}
