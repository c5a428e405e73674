package schedule

import "github.com/tributary-fabric/tributary/pathsel"

// HasTree reports whether every tree can carry a collective: as one vector that all members have.
func HasTree(of Collective) bool {
	return of == Allreduce || of == Reduce || of == Broadcast || of == Barrier
}

// carries is what packets have in one direction of a tree.
type carries uint8

const (
	nothing carries = iota
	whole           // the vector, on every link
	parts           // on a member's link its part of the vector
	toOne           // the vector on the link of one member, nothing on those of the others
)

// TreeWork returns what a call of one vector needs on the communicator's tree: of hosts, or of
// switches.
func TreeWork(c *Call, k pathsel.Kind) pathsel.Work {
	up, down := whole, whole
	switch c.Collective {
	case Reduce:
		down = nothing
	case Broadcast:
		up = nothing
	}
	return workOfTree(c.Size, k, tallyOf(c).vector, up, down)
}

// Work returns what the call needs on a tree of hosts, or of switches.
func (t *Tree) Work(k pathsel.Kind) pathsel.Work {
	up, down := whole, whole
	switch of := t.call.Collective; {
	case t.Form == Reduced, of == Alltoall:
		down = parts
	case of == Scatter:
		up, down = toOne, parts
	case of == Gather:
		if down = toOne; t.Form == Copied {
			up = parts
		}
	case t.Form == Copied:
		up = parts
	}
	vector := float64(t.Elements * t.Width)
	w := workOfTree(t.call.Size, k, vector, up, down)
	n := float64(t.call.Size)
	w.Busiest[pathsel.Message], w.All[pathsel.Message] = float64(t.Chunks), n*float64(t.Chunks)
	if t.Form == United { // pieces are copied into the vector, and from it
		w.Busiest[pathsel.Local], w.All[pathsel.Local] = 2*vector/mebibyte, 2*n*vector/mebibyte
	}
	return w
}

// workOfTree adds up both directions of a tree of n members.
func workOfTree(n int, k pathsel.Kind, vector float64, directions ...carries) (w pathsel.Work) {
	members, rounds, mib := float64(n), float64(ceilLog(n)), vector/mebibyte
	w.Busiest[pathsel.Start], w.Busiest[pathsel.Peer] = 1, members
	if k == pathsel.ByHostTree {
		w.Busiest[pathsel.Peer], w.All[pathsel.Peer] = rounds, 2*(members-1)
	}
	for _, d := range directions {
		if d == nothing {
			continue
		}
		steps, link, all := 1.0, mib, members*mib
		switch {
		case k == pathsel.ByHostTree && d == whole: // a member has a link to each of up to so many children
			steps, link, all = rounds, rounds*mib, (members-1)*mib
		case k == pathsel.ByHostTree: // a piece travels over half of the levels
			steps, all = rounds, rounds*mib/2
		case d == parts:
			link, all = mib/members, mib
		case d == toOne:
			all = mib
		}
		w.Busiest[pathsel.Step] += steps
		w.Busiest[pathsel.Link] = max(w.Busiest[pathsel.Link], link)
		w.All[pathsel.Link] += all
	}
	return w
}
