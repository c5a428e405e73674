package rudp

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/core"
)

// scripted is a connection whose peer is a script.
type scripted struct {
	c      *Conn
	now    core.Time
	number uint32 // of the peer's next packet
	offset uint64
	out    Output
	log    []string
}

const (
	mine   = ID(0x0101)
	theirs = ID(0x0202)
)

var shortConfig = Config{
	Datagram: 600, SendBuffer: 4096, ReceiveBuffer: 4096,
	ConnectWithin: 2 * time.Second, LostAfter: 3 * time.Second, LingerFor: time.Second,
}

func newScripted() *scripted {
	s := &scripted{now: core.Time(time.Hour)}
	s.c = Call(shortConfig, s.now, mine)
	s.step()
	s.log = nil
	return s
}

// step steps the connection, and notes what comes out.
func (s *scripted) step(datagrams ...[]byte) {
	s.out.Reset()
	s.c.Step(s.now, datagrams, &s.out)
	for i := range s.out.Batches {
		for _, d := range apart(&s.out.Batches[i]) {
			s.log = append(s.log, describe(d))
		}
	}
	for i, name := range []string{"Opened", "Readable", "Writable", "Over"} {
		if s.out.News&(1<<i) != 0 {
			s.log = append(s.log, name)
		}
	}
}

// describe returns what a datagram is.
func describe(d []byte) string {
	k, id, err := KindOf(d)
	if err != nil {
		return err.Error()
	}
	s := k.String()
	if k == Connect && string(d[cookieAt:]) != string(make([]byte, cookieSize)) {
		s += " with cookie"
	}
	if k == Unknown || k == Retry {
		s += fmt.Sprintf(" %x", uint64(id))
	}
	if k != Data {
		return s
	}
	p, err := parseData(d)
	if err != nil {
		return err.Error()
	}
	if p.flags&flagCounts != 0 {
		s += fmt.Sprintf(" #%d", p.number)
		if len(p.body) > 0 || p.flags&flagFin != 0 {
			s += fmt.Sprintf(" [%d,%d)", p.offset, p.offset+uint64(len(p.body)))
		} else {
			s += " ping"
		}
		for i, name := range []string{"", " fin", " prompt"} {
			if p.flags&(1<<i) != 0 {
				s += name
			}
		}
	}
	if len(p.ack) > 0 {
		var a acknowledgement
		if err := a.parse(p.ack, 1<<31); err != nil {
			return err.Error()
		}
		s += " ack"
		for _, r := range a.ranges[:a.count] {
			s += fmt.Sprintf(" %d-%d", uint32(r.from), uint32(r.to-1))
		}
		s += fmt.Sprintf(" window %d", a.limit)
	}
	return s
}

// data returns a packet of the peer's.
func (s *scripted) data(flags byte, body string, ack bool) []byte {
	var room []byte
	if ack {
		r := receiver{most: 4096, ackAt: core.Never}
		if s.c.log.next > 0 {
			r.numbers = ranges{{0, s.c.log.next}}
			r.largest = s.now
		}
		room = make([]byte, r.ackSize())
		r.putAck(s.now, room)
	}
	b := make([]byte, dataHead)
	putData(b, flags, len(room), s.number, mine, 0, s.offset)
	if flags&flagCounts != 0 {
		s.number++
		s.offset += uint64(len(body))
	}
	return append(append(b, room...), body...)
}

