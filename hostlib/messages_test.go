package hostlib_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestSameBits: all members get the same bits of sums of floating-point numbers, by every
// algorithm, and the same ones again.
func TestSameBits(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7} {
		for _, a := range []hostlib.Algorithm{hostlib.RecursiveDoubling, hostlib.Rabenseifner, hostlib.Ring} {
			hosts, members := join(t, n)
			comms := form(t, hosts, members, hostlib.OnHosts(a))
			const elements = 1000
			var first []float32
			for range 2 {
				out := make([][]float32, n)
				each(n, func(i int) {
					r := rand.New(rand.NewPCG(uint64(i), 2))
					in := make([]float32, elements)
					for k := range in {
						in[k] = r.Float32() * float32(math.Pow(10, float64(r.IntN(9))))
					}
					out[i] = make([]float32, elements)
					o, err := hostlib.Allreduce(t.Context(), comms[i], reduce.Sum, in, out[i])
					if err != nil || o.Algorithm != a || o.Transport != hostlib.Hosts || o.Messages == 0 && i == 0 {
						t.Errorf("%+v, %v", o, err)
					}
				})
				if first == nil {
					first = out[0]
				}
				for i := range out {
					if !slices.Equal(out[i], first) {
						t.Errorf("%d members, %s: rank %d has other bits", n, a, i)
					}
				}
			}
			leave(t, comms)
		}
	}
}

// affine is a map x -> ax+b in a float64's place: its composition does not commute.
func composed(to, first, second []uint64) {
	for i := range to {
		a1, b1 := first[i]>>32, first[i]&math.MaxUint32
		a2, b2 := second[i]>>32, second[i]&math.MaxUint32
		to[i] = a1*a2<<32 | (b1*a2+b2)&math.MaxUint32
	}
}

// TestCustomOperator: an operator of the caller's own runs on hosts; one that does not commute
// reduces in the order of ranks.
func TestCustomOperator(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		hosts, members := join(t, n)
		comms := form(t, hosts, members)
		op := hostlib.Custom("composition", false, composed)
		largest := hostlib.Custom("largest", true, func(to, first, second []int32) {
			for k := range to {
				to[k] = max(first[k], second[k])
			}
		})
		const elements = 9
		vector := func(rank int) []uint64 {
			r := rand.New(rand.NewPCG(uint64(rank), 9))
			v := make([]uint64, elements)
			for k := range v {
				v[k] = r.Uint64()
			}
			return v
		}
		upTo := func(ranks int) []uint64 {
			acc := vector(0)
			for rank := 1; rank < ranks; rank++ {
				composed(acc, acc, vector(rank))
			}
			return acc
		}
		each(n, func(i int) {
			ctx, c := t.Context(), comms[i]
			for round := range 2 {
				out := make([]uint64, elements)
				o, err := hostlib.Allreduce(ctx, c, op, vector(i), out)
				if err != nil || !slices.Equal(out, upTo(n)) || o.Transport != hostlib.Hosts {
					t.Errorf("allreduce: %v, %v, %v", err, out, o)
				}
				root := n - 1 - round%n
				if root < 0 {
					root = 0
				}
				if _, err := hostlib.Reduce(ctx, c, op, root, vector(i), out); err != nil || i == root && !slices.Equal(out, upTo(n)) {
					t.Errorf("reduce: %v, %v", err, out)
				}
				if _, err := hostlib.Scan(ctx, c, op, vector(i), out); err != nil || !slices.Equal(out, upTo(i+1)) {
					t.Errorf("scan: %v, %v", err, out)
				}
				whole := slices.Repeat(vector(i), n)
				if _, err := hostlib.ReduceScatter(ctx, c, op, whole, out); err != nil || !slices.Equal(out, upTo(n)) {
					t.Errorf("reduce-scatter: %v, %v", err, out)
				}
			}
			most := []int32{int32(i), -int32(i)}
			if o, err := hostlib.Allreduce(ctx, c, largest, most, most); err != nil || most[0] != int32(n-1) || most[1] != 0 || o.Transport != hostlib.Hosts {
				t.Errorf("an operator that commutes: %v, %v, %v", most, o, err)
			}
			if _, err := hostlib.Allreduce(ctx, c, op, make([]int32, 3), make([]int32, 3)); !errors.Is(err, hostlib.ErrArgument) {
				t.Errorf("an operator on other elements: %v", err)
			}
		})
		leave(t, comms)
	}
}

