package p4_test

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// oracle is the target that says what a pipeline has to do: the core.
type oracle struct{ core *switchreduce.Core }

func (o *oracle) begin() { o.core = switchreduce.New() }

func (o *oracle) install(cfg *switchreduce.Config) {
	o.step(switchreduce.Input{Kind: switchreduce.Install, Config: cfg})
}

func (o *oracle) retire(epoch uint32) {
	o.step(switchreduce.Input{Kind: switchreduce.Retire, Epoch: epoch})
}

// stranger is who sends to a port that is no neighbour's: the core knows no ports.
var stranger = addr('x')

// spoilt reports what a switch says of a packet that the core never sees.
var spoilt = map[string]p4.Discard{"udp": p4.DiscardChecksum, "ip": p4.DiscardChecksum, "frame": p4.DiscardParser, "none": p4.DiscardChecksum}

func (o *oracle) packet(from netip.AddrPort, port uint16, b []byte, damage string) ([]sent, []string) {
	if damage != "" {
		return nil, []string{"discard " + spoilt[damage].String()}
	}
	if port != portOf(nameOf(from)[0]) {
		from = stranger
	}
	before, forged := o.core.Counters(), o.forged()
	out := o.step(switchreduce.Input{Kind: switchreduce.Packet, From: from, Packet: b})
	after := o.core.Counters()
	return out, append(outcomeOf(&before, &after, b, out), grown(forged, o.forged())...)
}

// forged returns how many packets without a neighbour's cookie came in its name, by
// name and epoch.
func (o *oracle) forged() map[string]uint64 {
	all := map[string]uint64{}
	for _, e := range o.core.Traffic() {
		for i, c := range e.Children {
			all[forgedText(e.Epoch, string(rune('a'+i)))] = c.Forged
		}
		if e.Parent != nil {
			all[forgedText(e.Epoch, "p")] = e.Parent.Forged
		}
	}
	return all
}

func forgedText(epoch uint32, name string) string {
	return fmt.Sprintf("forged in the name of %s in epoch %d", name, epoch)
}

// grown returns what has grown.
func grown(before, after map[string]uint64) (all []string) {
	for name, n := range after {
		if n > before[name] {
			all = append(all, name)
		}
	}
	return all
}

func (o *oracle) step(in switchreduce.Input) []sent {
	var out switchreduce.Output
	o.core.Step(0, []switchreduce.Input{in}, &out)
	var all []sent
	for _, s := range out.Sends {
		all = append(all, sent{to: s.To, b: slices.Concat(s.Head[:], s.Body)})
	}
	return all
}

// outcomeOf returns the outcome of a packet b by what the core has counted and
// sent for it.
func outcomeOf(before, after *switchreduce.Counters, b []byte, out []sent) []string {
	for f := range wire.Faults {
		if after.Faults[f] != before.Faults[f] {
			return []string{(p4.FaultTruncated + p4.Outcome(f) - 1).String()}
		}
	}
	for d := range switchreduce.Drops {
		if after.Drops[d] != before.Drops[d] {
			return []string{p4.Outcome(d).String()}
		}
	}
	is := wire.Type(b[0] & 15)
	sends := func(t wire.Type) bool { return len(out) > 0 && wire.Type(out[0].b[0]&15) == t }
	for _, c := range []struct {
		before, after uint64
		is            bool
		outcome       p4.Outcome
	}{
		{before.Partials, after.Partials, true, p4.TakenPartial},
		{before.Results, after.Results, is == wire.Contribution, p4.TakenResult},
		{before.Errors, after.Errors, is == wire.Contribution && after.Taken > before.Taken, p4.TakenNoSource},
		{before.Taken, after.Taken, true, p4.Taken},
		{before.Errors, after.Errors, is == wire.Contribution, p4.Disagreed},
		{before.Errors, after.Errors, is == wire.Error, p4.ToldError},
		{before.Results, after.Results, is == wire.Result, p4.ResultTaken},
		{before.Repeated, after.Repeated, sends(wire.Result), p4.AskedResult},
		{before.Repeated, after.Repeated, sends(wire.Error), p4.AskedError},
		{before.Wants, after.Wants, true, p4.AskedWant},
		{before.Heards, after.Heards, after.Relayed > before.Relayed, p4.RelayedHeard},
		{before.Heards, after.Heards, true, p4.AskedHeard},
		{before.Losts, after.Losts, after.Relayed > before.Relayed, p4.RelayedLost},
		{before.Losts, after.Losts, true, p4.AskedLost},
		{before.Idle, after.Idle, after.Kept > before.Kept, p4.IdledOn},
		{before.Idle, after.Idle, true, p4.Idled},
		{before.Resent, after.Resent, true, p4.Resent},
	} {
		if c.after > c.before && c.is {
			return []string{c.outcome.String()}
		}
	}
	return []string{p4.Noted.String()} // the one that the core does not count
}
