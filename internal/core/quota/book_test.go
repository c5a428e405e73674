package quota

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/core"
)

func small() Config {
	return Config{
		All:  Limits{Groups: 12, Slots: 200, Plans: 9, Waiting: 6},
		Host: Limits{Groups: 4, Slots: 60, Plans: 2, Waiting: 2},
		Labels: []Label{
			{Name: "red", Hosts: []string{"r*"}, Limits: Limits{Groups: 5, Slots: 80, Plans: 3, Waiting: 3}, Weight: 2},
			{Name: "none", Hosts: []string{"r0", "x"}}, // r0 is red already
		},
	}
}

// oracle remembers all that was done.
type oracle struct {
	cfg   Config
	taken []taken
}

type taken struct {
	host string
	r    Resource
	n    int
	at   core.Time
}

func (o *oracle) accounts(host string) map[string]Limits {
	all := map[string]Limits{"": o.cfg.All}
	if host == "" {
		return all
	}
	all["host "+host] = o.cfg.Host
	if strings.HasPrefix(host, "r") {
		all["label red"] = o.cfg.Labels[0].Limits
	} else if host == "x" {
		all["label none"] = o.cfg.Labels[1].Limits
	}
	return all
}

func (o *oracle) has(account string, r Resource) (n int) {
	for _, x := range o.taken {
		if _, in := o.accounts(x.host)[account]; in && x.r == r {
			n += x.n
		}
	}
	return n
}

// busy returns until when the plans of an account count, one after the other.
func (o *oracle) busy(account string) (until core.Time) {
	for _, x := range o.taken {
		if l, in := o.accounts(x.host)[account]; in && x.r == Plans {
			until = max(until, x.at) + core.Time(time.Second)/core.Time(l.Plans)
		}
	}
	return until
}

func (o *oracle) may(now core.Time, host string, r Resource, n int) bool {
	for account, l := range o.accounts(host) {
		switch limit := l.Of(r); {
		case limit == 0:
		case r == Plans:
			if one := core.Time(time.Second) / core.Time(limit); max(o.busy(account), now)+one > now+Burst*core.Time(limit)*one {
				return false
			}
		case o.has(account, r)+n > limit:
			return false
		}
	}
	return true
}

// TestAgainstOracle: what is admitted is what the sum of all that was done allows, in every
// account, and a refusal changes nothing.
func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, o := NewBook(small()), &oracle{cfg: small()}
		o.cfg.Labels[1].Plans = 0
		var now core.Time
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 100, 700, 5000}).Draw(t, "wait")) * time.Millisecond)
			host := rapid.SampledFrom([]string{"", "r0", "r1", "r2", "x", "y"}).Draw(t, "host")
			r := Resource(rapid.IntRange(0, Resources-1).Draw(t, "resource"))
			n := rapid.IntRange(1, 30).Draw(t, "n")
			if r != Slots {
				n = 1
			}
			may := o.may(now, host, r, n)
			var err error
			if r == Plans {
				if now < b.Allows(now, host) == may {
					t.Fatalf("plans of %q: allowed from %v at %v, the oracle says %v", host, b.Allows(now, host), now, may)
				}
				err = b.Spend(now, host)
			} else if err = b.Check(host, r, n); err == nil || rapid.IntRange(0, 20).Draw(t, "forced") == 0 {
				b.Add(host, r, n)
				o.taken = append(o.taken, taken{host: host, r: r, n: n})
			}
			if (err == nil) != may {
				t.Fatalf("%d %v of %q: %v, the oracle says %v", n, r, host, err, may)
			}
			if err != nil && (!errors.Is(err, ErrQuota) || !strings.Contains(err.Error(), "quota of") || !strings.Contains(err.Error(), "raise quotas.")) {
				t.Fatalf("refused without saying what to do: %v", err)
			}
			if err == nil && r == Plans {
				o.taken = append(o.taken, taken{host: host, r: r, n: 1, at: now})
			}
			for i, x := range o.taken {
				if x.r != Plans && x.n > 0 && rapid.IntRange(0, 9).Draw(t, "given back") == 0 {
					b.Add(x.host, x.r, -x.n)
					o.taken[i].n = 0
				}
			}
			for _, r := range []Resource{Groups, Slots, Waiting} {
				if b.Use(All, "", r) != o.has("", r) || b.Use(ByLabel, "red", r) != o.has("label red", r) || b.Use(ByHost, "r1", r) != o.has("host r1", r) {
					t.Fatalf("%v: the books are wrong", r)
				}
				if room := b.Room(host, r); room < math.MaxInt && (room > 0) != o.may(now, host, r, 1) {
					t.Fatalf("%v: room for %d of %q", r, room, host)
				}
			}
		}
	})
}

