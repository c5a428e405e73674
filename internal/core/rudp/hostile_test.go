package rudp

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"
)

// TestProbeOfAFullLog: a connection with as many packets in flight as it counts goes on probing,
// and ends when nothing is acknowledged.
func TestProbeOfAFullLog(t *testing.T) {
	cfg := Config{SendBuffer: 64 << 20, ReceiveBuffer: 64 << 20}
	w, a, _ := newWorld(cfg, cfg, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	w.run(100 * time.Millisecond)
	a.congestion.window = 100 << 20
	a.out.dead = true
	for i := 0; a.log.next-a.log.first < maxSent && i < 100; i++ {
		if _, err := a.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		w.step(a)
		w.run(time.Millisecond)
	}
	if !a.log.full() {
		t.Fatal("the log is not full")
	}
	var out Output
	for range 100_000 {
		w.now = max(w.now, a.Deadline())
		if a.Step(w.now, nil, &out); a.State() == Ended {
			return
		}
		out.Reset()
		if a.Deadline() <= w.now {
			t.Fatalf("it is due at %v, and stepped then", a.Deadline())
		}
	}
	t.Error("it does not end")
}

// TestCloseWithAShutWindow: a connection that was closed ends, though the peer acknowledges all
// that comes, and takes nothing.
func TestCloseWithAShutWindow(t *testing.T) {
	w, a, _ := newWorld(Config{}, Config{ReceiveBuffer: 5000}, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	if _, err := a.Write(make([]byte, 20000)); err != nil {
		t.Fatal(err)
	}
	w.step(a)
	w.run(time.Second)
	a.Close(w.now)
	w.step(a)
	w.run(time.Minute)
	if a.State() != Ended {
		t.Errorf("a minute after Close: %v", a.State())
	}
}

// TestGapsAreBounded: bytes that come in with gaps between all of them take bounded memory, and
// what is dropped for that is not acknowledged.
func TestGapsAreBounded(t *testing.T) {
	c, err := Answer(Config{}, 1, 1, Call(Config{}, 1, 2).connect)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	for i := range 3 * maxGaps {
		b := make([]byte, dataHead+1)
		putData(b, flagCounts, 0, uint32(i), 1, uint32(i), uint64(2<<20-2-2*i))
		c.Step(2, [][]byte{b}, &out)
		out.Reset()
	}
	if n := len(c.receive.there); n != maxGaps {
		t.Errorf("%d ranges of bytes, want %d", n, maxGaps)
	}
	if n := c.receive.next(); n != maxGaps {
		t.Errorf("packets up to %d are acknowledged, want %d", n, maxGaps)
	}
	b := make([]byte, dataHead+1) // the next byte is always taken
	putData(b, flagCounts, 0, maxGaps, 1, maxGaps, 0)
	if c.Step(2, [][]byte{b}, &out); c.receive.ready != 1 {
		t.Errorf("%d bytes are ready, want 1", c.receive.ready)
	}
}

// ackOf returns an acknowledgement of n packets up to a number, and of further ranges.
func ackOf(largest, n uint32, limit uint64, ranges ...uint32) []byte {
	b := make([]byte, ackHead)
	binary.BigEndian.PutUint32(b, largest)
	binary.BigEndian.PutUint64(b[8:], limit)
	binary.BigEndian.PutUint32(b[16:], n)
	for _, x := range ranges {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

// TestHostileAcknowledgements: packets that were never sent, and ranges that cannot be, are
// malformed.
func TestHostileAcknowledgements(t *testing.T) {
	for what, b := range map[string][]byte{
		"not sent":            ackOf(10, 1, 0),
		"far from sent":       ackOf(1<<30, 1, 0),
		"more than there are": ackOf(9, 11, 0),
		"no gap":              ackOf(9, 2, 0, 0, 1),
		"an empty range":      ackOf(9, 2, 0, 1, 0),
		"below the first":     ackOf(9, 2, 0, 3, 6),
		"a gap without end":   ackOf(9, 2, 0, math.MaxUint32, 1),
		"a window":            ackOf(9, 2, math.MaxUint64),
	} {
		var a acknowledgement
		if err := a.parse(b, 10); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var a acknowledgement
	if err := a.parse(ackOf(9, 2, 5, 3, 5), 10); err != nil || a.count != 2 || a.ranges[0] != (span{8, 10}) || a.ranges[1] != (span{0, 5}) {
		t.Errorf("%v, %v", err, a.ranges[:a.count])
	}
}

// TestHostileBytes: bytes beyond the window or the end of the stream, and another end, are not
// accepted.
func TestHostileBytes(t *testing.T) {
	body := make([]byte, 10)
	for what, test := range map[string]struct {
		r  receiver
		p  dataPacket
		ok bool
	}{
		"up to the window":   {receiver{limit: 30}, dataPacket{offset: 20, body: body}, true},
		"beyond the window":  {receiver{limit: 29}, dataPacket{offset: 20, body: body}, false},
		"up to the end":      {receiver{limit: 99, end: 30, ended: true}, dataPacket{offset: 20, body: body}, true},
		"beyond the end":     {receiver{limit: 99, end: 29, ended: true}, dataPacket{offset: 20, body: body}, false},
		"the end again":      {receiver{limit: 99, end: 30, ended: true}, dataPacket{flags: flagFin, offset: 20, body: body}, true},
		"an earlier end":     {receiver{limit: 99, end: 31, ended: true}, dataPacket{flags: flagFin, offset: 20, body: body}, false},
		"an end before some": {receiver{limit: 99, there: ranges{{40, 50}}}, dataPacket{flags: flagFin, offset: 20, body: body}, false},
		"an end behind all":  {receiver{limit: 99, there: ranges{{40, 50}}}, dataPacket{flags: flagFin, offset: 40, body: body}, true},
	} {
		if ok := test.r.accepts(&test.p); ok != test.ok {
			t.Errorf("%s: accepted: %v", what, ok)
		}
	}
}

// TestRangesFitAnAcknowledgement: of more ranges of numbers than an acknowledgement has room for,
// the latest stay; and what the sender needs no more is forgotten.
func TestRangesFitAnAcknowledgement(t *testing.T) {
	var r receiver
	for n := range uint32(3 * maxRanges) {
		r.number(1, &dataPacket{number: 2 * n})
	}
	if n := r.ackSize(); n != maxAckSize {
		t.Errorf("%d bytes, want %d", n, maxAckSize)
	}
	if n := r.next(); n != 6*maxRanges-1 {
		t.Errorf("the largest is %d", n-1)
	}
	r.number(1, &dataPacket{number: 6 * maxRanges, low: 6*maxRanges - 2})
	if len(r.numbers) != 2 {
		t.Errorf("%v are left", r.numbers)
	}
}

// TestFirstWindow: a peer that is not known yet has the first window; then the whole one.
func TestFirstWindow(t *testing.T) {
	cfg := Config{ReceiveBuffer: 1 << 20, FirstWindow: 10_000}
	w, a, b := newWorld(Config{}, cfg, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	if _, err := a.Write(make([]byte, 500_000)); err != nil {
		t.Fatal(err)
	}
	w.step(a)
	w.run(time.Second)
	if n := b.receive.readable(); n != 10_000 {
		t.Errorf("%d bytes have come", n)
	}
	if n := len(b.receive.buffer.b); n > 1<<14 {
		t.Errorf("they take %d bytes of memory", n)
	}
	b.Grow()
	w.step(b)
	w.run(time.Second)
	if n := b.receive.readable(); n != 500_000 {
		t.Errorf("%d bytes have come after Grow", n)
	}
}
