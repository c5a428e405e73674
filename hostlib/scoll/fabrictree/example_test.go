package fabrictree_test

import (
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/fabrictree"
)

// Two leaf switches under a spine, two hosts on each. The message goes from h0 to
// its neighbour, and once over the spine.
func Example() {
	plan := fabrictree.Plan{
		Parents: []int{-1, 0, 0},
		At:      map[string]int{"h0": 1, "h1": 1, "h2": 2, "h3": 2},
	}
	plans := fabrictree.New()
	if err := plans.Add(1, plan); err != nil {
		fmt.Println(err)
	}
	var targets []scoll.Target
	for _, name := range []string{"h3", "h0", "h2", "h1"} {
		targets = append(targets, scoll.Target{Node: name, Tags: []scoll.Tag{{1}}})
	}
	members, err := scoll.NewMembers(7, plan.Order(targets))
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := plans.Shape(members, 0, 1) // as the library does, for a group with fabrictree.Tree(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range members.Len() {
		if parent, ok := t.Parent(i); ok {
			fmt.Println(members.Target(parent).Node, "sends to", members.Target(i).Node)
		}
	}
	// Output:
	// h0 sends to h1
	// h0 sends to h2
	// h2 sends to h3
}