// do carries out a command.
func (s *scripted) do(line string) string {
	s.log = nil
	args := strings.Fields(line)
	verb, rest := args[0], strings.Join(args[1:], " ")
	switch verb {
	case "retry":
		s.step(append(short(Retry, mine, cookieAt), noise(cookieSize, 1)...))
	case "accept":
		b := short(Accept, mine, acceptSize)
		(&opening{600, 4096, theirs}).put(b, 16)
		s.step(b)
	case "data":
		s.step(s.data(flagCounts, rest, false))
	case "fin":
		s.step(s.data(flagCounts|flagFin, rest, false))
	case "ack":
		s.step(s.data(0, "", true))
	case "reset":
		s.step(short(Reset, mine, resetSize))
	case "unknown":
		s.step(short(Unknown, theirs, resetSize))
	case "stranger":
		s.step(short(Reset, mine+1, resetSize))
		s.step(short(Unknown, mine, resetSize))
	case "malformed":
		s.step([]byte(rest))
	case "write":
		n, err := s.c.Write([]byte(rest))
		s.note(n, err)
		s.step()
	case "writes":
		var n int
		_, _ = fmt.Sscan(rest, &n)
		n, err := s.c.Write(make([]byte, n))
		s.note(n, err)
		s.step()
	case "acks":
		r := receiver{most: 4096, ackAt: core.Never}
		for _, arg := range args[1:] {
			var p span
			_, _ = fmt.Sscanf(arg, "%d-%d", &p.from, &p.to)
			p.to++
			r.numbers.add(p)
		}
		b := make([]byte, dataHead+r.ackSize())
		putData(b, 0, r.ackSize(), s.number, mine, 0, 0)
		r.largest = s.now
		r.putAck(s.now, b[dataHead:])
		s.step(b)
	case "read":
		b := make([]byte, 64)
		n, err := s.c.Read(b)
		s.note(string(b[:n]), err)
		s.step()
	case "shutdown":
		s.c.CloseWrite()
		s.step()
	case "close":
		s.c.Close(s.now)
		s.step()
	case "abort":
		s.c.Abort()
		s.step()
	case "pass":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err.Error()
		}
		for until := s.now.Add(d); ; s.step() {
			at := s.c.Deadline()
			if at > until {
				s.now = until
				break
			}
			s.now = max(s.now, at)
		}
	default:
		return "no command " + verb
	}
	return strings.Join(s.log, "; ")
}

func (s *scripted) note(what any, err error) {
	if err != nil {
		s.log = append(s.log, name(err))
		return
	}
	s.log = append(s.log, fmt.Sprint(what))
}

func name(err error) string {
	for text, of := range map[string]error{
		"ErrTimeout": ErrTimeout, "ErrReset": ErrReset, "ErrAborted": ErrAborted, "ErrClosed": ErrClosed, "EOF": io.EOF,
	} {
		if errors.Is(err, of) {
			return text
		}
	}
	return fmt.Sprint(err)
}

func (s *scripted) state() string {
	if err := s.c.Err(); err != nil {
		return s.c.State().String() + " " + name(err)
	}
	return s.c.State().String()
}

// situations are what a connection can be in, and how it gets there.
var situations = []struct{ name, by string }{
	{"calling", ""},
	{"calling, with cookie", "retry"},
	{"open", "accept"},
	{"open, unread", "accept; data question"},
	{"open, sent", "accept; write answer"},
	{"open, peer finished", "accept; fin question"},
	{"half closed", "accept; write answer; shutdown"},
	{"half closed, acknowledged", "accept; write answer; shutdown; ack"},
	{"closing", "accept; write answer; close"},
	{"closing, acknowledged", "accept; write answer; close; ack"},
	{"closing, peer finished", "accept; fin question; read; write answer; close"},
	{"closing, refuses", "accept; data question; write answer; close"},
	{"draining", "accept; fin question; read; close; ack"},
	{"ended", "accept; reset"},
}

var events = []string{
	"retry", "accept", "data more", "fin more", "ack", "reset", "unknown", "stranger", "malformed \x14\xff0123456789abcdefghijklmnopqrstu",
	"write more", "read", "shutdown", "close", "abort", "pass 900ms", "pass 10s",
}

// TestTransitions checks what every event brings about in every situation, by a table in
// testdata.
func TestTransitions(t *testing.T) {
	var b strings.Builder
	for _, situation := range situations {
		for _, event := range events {
			s := newScripted()
			for _, line := range strings.Split(situation.by, "; ") {
				if line != "" {
					s.do(line)
				}
			}
			out := s.do(event)
			row := fmt.Sprintf("%-28s%-12.12s%-18s%s", situation.name, strings.TrimSpace(clean(event)), s.state(), out)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	transcript.File(t, "testdata/transitions.table", clean(b.String()))
}

// clean has no bytes that are none of a text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r > '~') {
			return -1
		}
		return r
	}, s)
}

// TestTranscripts replays every conversation in testdata.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		s := newScripted()
		return transcript.BlockLines(text, func(line string) string {
			out := s.do(line)
			if out == "" {
				return ""
			}
			return strings.ReplaceAll(out, "; ", "\n") + "\n"
		})
	})
}
