package rpc

import (
	"errors"
	"testing"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
)

// TestGroupPlanIsADivision: a manager's word on parts is taken only if every rank is
// in one of them.
func TestGroupPlanIsADivision(t *testing.T) {
	for name, test := range map[string]struct {
		parts [][]uint32
		valid bool
	}{
		"parts":          {[][]uint32{{0, 2}, {1, 3}}, true},
		"stripes":        {[][]uint32{{}, {}}, true},
		"nothing":        {nil, false},
		"one is missing": {[][]uint32{{0, 2}, {1}}, false},
		"one twice":      {[][]uint32{{0, 2}, {1, 2, 3}}, false},
		"too many":       {[][]uint32{{0, 2}, {1, 3, 4}}, false},
		"out of order":   {[][]uint32{{2, 0}, {1, 3}}, false},
	} {
		m := &pb.PlanGroupResponse{}
		for _, ranks := range test.parts {
			m.Groups = append(m.Groups, &pb.PlannedGroup{Ranks: ranks})
		}
		var r reader
		r.groupPlan(m, 4)
		if (r.err == nil) != test.valid || r.err != nil && !errors.Is(r.err, ErrMalformed) {
			t.Errorf("%s: %v", name, r.err)
		}
	}
}

func TestBundleOfALaterVersion(t *testing.T) {
	var r reader
	if r.bundle(&pb.Bundle{Name: "job", Kind: 7}); !errors.Is(r.err, ErrMalformed) {
		t.Errorf("a kind that is not known: %v", r.err)
	}
}
