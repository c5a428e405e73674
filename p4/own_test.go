package p4_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// TestOwn holds what package p4 says that the program reduces by itself against the
// entries of the compiled program's table of functions and types.
func TestOwn(t *testing.T) {
	var program struct {
		Pipelines []struct {
			Tables []struct {
				Name    string
				Entries []struct {
					Key []struct {
						Key string `json:"key"`
					} `json:"match_key"`
					Action struct {
						ID int `json:"action_id"`
					} `json:"action_entry"`
				}
			}
		}
		Actions []struct {
			ID   int
			Name string
		}
	}
	if err := json.Unmarshal(p4.DeviceConfig(), &program); err != nil {
		t.Fatal(err)
	}
	actions := map[int]string{}
	for _, a := range program.Actions {
		actions[a.ID] = a.Name[strings.LastIndex(a.Name, ".")+1:]
	}
	rows, own := 0, p4.Own(2, p4.BlockSlots)
	for _, p := range program.Pipelines {
		for _, table := range p.Tables {
			if !strings.HasSuffix(table.Name, "pairs") {
				continue
			}
			for _, e := range table.Entries {
				f, err := strconv.ParseUint(strings.TrimPrefix(e.Key[0].Key, "0x"), 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				y, err := strconv.ParseUint(strings.TrimPrefix(e.Key[1].Key, "0x"), 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				rows++
				action := actions[e.Action.ID]
				if has, want := own.Has(reduce.Function(f), reduce.Type(y)), strings.HasPrefix(action, "pair") || strings.HasPrefix(action, "steps"); has != want {
					t.Errorf("%v of %v: the program has %s, Own says %v", reduce.Function(f), reduce.Type(y), action, has)
				}
			}
		}
	}
	if rows < 90 {
		t.Errorf("the program has %d rows of functions and types", rows)
	}
}

// TestOwnOfBlocks: sums of block32 are the program's own as far as its memory goes.
func TestOwnOfBlocks(t *testing.T) {
	for _, test := range []struct {
		children, end int
		want          topology.Pipeline
	}{
		{2, 128, topology.P4}, {p4.BlockChildren, p4.BlockSlots, topology.P4},
		{p4.BlockChildren + 1, 128, topology.AgentCPU}, {2, p4.BlockSlots + 1, topology.AgentCPU},
	} {
		r := topology.Reducer{Pipeline: topology.P4, Own: p4.Own(test.children, test.end)}
		if got := r.Serves(reduce.Sum, reduce.Block32); got != test.want {
			t.Errorf("%d children, slots to %d: by %v", test.children, test.end, got)
		}
		if r.Serves(reduce.Sum, reduce.Int32) != topology.P4 || r.Serves(reduce.Sum, reduce.Float32) != topology.AgentCPU ||
			r.Serves(reduce.Max, reduce.Float32) != topology.P4 || r.Serves(reduce.NoFunction, reduce.Float32) != topology.P4 {
			t.Errorf("%d children, slots to %d: %v", test.children, test.end, r)
		}
	}
}
