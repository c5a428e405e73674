// Package attack has the attacker's program: tests alone. An attacker who holds nothing, the
// network's view, another host's certificate, or a member's secrets sends every message of every
// protocol with every field forged, to a whole fabric in one process in which groups reduce. For
// each message the outcome is asserted: refused and counted, or answered with no more than three
// times its bytes; and no result, group or life changes. docs/trust.md has the matrix that
// TestAttack logs.
package attack
