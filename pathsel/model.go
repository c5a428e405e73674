package pathsel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Model says how long a collective takes, over switches and over hosts. It is
// the model of Hockney (a time for each message and one for each byte: The
// communication challenge for MPP, Parallel Computing 20, 1994) with a term for
// the reduction of each child's bytes. What really goes on at the same time is
// added up, so that a prediction is at most some two times too long, of both
// ways alike.
//
//	switches: 2·HostMessage + 2·(latency of the tree) + bytes·(1/bandwidth + children/SwitchReduce)
//	hosts:    2·rounds·(HostMessage + latency between hosts) + bytes·children·(1/bandwidth + 1/HostReduce)
//
// The latency of the tree counts, of each link on the way to the root, its own
// and, of each switch on the way, SwitchHop; the children are the most that
// a switch has. Over hosts, members form a binomial tree of
// ceil(log2 members) rounds, in which the root has as many children; the
// latency between hosts is twice that of the tree. An operation that ends at
// one member, or begins there, goes one way: its 2 is a 1. One that does not
// reduce leaves the reduction out. The model is calibrated by Fit. Switches and hosts
// whose own speeds are known (topology.Speed) have these in place of SwitchReduce and
// HostReduce: the slowest switch of a tree counts, and the slowest member.
type Model struct {
	HostMessage  time.Duration // a host sends or takes a message
	SwitchHop    time.Duration // a packet's time in a switch that reduces
	SwitchReduce float64       // bytes of one child that a switch reduces in a second
	HostReduce   float64       // bytes of one child that a host reduces in a second
	// Bandwidth is that of a link where no tree is known yet, in bit/s.
	Bandwidth int64
	// Hop is the latency of such a link.
	Hop time.Duration
	// Costs are what members choose the way of a collective by, host algorithms included; nil:
	// DefaultCosts. Not to be changed.
	Costs *Costs
}

// DefaultModel suits agents and hosts in software on links of 100 Gbit/s. It is
// a guess to begin with.
func DefaultModel() Model {
	return Model{
		HostMessage: 10 * time.Microsecond, SwitchHop: 2 * time.Microsecond,
		SwitchReduce: 20e9, HostReduce: 5e9,
		Bandwidth: 100e9, Hop: 500 * time.Nanosecond,
	}
}

// ErrModel is wrapped by every error about a model, and about rows to fit one.
var ErrModel = errors.New("invalid cost model")

// Validate reports what is out of range: a time must not be negative or above
// an hour, a speed must be above zero.
func (m Model) Validate() error {
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"host message", m.HostMessage}, {"switch hop", m.SwitchHop}, {"hop", m.Hop}} {
		if d.is < 0 || d.is > time.Hour {
			return fmt.Errorf("%w: %s of %v is not within 0 and 1h", ErrModel, d.name, d.is)
		}
	}
	for _, s := range []struct {
		name string
		is   float64
	}{{"switch reduce", m.SwitchReduce}, {"host reduce", m.HostReduce}, {"bandwidth", float64(m.Bandwidth)}} {
		if !(s.is > 0) || s.is > 1e18 {
			return fmt.Errorf("%w: %s of %v is not above 0 and up to 1e18", ErrModel, s.name, s.is)
		}
	}
	if m.Costs == nil {
		return nil
	}
	return m.Costs.Validate()
}

// even returns the bytes that take as long on a link as on their way through
// three layers of switches.
func (m Model) even() int64 {
	way := 3*(m.Hop+m.SwitchHop) + m.HostMessage
	return int64(way.Seconds() * float64(m.Bandwidth) / 8)
}

// ways returns how often an operation goes up or down, and whether it reduces.
func (c Collective) ways() (times float64, reduces bool) {
	switch c {
	case Reduce, Broadcast, Gather, Scatter:
		return 1, c == Reduce
	}
	return 2, c.Reduces()
}

// Trip is what the model has to know of a tree.
type Trip struct {
	Members    int
	Latency    time.Duration // of the tree, one way
	Bandwidth  int64         // bit/s, on the narrowest link
	Children   int           // the most that a switch has
	Bytes      int64         // of a vector
	Collective Collective
	// Of the switches and members where it is known: the bytes of the vector a second
	// that pass the slowest switch, and what that takes longer than Model.SwitchHop
	// for a packet of every child; and the bytes of a child a second that the slowest
	// member reduces. 0: as in the model.
	Reduce     float64
	Packet     time.Duration
	HostReduce float64
}

// reduces returns the seconds that a byte of the vector takes in the slowest switch.
func (m Model) reduces(t Trip) float64 {
	if t.Reduce > 0 {
		return 1 / t.Reduce
	}
	return float64(t.Children) / m.SwitchReduce
}

// Switches returns how long an operation takes over the tree.
func (m Model) Switches(t Trip) time.Duration {
	ways, reduces := t.Collective.ways()
	per := 8 / float64(max(t.Bandwidth, 1))
	if reduces {
		per += m.reduces(t)
	}
	return seconds(ways*(m.HostMessage+t.Latency+t.Packet).Seconds() + float64(t.pieces())*per)
}

// Hosts returns how long it takes over a binomial tree of hosts.
func (m Model) Hosts(t Trip) time.Duration {
	ways, reduces := t.Collective.ways()
	rounds := float64(Rounds(t.Members))
	per := 8 / float64(max(t.Bandwidth, 1))
	if reduces {
		per += 1 / cmp.Or(t.HostReduce, m.HostReduce)
	}
	return seconds(ways*rounds*(m.HostMessage+2*t.Latency).Seconds() + float64(t.pieces())*min(rounds, t.fan())*per)
}

// pieces returns the bytes over the busiest link: where nothing is reduced or
// copied on the way, every member's own.
func (t Trip) pieces() int64 {
	switch t.Collective {
	case Barrier:
		return 0
	case Gather, Scatter, AllToAll:
		return t.Bytes * int64(t.Members)
	}
	return t.Bytes
}

// fan is the most children in a tree of hosts over which whole vectors travel;
// what is not reduced comes to a host once.
func (t Trip) fan() float64 {
	if t.Collective == Gather || t.Collective == Scatter || t.Collective == AllToAll {
		return 1
	}
	return math.Inf(1)
}

// Rounds returns the height of a binomial tree over n members.
func Rounds(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}