// TestRate: within any time, no more plans are admitted than a burst and the rate allow,
// and they are after a wait.
func TestRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5000).Draw(t, "plans a second")
		b := NewBook(Config{Host: Limits{Plans: limit}})
		var now core.Time
		var admitted []core.Time
		for range 500 {
			now = now.Add(time.Duration(rapid.IntRange(0, 2*int(time.Second)/limit).Draw(t, "wait")))
			if err := b.Spend(now, "h"); err == nil {
				admitted = append(admitted, now)
			} else if at := b.Allows(now, "h"); at <= now || b.Allows(at, "h") != at {
				t.Fatalf("refused at %d, allowed from %d", now, at)
			}
		}
		for i, from := range admitted {
			for k, to := range admitted[i:] {
				if most := Burst*limit + 1 + int(to.Sub(from).Seconds()*float64(limit)+1); k+1 > most {
					t.Fatalf("%d plans within %v at %d a second", k+1, to.Sub(from), limit)
				}
			}
		}
	})
}

// TestForgets: hosts that have nothing any more are forgotten.
func TestForgets(t *testing.T) {
	b := NewBook(Config{Host: Limits{Plans: 100, Groups: 1}})
	b.Add("stays", Groups, 1)
	for i := range 100_000 {
		if err := b.Spend(core.Time(i)*core.Time(time.Millisecond), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.hosts); n > 1000 || b.Use(ByHost, "stays", Groups) != 1 {
		t.Errorf("%d accounts; one host has %d groups", n, b.Use(ByHost, "stays", Groups))
	}
}

// TestRefusals name quota, limit, use, and what to do.
func TestRefusals(t *testing.T) {
	b := NewBook(small())
	b.Add("r1", Groups, 5)
	err := b.Check("r2", Groups, 1)
	if want := "the quota of the hosts of label red is 5 groups, of which 5 are in use, and 1 more are asked for: release groups, or have the operator raise quotas.labels.red.groups"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if b.Refused()[ByLabel][Groups] != 1 || b.Refused()[ByHost][Groups] != 0 {
		t.Errorf("counted by label %d, by host %d", b.Refused()[ByLabel][Groups], b.Refused()[ByHost][Groups])
	}
	for range Burst * 2 {
		if err := b.Spend(0, "y"); err != nil {
			t.Fatal(err)
		}
	}
	if err, want := b.Spend(0, "y"), "the quota of host y is 2 plans a second, 20 at once, and used up: ask again in 500ms, or have the operator raise quotas.host.plans"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if name, weight := b.Label("r7"); name != "red" || weight != 2 {
		t.Errorf("label %q of weight %d", name, weight)
	}
}

func TestConfig(t *testing.T) {
	if err := small().Validate(); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]Config{
		"negative": {Host: Limits{Slots: -1}},
		"twice":    {Labels: []Label{{Name: "a", Hosts: []string{"h"}}, {Name: "a", Hosts: []string{"i"}}}},
		"weight":   {Labels: []Label{{Name: "a", Hosts: []string{"h"}, Weight: MaxWeight + 1}}},
		"no hosts": {Labels: []Label{{Name: "a"}}},
		"pattern":  {Labels: []Label{{Name: "a", Hosts: []string{"[h"}}}},
	} {
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzBook: any bytes as calls leave what is in use the sum of what was added.
func FuzzBook(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 40, 7, 9, 100})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, sum := NewBook(small()), [Plans]int{}
		var now core.Time
		for i, x := range data {
			host, r := fmt.Sprint([]string{"r", "y", ""}[x%3], x%5), Resource(x/3%Resources)
			now = now.Add(time.Duration(x) * time.Millisecond)
			if r == Plans {
				_ = b.Spend(now, host)
				continue
			}
			n := int(x) - 100
			if n < 0 || b.Check(host, r, n) == nil {
				b.Add(host, r, n)
				sum[r] += n
			}
			if got := b.Use(All, "", r); got != sum[r] {
				t.Fatalf("after %d calls: %d %v, want %d", i+1, got, r, sum[r])
			}
		}
	})
}

// TestTranscripts: "at SECONDS HOST RESOURCE N": N times one is asked for, and taken.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		b := NewBook(small())
		return transcript.Commands(text, func(line string) string {
			var seconds float64
			var host, resource string
			var n int
			if _, err := fmt.Sscanf(line, "at %f %s %s %d", &seconds, &host, &resource, &n); err != nil {
				return err.Error() + "\n"
			}
			host = strings.Trim(host, `"`)
			now := core.Time(seconds * float64(time.Second))
			for i := range n {
				var err error
				if resource == "plans" {
					err = b.Spend(now, host)
				} else {
					r := map[string]Resource{"groups": Groups, "slots": Slots, "waiting": Waiting}[resource]
					if err = b.Check(host, r, 1); err == nil {
						b.Add(host, r, 1)
					}
				}
				if err != nil {
					return fmt.Sprintf("%d, then: %v\n", i, err)
				}
			}
			return fmt.Sprintf("%d\n", n)
		})
	})
}
