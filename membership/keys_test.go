package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSetKeys changes the keys of a zone, and of the management zone above it,
// while both go on: what is written at each stage is known to all.
func TestSetKeys(t *testing.T) {
	old, fresh := Key{1, [32]byte{1}}, Key{2, [32]byte{2}}
	for _, encrypt := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypt=%v", encrypt), func(t *testing.T) {
			m := join(t, Config{Name: "m", Management: true, Keys: []Key{old}, Encrypt: encrypt})
			nodes := zoneOf(t, 4, func(_ int, c *Config) {
				c.Keys, c.Encrypt, c.Supervisors = []Key{old}, encrypt, []string{m.Addr().String()}
			})
			agree(t, nodes...)
			census(t, m, 4)
			for stage, keys := range [][]Key{{old, fresh}, {fresh, old}, {fresh}} {
				for i, n := range append(nodes, m) {
					if err := n.SetKeys(within(t), keys); err != nil {
						t.Fatal(err)
					}
					text := fmt.Sprintf("%d.%d", stage, i)
					if err := nodes[0].Set(within(t), "stage", []byte(text)); err != nil {
						t.Fatal(err)
					}
					for _, reader := range nodes {
						await(t, func() bool {
							value, _, err := reader.Attribute(within(t), "n0", "stage")
							return err == nil && string(value) == text
						})
					}
				}
			}
			late := join(t, Config{Name: "late", Keys: []Key{fresh}, Encrypt: encrypt, Bootstrap: []string{nodes[1].Addr().String()}})
			agree(t, append(nodes, late)...)
			census(t, m, 5)
			before := nodes[0].counts.malformed.Load()
			stranger := join(t, Config{Name: "stranger", Keys: []Key{old}, Encrypt: encrypt, Bootstrap: []string{nodes[0].Addr().String()}})
			await(t, func() bool { return nodes[0].counts.malformed.Load() > before })
			if view, err := stranger.View(within(t)); err != nil || len(view) != 1 {
				t.Errorf("who has the old key alone sees %v, %v", view, err)
			}
		})
	}
}

func TestSetKeysRefuses(t *testing.T) {
	key := Key{1, [32]byte{1}}
	sealed, open := join(t, Config{Name: "a", Keys: []Key{key}}), join(t, Config{Name: "b"})
	if text := fmt.Sprintf("%v %+v %#v", &Node{cfg: &Config{Keys: []Key{{3, [32]byte{77, 77, 77}}}}}, key, []Key{key}); strings.Contains(text, "77 77") || strings.Contains(text, "0x4d, 0x4d") || strings.Contains(text, "0x1, 0x0") {
		t.Errorf("fmt shows a secret: %s", text)
	}
	for name, test := range map[string]struct {
		n    *Node
		keys []Key
	}{
		"none":              {sealed, nil},
		"twice":             {sealed, []Key{key, key}},
		"number 16":         {sealed, []Key{{Number: 16}}},
		"none at the start": {open, []Key{key}},
	} {
		if err := test.n.SetKeys(within(t), test.keys); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shut(t, sealed)
	if err := sealed.SetKeys(within(t), []Key{key}); !errors.Is(err, ErrClosed) {
		t.Errorf("of a node that has ended: %v", err)
	}
}
