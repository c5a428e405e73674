package epoch

import (
	"errors"
	"math"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire"
)

func TestConfigValidate(t *testing.T) {
	for name, row := range map[string]struct {
		cfg Config
		ok  bool
	}{
		"lowest":           {Config{Parent: NoParent, Children: []uint32{1, 2}, Window: 4}, true},
		"middle":           {Config{Rank: 2, Parent: 0, Children: []uint32{3}, Window: 4}, true},
		"parent above":     {Config{Rank: 2, Parent: 3, Window: 4}, false},
		"no parent":        {Config{Rank: 2, Parent: NoParent, Window: 4}, false},
		"child below":      {Config{Rank: 2, Parent: 0, Children: []uint32{1}, Window: 4}, false},
		"children falling": {Config{Parent: NoParent, Children: []uint32{2, 1}, Window: 4}, false},
		"child too large":  {Config{Parent: NoParent, Children: []uint32{wire.MaxRank + 1}, Window: 4}, false},
		"no window":        {Config{Parent: NoParent}, false},
		"large window":     {Config{Parent: NoParent, Window: math.MaxUint32}, false},
	} {
		if _, err := New(row.cfg, 1, nil); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
