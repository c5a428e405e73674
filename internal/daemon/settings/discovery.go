package settings

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
)

// Discovery is how a manager discovers its fabric.
type Discovery struct {
	Core   discovery.Config // Seeds are empty: it does not
	Limits collector.Limits
	Others []Target
}

// Target is gNMI targets without an agent of Tributary.
type Target struct {
	Addresses []netip.Prefix
	Username  string
	Password  string // path of a file that has it
	TLS       TargetTLS
	Plaintext bool
}

// Given reports whether the fabric is discovered.
func (s *Discovery) Given() bool { return len(s.Core.Seeds) > 0 }

// Config reads the files that are named, and returns the configuration; nil: the fabric
// is not discovered.
func (s *Discovery) Config() (*discoverer.Config, error) {
	if !s.Given() {
		return nil, nil
	}
	c := &discoverer.Config{Core: s.Core, Limits: s.Limits}
	var errs []error
	for i := range s.Others {
		t := &s.Others[i]
		o := discoverer.Other{Addresses: t.Addresses, Username: t.Username, Plaintext: t.Plaintext}
		at := fmt.Sprintf("discovery.targets[%d]", i)
		if t.TLS.Authority != "" {
			var err error
			if o.TLS, err = t.TLS.read(); err != nil {
				errs = append(errs, fmt.Errorf("%s.%w", at, err))
			}
		}
		if t.Password != "" {
			var err error
			if o.Password, err = readPassword(t.Password); err != nil {
				errs = append(errs, fmt.Errorf("%s.password-file: %w", at, err))
			}
		}
		c.Others = append(c.Others, o)
	}
	return c, errors.Join(append(errs, c.Validate())...)
}

// discovery returns a reader of it.
func (d *reader) discovery(to *Discovery) func(field) {
	return func(f field) {
		var limits, periods field
		c, before := &to.Core, len(d.errs)
		d.object(f, map[string]func(field){
			"seeds": func(f field) {
				d.list(f, func(f field) {
					var seed string
					if d.address(&seed)(f); seed != "" {
						c.Seeds = append(c.Seeds, seed)
					}
				})
			},
			"allow":   d.prefixes(&c.Allow),
			"port":    count(d, &c.Port, 1, 65535),
			"targets": func(f field) { d.list(f, func(f field) { d.target(f, to) }) },
			"limits":  func(f field) { limits = f }, "periods": func(f field) { periods = f },
		}, "seeds!", "allow!")
		if len(c.Seeds) == 0 && len(d.errs) == before {
			d.failf(f, "seeds needs an address to begin at")
		}
		if limits != nil {
			d.object(limits, map[string]func(field){
				"dials": count(d, &c.DialRate, 1, 1<<20), "targets": count(d, &c.MaxTargets, 1, 1<<20),
				"ports": count(d, &c.MaxPorts, 1, 1<<14), "neighbours": count(d, &c.MaxNeighbors, 1, 1<<10),
				"flaps": count(d, &c.Flaps, 1, 1<<10), "updates": count(d, &to.Limits.Rate, 1, 1<<30),
			})
		}
		if periods != nil {
			d.object(periods, map[string]func(field){
				"batch": d.period(&c.Batch), "settle": d.period(&c.Settle), "confirm": d.period(&c.Confirm), "forget": d.period(&c.Forget),
				"hold": d.period(&c.Hold), "hold-max": d.period(&c.MaxHold),
				"retry-min": d.period(&to.Limits.MinRetry), "retry-max": d.period(&to.Limits.MaxRetry),
			})
		}
	}
}

// target reads how some targets are reached.
func (d *reader) target(f field, to *Discovery) {
	var t Target
	d.whole(f, map[string]func(field){
		"addresses": d.prefixes(&t.Addresses), "username": d.into(&t.Username), "password-file": d.filePath(&t.Password),
		"tls": d.targetTLS(&t.TLS), "plaintext": d.boolean(&t.Plaintext),
	}, func() string {
		switch {
		case t.Password != "" && t.Username == "":
			return "password-file is there, and username is missing"
		case t.Password != "" && t.TLS.Authority == "" && !t.Plaintext:
			return "the password would be sent without encryption: give tls.authority, or plaintext: true"
		}
		return ""
	}, "addresses!")
	to.Others = append(to.Others, t)
}

// prefixes returns a reader of a list of networks or addresses.
func (d *reader) prefixes(to *[]netip.Prefix) func(field) {
	return func(f field) {
		d.list(f, func(f field) {
			var p netip.Prefix
			if parsed(d, &p, ParsePrefix)(f); p.IsValid() {
				*to = append(*to, p)
			}
		})
	}
}

// ParsePrefix reads a network such as 10.0.0.0/24, or one address.
func ParsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is neither a network such as 10.0.0.0/24 nor an address", text)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%q has bits beyond its length: write %v", text, p.Masked())
	}
	return p, nil
}
