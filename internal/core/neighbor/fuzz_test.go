package neighbor

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// FuzzInputs: no sequence of inputs brings the core into a state that cannot be, or has it
// send from a port that is not there.
func FuzzInputs(f *testing.F) {
	b := announcement("b", "q")
	b.Tributary = lldpdu.Tributary{Role: lldpdu.Host, Name: "b"}
	pdu, err := b.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 1, 1, 0}, pdu)
	f.Add([]byte{0, 1, 2, 1, 7, 200, 2, 1, 5, 1, 6, 1, 1, 1}, pdu)
	f.Add([]byte{0, 1, 3, 1, 4, 1}, withDelay(pdu, lldpdu.Delay{Kind: lldpdu.DelayRequest, Target: [6]byte{2}, Nonce: 7}))
	f.Fuzz(func(t *testing.T, b, data []byte) {
		trial := newTrial(Config{})
		there := map[PortID]bool{}
		for ; len(b) >= 2; b = b[2:] {
			kind, x := b[0]%8, b[1]
			id := PortID(x % 3)
			in := Input{Port: id, At: trial.now, MAC: [6]byte{2, 5: x / 64}, Data: data}
			ended := false
			switch kind {
			case 0:
				in.Kind, in.Up = Set, x&1 != 0
				in.Own = announcement("me", string(rune('a'+x/128)))
				there[id] = true
			case 1:
				in.Kind = Removed
				ended = true
			case 2, 3:
				in.Kind, in.Data = Heard, data[min(len(data), int(x/32)):]
			case 4, 5:
				in.Kind = Heard
			case 6:
				in.Kind = Sent
				if len(trial.nonces) > 0 {
					in.Nonce = trial.nonces[len(trial.nonces)-1]
				}
			default:
				trial.pass(time.Duration(x) * 50 * time.Millisecond)
				continue
			}
			trial.step(in)
			for _, s := range trial.out.Sends {
				if !there[s.Port] {
					t.Fatalf("port %d sends, and is not there", s.Port)
				}
			}
			if ended {
				delete(there, id)
			}
			if wrong := trial.c.check(); wrong != nil {
				t.Fatal(wrong)
			}
		}
		trial.do("close")
		if trial.out.Reset(); len(trial.c.ticks)+len(trial.c.ages)+len(trial.c.requests) > 0 {
			t.Error("timers run after the end")
		}
	})
}