// TestArguments: what cannot be is refused at the member alone, and names what is wrong.
func TestArguments(t *testing.T) {
	hosts, members := join(t, 2)
	comms := form(t, hosts, members)
	c, ctx := comms[0], t.Context()
	v := make([]int32, 8)
	only := func(_ hostlib.Outcome, err error) error { return err }
	message := func(_ hostlib.MessageStatus, err error) error { return err }
	for what, err := range map[string]error{
		"root 2 in a group of 2":                    only(hostlib.Gather(ctx, c, 2, v, v)),
		"root -1 in a group of 2":                   only(hostlib.Scatter(ctx, c, -1, v, v)),
		"8 elements of each of 2 members into 8":    only(hostlib.Allgather(ctx, c, v, make([]int32, 8))),
		"3 elements into 3, in parts for 2":         only(hostlib.Alltoall(ctx, c, v[:3], v[3:6])),
		"buffers overlap":                           only(hostlib.Alltoall(ctx, c, v[:4], v[2:6])),
		"3 pieces for 2 members":                    only(hostlib.Alltoallv(ctx, c, make([][]int32, 3), make([][]int32, 2))),
		"2 elements for this member itself":         only(hostlib.Alltoallv(ctx, c, [][]int32{v[:2], nil}, [][]int32{v[3:4], nil})),
		"count -1 of rank 1":                        only(hostlib.ReduceScatterv(ctx, c, reduce.Sum, v, v[:4], []int{4, -1})),
		"8 elements in, 7 of them counted":          only(hostlib.ReduceScatterv(ctx, c, reduce.Sum, v, make([]int32, 4), []int{4, 3})),
		"1 counts for 2 members":                    only(hostlib.ReduceScatterv(ctx, c, reduce.Sum, v, v, []int{8})),
		"there is no operator":                      only(hostlib.Scan[int32](ctx, c, nil, v, make([]int32, 8))),
		"is a function of values with locations":    only(hostlib.Scan(ctx, c, reduce.MinLoc, v, make([]int32, 8))),
		"is not defined":                            only(hostlib.Allreduce(ctx, c, reduce.BXor, make([]float32, 2), make([]float32, 2))),
		"not a defined pair":                        only(hostlib.Scan(ctx, c, reduce.BXor, make([]float32, 2), make([]float32, 2))),
		"there is no function(77)":                  only(hostlib.Allreduce(ctx, c, reduce.Function(77), v, v)),
		`operator "f" is of float32, not of int32`:  only(hostlib.Allreduce(ctx, c, hostlib.Custom("f", true, func(to, a, b []float32) {}), v, v)),
		`operator "f" has no function`:              only(hostlib.Scan(ctx, c, hostlib.Custom[int32]("f", true, nil), v, v)),
		"8 elements into 2":                         only(hostlib.Exscan(ctx, c, reduce.Sum, v, make([]int32, 2))),
		"4 elements into a piece of 3":              only(hostlib.Allgatherv(ctx, c, v[:4], [][]int32{make([]int32, 3), nil})),
		"overlap, and not as in place":              only(hostlib.Allgatherv(ctx, c, make([]int32, 4), [][]int32{v[:4], v[2:]})),
		"rank 2 in a group of 2":                    hostlib.Send(ctx, c, 2, 1, v),
		"a message to rank 0, which is this member": hostlib.Send(ctx, c, 0, 1, v),
		"AnyTag, which is for receives":             hostlib.Send(ctx, c, 1, hostlib.AnyTag, v),
		"rank -1 in a group of 2":                   message(hostlib.Recv(ctx, c, -1, 1, v)),
	} {
		if !errors.Is(err, hostlib.ErrArgument) || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
	each(2, func(i int) { // it goes on
		if _, err := hostlib.Allgather(ctx, comms[i], []int32{int32(i)}, make([]int32, 2)); err != nil {
			t.Error(err)
		}
	})
	leave(t, comms)
}

// TestDisagreementByMessages: members that call different operations all get an error that names
// two of them and what they called.
func TestDisagreementByMessages(t *testing.T) {
	ctx := t.Context()
	v := func(n int) []int32 { return make([]int32, n) }
	for what, calls := range map[string][2]func(c *hostlib.Communicator) error{
		"counts": {
			func(c *hostlib.Communicator) error { return second(hostlib.Allgather(ctx, c, v(3), v(9))) },
			func(c *hostlib.Communicator) error { return second(hostlib.Allgather(ctx, c, v(4), v(12))) },
		},
		"long vectors": {
			func(c *hostlib.Communicator) error {
				return second(hostlib.Allgather(ctx, c, v(300_000), v(900_000)))
			},
			func(c *hostlib.Communicator) error {
				return second(hostlib.Allgather(ctx, c, v(300_001), v(900_003)))
			},
		},
		"types": {
			func(c *hostlib.Communicator) error { return second(hostlib.Alltoall(ctx, c, v(3), v(3))) },
			func(c *hostlib.Communicator) error {
				return second(hostlib.Alltoall(ctx, c, make([]float32, 3), make([]float32, 3)))
			},
		},
		"functions": {
			func(c *hostlib.Communicator) error { return second(hostlib.Scan(ctx, c, reduce.Sum, v(3), v(3))) },
			func(c *hostlib.Communicator) error { return second(hostlib.Scan(ctx, c, reduce.Max, v(3), v(3))) },
		},
		"roots": {
			func(c *hostlib.Communicator) error { return second(hostlib.Gather(ctx, c, 0, v(3), v(9))) },
			func(c *hostlib.Communicator) error { return second(hostlib.Gather(ctx, c, 2, v(3), v(9))) },
		},
		"collectives": {
			func(c *hostlib.Communicator) error { return second(hostlib.Allgather(ctx, c, v(3), v(9))) },
			func(c *hostlib.Communicator) error {
				return second(hostlib.ReduceScatter(ctx, c, reduce.Sum, v(9), v(3)))
			},
		},
		"lengths of pieces": {
			func(c *hostlib.Communicator) error {
				return second(hostlib.Allgatherv(ctx, c, v(c.Rank()+1), [][]int32{v(1), v(2), v(3)}))
			},
			func(c *hostlib.Communicator) error {
				return second(hostlib.Allgatherv(ctx, c, v(c.Rank()+2), [][]int32{v(2), v(3), v(4)}))
			},
		},
		"a piece that does not fit": {
			func(c *hostlib.Communicator) error {
				return second(hostlib.Alltoallv(ctx, c, [][]int32{v(1), v(1), v(1)}, [][]int32{v(1), v(1), v(1)}))
			},
			func(c *hostlib.Communicator) error {
				return second(hostlib.Alltoallv(ctx, c, [][]int32{v(1), v(2), v(1)}, [][]int32{v(1), v(2), v(1)}))
			},
		},
	} {
		t.Run(what, func(t *testing.T) { disagree(t, calls) })
		t.Run(what+", over the tree", func(t *testing.T) { disagree(t, calls, hostlib.OnTree()) })
	}
}

// disagree has the first of three members call something else than the others.
func disagree(t *testing.T, calls [2]func(c *hostlib.Communicator) error, options ...hostlib.GroupOption) {
	hosts, members := join(t, 3)
	comms := form(t, hosts, members, options...)
	texts := make([]string, 3)
	each(3, func(i int) {
		err := calls[min(1, i)](comms[i])
		<-comms[i].Done()
		var d *hostlib.Disagreement
		if err == nil { // it had done its part
			err = comms[i].Err()
		}
		if !errors.As(err, &d) || d.Calls[0].Rank == d.Calls[1].Rank || !errors.Is(err, hostlib.ErrDisagreement) {
			t.Errorf("rank %d: %v", i, err)
			return
		}
		texts[i] = err.Error()
	})
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Errorf("members report different disagreements: %q", texts)
	}
	t.Log(texts[0])
}

