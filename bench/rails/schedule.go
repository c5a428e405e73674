package rails

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// ErrSchedule: the text is not a schedule.
var ErrSchedule = errors.New("invalid schedule")

// AllHosts stands for the links of all hosts to a rail.
const AllHosts = -1

// Event is a change of links at a time after the beginning.
type Event struct {
	At    time.Duration
	Host  int // or AllHosts
	Rail  int
	Fault netlab.Fault
	Slow  int64 // bit/s while the link works; 0: the rate that it was built with
}

// String returns the event as a schedule has it.
func (e Event) String() string {
	where := netlab.RailInterface(e.Rail)
	if e.Host != AllHosts {
		where = netlab.RailHost(e.Host) + "." + where
	}
	what := e.Fault.String()
	if e.Slow > 0 {
		what = "slow:" + strconv.FormatInt(e.Slow, 10) + "bit"
	}
	return fmt.Sprintf("%s %s@%v", where, what, e.At)
}

// Schedule are events by time.
type Schedule []Event

// String returns the schedule as Parse reads it.
func (s Schedule) String() string {
	words := make([]string, len(s))
	for i, e := range s {
		words[i] = e.String()
	}
	return strings.Join(words, "; ")
}

// Bounds returns when the first event is and when the last one, 0 without any.
func (s Schedule) Bounds() (first, last time.Duration) {
	if len(s) == 0 {
		return 0, 0
	}
	return s[0].At, s[len(s)-1].At
}

// Parse reads a schedule of links, separated by semicolons, each with what happens to it
// and when: "rail1 down@2s up@5s; h1.rail0 slow:20mbit@6s up@8s". A rail without a host is
// that of all hosts. Besides down and up there are unplug, disable, delete,
// out, in (see netlab.Fault) and slow.
func Parse(text string, hosts, rails int) (Schedule, error) {
	var all Schedule
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		host, rail, err := parseLink(words[0], hosts, rails)
		if err != nil {
			return nil, err
		}
		if len(words) == 1 {
			return nil, fmt.Errorf("%w: %q: nothing happens to %s", ErrSchedule, text, words[0])
		}
		for _, word := range words[1:] {
			e, err := parseEvent(word)
			if err != nil {
				return nil, err
			}
			e.Host, e.Rail = host, rail
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

func parseLink(word string, hosts, rails int) (host, rail int, err error) {
	host = AllHosts
	name, at, both := strings.Cut(word, ".")
	if !both {
		at = name
	} else if host, err = number(name, "h", hosts); err != nil {
		return 0, 0, err
	}
	rail, err = number(at, "rail", rails)
	return host, rail, err
}

// number reads a number below n that follows a name.
func number(word, name string, n int) (int, error) {
	text, ok := strings.CutPrefix(word, name)
	x, err := strconv.Atoi(text)
	if !ok || err != nil || x < 0 || x >= n {
		return 0, fmt.Errorf("%w: %q, want %s0 to %s%d", ErrSchedule, word, name, name, n-1)
	}
	return x, nil
}

func parseEvent(word string) (e Event, err error) {
	what, at, ok := strings.Cut(word, "@")
	if !ok {
		return e, fmt.Errorf("%w: %q is not like down@2s", ErrSchedule, word)
	}
	if e.At, err = time.ParseDuration(at); err != nil || e.At < 0 {
		return e, fmt.Errorf("%w: %q: %q is no time", ErrSchedule, word, at)
	}
	if rate, ok := strings.CutPrefix(what, "slow:"); ok {
		if e.Slow, err = netlab.ParseRate(rate); err != nil || e.Slow == 0 {
			return e, fmt.Errorf("%w: %q: %q is no rate", ErrSchedule, word, rate)
		}
		return e, nil
	}
	if e.Fault, err = netlab.ParseFault(what); err != nil {
		return e, fmt.Errorf("%w: %q: %w", ErrSchedule, word, err)
	}
	return e, nil
}

// Chaos says what random schedules are like.
type Chaos struct {
	Seed           uint64
	Hosts          int
	Rates          []int64 // of the rails, of which there are two or more
	Lasting        time.Duration
	Least, Longest time.Duration // of a fault
	Pause          time.Duration // at least so long all links work after a fault
	Blink          time.Duration // at most so long all rails are silent at once; 0: never
}

// Validate reports what is wrong with c.
func (c *Chaos) Validate() error {
	if len(c.Rates) < 2 || c.Hosts < 1 || c.Least <= 0 || c.Longest < c.Least || c.Pause <= 0 || c.Blink < 0 {
		return fmt.Errorf("%w: random faults of %v to %v every %v on %d rails: want two rails, and positive times", ErrSchedule, c.Least, c.Longest, c.Pause, len(c.Rates))
	}
	return nil
}

// Random returns a schedule in which links of one rail at a time fail in any way, or are
// slow, and recover: any two hosts always have a rail whose links work. But for a time of
// Blink all rails may be silent, too short for anybody to find that out.
func (c *Chaos) Random() Schedule {
	random := rand.New(rand.NewPCG(c.Seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)+1))
	}
	var all Schedule
	for at := between(0, c.Pause); ; {
		if c.Blink > 0 && random.IntN(8) == 0 {
			end := at + between(c.Blink/10, c.Blink)
			if end > c.Lasting {
				return all
			}
			for _, e := range []Event{{At: at, Host: AllHosts, Fault: netlab.Silent}, {At: end, Host: AllHosts}} {
				for e.Rail = range c.Rates {
					all = append(all, e)
				}
			}
			at = end + between(c.Pause, 2*c.Pause)
			continue
		}
		end := at + between(c.Least, c.Longest)
		if end > c.Lasting {
			return all
		}
		rail := random.IntN(len(c.Rates))
		what := Event{At: at, Rail: rail, Fault: netlab.Fault(random.IntN(int(netlab.In) + 1))}
		if what.Fault == netlab.Works {
			if what.Slow = c.Rates[rail] / 20; what.Slow == 0 {
				what.Slow = 20_000_000
			}
		}
		hosts := []int{AllHosts}
		if random.IntN(4) > 0 {
			hosts = random.Perm(c.Hosts)[:1+random.IntN(c.Hosts)]
		}
		for _, what.Host = range hosts {
			all = append(all, what)
		}
		for _, host := range hosts {
			all = append(all, Event{At: end, Host: host, Rail: rail})
		}
		at = end + between(c.Pause, 2*c.Pause)
	}
}
