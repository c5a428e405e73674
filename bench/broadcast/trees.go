package broadcast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/fabrictree"
)

// ErrTree reports that no tree has such a name.
var ErrTree = errors.New("broadcast: no such tree")

// The names of the trees that take a fabric: Member.Join.
const (
	AlongFabric = "fabric"  // the manager's collection tree
	InSwitches  = "offload" // no tree of hosts
)

// planNumber is the number of the only plan that members have.
const planNumber = 1

// ParseTree returns the tree of a name: binomial, flat, K-nomial or K-ary with a
// number for K, AlongFabric, or InSwitches, which is the zero Tree.
func ParseTree(name string) (scoll.Tree, error) {
	switch name {
	case AlongFabric:
		return fabrictree.Tree(planNumber), nil
	case InSwitches:
		return scoll.Tree{}, nil
	case "binomial":
		return scoll.Binomial(), nil
	case "flat":
		return scoll.Flat(), nil
	}
	number, shape, _ := strings.Cut(name, "-")
	k, err := strconv.Atoi(number)
	switch {
	case err == nil && shape == "nomial" && k >= 2 && k < 1<<16:
		return scoll.KNomial(k), nil
	case err == nil && shape == "ary" && k >= 1 && k < 1<<16:
		return scoll.KAry(k), nil
	}
	return scoll.Tree{}, fmt.Errorf("%w: %q: binomial, flat, fabric, offload, or such as 4-nomial and 4-ary", ErrTree, name)
}
