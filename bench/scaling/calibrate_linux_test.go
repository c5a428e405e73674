package scaling

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"context"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// All costs are measured, in a lab that is gone afterwards.
func TestMeasure(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	c, err := Measure(t.Context(), "cbct", 1, func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "echo", "1234") })
	if errors.Is(err, netlab.ErrPrivilege) || errors.Is(err, netlab.ErrInUse) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Look != 1234 || c.Taken == "" || c.Send.Call <= 0 || c.Receive.Call <= 0 || c.Reduce <= 0 || c.Aggregate == (Cost{}) || c.Session == (Cost{}) {
		t.Errorf("%+v", c)
	}
	for i, x := range c.numbers() {
		if *x < 0 {
			t.Errorf("number %d is %v", i, *x)
		}
	}
}
