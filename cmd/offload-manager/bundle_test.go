package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// bundle makes groups by the command.
func (d *deployment) bundle(args ...string) (all []madeGroup) {
	d.Helper()
	if err := json.Unmarshal([]byte(d.ask(append([]string{"group", "create", "--format", "json"}, args...)...)), &all); err != nil {
		d.Fatal(err)
	}
	return all
}

// TestBundles makes stripes and parts with real processes, and asks about them.
func TestBundles(t *testing.T) {
	d := deploy(t)
	stripes := d.bundle("twin", "h0", "h1", "h2", "h3", "--stripes", "3")
	if len(stripes) != 2 || stripes[0].Name != "twin" || stripes[1].Name != "twin/stripe-1" || stripes[0].Root == stripes[1].Root {
		t.Fatalf("of two spines there are %+v", stripes)
	}
	for _, stripe := range stripes {
		d.watchers(stripe.Group, 4)
	}
	roots := map[string]bool{}
	for _, stripe := range stripes {
		d.eventually("stripe "+stripe.Name+" has a tree", func(ctx context.Context) (bool, error) {
			e, err := d.client.Explain(ctx, rpc.GroupRef{Group: stripe.Group})
			if e.State == manager.Active {
				roots[e.Trees[0].Switches[0].Switch] = true
			}
			return e.State == manager.Active, err
		})
	}
	if len(roots) != 2 {
		t.Errorf("the roots are %v", roots)
	}
	parts := d.bundle("halves", "h0", "h1", "h2", "h3", "--roots", "2")
	if len(parts) != 2 || strings.Join(parts[0].Members, " ") != "h0 h1" || parts[1].Name != "halves/part-1" {
		t.Errorf("the parts are %+v", parts)
	}
	for _, q := range []struct {
		args []string
		says []string
	}{
		{[]string{"create", "twin", "h0", "h1", "h2", "h3", "--stripes", "3"}, []string{
			"twin: found, 4 members, stripe 0 of 3 of twin, root spine-", "There are no more: manager: fewer groups than were wanted: 2 of 3 stripes"}},
		{[]string{"create", "odd", "h0", "h2", "h3", "--roots", "2"}, []string{"No group, part 0 of 2 of odd: [h0], a single host", "odd/part-1: created, 2 members"}},
		{[]string{"list"}, []string{"twin/stripe-1", "stripe 1 of 3 of twin", "part 0 of 2 of halves"}},
		{[]string{"explain", "twin/stripe-1"}, []string{"It is stripe 1 of 3 of twin", "twin: active, epoch 2, stripe 0 of 3 of twin"}},
		{[]string{"explain", "twin", "--format", "svg"}, []string{"stripe 0 of 3 of twin: tree of epoch 2", "stripe 1 of 3 of twin: tree of epoch 2"}},
	} {
		if out := d.ask(append([]string{"group"}, q.args...)...); !containsAll(out, q.says) {
			t.Errorf("%v says\n%s\nwithout one of %q", q.args, out, q.says)
		}
	}
	// Whichever was planned last says so.
	if both := d.ask("group", "explain", "twin") + d.ask("group", "explain", "twin/stripe-1"); !strings.Contains(both, "; apart from the other tree of its communicator") {
		t.Errorf("neither stripe is apart from the other:\n%s", both)
	}
	d.bundle("brief", "h0", "h2", "--stripes", "2")
	d.ask("group", "delete", "brief")
	d.eventually("the second stripe is released with the first", func(context.Context) (bool, error) {
		_, err := d.try("group", "show", "brief/stripe-1")
		return err != nil, nil
	})
	for _, wrong := range [][]string{{"--stripes", "2", "--roots", "2"}, {"--stripes", "-1"}, {"--roots", "65"}} {
		if _, err := d.try(append([]string{"group", "create", "x", "h0", "h1"}, wrong...)...); err == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
}
