package managerd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// TestUndrainNamesTheAgentsDrain: who undrains a switch learns that its agent is drained itself, and
// where that ends; the manager's own drain is over.
func TestUndrainNamesTheAgentsDrain(t *testing.T) {
	f := newFabric(t, nil)
	ctx := testContext(t)
	set := func(on bool) {
		t.Helper()
		if err := f.agents["leaf-0"].Drain(ctx, on); err != nil {
			t.Fatal(err)
		}
		f.eventually(fmt.Sprint("the manager knows of it: ", on), func(ctx context.Context) (bool, error) {
			s, err := f.switchState(ctx, "leaf-0")
			return err == nil && s.Draining == on, err
		})
	}
	set(true)
	if err := f.client.DrainSwitch(ctx, "leaf-0", true); err != nil {
		t.Error(err)
	}
	if err := f.client.DrainSwitch(ctx, "leaf-0", false); !errors.Is(err, manager.ErrAgentDrained) || !strings.Contains(err.Error(), "leaf-0: manager: the switch's agent is drained itself: set /tributary/config/drain to false there") {
		t.Errorf("undrained: %v", err)
	}
	set(false)
	if err := f.client.DrainSwitch(ctx, "leaf-0", false); err != nil {
		t.Error(err)
	}
}
