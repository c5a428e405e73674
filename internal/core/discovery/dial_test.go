package discovery

import (
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
