package neighbor

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// cable is a link between port 1 of two machines, a frame's way over which takes a while
// that varies, and which loses some.
type cable struct {
	t      *rapid.T
	now    core.Time
	ends   [2]*Core
	least  [2]time.Duration // of the way from either end
	jitter int              // nanoseconds
	loss   int              // percent
	hold   int              // of a response: nanoseconds at most
	flight []frame
	last   [2]core.Time  // arrival, of the frames from either end
	most   time.Duration // of the ways of a request and its response that was heard
	ways   map[uint64]time.Duration
}

type frame struct {
	at core.Time
	to int
	in Input
}

func newCable(t *rapid.T) *cable {
	c := &cable{t: t, ways: map[uint64]time.Duration{}}
	for i := range c.ends {
		core, err := New(Config{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		c.ends[i] = core
		c.least[i] = time.Duration(rapid.IntRange(100, 100_000).Draw(t, "way"))
	}
	c.jitter, c.loss, c.hold = rapid.IntRange(1, 50_000).Draw(t, "jitter"), rapid.IntRange(0, 60).Draw(t, "loss"), rapid.IntRange(0, 2_000_000).Draw(t, "hold")
	return c
}

// mac is the address of an end's port.
func mac(end int) [6]byte { return [6]byte{2, 5: byte(end)} }

func (c *cable) plug(end int, up bool) {
	own := announcement([]string{"x", "y"}[end], "p1")
	own.Tributary = lldpdu.Tributary{Role: lldpdu.Switch, Name: own.Chassis.Value}
	c.step(end, Input{Kind: Set, Port: 1, Up: up, MAC: mac(end), Own: own})
}

func (c *cable) step(end int, in ...Input) {
	var out Output
	c.ends[end].Step(c.now, in, &out)
	var sent []Input
	for _, s := range out.Sends {
		f := Input{Kind: Heard, Port: 1, MAC: mac(end), Data: s.PDU}
		left := c.now
		switch s.Delay.Kind {
		case lldpdu.DelayResponse:
			left = c.now.Add(time.Duration(rapid.IntRange(0, c.hold).Draw(c.t, "hold")))
			s.Delay.Hold = left.Sub(s.Received)
		case lldpdu.DelayRequest:
			sent = append(sent, Input{Kind: Sent, Port: 1, Nonce: s.Delay.Nonce, At: c.now})
		}
		if s.Delay.Kind != 0 {
			f.Data = withDelay(s.PDU, s.Delay)
		}
		if rapid.IntRange(1, 100).Draw(c.t, "lost") <= c.loss {
			continue
		}
		f.At = left.Add(c.least[end] + time.Duration(rapid.IntRange(0, c.jitter).Draw(c.t, "jitter")))
		f.At = max(f.At, c.last[end]) // a cable keeps the order
		c.last[end] = f.At
		if s.Delay.Kind != 0 {
			c.ways[s.Delay.Nonce] += f.At.Sub(left)
		}
		c.flight = append(c.flight, frame{f.At, 1 - end, f})
	}
	if sent != nil {
		c.step(end, sent...)
	}
}

// pass delivers what arrives within d, and steps who wants to be stepped.
func (c *cable) pass(d time.Duration) {
	for end := c.now.Add(d); ; {
		next, who := c.ends[0].Deadline().Earlier(c.ends[1].Deadline()), -1
		for i, f := range c.flight {
			if f.at < next || who < 0 && f.at == next {
				next, who = f.at, i
			}
		}
		if next > end {
			c.now = end
			return
		}
		c.now = max(c.now, next)
		if who < 0 {
			for i, e := range c.ends {
				if e.Deadline() <= c.now {
					c.step(i)
				}
			}
			continue
		}
		f := c.flight[who]
		c.flight = append(c.flight[:who], c.flight[who+1:]...)
		before, _ := c.ends[f.to].Counters(1)
		c.step(f.to, f.in)
		if after, _ := c.ends[f.to].Counters(1); after.Samples > before.Samples {
			d, _ := lldpdu.DecodeDelay(f.in.Data)
			c.most = max(c.most, c.ways[d.Nonce])
		}
	}
}

// TestDelayOfACable: what two machines measure lies between the shortest way that there is
// and the longest that was taken, up to an eighth; loss and holds change nothing in that.
func TestDelayOfACable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCable(t)
		c.plug(0, true)
		c.plug(1, true)
		c.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		least, most := (c.least[0]+c.least[1])/2, c.most/2
		for i, e := range c.ends {
			d := e.Delay(1)
			counters, _ := e.Counters(1)
			if counters.Unasked+counters.Implausible+counters.Strangers > 0 && c.loss == 0 {
				t.Fatalf("end %d: %+v", i, counters)
			}
			if d != 0 && (d < least-least/8-1 || d > most+most/8) || counters.Samples > 0 && d == 0 && c.loss == 0 {
				t.Fatalf("end %d measured %v in %d samples, and the way takes %v to %v", i, d, counters.Samples, least, most)
			}
		}
		if c.loss == 0 && (len(c.ends[0].Neighbors(1)) != 1 || len(c.ends[1].Neighbors(1)) != 1) {
			t.Fatal("they do not know each other")
		}
		c.plug(0, false)
		if len(c.ends[0].Neighbors(1)) > 0 || c.ends[0].Delay(1) != 0 {
			t.Fatal("a port that is down has a neighbour, or a delay")
		}
	})
}

// TestForgedResponses: responses that the neighbour has not sent, from whatever address,
// with whatever nonce and hold, do not count.
func TestForgedResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trial := newTrial(Config{Seed: rapid.Uint64().Draw(t, "seed")})
		trial.do("set 1", "hear 1 b role=switch")
		for range rapid.IntRange(1, 30).Draw(t, "times") {
			if rapid.Bool().Draw(t, "sent") {
				trial.do("sent 1")
			}
			forged := lldpdu.Delay{Kind: lldpdu.DelayResponse, Target: [6]byte{2, 5: 1}, Nonce: rapid.Uint64().Draw(t, "nonce"),
				Hold: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "hold"))}
			a := announcement(rapid.SampledFrom([]string{"b", "c", "me"}).Draw(t, "chassis"), "q")
			a.Tributary = lldpdu.Tributary{Role: lldpdu.Switch, Name: "b"}
			pdu, err := a.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			trial.step(Input{Kind: Heard, Port: 1, MAC: [6]byte{2, 5: byte(rapid.IntRange(8, 10).Draw(t, "mac"))}, At: trial.now, Data: withDelay(pdu, forged)})
			trial.pass(time.Duration(rapid.IntRange(0, 600).Draw(t, "ms")) * time.Millisecond)
		}
		if d := trial.c.Delay(1); d != 0 {
			t.Fatalf("a delay of %v", d)
		}
	})
}
