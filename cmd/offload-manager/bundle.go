package main

import (
	"context"
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// madeGroup is a group of a bundle that was made, in JSON.
type madeGroup struct {
	Group   uint32       `json:"group,omitempty"` // absent: none, since a part of one host needs none
	Name    string       `json:"name"`
	Found   bool         `json:"found"` // it stood already
	Bundle  *view.Bundle `json:"bundle"`
	Members []string     `json:"members"`
	Root    string       `json:"root"` // that is planned
}

// createBundle makes as many stripes or parts of c as there can be, up to those that
// c asks for.
func createBundle(ctx context.Context, m *rpc.ManagerClient, c manager.Create, format string, out io.Writer) error {
	plan, err := m.PlanGroup(ctx, c)
	if err != nil {
		return among(ctx, m, err)
	}
	var all []madeGroup
	for i, p := range plan.Groups {
		made, err := createPart(ctx, m, c, i, p)
		if err != nil {
			return err
		}
		all = append(all, made)
	}
	if format == "json" {
		return view.JSON(out, all)
	}
	for _, g := range all {
		switch was := "created"; {
		case g.Group == 0:
			fmt.Fprintf(out, "No group, %s: %v, a single host\n", g.Bundle, g.Members)
		default:
			if g.Found {
				was = "found"
			}
			fmt.Fprintf(out, "Group %d, %s: %s, %d members, %v, root %s\n", g.Group, g.Name, was, len(g.Members), g.Bundle, g.Root)
		}
	}
	if plan.Fewer != nil {
		_, err = fmt.Fprintf(out, "There are no more: %v\n", plan.Fewer)
	}
	return err
}

// createPart makes one of them.
func createPart(ctx context.Context, m *rpc.ManagerClient, c manager.Create, index int, p rpc.PlannedGroup) (madeGroup, error) {
	c.Bundle.Index = index
	if c.Bundle.Kind == manager.Parts {
		whole := c.Members
		c.Name, c.Members = fmt.Sprintf("%s/part-%d", c.Name, index), nil
		for _, rank := range p.Ranks {
			c.Members = append(c.Members, whole[rank])
		}
	} else if index > 0 {
		c.Name = fmt.Sprintf("%s/stripe-%d", c.Name, index)
	}
	made := madeGroup{Name: c.Name, Bundle: view.NewBundle(c.Bundle), Members: c.Members, Root: p.Root}
	if len(c.Members) < 2 {
		return made, nil
	}
	var err error
	made.Group, made.Found, err = m.CreateGroup(ctx, c)
	return made, err
}
