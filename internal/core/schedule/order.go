package schedule

import "slices"

// InOrder returns the ranks so that those of a place are in a row, places in the order of their
// lowest ranks, and those of a place in that of ranks: for Call.Order. A place is a list of names from
// the outermost on, a leaf and a host for example; all members have lists of the same length. It returns
// nil where ranks are in that order already. Rings, chains and trees then leave each place as seldom as
// can be.
func InOrder(places [][]string) []int {
	type place struct {
		level, within int // the lowest rank of the place around it
		name          string
	}
	first := map[place]int{}
	order, lowest := make([]int, len(places)), make([][]int, len(places))
	for rank, names := range places {
		order[rank] = rank
		within := -1
		for level, name := range names {
			at := place{level, within, name}
			if _, has := first[at]; !has {
				first[at] = rank
			}
			within = first[at]
			lowest[rank] = append(lowest[rank], within)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(lowest[a], lowest[b]) })
	if slices.IsSorted(order) {
		return nil
	}
	return order
}

// inOrder returns the call as that of a group whose ranks are positions in Order. Peers and pieces
// of what is made of it are by rank again (actual).
func (c *Call) inOrder() *Call {
	p := *c
	p.Rank, p.Root = slices.Index(c.Order, c.Rank), slices.Index(c.Order, c.Root)
	return &p
}

// inRanks returns the call without Order.
func (c *Call) inRanks() *Call {
	p := *c
	p.Order = nil
	return &p
}

// actual returns the rank at a position.
func (c *Call) actual(position int) int {
	if c.Order == nil {
		return position
	}
	return c.Order[position]
}
