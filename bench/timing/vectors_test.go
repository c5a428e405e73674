package timing

import (
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// TestReductionIsWorkedOutOnce: the members of one process, which may be a whole
// fabric's, share what their result should be; another group's is another.
func TestReductionIsWorkedOutOnce(t *testing.T) {
	c := DefaultConfig()
	drawn := 0
	of := func(x int) float32 { drawn++; return float32(x) }
	kernel, err := reduce.KernelOf(c.Function, c.elements())
	if err != nil {
		t.Fatal(err)
	}
	const members = 64
	for range members {
		reduction(c, members, of, kernel)
	}
	if want := members * period; drawn != want {
		t.Errorf("%d elements are drawn for %d members, want %d", drawn, members, want)
	}
	before := reduction(c, members, of, kernel)
	c.Seed++
	if after := reduction(c, members, of, kernel); string(before) == string(after) {
		t.Error("the result of other vectors is the same")
	}
}
