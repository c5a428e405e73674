package peer

import (
	"fmt"
	"slices"
	"testing"
)

// pathWitness is a service that sees paths.
type pathWitness struct {
	witness
	paths []*Path
	gone  []*Path
	early []uint64 // reported with an error before PathDown
}

func (w *pathWitness) PathUp(p *Path) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths = append(w.paths, p)
}

func (w *pathWitness) PathDown(p *Path, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, p)
	w.paths = slices.DeleteFunc(w.paths, func(o *Path) bool { return o == p })
}

func (w *pathWitness) Sent(numbers []uint64, err error) {
	w.mu.Lock()
	if err != nil && len(w.gone) == 0 {
		w.early = append(w.early, numbers...)
	}
	w.mu.Unlock()
	w.witness.Sent(numbers, err)
}

func (w *pathWitness) up(class Class) []*Path {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.paths), func(p *Path) bool { return p.Conn().Class() != class })
}

func newPathWitness() *pathWitness { return &pathWitness{witness: witness{sent: map[uint64]error{}}} }

// TestPathsAcknowledge: a frame of the classes whose paths services see is reported when the
// other side's driver has it, and with an error, after the end of its path, if that is not
// known.
func TestPathsAcknowledge(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		for _, rails := range []int{1, 2} {
			for _, class := range []Class{Message, Fragment} {
				t.Run(fmt.Sprintf("rails=%d/class=%d", rails, class), func(t *testing.T) {
					w := newTown()
					out, in := newPathWitness(), newPathWitness()
					settle := func(name string, at byte, s Handler) *Host {
						h, _ := w.settle(t, name, 1, func(c *Config) {
							withRails(at, rails)(c)
							trust(name)(c)
							c.Handlers = map[Service]Handler{Messages: s}
						})
						return h
					}
					a, b := settle("a", 1, out), settle("b", 2, in)
					a.Hold("b", class, b.Addr())
					defer a.Release("b", class, b.Addr())
					await(t, "all paths", func() bool { return len(out.up(class)) == rails && len(in.up(class)) == rails })
					number := uint64(0)
					for i, p := range out.up(class) {
						if err := p.Send(&Send{Service: Messages, Stream: uint32(i), Body: []byte("acknowledged"), Number: number + 1}); err != nil {
							t.Fatal(err)
						}
						number++
						p.Flush()
					}
					await(t, "acknowledgements", func() bool {
						for n := range number {
							if err, ok := out.outcome(n + 1); !ok || err != nil {
								return false
							}
						}
						return true
					})
					// The other side reads nothing any more on the first path.
					victim := out.up(class)[0]
					before := len(in.frames())
					victim.channel.mu.Lock()
					victim.isReady = false // the bytes stay here: they cannot be acknowledged
					victim.channel.mu.Unlock()
					const lost = 20
					for i := range uint64(lost) {
						if err := victim.Send(&Send{Service: Messages, Body: []byte("lost"), Number: 100 + i}); err != nil {
							t.Fatal(err)
						}
					}
					victim.Flush()
					victim.Break(errNowhere)
					await(t, "errors", func() bool { _, ok := out.outcome(100 + lost - 1); return ok })
					for i := range uint64(lost) {
						if err, ok := out.outcome(100 + i); !ok || err == nil {
							t.Errorf("frame %d: %v, %v", i, err, ok)
						}
					}
					if len(out.early) > 0 {
						t.Errorf("%v are reported before the path's end", out.early)
					}
					if n := len(in.frames()); n != before {
						t.Errorf("%d frames have come of those that were never written", n-before)
					}
					if err := victim.Send(&Send{Service: Messages, Body: []byte("late"), Number: 99}); err == nil {
						t.Error("a path that has ended takes a frame")
					}
					await(t, "the path to be made again", func() bool { return len(out.up(class)) == rails })
				})
			}
		}
	})
}

// caller is a service that calls a host again as soon as the connection with it has ended.
type caller struct {
	*pathWitness
	host *Host
}

func (c *caller) Down(conn *Conn, reason error) {
	c.host.Channel(conn.Peer().Name, conn.Class()).Call()
	c.pathWitness.Down(conn, reason)
}

// TestCallFromDown: a call that comes before the loop knows of the connection's end is made.
func TestCallFromDown(t *testing.T) {
	w := newTown()
	out, in := &caller{pathWitness: newPathWitness()}, newPathWitness()
	var a *Host
	a, _ = w.settle(t, "a", 1, nil)
	out.host = a
	if err := a.Register(Messages, out); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "b", 1, func(c *Config) { c.Handlers = map[Service]Handler{Messages: in} })
	a.Channel("b", Message).Call()
	for i := range 20 {
		await(t, "a connection", func() bool { return len(out.ups()) == i+1 && len(out.up(Message)) == 1 })
		out.up(Message)[0].Break(errNowhere)
		await(t, "its end", func() bool { return len(out.downs()) == i+1 })
	}
}

// orderly is a caller that sees whether paths of a connection come after its end.
type orderly struct {
	caller
	ended []*Conn
	late  int
}

func (o *orderly) PathUp(p *Path) {
	o.mu.Lock()
	if slices.Contains(o.ended, p.Conn()) {
		o.late++
	}
	o.mu.Unlock()
	o.caller.PathUp(p)
}

func (o *orderly) Down(conn *Conn, reason error) {
	o.mu.Lock()
	o.ended = append(o.ended, conn)
	o.mu.Unlock()
	o.caller.Down(conn, reason)
}

// TestNoPathAfterDown: a path that is added while its connection ends is not reported after
// that, and each one that is reported up is reported down before it.
func TestNoPathAfterDown(t *testing.T) {
	w := newTown()
	out, in := &orderly{caller: caller{pathWitness: newPathWitness()}}, newPathWitness()
	a, _ := w.settle(t, "a", 1, withRails(1, 4))
	out.host = a
	if err := a.Register(Messages, out); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "b", 1, func(c *Config) {
		withRails(2, 4)(c)
		c.Handlers = map[Service]Handler{Messages: in}
	})
	a.Channel("b", Message).Call()
	for i := range 300 {
		before := len(out.downs())
		await(t, "paths", func() bool { return len(out.up(Message)) > i%3 || len(out.downs()) > before })
		await(t, "the end of a connection", func() bool {
			for _, p := range out.up(Message) {
				p.Break(errNowhere)
			}
			return len(out.downs()) > before
		})
	}
	if out.late > 0 {
		t.Errorf("%d paths were reported after the end of their connection", out.late)
	}
}
