package peering

import (
	"errors"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// FuzzInputs: no sequence of inputs brings the core into a state that cannot be, or
// has it ask for anything of a connection that it has closed.
func FuzzInputs(f *testing.F) {
	f.Add([]byte{0, 1, 0, 3, 1, 1, 8, 2, 0, 4, 1, 0})
	f.Add([]byte{10, 0, 0, 4, 1, 0, 11, 0, 0, 5, 1, 0, 16, 200, 0, 12, 1, 9})
	f.Add([]byte{8, 1, 0, 4, 65, 65, 15, 1, 131, 4, 66, 65, 5, 1, 1, 16, 1, 0, 4, 67, 72, 5, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		trial := newTrial(func(c *Config) { c.Pending, c.PendingOfSource, c.Connections, c.Remember = 4, 2, 6, 3 })
		names := []string{"a", "b", "A", "c", "d#1", "d#2"}
		closed := map[ID]bool{}
		arrived := map[ID]bool{}
		for ; len(b) >= 3; b = b[3:] {
			kind, x, y := Kind(b[0]%17), b[1], b[2]
			if kind == 16 {
				trial.now = trial.now.Add(time.Duration(x) * 100 * time.Millisecond)
				trial.step()
			} else {
				id := ID(x % 16)
				if y&1 != 0 && kind != Arrived {
					id |= Dialled
				}
				if kind == Arrived {
					if arrived[id] {
						continue // the driver gives each number once
					}
					arrived[id] = true
				}
				in := Input{Kind: kind, ID: id, Source: prefix(int(y % 3)), Peer: names[int(x)%len(names)], Class: y % 3, Incarnation: uint64(y), Err: errors.New("x")}
				switch kind { // of a driver's own
				case Wanted, Held, Released:
					in.Class %= 2
				}
				in.Greeting = greeting.Greeting{From: names[int(y)%len(names)], To: "a", Class: y % 3, Incarnation: uint64(y / 64), Call: uint64(x), Accepted: uint64(y / 16)}
				in.Answer = greeting.Answer{Code: greeting.Code(y % 9), Incarnation: uint64(x / 64)}
				in.Sample = Sample{Heard: time.Duration(x) * 50 * time.Millisecond, Used: time.Duration(y) * 10 * time.Second, Reads: uint64(y / 128), Deaf: x&1 != 0}
				in.Pairs, in.First = y>>1, y%9
				if y&4 != 0 {
					in.Greeting.Path, in.Greeting.Joins, in.Greeting.First = x>>4, uint64(y/32), y&8 != 0
				}
				if kind == Greeted && y&2 == 0 {
					in.Err = nil
				}
				_, known := trial.c.conns[id]
				if kind == Ended && (known || trial.c.strangers.find(id) >= 0) {
					closed[id] = true
				}
				trial.step(in)
			}
			for i := range trial.out.Actions {
				a := &trial.out.Actions[i]
				switch a.Do {
				case Fail, Restarted, Forgot, Raise:
					continue
				case Close, Refuse, ClosePath:
					if closed[a.ID] {
						t.Fatalf("%v, of what is closed", a)
					}
					closed[a.ID] = true
				default:
					if closed[a.ID] {
						t.Fatalf("%v, of what is closed", a)
					}
				}
			}
			trial.c.check(t)
		}
	})
}
