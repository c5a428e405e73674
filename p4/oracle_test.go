package p4_test

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/aggregate"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// oracle is the target that says what a pipeline has to do: the core.
type oracle struct{ core *aggregate.Core }

func (o *oracle) begin() { o.core = aggregate.New() }

func (o *oracle) install(cfg *aggregate.Config) {
	o.step(aggregate.Input{Kind: aggregate.Install, Config: cfg})
}

func (o *oracle) retire(epoch uint32) {
	o.step(aggregate.Input{Kind: aggregate.Retire, Epoch: epoch})
}

// spoilt tells what a switch says of a packet that the core never sees.
var spoilt = map[string]p4.Discard{"udp": p4.DiscardChecksum, "ip": p4.DiscardChecksum, "frame": p4.DiscardParser}

func (o *oracle) packet(from netip.AddrPort, b []byte, damage string) ([]sent, []string) {
	if damage != "" {
		return nil, []string{"discard " + spoilt[damage].String()}
	}
	before := o.core.Counters()
	out := o.step(aggregate.Input{Kind: aggregate.Packet, From: from, Packet: b})
	after := o.core.Counters()
	return out, outcomeOf(&before, &after, b, out)
}

func (o *oracle) step(in aggregate.Input) []sent {
	var out aggregate.Output
	o.core.Step(0, []aggregate.Input{in}, &out)
	var all []sent
	for _, s := range out.Sends {
		all = append(all, sent{to: s.To, b: slices.Concat(s.Head[:], s.Body)})
	}
	return all
}

// outcomeOf returns the outcome of a packet by what the core has counted, and
// what else it must not have counted.
func outcomeOf(before, after *aggregate.Counters, b []byte, out []sent) []string {
	for f := range wire.Faults {
		if after.Faults[f] != before.Faults[f] {
			return []string{p4.Outcome(16 + f).String()}
		}
	}
	for d := range aggregate.Drops {
		if after.Drops[d] != before.Drops[d] {
			return []string{p4.Outcome(d).String()}
		}
	}
	type counter struct {
		of func(*aggregate.Counters) uint64
		is func() p4.Outcome
	}
	went := func(of func(*aggregate.Counters) uint64) bool { return of(after) != of(before) }
	relayed := func(c *aggregate.Counters) uint64 { return c.Relayed }
	or := func(of func(*aggregate.Counters) uint64, yes, no p4.Outcome) p4.Outcome {
		if went(of) {
			return yes
		}
		return no
	}
	for _, c := range []counter{
		{func(c *aggregate.Counters) uint64 { return c.Taken }, func() p4.Outcome {
			switch {
			case after.Partials != before.Partials:
				return p4.TakenPartial
			case after.Results != before.Results:
				return p4.TakenResult
			case after.Errors != before.Errors:
				return p4.TakenNoSource
			}
			return p4.Taken
		}},
		{func(c *aggregate.Counters) uint64 { return c.Errors }, func() p4.Outcome {
			if wire.Type(b[0]&15) == wire.Error {
				return p4.ToldError
			}
			return p4.Disagreed
		}},
		{func(c *aggregate.Counters) uint64 { return c.Results }, func() p4.Outcome { return p4.ResultTaken }},
		{func(c *aggregate.Counters) uint64 { return c.Repeated }, func() p4.Outcome {
			if wire.Type(out[0].b[0]&15) == wire.Error {
				return p4.AskedError
			}
			return p4.AskedResult
		}},
		{func(c *aggregate.Counters) uint64 { return c.Wants }, func() p4.Outcome { return p4.AskedWant }},
		{func(c *aggregate.Counters) uint64 { return c.Heards }, func() p4.Outcome { return or(relayed, p4.RelayedHeard, p4.AskedHeard) }},
		{func(c *aggregate.Counters) uint64 { return c.Losts }, func() p4.Outcome { return or(relayed, p4.RelayedLost, p4.AskedLost) }},
		{func(c *aggregate.Counters) uint64 { return c.Idle }, func() p4.Outcome {
			return or(func(c *aggregate.Counters) uint64 { return c.Kept }, p4.IdledOn, p4.Idled)
		}},
		{func(c *aggregate.Counters) uint64 { return c.Resent }, func() p4.Outcome { return p4.Resent }},
	} {
		if went(c.of) {
			return []string{c.is().String()}
		}
	}
	return []string{p4.Noted.String()}
}