// TestStrays: members that each get all that they await disagree nevertheless. The next operation by
// messages finds that, or what looks at late ones.
func TestStrays(t *testing.T) {
	v := func(n int) []int32 { return make([]int32, n) }
	for what, call := range map[string]func(c *hostlib.Communicator) error{
		"roots of broadcasts": func(c *hostlib.Communicator) error {
			return second(hostlib.Broadcast(t.Context(), c, c.Rank(), v(3)))
		},
		"gatherv and scatterv": func(c *hostlib.Communicator) error {
			if c.Rank() == 0 {
				return second(hostlib.Gatherv(t.Context(), c, 1, v(3), nil))
			}
			return second(hostlib.Scatterv(t.Context(), c, 1, [][]int32{v(2), v(2)}, v(2)))
		},
		"a piece that nobody awaits": func(c *hostlib.Communicator) error {
			return second(hostlib.Alltoallv(t.Context(), c, [][]int32{v(c.Rank()), v(0)}, [][]int32{v(c.Rank()), v(0)}))
		},
	} {
		for _, isNext := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, another follows: %t", what, isNext), func(t *testing.T) {
				hosts, members := join(t, 2)
				comms := form(t, hosts, members, hostlib.OnHosts())
				each(2, func(i int) {
					c := comms[i]
					err := call(c)
					for isNext && err == nil {
						err = second(hostlib.Allgather(t.Context(), c, v(1), v(2)))
					}
					<-c.Done()
					var d *hostlib.Disagreement
					if err := c.Err(); !errors.As(err, &d) || d.Calls[0].Operation != 0 || d.Calls[0].Rank == d.Calls[1].Rank {
						t.Errorf("rank %d: %v", i, err)
					}
					if i == 0 {
						t.Log(c.Err())
					}
				})
			})
		}
	}
}

