package quota

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// ErrQuota is wrapped by all refusals.
var ErrQuota = errors.New("quota: it is used up")

// Resource is what is limited.
type Resource uint8

// The resources.
const (
	Groups Resource = iota
	Slots
	Waiting
	Plans
	Resources = iota // how many
)

var resourceNames = [...]string{"groups", "slots", "waiting plans", "plans a second"}

// String returns the resource's name.
func (r Resource) String() string { return core.Name(resourceNames[:], r, "resource(?)") }

// Word returns the resource's name in settings and metrics.
func (r Resource) Word() string {
	return core.Name([]string{"groups", "slots", "waiting", "plans"}, r, "resource(?)")
}

// Scope says whose account it is.
type Scope uint8

// The scopes.
const (
	All Scope = iota
	ByLabel
	ByHost
	Scopes = iota // how many
)

var scopeNames = [...]string{"all", "label", "host"}

// String returns the scope's name.
func (s Scope) String() string { return core.Name(scopeNames[:], s, "scope(?)") }

// Refusal is why something is not admitted.
type Refusal struct {
	Resource Resource
	Scope    Scope
	Name     string // of the host or label; empty: all
	Limit    int
	Use      int           // what it has; of Plans: the limit
	Need     int           // what it asked for
	Wait     time.Duration // Plans: when it can be asked for again
}

// Unwrap returns ErrQuota.
func (r *Refusal) Unwrap() error { return ErrQuota }

// Error names the quota, its limit, the use, and what to do.
func (r *Refusal) Error() string {
	who, setting := "all hosts together", "quotas.all"
	switch r.Scope {
	case ByLabel:
		who, setting = "the hosts of label "+r.Name, "quotas.labels."+r.Name
	case ByHost:
		who, setting = "host "+r.Name, "quotas.host"
	}
	if r.Resource == Plans {
		return fmt.Sprintf("the quota of %s is %d plans a second, %d at once, and used up: ask again in %v, or have the operator raise %s.plans",
			who, r.Limit, r.Limit*Burst, r.Wait.Round(time.Millisecond), setting)
	}
	if r.Scope == All && r.Resource == Groups {
		setting = "limits"
	}
	do := map[Resource]string{Groups: "release groups", Slots: "release groups, or use smaller windows", Waiting: "wait for those"}[r.Resource]
	return fmt.Sprintf("the quota of %s is %d %s, of which %d are in use, and %d more are asked for: %s, or have the operator raise %s.%s",
		who, r.Limit, r.Resource, r.Use, r.Need, do, setting, r.Resource.Word())
}

// account is what one host, label, or all have.
type account struct {
	has  [Plans]int
	full core.Time // when nothing counts any more of the plans that were asked for
}

func (a *account) isEmpty(now core.Time) bool { return a.has == [Plans]int{} && a.full <= now }

// Book has all accounts. It is not for concurrent use.
type Book struct {
	cfg     Config
	all     account
	labels  map[string]*account
	hosts   map[string]*account
	swept   int // accounts that the last sweep has left
	refused [Scopes][Resources]uint64
}

// NewBook returns a book in which nobody has anything. The configuration is valid.
func NewBook(cfg Config) *Book {
	return &Book{cfg: cfg, labels: map[string]*account{}, hosts: map[string]*account{}}
}

// entry is an account that something of a host counts in.
type entry struct {
	scope  Scope
	name   string
	limits Limits
	*account
}

// nobody is the account of who has none yet.
var nobody account

// entries returns the accounts that what a host takes counts in. An empty name is an
// operator's. With begin, those that are not there begin.
func (b *Book) entries(host string, begin bool) []entry {
	all := []entry{{All, "", b.cfg.All, &b.all}}
	if host == "" {
		return all
	}
	find := func(in map[string]*account, name string) *account {
		a := in[name]
		if a == nil && begin {
			a = new(account)
			in[name] = a
		}
		if a == nil {
			return &nobody
		}
		return a
	}
	if l := b.cfg.labelOf(host); l != nil {
		all = append(all, entry{ByLabel, l.Name, l.Limits, find(b.labels, l.Name)})
	}
	return append(all, entry{ByHost, host, b.cfg.Host, find(b.hosts, host)})
}

