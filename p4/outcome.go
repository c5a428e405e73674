package p4

import "fmt"

// Outcome is what became of a packet to a tree. Each packet has exactly one; the
// reasons of drops and the faults are those of docs/protocol.md.
type Outcome uint8

// String returns the outcome's name.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) && outcomeNames[o] != "" {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Fault reports whether o is a packet that cannot be read.
func (o Outcome) Fault() bool { return o >= FaultTruncated && o <= FaultExponent }

// Drop reports whether o is a packet that was dropped, faults included.
func (o Outcome) Drop() bool { return o >= DropGroup && o <= DropUnfit || o.Fault() }

// Discard is why a packet was dropped that is for no tree here.
type Discard uint8

// String returns the reason's name.
func (d Discard) String() string {
	if int(d) < len(discardNames) && discardNames[d] != "" {
		return discardNames[d]
	}
	return fmt.Sprintf("discard(%d)", uint8(d))
}

// OutcomeIndex returns the place of a tree's counter of o among
// CounterOutcomes.
func OutcomeIndex(tree int, o Outcome) int { return tree*Outcomes + int(o) }

// TrafficIndex returns the place of an epoch's counter among CounterTraffic;
// kind is TrafficChild, TrafficParent or TrafficUp. An epoch of which neither
// of the first two moves is one that nobody uses.
func TrafficIndex(epoch, kind int) int { return epoch*Traffics + kind }