func second[A any](_ A, err error) error { return err }

// TestOperatorPanics: when an operator panics, its caller gets that, and the communicator ends for
// all.
func TestOperatorPanics(t *testing.T) {
	hosts, members := join(t, 3)
	comms := form(t, hosts, members)
	each(3, func(i int) {
		op := hostlib.Custom("bad", true, func(to, first, second []int32) {
			if i == 2 { // which reduces
				panic("a test")
			}
		})
		defer func() {
			if p := recover(); (p != nil) != (i == 2) {
				t.Errorf("rank %d: panic %v", i, p)
			}
			<-comms[i].Done()
			var m *hostlib.MemberError
			if err := comms[i].Err(); !errors.As(err, &m) || m.Rank != 2 || !strings.Contains(err.Error(), "panicked: a test") {
				t.Error(err)
			}
		}()
		v := make([]int32, 300)
		_, _ = hostlib.Allreduce(t.Context(), comms[i], op, v, v)
		_, _ = hostlib.Allreduce(t.Context(), comms[i], op, v, v)
	})
}

// TestOperatorPanicsAlone: when an operator panics in an operation that no caller runs, its request
// has the panic as its error, and the communicator ends for all.
func TestOperatorPanicsAlone(t *testing.T) {
	why := errors.New("a test")
	for what, start := range map[string]func(c *hostlib.Communicator, op hostlib.Operator, v []int32) *hostlib.Request{
		"Start form": func(c *hostlib.Communicator, op hostlib.Operator, v []int32) *hostlib.Request {
			return hostlib.StartAllreduce(c, op, v, v)
		},
		"without its caller": func(c *hostlib.Communicator, op hostlib.Operator, v []int32) *hostlib.Request {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := hostlib.Allreduce(ctx, c, op, v, v)
			var u *hostlib.UnfinishedError
			if !errors.As(err, &u) {
				t.Errorf("%v", err)
			}
			return u.Request
		},
	} {
		hosts, members := join(t, 3)
		comms := form(t, hosts, members)
		all := make(chan struct{})
		requests := make([]*hostlib.Request, 3)
		for i := range requests {
			op := hostlib.Custom("bad", true, func(to, first, second []int32) {
				if <-all; i == 2 {
					panic(why)
				}
			})
			v := make([]int32, 300)
			requests[i] = start(comms[i], op, v)
		}
		close(all)
		for i, r := range requests {
			_, err := r.Wait(t.Context())
			var p *hostlib.PanicError
			var m *hostlib.MemberError
			if i == 2 {
				if !errors.As(err, &p) || p.Value != why || !strings.Contains(string(p.Stack), "TestOperatorPanicsAlone") || !errors.Is(err, hostlib.ErrEnded) || !errors.Is(err, why) {
					t.Errorf("%s: %v", what, err)
				}
			} else if err != nil && (!errors.As(err, &m) || m.Rank != 2) {
				t.Errorf("%s: rank %d: %v", what, i, err)
			}
			<-comms[i].Done()
			if err := comms[i].Err(); !errors.As(err, &m) || m.Rank != 2 || !strings.Contains(err.Error(), "panicked: a test") {
				t.Errorf("%s: rank %d: %v", what, i, err)
			}
		}
	}
}

