package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// unread elements are a message that waits for its receive.
const unread = 1 << 18

func vectorOf(n, from, to int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(from<<40 | to<<32 | i)
	}
	return v
}

// waitFor waits for a message, and returns its error.
func waitFor(t testing.TB, m *Message) error {
	t.Helper()
	_, err := m.Wait(within(t))
	return err
}

// exchange is what members that live have under way when others die: each pair a receive that waits for
// a short message, and a long one that no receive awaits.
type exchange struct {
	recv, send [][]*Message
	short      [][][]int64
}

func startExchange(comms []*Communicator) *exchange {
	n := len(comms)
	x := &exchange{recv: make([][]*Message, n), send: make([][]*Message, n), short: make([][][]int64, n)}
	for i, c := range comms {
		x.recv[i], x.send[i], x.short[i] = make([]*Message, n), make([]*Message, n), make([][]int64, n)
		for j := range comms {
			if c == nil || i == j {
				continue
			}
			x.short[i][j] = make([]int64, 3)
			x.recv[i][j] = StartRecv(c, j, 1, x.short[i][j])
			x.send[i][j] = StartSend(c, j, 2, vectorOf(unread, i, j))
		}
	}
	return x
}

// finish has the pairs of members that live complete all, and checks that what there is with the dead
// has failed, for that, and fails again.
func (x *exchange) finish(t *testing.T, comms []*Communicator, dead ...int) {
	t.Helper()
	each(len(comms), func(i int) {
		if slices.Contains(dead, i) || comms[i] == nil {
			return
		}
		for j := range comms {
			switch {
			case i == j || x.recv[i][j] == nil:
			case slices.Contains(dead, j):
				for _, err := range []error{waitFor(t, x.recv[i][j]), waitFor(t, x.send[i][j])} {
					wantMember(t, err, j, "")
				}
				wantMember(t, Send(within(t), comms[i], j, 1, []int64{1}), j, "")
				_, err := Recv(within(t), comms[i], j, 1, []int64{1})
				wantMember(t, err, j, "")
			default:
				v := make([]int64, unread)
				in := StartRecv(comms[i], j, 2, v)
				if err := Send(within(t), comms[i], j, 1, vectorOf(3, i, j)); err != nil {
					t.Errorf("rank %d to %d: %v", i, j, err)
				}
				for what, err := range map[string]error{"long": waitFor(t, in), "short": waitFor(t, x.recv[i][j]), "sent": waitFor(t, x.send[i][j])} {
					if err != nil {
						t.Errorf("rank %d from %d, %s: %v", i, j, what, err)
					}
				}
				if !slices.Equal(v, vectorOf(unread, j, i)) || !slices.Equal(x.short[i][j], vectorOf(3, j, i)) {
					t.Errorf("rank %d has something else from %d", i, j)
				}
			}
		}
	})
}

// TestMessagesOutliveDeaths: whoever dies, one after the other, messages between the others go on: those
// under way, and later ones. Operations fail, and messages with the dead, as soon as the death is known
// by membership or by connections.
func TestMessagesOutliveDeaths(t *testing.T) {
	for _, by := range []string{"membership", "connections", "processes"} {
		for _, dead := range fewer([]int{1, 0}, []int{2, 4}, []int{0, 1}) {
			t.Run(fmt.Sprintf("%s/%v", by, dead), func(t *testing.T) {
				var hosts []*Host
				var members []Member
				switch by {
				case "processes":
					hosts, members = joinProcesses(t, []int{2, 1, 2}, patient)
				case "connections":
					hosts, members = joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, func(c *Config) { c.DeadAfter = time.Second / 2 })
				default:
					hosts, members = joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
				}
				comms := form(t, "test", hosts, members)
				living := slices.Clone(comms)
				for k, d := range dead {
					x := startExchange(living)
					if by == "connections" {
						kill(t, hosts[d])
					} else {
						die(t, hosts, d)
					}
					living[d] = nil
					for _, c := range living {
						if c != nil {
							<-c.Done()
							_, err := Allreduce(within(t), c, reduce.Sum, []int64{1}, []int64{1})
							wantMember(t, err, dead[0], "")
						}
					}
					x.finish(t, living, dead[:k+1]...)
				}
				sum(t, shrink(t, living), 10)
			})
		}
	}
}

