package scoll

import (
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// Access says which hosts may do what with a service on this node. The zero Access is for
// all that this host takes connections from: where hosts have certificates, those of the
// same authorities.
type Access struct {
	Call   Rule // who may broadcast requests that the service runs
	Create Rule // who may make and destroy groups, also by Broadcast.Last unless they are out-of-band; the zero Rule: who may call
}

// Rule is for some hosts. The zero Rule is for all.
type Rule struct {
	name string
	is   func(Caller) bool
}

// Caller is the root of a request that comes from another node.
type Caller struct {
	Node string // its name
	Host string // whom its certificate names: the same, but of a host's several processes
	// IsProven says that the root has shown that it is that host, by its certificate.
	// Without certificates it is what the sender says.
	IsProven bool
}

// AnyHost is the rule for all.
func AnyHost() Rule { return Rule{} }

// NoHost is the rule for nobody: only this node itself may.
func NoHost() Rule { return Rule{name: "no host", is: func(Caller) bool { return false }} }

// Hosts is the rule for the hosts of these names.
func Hosts(names ...string) Rule {
	names = slices.Clone(names)
	return Rule{
		name: "hosts " + strings.Join(names, ", "),
		is:   func(c Caller) bool { return slices.Contains(names, c.Host) },
	}
}

// HostsLike is the rule for hosts whose names match one of the patterns, of package path:
// by their names hosts have roles, as in "ctl-*". A malformed pattern is for nobody.
func HostsLike(patterns ...string) Rule {
	patterns = slices.Clone(patterns)
	return Rule{
		name: "hosts like " + strings.Join(patterns, ", "),
		is: func(c Caller) bool {
			return slices.ContainsFunc(patterns, func(p string) bool {
				ok, err := path.Match(p, c.Host)
				return ok && err == nil
			})
		},
	}
}

// RuleOf is a rule of the caller's own: is reports who it is for. It is called with the
// node's lock held: it neither waits nor calls anything of this package. The name is for
// errors and logs.
func RuleOf(name string, is func(Caller) bool) Rule { return Rule{name: name, is: is} }

// String returns what the rule is called.
func (r Rule) String() string {
	if r.is == nil {
		return "any host"
	}
	return r.name
}

// Allows reports whether the rule is for a caller.
func (r Rule) Allows(c Caller) bool { return r.is == nil || r.is(c) }

// allow returns the rules of a service as its core asks for them.
func (n *Node) allow(id ServiceID, a Access) func(broadcast.Caller) string {
	if a.Create.is == nil {
		a.Create = a.Call
	}
	if a.Create.is == nil {
		return nil
	}
	return func(c broadcast.Caller) string {
		caller := Caller{Node: string(c.Root), Host: peering.HostOf(string(c.Root)), IsProven: n.host.IsCertified()}
		switch {
		case c.Calls && !a.Call.Allows(caller):
			return fmt.Sprintf("rule %q does not let %s call service %d", a.Call, caller.Node, id)
		case c.Creates && !a.Create.Allows(caller):
			return fmt.Sprintf("rule %q does not let %s make or destroy groups of service %d", a.Create, caller.Node, id)
		}
		return ""
	}
}

// denials log requests that were refused for who sent them: what others cause, at most one
// line a second.
type denials struct {
	mu         sync.Mutex
	last       time.Time
	suppressed int
}

// report logs the denials of a step.
func (d *denials) report(log *slog.Logger, now time.Time, all []broadcast.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		if now.Sub(d.last) < time.Second {
			d.suppressed++
			continue
		}
		c := &all[i]
		log.Warn("a request was refused for who sent it",
			slog.String("status", c.Status.String()), slog.String("root", string(c.Root)), slog.String("from", string(c.From)),
			slog.Uint64("service", uint64(c.Service)), slog.String("reason", c.Reason), slog.Int("suppressed", d.suppressed))
		d.last, d.suppressed = now, 0
	}
}
