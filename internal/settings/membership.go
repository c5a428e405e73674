package settings

import (
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/hostlib/membership"
	"github.com/tributary-fabric/tributary/topology"
)

// Membership is a process's place in the zone of its hosts.
type Membership struct {
	Name      string // in the zone; empty: the process is in none
	Listen    string // "host:port"
	Advertise string // "host:port"; empty: where it listens
	Bootstrap []string
	Zone      uint32
	Keys      string // path of a file, as membership.ReadKeys reads it; empty: no keys
	Encrypt   bool
	State     string // path of the file that keeps the incarnation; empty: none
}

// Given reports whether the process is in a zone.
func (m Membership) Given() bool { return m.Name != "" }

// Config returns the node's configuration, with the keys that the file has.
func (m Membership) Config() (c membership.Config, err error) {
	c = membership.Config{
		Name: m.Name, Listen: m.Listen, Advertise: m.Advertise, Bootstrap: m.Bootstrap, Zone: m.Zone, Encrypt: m.Encrypt, State: m.State,
	}
	if m.Keys != "" {
		if c.Keys, err = membership.ReadKeys(m.Keys); err != nil {
			return c, err
		}
	}
	return c, c.Validate()
}

// membership reads the place in a zone.
func (d *document) membership(to *Membership) func(field) {
	return func(f field) {
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"name": d.into(&to.Name), "listen": d.address(&to.Listen), "advertise": d.address(&to.Advertise),
			"bootstrap": func(f field) {
				d.list(f, func(f field) {
					var a string
					d.address(&a)(f)
					to.Bootstrap = append(to.Bootstrap, a)
				})
			},
			"zone": func(f field) {
				if n, ok := d.integer(f, 0, math.MaxUint32); ok {
					to.Zone = uint32(n)
				}
			},
			"keys": d.filePath(&to.Keys), "encrypt": d.boolean(&to.Encrypt), "state": d.filePath(&to.State),
		})
		switch {
		case len(d.errs) > before:
		case to.Name == "" || to.Listen == "":
			d.failf(f, "name and listen are needed together")
		case to.Encrypt && to.Keys == "":
			d.failf(f, "encrypt needs keys")
		default:
			c := membership.Config{Name: to.Name, Listen: to.Listen, Advertise: to.Advertise, Bootstrap: to.Bootstrap}
			if err := c.Validate(); err != nil {
				d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
			}
		}
	}
}
