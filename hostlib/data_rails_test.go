package hostlib

import (
	"net/netip"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

// TestDataPlane: sockets for packets to switches are on all addresses where rails have several,
// and the user has given the rails and no address for data.
func TestDataPlane(t *testing.T) {
	for name, c := range map[string]struct {
		listens, data  string
		given          bool // the rails are Config.Rails
		rails          []string
		bind, reported string
		only, follows  bool
	}{
		"no rails":          {"10.0.0.1:7", "", false, []string{"10.0.0.1:7"}, "10.0.0.1", "10.0.0.1", false, false},
		"two rails":         {"10.0.0.1:7", "", true, []string{"10.0.0.1:7", "10.1.0.1:0"}, "0.0.0.0", "10.0.0.1", true, true},
		"another rail":      {"10.0.0.1:7", "", true, []string{"10.1.0.1:0"}, "0.0.0.0", "10.0.0.1", true, true},
		"the rail itself":   {"10.0.0.1:7", "", true, []string{"10.0.0.1:7"}, "10.0.0.1", "10.0.0.1", false, false},
		"of both kinds":     {"10.0.0.1:7", "", true, []string{"10.0.0.1:7", "10.0.0.1:9"}, "10.0.0.1", "10.0.0.1", false, false},
		"IPv6":              {"[fd00::1]:7", "", true, []string{"[fd00::1]:7", "[fd01::1]:0"}, "::", "fd00::1", true, true},
		"with data":         {"10.0.0.1:7", "10.0.0.9", true, []string{"10.0.0.1:7", "10.1.0.1:0"}, "10.0.0.9", "10.0.0.9", false, false},
		"on all addresses":  {"0.0.0.0:7", "", false, []string{"10.0.0.1:7", "10.1.0.1:7"}, "0.0.0.0", "0.0.0.0", false, true},
		"all, and two":      {"0.0.0.0:7", "", true, []string{"10.0.0.1:7", "10.1.0.1:7"}, "0.0.0.0", "0.0.0.0", true, true},
		"data on all, none": {"10.0.0.1:7", "0.0.0.0", false, nil, "0.0.0.0", "0.0.0.0", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Listen: c.listens}
			if c.data != "" {
				config.Data = netip.MustParseAddr(c.data)
			}
			var made []rails.Rail
			for _, a := range c.rails {
				made = append(made, rails.Rail{Rail: rail.Rail{Address: netip.MustParseAddrPort(a)}})
				if c.given {
					config.Rails = append(config.Rails, Rail{Address: a})
				}
			}
			var d dataPlane
			err := d.init(&config, c.listens, made)
			if err != nil || d.bind.String() != c.bind || d.reported.String() != c.reported || d.only != c.only || d.followsRails() != c.follows {
				t.Errorf("sockets on %v, reported %v, only rails %v, from rails %v, %v", d.bind, d.reported, d.only, d.followsRails(), err)
			}
		})
	}
}
