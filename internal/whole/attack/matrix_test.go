package attack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tally is what came of the messages of one attacker in one protocol.
type tally struct {
	attacker, protocol string
	tried              int // messages
	refused            int // that were dropped and counted, or answered by a refusal
	answered           int // that were answered by anything but a refusal
	in, out            int // bytes that the attacker has sent, and has got
}

// matrix is the tallies of a run, in the order of their first message.
type matrix struct{ rows []*tally }

func (m *matrix) of(attacker, protocol string) *tally {
	for _, r := range m.rows {
		if r.attacker == attacker && r.protocol == protocol {
			return r
		}
	}
	m.rows = append(m.rows, &tally{attacker: attacker, protocol: protocol})
	return m.rows[len(m.rows)-1]
}

// log writes the matrix as a table of docs/trust.md.
func (m *matrix) log(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| protocol | attacker | tried | refused | answered | bytes out / in |\n|---|---|---|---|---|---|\n")
	rows := slices.Clone(m.rows)
	slices.SortStableFunc(rows, func(x, y *tally) int { return strings.Compare(x.protocol, y.protocol) })
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %.2f |\n", r.protocol, r.attacker, r.tried, r.refused, r.answered, float64(r.out)/float64(max(1, r.in)))
	}
	t.Log(b.String())
}
