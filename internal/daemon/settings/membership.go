package settings

import (
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/topology"
)

// Membership is a process's place in the zone of its hosts.
type Membership struct {
	Name      string // in the zone; empty: the process is in none
	Listen    string // "host:port"; empty: a free port, where the others reach this host
	Advertise string // "host:port"; empty: where it listens
	Bootstrap []string
	Zone      uint32

	Management  bool     // it is a node of the management zone
	Supervisors []string // addresses of management nodes; empty: its zone has nothing above it

	TLS       TLS  // the certificate of a host of that name; the zero value: none
	Plaintext bool // without certificates and keys, other addresses than loopback are served, too

	Keys    string // path of a file, as membership.ReadKeys reads it; empty: no keys
	Encrypt bool
	State   string // path of the file that keeps the incarnation; empty: none

	Timing    membership.Timing    // zero fields have their defaults
	Hierarchy membership.Hierarchy // likewise
}

// Given reports whether the process is in a zone.
func (m Membership) Given() bool { return m.Name != "" }

// Config returns the node's configuration, with the keys that the file has.
func (m Membership) Config() (c membership.Config, err error) {
	c = m.open()
	c.Encrypt = m.Encrypt
	if m.TLS.Given() {
		files := membership.TLS(m.TLS.Files())
		c.TLS = &files
	}
	if m.Keys != "" {
		if c.Keys, err = membership.ReadKeys(m.Keys); err != nil {
			return c, err
		}
	}
	return c, c.Validate()
}

// open returns the configuration without the files and what they are for.
func (m Membership) open() membership.Config {
	return membership.Config{
		Name: m.Name, Listen: m.Listen, Advertise: m.Advertise, Bootstrap: m.Bootstrap, Zone: m.Zone,
		Management: m.Management, Supervisors: m.Supervisors, State: m.State, Timing: m.Timing, Hierarchy: m.Hierarchy, AllowPlaintext: m.Plaintext,
	}
}

// membership reads the place in a zone.
func (d *reader) membership(to *Membership) func(field) {
	return func(f field) {
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"name": d.into(&to.Name), "listen": d.address(&to.Listen), "advertise": d.address(&to.Advertise),
			"bootstrap": d.addresses(&to.Bootstrap), "management": d.boolean(&to.Management), "supervisors": d.addresses(&to.Supervisors),
			"timing": d.timing(&to.Timing), "hierarchy": d.hierarchy(&to.Hierarchy),
			"zone": count(d, &to.Zone, 0, math.MaxUint32),
			"tls":  d.tls(&to.TLS), "plaintext": d.boolean(&to.Plaintext),
			"keys": d.filePath(&to.Keys), "encrypt": d.boolean(&to.Encrypt), "state": d.filePath(&to.State),
		})
		switch {
		case len(d.errs) > before:
		case to.Name == "":
			d.failf(f, "name is missing")
		case to.Encrypt && to.Keys == "":
			d.failf(f, "encrypt needs keys")
		case to.TLS.Given() && to.Keys == "" && !to.Plaintext:
			d.failf(f, "tls does not seal datagrams: that needs keys, or plaintext: true")
		default:
			if err := to.open().Validate(); err != nil {
				d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
			}
		}
	}
}

// addresses returns a reader of a list of "host:port".
func (d *reader) addresses(to *[]string) func(field) {
	return func(f field) {
		d.list(f, func(f field) {
			var a string
			d.address(&a)(f)
			*to = append(*to, a)
		})
	}
}

// Bounds of numbers in a file; Validate knows which go together.
const (
	maxNeighbours = 64
	maxSteps      = 64
)

// timing reads the settings of a zone's protocol.
func (d *reader) timing(to *membership.Timing) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"tau": d.period(&to.Tau), "heartbeat": d.period(&to.Heartbeat), "grace": d.period(&to.Grace),
			"confirm": d.period(&to.Confirm), "dial": d.period(&to.Dial),
			"theta": count(d, &to.Theta, 1, maxNeighbours), "random": count(d, &to.Random, 1, maxNeighbours),
			"successors": count(d, &to.Successors, 1, maxNeighbours),
			"health":     d.stepsOrOff(&to.Health), "stealth": d.stepsOrOff(&to.Stealth),
		})
	}
}

// hierarchy reads the settings of what is above zones.
func (d *reader) hierarchy(to *membership.Hierarchy) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"delegates": count(d, &to.Delegates, 1, maxNeighbours), "supervisors": count(d, &to.Supervisors, 1, maxNeighbours),
			"settle": d.period(&to.Settle), "patience": d.period(&to.Patience), "retry": d.period(&to.Retry),
			"beat": d.period(&to.Beat), "silence": count(d, &to.Silence, 2, maxSteps), "linger": d.period(&to.Linger),
		})
	}
}

// stepsOrOff returns a reader of a number of steps, or of the word off for -1.
func (d *reader) stepsOrOff(to *int) func(field) {
	return func(f field) {
		if f.Text == "off" {
			*to = -1
			return
		}
		count(d, to, 1, maxSteps)(f)
	}
}