// TestLockedThreads: callers that are locked to their threads can begin operations that go on
// elsewhere, and wait for operations.
func TestLockedThreads(t *testing.T) {
	comms := group(t, 2)
	each(2, func(i int) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, err := hostlib.StartAllgather(comms[i], []int64{1}, make([]int64, 2)).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var u *hostlib.UnfinishedError
		if _, err := hostlib.Allgather(ctx, comms[i], []int64{1}, make([]int64, 2)); errors.As(err, &u) {
			if _, err := u.Request.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		} else if err != nil {
			t.Error(err)
		}
		if _, err := hostlib.Allgather(t.Context(), comms[i], []int64{1}, make([]int64, 2)); err != nil {
			t.Error(err)
		}
	})
	leave(t, comms)
}

// TestDeathInOperations: when a member dies in the middle of operations by messages, all others
// get an error that names it, and no buffer is in use any more.
func TestDeathInOperations(t *testing.T) {
	for dead := range 4 {
		for _, elements := range []int{10, 100_000} {
			t.Run(fmt.Sprintf("%d/%d", dead, elements), func(t *testing.T) {
				hosts, members := join(t, 4)
				comms := form(t, hosts, members)
				each(4, func(i int) {
					in, out := make([]int64, elements), make([]int64, 4*elements)
					for k := 0; ; k++ {
						if i == dead && k == 3 {
							if err := hosts[i].Close(context.Background()); err != nil {
								t.Error(err)
							}
							return
						}
						if _, err := hostlib.Allgather(t.Context(), comms[i], in, out); err != nil {
							var m *hostlib.MemberError
							if !errors.As(err, &m) || m.Rank != dead || !strings.Contains(err.Error(), "closed its host") {
								t.Errorf("rank %d: got %v, want the death of rank %d", i, err, dead)
							}
							return
						}
					}
				})
			})
		}
	}
}

