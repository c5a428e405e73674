package servers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/sim/agenda"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// service is the number of the simulated service.
const service = 1

// port is the only one that servers use.
const port = 1

var (
	errLocal = errors.New("the transport failed here")
	errGone  = errors.New("the memory is not there")
)

// Habits are what goes wrong at a server beside its death, and how long things
// take. The zero Habits are those of a perfect server that takes no time.
type Habits struct {
	Gap      time.Duration // between two sends of a server: o
	Callback time.Duration // longest time that a callback runs
	Pull     time.Duration // longest time of a pull

	// Probabilities, from 0 to 1, each time.
	SendFails  float64 // locally; half of them were sent all the same
	PullFails  float64
	Refuses    float64 // pre-request returns an error
	NoBuffer   float64 // it posts too few buffers
	SmallRoom  float64 // or too small ones
	Fails      float64 // incoming-request returns an error, or panics
	ReplyFails float64 // incoming-reply panics
	PostFails  float64 // post-reply does
	Forgets    float64 // the service never replies
	Late       float64 // it replies after post-reply has returned
	Early      float64 // it gives a local reply first
	Twice      float64 // it replies twice
	Aborts     float64 // it aborts a request that it runs
	Replays    float64 // with a message it sends a request again that it sent before, to anybody
}

// Server is a node with one service.
type Server struct {
	crowd       *Crowd
	id          sim.NodeID
	incarnation uint64
	core        *broadcast.Core
	out         broadcast.Output
	rand        *rand.Rand
	habits      Habits

	due    agenda.Agenda[func()] // what it does later
	free   core.Time             // when the next message can be sent
	now    core.Time
	handle sim.Handle

	exposed map[uint64]uint64 // lengths by key
	replies map[uint64][]byte // of children, by request
	own     map[uint64]int    // numbers of broadcasts, by this root's requests
	old     [][]byte          // requests that it has sent
}

func (s *Server) at(t core.Time, do func()) {
	s.due.Push(t, do)
}

// upTo draws a moment within d from now.
func (s *Server) upTo(d time.Duration) core.Time {
	if d <= 0 {
		return s.now
	}
	return s.now.Add(time.Duration(s.rand.Int64N(int64(d) + 1)))
}

func (s *Server) chance(p float64) bool { return p > 0 && s.rand.Float64() < p }

// Deadline implements sim.Node.
func (s *Server) Deadline() core.Time {
	return s.core.Deadline().Earlier(s.due.Next())
}

// Step implements sim.Node. A Command is a function to call on the server, or
// an Input for its core.
func (s *Server) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	s.now, s.handle = now, h
	for i := range batch {
		d := &batch[i]
		switch v := d.Value.(type) {
		case func(*Server):
			v(s)
		case broadcast.Input:
			s.input(v)
		default:
			if d.Kind == sim.Datagram {
				s.message(d)
			}
		}
	}
	for s.due.Next() <= now {
		s.due.Pop()()
	}
	if s.core.Deadline() <= now {
		s.core.Step(now, nil, &s.out)
		s.settle()
	}
}

// message takes a message that was sent to this life: a connection is one with a
// life, and what is under way on it is lost with that.
func (s *Server) message(d *sim.Delivery) {
	if life := binary.BigEndian.Uint64(d.Bytes); life == s.incarnation && s.crowd.blocked[[2]sim.NodeID{d.From.Node, s.id}] == 0 {
		s.input(broadcast.Input{Kind: broadcast.Message, Node: s.crowd.names[d.From.Node], Bytes: d.Bytes[8:]})
	}
}

func (s *Server) input(in broadcast.Input) {
	s.core.Step(s.now, []broadcast.Input{in}, &s.out)
	s.settle()
}

