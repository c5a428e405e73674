package pathsel

import "fmt"

// count says n things in words, for things whose plural takes an s.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func switches(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return fmt.Sprintf("%d switches", n)
}

// tied is said of a root that costs as much as the best.
const tied = "equal cost; tie broken by hash"

// lost says by what the cost of one root is above the best.
func lost(cost, best Cost) string {
	switch {
	case cost.Hops != best.Hops:
		return fmt.Sprintf("%s (%d against %d)", count(cost.Hops-best.Hops, "hop"), cost.Hops, best.Hops)
	case cost.Depth != best.Depth:
		return fmt.Sprintf("%d in depth (%d against %d)", cost.Depth-best.Depth, cost.Depth, best.Depth)
	case cost.Load != best.Load:
		return fmt.Sprintf("%d in present use (%d against %d)", cost.Load-best.Load, cost.Load, best.Load)
	}
	return tied
}