// Label returns a host's label, empty if it has none, and its weight.
func (b *Book) Label(host string) (name string, weight int) {
	if l := b.cfg.labelOf(host); l != nil {
		return l.Name, max(1, l.Weight)
	}
	return "", 1
}

// Check returns why a host cannot have n more, as a *Refusal, or nil. Not of Plans.
func (b *Book) Check(host string, r Resource, n int) error {
	for _, e := range b.entries(host, false) {
		if limit := e.limits.Of(r); limit > 0 && e.has[r]+n > limit {
			return b.refuse(&Refusal{Resource: r, Scope: e.scope, Name: e.name, Limit: limit, Use: e.has[r], Need: n})
		}
	}
	return nil
}

func (b *Book) refuse(r *Refusal) error {
	b.refused[r.Scope][r.Resource]++
	return r
}

// Room returns how much more a host can have; math.MaxInt: there is no limit. Not of Plans.
func (b *Book) Room(host string, r Resource) int {
	room := math.MaxInt
	for _, e := range b.entries(host, false) {
		if limit := e.limits.Of(r); limit > 0 {
			room = min(room, max(0, limit-e.has[r]))
		}
	}
	return room
}

// Add counts what a host has taken or, with n below 0, given back. Not of Plans.
func (b *Book) Add(host string, r Resource, n int) {
	for _, e := range b.entries(host, true) {
		e.has[r] += n
	}
}

// interval is the time in which one plan is allowed.
func interval(limit int) core.Time { return core.Time(time.Second) / core.Time(limit) }

// Spend counts a plan of a host, or returns why it is not allowed yet, as a *Refusal.
func (b *Book) Spend(now core.Time, host string) error {
	b.sweep(now)
	if at, by := b.allows(now, host); at > now {
		return b.refuse(&Refusal{
			Resource: Plans, Scope: by.scope, Name: by.name, Limit: by.limits.Plans, Use: by.limits.Plans, Need: 1, Wait: at.Sub(now),
		})
	}
	for _, e := range b.entries(host, true) {
		if limit := e.limits.Plans; limit > 0 {
			e.full = max(e.full, now) + interval(limit)
		}
	}
	return nil
}

// Allows returns when a host may have its next plan: now, or later.
func (b *Book) Allows(now core.Time, host string) core.Time {
	at, _ := b.allows(now, host)
	return at
}

func (b *Book) allows(now core.Time, host string) (at core.Time, by entry) {
	at = now
	for _, e := range b.entries(host, false) {
		limit := e.limits.Plans
		if limit == 0 {
			continue
		}
		if from := max(e.full, now) + interval(limit) - Burst*core.Time(limit)*interval(limit); from > at {
			at, by = from, e
		}
	}
	return at, by
}

// sweep forgets accounts in which nothing counts, once there are many more than were left
// the last time: hosts come and go.
func (b *Book) sweep(now core.Time) {
	if len(b.hosts) < 2*b.swept+64 {
		return
	}
	for _, in := range []map[string]*account{b.labels, b.hosts} {
		for name, a := range in {
			if a.isEmpty(now) {
				delete(in, name)
			}
		}
	}
	b.swept = len(b.hosts)
}

// Refused returns how often something was refused.
func (b *Book) Refused() [Scopes][Resources]uint64 { return b.refused }

// Use returns what an account has; of a host or label by its name.
func (b *Book) Use(s Scope, name string, r Resource) int {
	a := map[Scope]*account{All: &b.all, ByLabel: b.labels[name], ByHost: b.hosts[name]}[s]
	if a == nil {
		return 0
	}
	return a.has[r]
}