// TestEndsOfMessages: what ends messages after a death, or instead of one.
func TestEndsOfMessages(t *testing.T) {
	want := func(t *testing.T, m []*Message, is error) {
		t.Helper()
		for rank, m := range m {
			if m != nil {
				if err := waitFor(t, m); !errors.Is(err, is) {
					t.Errorf("rank %d: got %v, want %v", rank, err, is)
				}
			}
		}
	}
	pending := func(comms []*Communicator) []*Message {
		all := make([]*Message, 3)
		for i := range 2 {
			all[i] = StartRecv(comms[i], 1-i, 5, make([]int64, 1))
		}
		return all
	}
	for _, dies := range []bool{false, true} {
		for name, end := range map[string]func(t *testing.T, hosts []*Host, comms []*Communicator) error{
			"revoke": func(_ *testing.T, _ []*Host, comms []*Communicator) error {
				comms[0].Revoke()
				return ErrRevoked
			},
			"shrink twice": func(t *testing.T, _ []*Host, comms []*Communicator) error {
				shrink(t, shrink(t, comms))
				if !dies {
					leave(t, comms)
				}
				return ErrEnded
			},
			"close": func(t *testing.T, hosts []*Host, _ []*Communicator) error {
				each(2, func(i int) {
					if err := hosts[i].Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
				return ErrEnded
			},
			"abort": func(_ *testing.T, _ []*Host, comms []*Communicator) error {
				if dies {
					comms[0].Revoke() // which Abort does not
				}
				comms[0].Abort("a test")
				return ErrEnded
			},
		} {
			t.Run(fmt.Sprintf("%s/dies=%v", name, dies), func(t *testing.T) {
				hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, patient)
				comms := form(t, "test", hosts, members)
				all := pending(comms)
				if dies {
					die(t, hosts, 2)
					comms[2] = nil
					<-comms[0].Done()
					<-comms[1].Done()
				}
				is := end(t, hosts, comms)
				want(t, all, is)
				for i := range 2 {
					if err := Send(within(t), comms[i], 1-i, 1, []int64{1}); !errors.Is(err, ErrEnded) {
						t.Errorf("a later message: %v", err)
					}
				}
			})
		}
	}
}

// TestOthersGoOn: a member's death ends nothing of communicators in which it is not, in shared memory
// too.
func TestOthersGoOn(t *testing.T) {
	hosts, members := joinProcesses(t, []int{3, 1, 2}, patient)
	comms := form(t, "test", hosts, members)
	others := make([]*Communicator, len(comms))
	each(len(comms), func(i int) {
		color := 0
		if i == 1 {
			color = Undefined
		}
		var err error
		if others[i], err = comms[i].Split(within(t), color, 0); err != nil {
			t.Error(err)
		}
	})
	others = slices.DeleteFunc(others, func(c *Communicator) bool { return c == nil })
	sum(t, others, 10)
	die(t, hosts, 1)
	for i, c := range comms {
		if i != 1 {
			<-c.Done()
		}
	}
	sum(t, others, 1000)
	leave(t, others)
}

// lateContext has ended, and calls last once, when somebody asks why.
type lateContext struct {
	context.Context
	last func()
}

func (c *lateContext) Value(key any) any {
	if f := c.last; f != nil {
		c.last = nil
		f()
	}
	return c.Context.Value(key)
}

// TestDoneWhileTheContextEnds: what is done between the end of a context and the report of that end is
// done, and its own outcome counts.
func TestDoneWhileTheContextEnds(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "ending", hosts, members, OnHosts())
	defer leave(t, comms)
	ended, cancel := context.WithCancel(within(t))
	cancel()
	// have returns a context that has ended; before that is reported, f runs at rank 0, and what it sent
	// has come to rank 1.
	have := func(f func() error) context.Context {
		return &lateContext{ended, func() {
			if err := f(); err != nil {
				t.Error(err)
			}
			behind := StartRecv(comms[1], 0, 99, make([]int64, 1))
			if err := Send(within(t), comms[0], 1, 99, []int64{0}); err != nil {
				t.Error(err)
			}
			if err := waitFor(t, behind); err != nil {
				t.Error(err)
			}
		}}
	}
	v := make([]int64, 1)
	send := func() error { return Send(within(t), comms[0], 1, 1, []int64{5}) }
	if s, err := StartRecv(comms[1], 0, 1, v).Wait(have(send)); err != nil || s.Elements != 1 || v[0] != 5 {
		t.Errorf("StartRecv: %v, %v, %v", s, err, v)
	}
	clear(v)
	if s, err := Recv(have(send), comms[1], 0, 1, v); err != nil || s.Elements != 1 || v[0] != 5 {
		t.Errorf("Recv: %v, %v, %v", s, err, v)
	}
	clear(v)
	_, err := Broadcast(have(func() error {
		_, err := Broadcast(within(t), comms[0], 0, []int64{6})
		return err
	}), comms[1], 0, v)
	var u *UnfinishedError
	if errors.As(err, &u) {
		_, err = u.Request.Wait(within(t))
	}
	if err != nil || v[0] != 6 {
		t.Errorf("Broadcast: %v, %v", err, v)
	}
}
