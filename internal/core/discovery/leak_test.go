package discovery

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// Who announces another name, chassis, port and address each time leaves nothing behind.
func TestNothingIsLeft(t *testing.T) {
	tr := newTrial(t, Config{Seeds: []string{"10.0.0.1:74"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	tr.step()
	tr.do("connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up | e2 up", "wait 1s")
	size := func() string {
		c := tr.c
		owners := map[string]int{}
		for o := range c.alarms.of {
			owners[fmt.Sprintf("%T", o)]++
		}
		return fmt.Sprintf("targets %d claims %d devices %d heard %d named %d known %d mention %d nodes %d links %d degree %d alarms %d of %v queue %d open %d retarget %d",
			len(c.targets), len(c.claims), len(c.devices), len(c.heard), len(c.named), len(c.known), len(c.mention), len(c.nodes), len(c.links), len(c.degree), len(c.alarms.all), owners, len(c.calls.queue), c.calls.open, len(c.retarget))
	}
	before := size()
	for i := range 2000 {
		at := fmt.Sprintf("10.9.%d.%d:74", i/250, i%250+1)
		tr.do(fmt.Sprintf("report 10.0.0.1:74 leaf-0 | e1 up > x%d/p%d,at=%s y%d/p | e%d up > z%d/q,at=%s", i, i, at, i%7, i%5+2, i, at))
		tr.wait(300*time.Millisecond, func() {})
		switch i % 4 {
		case 0:
			tr.do("fail " + at)
		case 1:
			tr.do("connect "+at, fmt.Sprintf("report %s x%d | p%d up > leaf-0/e1 | e7 up > h%d/e", at, i, i, i))
		case 2:
			tr.do("connect "+at, fmt.Sprintf("report %s leaf-0 chassis=evil%d | p%d up > leaf-0/e1", at, i, i))
		}
		if i%8 > 3 {
			tr.do("lose " + at)
		}
	}
	tr.do("report 10.0.0.1:74 leaf-0 | e1 up | e2 up")
	for a := range tr.dials {
		if a != "10.0.0.1:74" {
			tr.do("lose "+a, "fail "+a)
		}
	}
	tr.wait(100*time.Hour, func() {})
	tr.do("report 10.0.0.1:74 leaf-0 | e1 up | e2 up")
	tr.wait(100*time.Hour, func() {})
	if after := size(); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	if n := len(tr.c.devices["leaf-0"].ports); n != 2 {
		t.Errorf("%d ports", n)
	}
}
