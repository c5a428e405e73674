package epoch

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// TestGroupRevoked: members that are notified of a revoke, whatever else is under way and whoever
// is taken for dead, end at once and send nothing. Who is not notified otherwise ends by a neighbour that
// connects anew.
func TestGroupRevoked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		g.disturbed(t)
		by := uint32(g.rng.IntN(len(g.nodes)))
		revoked := wire.Fail{Kind: wire.FailRevoked, Rank: by}
		dead := g.rng.IntN(2 * len(g.nodes)) // often nobody
		if dead < len(g.nodes) {
			for rank := range g.nodes[dead].edges {
				g.step(g.nodes[rank], Input{Kind: Dead, From: uint32(dead)})
			}
		}
		notified := rapid.IntRange(1, len(g.nodes)).Draw(t, "notified")
		for _, i := range g.rng.Perm(len(g.nodes))[:notified] {
			m := g.nodes[i]
			had := m.ended
			g.step(m, Input{Kind: Failed, Fail: revoked})
			switch {
			case m.ended == nil || had != nil && m.ended != had:
				t.Fatalf("rank %d was revoked, and notified %+v after %+v", m.rank, m.ended, had)
			case had == nil && *m.ended != revoked:
				t.Fatalf("rank %d was notified %+v", m.rank, m.ended)
			case len(m.out.Sends) > 0:
				t.Fatalf("rank %d was revoked, and sends %v", m.rank, m.out.Sends)
			}
			for range g.rng.IntN(20) {
				g.disturb()
			}
		}
		// Each time round it is a link further.
		for range g.nodes {
			for _, e := range g.edges {
				g.breakEdge(e)
			}
			for g.deliver() {
			}
		}
		for _, m := range g.nodes {
			if m.ended == nil {
				t.Fatalf("rank %d goes on: %s", m.rank, g)
			}
			if dead >= len(g.nodes) && *m.ended != revoked {
				t.Fatalf("rank %d was notified %+v, and nobody died", m.rank, m.ended)
			}
		}
	})
}
