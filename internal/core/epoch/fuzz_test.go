package epoch

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// FuzzFrames gives a member any frames, from its parent, its child and a
// stranger. The epoch only rises, and what is kept stays bounded.
func FuzzFrames(f *testing.F) {
	script := []string{
		"collect round=1", "report round=1 base=4 offers=2 held=5 lack=4", "decide round=1 epoch=3 base=4 held=5 give=5",
		"fill round=1 chunk=5", "alarm epoch=1", "holding epoch=4", "fail dead", "fail disagree", "fail revoked rank=1", "notice group=7",
	}
	var all []byte
	for i, line := range script {
		words, fields := parse(line)
		var b []byte
		switch m := frameOf(words, fields).(type) {
		case interface{ Append([]byte) []byte }:
			b = m.Append(nil)
		default:
			b = wire.AppendGoodbye(nil)
		}
		one := append([]byte{byte(3 * (i & 1)), byte(len(b))}, b...)
		f.Add(one)
		all = append(all, one...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		trial := newTrial()
		trial.do("offer 2", "offer 4")
		epoch := trial.c.Epoch()
		for len(data) >= 2 {
			from, n := uint32(data[0]), min(int(data[1]), len(data)-2)
			frame := data[2 : 2+n]
			data = data[2+n:]
			m, err := wire.ReadFrame(frame)
			if _, packet := m.([]byte); err != nil || packet {
				continue
			}
			trial.out.Reset()
			trial.c.Step(0, []Input{{Kind: Message, From: from, Frame: m}}, &trial.out)
			if e := trial.c.Epoch(); e < epoch {
				t.Fatalf("epoch %d after %d", e, epoch)
			} else {
				epoch = e
			}
		}
		for i := range trial.c.children {
			if n := len(trial.c.children[i].holding); n > wire.MaxOffers {
				t.Errorf("%d offers of a child are kept", n)
			}
		}
		for _, s := range trial.out.Sends {
			if _, err := wire.ReadFrame(s.Frame); err != nil {
				t.Errorf("it sends %x: %v", s.Frame, err)
			}
		}
	})
}

// TestOffersAreBounded: a manager that offers without end, also while a report
// waits for its decision, costs no memory, and the report can be read.
func TestOffersAreBounded(t *testing.T) {
	trial := newTrial()
	offers := func(from, to uint32) {
		for e := from; e < to; e += 2 {
			trial.c.Step(0, []Input{{Kind: Offered, Link: session.Link{Epoch: e}}}, &trial.out)
		}
	}
	trial.c.cfg.Children, trial.c.children = nil, nil
	offers(2, 100)
	reported := trial.do("from 0 collect round=1")
	if want := "report round=1 base=0 offers=[84 86 88 90 92 94 96 98]"; !strings.Contains(reported, want) {
		t.Errorf("%s, want %s", reported, want)
	}
	offers(100, 1000)
	if n := len(trial.c.offers); n > 2*wire.MaxOffers {
		t.Errorf("%d offers are kept", n)
	}
	// What was reported can still be decided upon.
	if got := trial.do("from 0 decide round=1 epoch=84"); !strings.Contains(got, "enter 84 over switches") {
		t.Error(got)
	}
}