// TestManyInFlight: operations of all kinds are in flight at once, on several communicators, and
// are waited for in another order.
func TestManyInFlight(t *testing.T) {
	hosts, members := join(t, 3)
	var groups [2][]*hostlib.Communicator
	for g := range groups {
		groups[g] = make([]*hostlib.Communicator, 3)
		each(3, func(i int) {
			c, err := hosts[i].Communicator(t.Context(), fmt.Sprint("group ", g), members)
			if err != nil {
				t.Error(err)
			}
			groups[g][i] = c
		})
	}
	if t.Failed() {
		t.FailNow()
	}
	const operations = 40
	each(3, func(i int) {
		var requests []*hostlib.Request
		var check []func()
		for k := range operations {
			c := groups[k%2][i]
			n := 1 + k*k*17%9000
			in, out := slices.Repeat([]int32{int32(i + k)}, n), make([]int32, 3*n)
			switch k % 5 {
			case 0:
				requests = append(requests, hostlib.StartAllgather(c, in, out))
				check = append(check, func() {
					if out[0] != int32(k) || out[3*n-1] != int32(k+2) {
						t.Errorf("operation %d: %d, %d", k, out[0], out[3*n-1])
					}
				})
			case 1:
				requests = append(requests, hostlib.StartAllreduce(c, reduce.Sum, in, in))
				check = append(check, func() {
					if in[n-1] != int32(3*k+3) {
						t.Errorf("operation %d: %d", k, in[n-1])
					}
				})
			case 2:
				requests = append(requests, hostlib.StartExscan(c, reduce.Max, in, out[:n]))
				check = append(check, func() {
					if i > 0 && out[0] != int32(k+i-1) {
						t.Errorf("operation %d: %d", k, out[0])
					}
				})
			case 3:
				requests = append(requests, hostlib.StartAlltoall(c, out, make([]int32, 3*n)), hostlib.StartBarrier(c))
			default:
				requests = append(requests, hostlib.StartScatter(c, k%3, out, in))
			}
		}
		for _, k := range rand.New(rand.NewPCG(uint64(i), 4)).Perm(len(requests)) {
			if _, err := requests[k].Wait(t.Context()); err != nil {
				t.Errorf("request %d: %v", k, err)
			}
		}
		for _, f := range check {
			f()
		}
	})
	for _, comms := range groups {
		leave(t, comms)
	}
}

// TestPlaceInOrder: an operation over the tree is compared by its place among all operations, also those
// by messages that a member has called and done in another one's place.
func TestPlaceInOrder(t *testing.T) {
	comms := group(t, 3)
	each(3, func(i int) {
		ctx, c := t.Context(), comms[i]
		var err error
		if i == 1 {
			_, err = hostlib.Scatter(ctx, c, 1, make([]int32, 3), make([]int32, 1))
		} else {
			_, err = hostlib.Barrier(ctx, c)
		}
		if err == nil {
			_, err = hostlib.Barrier(ctx, c)
		}
		if !errors.Is(err, hostlib.ErrDisagreement) {
			t.Errorf("rank %d: %v", i, err)
		}
	})
}

// TestOrderDisagreement: members that call the same operations in another order get an error, also
// where one runs over the tree and the other by messages, and neither has sent the other anything.
func TestOrderDisagreement(t *testing.T) {
	hosts, members := join(t, 3, func(c *hostlib.Config) { c.SlowAfter = 20 * time.Millisecond })
	comms := form(t, hosts, members)
	each(3, func(i int) {
		calls := []func() error{
			func() error { return second(hostlib.Barrier(t.Context(), comms[i])) },
			func() error {
				return second(hostlib.Scatter(t.Context(), comms[i], 1, make([]int32, 3), make([]int32, 1)))
			},
		}
		if i == 1 {
			slices.Reverse(calls)
		}
		err := calls[0]()
		if err == nil {
			err = calls[1]()
		}
		<-comms[i].Done()
		if err == nil { // it had done its part of both
			err = comms[i].Err()
		}
		var d *hostlib.Disagreement
		if !errors.As(err, &d) || d.Calls[0].Rank == d.Calls[1].Rank || d.Calls[0].Collective == d.Calls[1].Collective && d.Calls[0].Operation == d.Calls[1].Operation {
			t.Errorf("rank %d: %v", i, err)
		}
	})
}
