package hostlib

import "testing"

// TestProcessesOfOneHost: several processes of a host, each at an address of its own, form
// groups with the same other one, in whatever order they have started.
func TestProcessesOfOneHost(t *testing.T) {
	other := joinOne(t, "h0")
	first, second := joinOne(t, "h1"), joinOne(t, "h1")
	for i, h := range []*Host{second, first, second} {
		for k, hosts := range [][]*Host{{other, h}, {h, other}} {
			members := []Member{hosts[0].Member(), hosts[1].Member()}
			comms := form(t, string(rune('a'+2*i+k)), hosts, members)
			sum(t, comms, 100)
			leave(t, comms)
		}
	}
}