// settle does, or plans, what the core has asked for.
func (s *Server) settle() {
	for _, key := range s.out.Revokes {
		delete(s.exposed, key)
	}
	for _, e := range s.out.Exposes {
		s.exposed[e.Key] = e.Length
	}
	for _, m := range s.out.Sends {
		s.send(m)
	}
	for _, p := range s.out.Pulls {
		s.at(s.upTo(s.habits.Pull), func() { s.pull(p) })
	}
	for _, c := range s.out.Calls {
		if c.Kind == broadcast.Created {
			s.crowd.created(s, c)
			continue
		}
		begins := s.upTo(s.habits.Callback / 2)
		s.at(begins, func() { s.callback(c) })
	}
	for _, e := range s.out.Ends {
		s.crowd.ended(s, e)
		delete(s.replies, e.Request)
	}
	s.out.Reset()
}

// send sends a message as soon as the one before allows.
func (s *Server) send(m broadcast.Send) {
	s.replay(m.Bytes)
	at := max(s.now, s.free)
	s.free = at.Add(s.habits.Gap)
	fails := s.chance(s.habits.SendFails)
	put := !fails || s.chance(0.5)
	done := func() {
		to, life := s.crowd.ids[m.To], uint64(0)
		living := s.crowd.servers[to]
		if living != nil {
			life = living.incarnation
		}
		blocked := s.crowd.blocked[[2]sim.NodeID{s.id, to}] > 0
		switch {
		case len(m.Bytes) == 0: // can it be reached?
			fails = fails || living == nil || blocked
		case put && !blocked:
			s.handle.Send(port, sim.Addr{Node: to, Port: port}, binary.BigEndian.AppendUint64(nil, life), m.Bytes)
		}
		in := broadcast.Input{Kind: broadcast.Sent, Number: m.Number}
		if fails {
			in.Err = errLocal
		}
		s.input(in)
	}
	s.at(at, done)
}

// replay sends, at times, a request again that it has sent before.
func (s *Server) replay(b []byte) {
	const most = 64
	var m broadcastmsg.Request
	if s.habits.Replays == 0 || m.Decode(b) != nil || m.Root == s.crowd.names[s.id] { // a root may do with its own what it likes
		return
	}
	if len(s.old) < most {
		s.old = append(s.old, bytes.Clone(b))
	} else {
		s.old[s.rand.IntN(most)] = bytes.Clone(b)
	}
	to := s.crowd.servers[s.rand.IntN(len(s.crowd.servers))]
	if to != nil && s.chance(s.habits.Replays) {
		old := s.old[s.rand.IntN(len(s.old))]
		s.handle.Send(port, sim.Addr{Node: to.id, Port: port}, binary.BigEndian.AppendUint64(nil, to.incarnation), old)
		s.crowd.replays++
	}
}

func (s *Server) pull(p broadcast.Pull) {
	in := broadcast.Input{Kind: broadcast.Pulled, Request: p.Request}
	from := s.crowd.servers[s.crowd.ids[p.From]]
	if from == nil || from.exposed[p.Key] != p.Length || s.chance(s.habits.PullFails) {
		in.Err = errGone
	}
	s.input(in)
}

// callback runs a callback; it returns after some time.
func (s *Server) callback(c broadcast.Call) {
	in := broadcast.Input{Kind: broadcast.Returned, Call: c.Kind, Request: c.Request, Child: c.Reply.Child}
	switch c.Kind {
	case broadcast.Map:
		in.Members = s.crowd.mapping[c.Index]
	case broadcast.PreRequest:
		in.Err = s.prepare(c.Request, &in)
	case broadcast.IncomingRequest:
		in.Err = s.run(c.Request)
	case broadcast.IncomingReply:
		if c.Reply.Status == broadcastmsg.OK {
			s.replies[c.Request] = append(s.replies[c.Request], c.Reply.Body...)
		}
		in.Err = s.panics(s.habits.ReplyFails)
	case broadcast.PostReply:
		if in.Err = s.panics(s.habits.PostFails); in.Err == nil {
			s.post(c.Request)
		}
	case broadcast.ReplyOut, broadcast.Created:
	}
	s.at(s.upTo(s.habits.Callback/2), func() { s.input(in) })
}
