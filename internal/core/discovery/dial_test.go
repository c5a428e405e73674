package discovery

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// dialing returns a core that has dialled its seeds.
func dialing(t *testing.T, seeds ...string) *trial {
	t.Helper()
	tr := newTrial(t, Config{Seeds: seeds, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}})
	tr.step()
	return tr
}

// do carries out commands of transcripts.
func (t *trial) do(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(t.command(l))
	}
	return b.String()
}

// An agent that is back at another address is dialled there as soon as it is announced.
func TestAgentBackAtAnotherAddress(t *testing.T) {
	for name, silent := range map[string][]string{
		"its link was down": {"report 10.0.0.9:74 leaf-9 | e1 down"},
		"it was not heard":  {"report 10.0.0.9:74 leaf-9 | e1 up"},
		"it was heard":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, "10.0.0.9:74")
			tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "wait 1s",
				"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s",
				"lose 10.0.0.1:74", "fail 10.0.0.1:74", "wait 1s")
			tr.do(silent...)
			text := tr.do("wait 1s", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.5:74")
			if !strings.Contains(text, "dial 10.0.0.5:74\n") {
				t.Errorf("leaf-0 announces 10.0.0.5:74, and is away:\n%s", text)
			}
		})
	}
}

// A switch is dialled that has its address only after its first announcement, as by DHCP,
// or whose agent starts after its LLDP.
func TestAddressComesLater(t *testing.T) {
	for name, first := range map[string]string{"no address": "leaf-0/e1", "outside": "leaf-0/e1,at=192.168.0.1:74", "no agent": "leaf-0/e1,at=10.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, "10.0.0.9:74")
			text := tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > "+first, "wait 1s",
				"report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74")
			if !strings.Contains(text, "dial 10.0.0.1:74\n") {
				t.Errorf("10.0.0.1:74 is announced:\n%s%v", text, tr.c.Alarms())
			}
		})
	}
}

// A switch that is away is dialled at once when a neighbour hears it again, in another way, or
// sees its link come up; what repeats is no news.
func TestHeardAnewIsDialledAtOnce(t *testing.T) {
	for name, x := range map[string]struct {
		before, news string
		retried      bool
	}{
		"heard again":            {"leaf-9 | e1 up", "leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", true},
		"with another MAC":       {"leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,mac=02:00:00:00:00:01", "leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,mac=02:00:00:00:00:02", true},
		"with another chassis":   {"leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,chassis=new", true},
		"by another port":        {"leaf-9 | e1 up | e2 up", "leaf-9 | e1 up | e2 up > leaf-0/e2,at=10.0.0.1:74", true},
		"its link comes up":      {"leaf-9 | e1 down", "leaf-9 | e1 up", true},
		"its link goes down":     {"leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "leaf-9 | e1 down", false},
		"as before":              {"leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", false},
		"somebody else is heard": {"leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74 h0/e", false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, "10.0.0.9:74")
			tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "wait 1s",
				"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s", "lose 10.0.0.1:74",
				"report 10.0.0.9:74 "+x.before, "fail 10.0.0.1:74", "wait 1m", "fail 10.0.0.1:74")
			text := tr.do("report 10.0.0.9:74 " + x.news)
			if strings.Contains(text, "retry 10.0.0.1:74\n") != x.retried {
				t.Errorf("retried: want %v\n%s", x.retried, text)
			}
		})
	}
}

// A switch that has never answered is dialled at once, too, when it is heard anew.
func TestNeverReachedIsDialledAtOnce(t *testing.T) {
	tr := dialing(t, "10.0.0.9:74")
	tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,mac=02:00:00:00:00:01", "wait 1s",
		"fail 10.0.0.1:74", "wait 1m")
	text := tr.do("report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,mac=02:00:00:00:00:02")
	if !strings.Contains(text, "retry 10.0.0.1:74\n") {
		t.Errorf("%s", text)
	}
}

// Whoever announces a switch that is away again and again at a port has it dialled once in
// portPause.
func TestForgerRetriesAreBounded(t *testing.T) {
	tr := dialing(t, "10.0.0.9:74")
	tr.do("connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74", "wait 1s",
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > leaf-9/e1", "wait 1s", "lose 10.0.0.1:74", "wait 1m")
	text := ""
	for i := range 100 {
		text += tr.do(fmt.Sprintf("report 10.0.0.9:74 leaf-9 | e1 up > leaf-0/e1,at=10.0.0.1:74,about=%d", i), "wait 10ms")
	}
	if n := strings.Count(text, "retry"); n == 0 || n > 6 {
		t.Errorf("%d retries in a second", n)
	}
}

// However many silent addresses are announced, also at several ports, others are dialled at
// once: what is known and what is new.
func TestSilentAddressesDelayNoOthers(t *testing.T) {
	tr := dialing(t, "10.0.0.9:74")
	line := "report 10.0.0.9:74 leaf-9"
	for p := range 8 {
		line += fmt.Sprintf(" | e%d up >", p)
		for n := range 16 {
			line += fmt.Sprintf(" x%d-%d/e,at=10.0.0.%d:74", p, n, 100+16*p+n)
		}
	}
	tr.do("connect 10.0.0.9:74", line+" | e9 up > leaf-1/e1,at=10.0.0.1:74", "wait 1s",
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-1 | e1 up > leaf-9/e9", "wait 30s")
	check(t, tr.c)
	if text := tr.do(line + " | e9 up > leaf-1/e1,at=10.0.0.1:74 | e10 up > leaf-2/e1,at=10.0.0.2:74"); !strings.Contains(text, "dial 10.0.0.2:74\n") {
		t.Errorf("a new switch is not dialled, and %d dials are under way:\n%s", tr.c.calls.open, text)
	}
	text := tr.do("lose 10.0.0.1:74", "wait 1s", line+" | e9 up > leaf-1/e1,at=10.0.0.3:74")
	if !strings.Contains(text, "dial 10.0.0.3:74\n") {
		t.Errorf("a switch that is known is not dialled at its new address, and %d dials are under way:\n%s", tr.c.calls.open, text)
	}
}

// However many seeds are silent, what others announce is dialled at once; and however many
// strangers are, seeds are.
func TestSilentSeedsDelayNoOthers(t *testing.T) {
	seeds := []string{"10.0.0.9:74"}
	for i := range 100 {
		seeds = append(seeds, fmt.Sprintf("10.0.0.%d:74", 100+i))
	}
	tr := dialing(t, seeds...)
	text := tr.do("wait 1m", "connect 10.0.0.9:74", "report 10.0.0.9:74 leaf-9 | e1 up > leaf-1/e1,at=10.0.0.1:74", "wait 10ms")
	if !strings.Contains(text, "dial 10.0.0.1:74\n") {
		t.Errorf("%d dials are under way:\n%s", tr.c.calls.open, text)
	}
}
