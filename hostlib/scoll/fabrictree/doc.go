// Package fabrictree makes the trees of server collectives follow a tree of switches.
// Such a tree is for example the collection tree that the offload manager has chosen
// for a communicator (hostlib.CollectionTree): a message then crosses no link between
// switches twice in the same direction, and neither do the replies. See
// tree.AlongSwitches for the shape.
//
// All nodes must compute the same tree. They identify a Plan by its number, which
// travels as the radix of the tree's kind; a node without a request's plan reports that
// to its parent (scoll.StatusNoTree). Give a new plan to all nodes before a root uses
// it.
//
//	plans := fabrictree.New()
//	node, err := scoll.On(host, scoll.Config{..., Trees: map[uint8]scoll.Shape{fabrictree.Kind: plans.Shape}})
//	...
//	err = plans.Add(7, plan)
//	err = service.CreateGroup(scoll.GroupSpec{Targets: plan.Order(targets), Tree: fabrictree.Tree(7)}, created)
package fabrictree
