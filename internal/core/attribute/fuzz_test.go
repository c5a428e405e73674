package attribute

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// FuzzMessages gives a member any messages, from a neighbour, another one and a
// stranger. What holds between two steps holds, its own map stays its own, what
// it sends can be read and is bounded, and it comes to rest.
func FuzzMessages(f *testing.F) {
	seeds := []string{
		"from b digest p:5 q:3 r:1", "from b request a:0 p:0", "from b push a:1 p:9", "from b reply p:0..5 k=v@2 -j@5",
		"from b reply q:none p:more:7", "from b reply r:0..1 k=v@1", "from b reply p:5..9^7 k=w@9",
	}
	var all []byte
	for i, line := range seeds {
		m := inputOf(strings.Fields(line)).Message
		one := m.Append([]byte{byte(i), byte(m.Size())})
		one[1] = byte(len(one) - 2)
		f.Add(one)
		all = append(all, one...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		trial := newTrial()
		trial.do("join b; join c; join p; join q; up b; up c", "set color red")
		for len(data) >= 2 {
			what, n := data[0], min(int(data[1]), len(data)-2)
			m, err := attributes.Decode(data[2 : 2+n])
			data = data[2+n:]
			if err != nil {
				continue
			}
			trial.fuzz(t, Input{Kind: Message, Life: life("bcebcbcb"[what%8:]), Message: m})
			switch what >> 4 {
			case 1:
				trial.fuzz(t, Input{Kind: Left, Life: life("p")})
			case 2:
				trial.fuzz(t, Input{Kind: Joined, Life: life("p")})
			case 3:
				trial.fuzz(t, Input{Kind: NeighbourDown, Life: life("b")})
			case 4:
				trial.fuzz(t, Input{Kind: NeighbourUp, Life: life("b")})
			}
		}
		if v, _ := trial.c.Get(life("a"), "color"); string(v) != "red" || trial.c.Version(life("a")) != 1 {
			t.Errorf("its own map has version %d, color %q", trial.c.Version(life("a")), v)
		}
		trial.do("pass 1s")
		if due := trial.c.Deadline(); due != core.Never {
			t.Errorf("it waits for %v", due)
		}
	})
}

// fuzz gives the core an input and checks what comes of it.
func (t *trial) fuzz(tt *testing.T, in Input) {
	t.out.Reset()
	t.c.Step(t.now, []Input{in}, &t.out)
	if wrong := t.c.wrong(); wrong != "" {
		tt.Fatal(wrong)
	}
	for _, s := range t.out.Sends {
		b := s.Message.Append(nil)
		if _, err := attributes.Decode(b); err != nil || len(b) > t.c.cfg.MessageBytes {
			tt.Fatalf("it sends %d bytes, %x: %v", len(b), b, err)
		}
	}
}
