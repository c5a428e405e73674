package servers

import (
	"encoding/binary"
	"errors"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// ErrPanic is what a driver reports a callback that panicked.
var ErrPanic = errors.New("servers: the callback panicked")

func (s *Server) panics(p float64) error {
	if s.chance(p) {
		return ErrPanic
	}
	return nil
}

// prepare is the pre-request callback: a reply is the numbers of the servers
// that ran the request, four bytes each.
func (s *Server) prepare(id uint64, in *broadcast.Input) error {
	v, err := s.core.Request(id)
	if err != nil {
		return err
	}
	if err := s.panics(s.habits.Refuses); err != nil {
		return err
	}
	for i, child := range v.Children {
		size := 4 * child.Nodes
		if s.chance(s.habits.SmallRoom) {
			size = 0
		}
		if s.chance(s.habits.NoBuffer) {
			continue
		}
		var own []byte
		if i%2 == 0 {
			own = make([]byte, size) // the service's, others are the library's
		}
		if err := s.core.PostReplyBuffer(id, i, own, size); err != nil {
			return err
		}
	}
	in.BulkRoom = v.Bulk
	return nil
}

// run is the incoming-request callback.
func (s *Server) run(id uint64) error {
	v, err := s.core.Request(id)
	if err != nil {
		return err
	}
	if err := s.panics(s.habits.Fails); err != nil {
		return err
	}
	if v.BulkStatus != broadcastmsg.OK {
		return nil
	}
	s.crowd.ran(s, binary.BigEndian.Uint64(v.Payload))
	clear(v.Payload)
	if s.chance(s.habits.Early) {
		s.reply(id, binary.BigEndian.AppendUint32(nil, uint32(s.id)))
	}
	if s.chance(s.habits.Aborts) {
		s.at(s.upTo(s.habits.Callback), func() { s.abort(id) })
	}
	return nil
}

func (s *Server) abort(id uint64) {
	if s.core.Abort(s.now, id, &s.out) == nil {
		s.settle()
	}
}

// post is the post-reply callback.
func (s *Server) post(id uint64) {
	body := binary.BigEndian.AppendUint32(s.replies[id], uint32(s.id))
	s.crowd.result(s, id, body)
	switch {
	case s.chance(s.habits.Forgets):
		return
	case s.chance(s.habits.Late):
		s.at(s.upTo(s.habits.Callback), func() { s.reply(id, body) })
		return
	}
	s.reply(id, body)
	if s.chance(s.habits.Twice) {
		s.reply(id, body)
	}
}

// reply gives a reply; that the core refuses one that comes too late, or twice,
// is its right.
func (s *Server) reply(id uint64, body []byte) {
	_ = s.core.Reply(s.now, id, body, false, &s.out)
	s.settle()
}
