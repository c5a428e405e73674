package hostlib

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// joinProcesses joins so many processes of each host, "h0#0", ...; of a single one without a label.
func joinProcesses(t testing.TB, counts []int, change ...func(*Config)) (hosts []*Host, members []Member) {
	t.Helper()
	for i, n := range counts {
		for k := range n {
			label := func(c *Config) {
				if n > 1 {
					c.Process = fmt.Sprint(k)
				}
			}
			hosts = append(hosts, joinOne(t, fmt.Sprint("h", i), append([]func(*Config){label}, change...)...))
			members = append(members, hosts[len(hosts)-1].Member())
		}
	}
	return hosts, members
}

// sharedMappings returns how often memory is mapped that processes of a host share.
func sharedMappings(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(maps), "memfd:tributary")
}

func ended(t testing.TB, comms ...*Communicator) {
	t.Helper()
	for _, c := range comms {
		select {
		case <-c.Done():
		case <-within(t).Done():
			t.Fatalf("rank %d has not ended", c.Rank())
		}
	}
}

// TestProcesses: uneven processes of hosts, in any order of ranks, reduce in shared memory, with
// several operations and segments under way; their memory is freed when they have left.
func TestProcesses(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1, 4})
	for i, k := range []int{6, 0, 5, 3, 1, 2, 4} { // h2#3, h0#0, h2#2, h2#0, ...
		if k != i && k > i {
			hosts[i], hosts[k], members[i], members[k] = hosts[k], hosts[i], members[k], members[i]
		}
	}
	comms := form(t, "test", hosts, members)
	if n := sharedMappings(t); n != 6 {
		t.Errorf("memory is mapped %d times", n)
	}
	for _, n := range []int{0, 1, 1000, 300_000} {
		for _, o := range sum(t, comms, n) {
			if o.Transport != HostTree || o.Reason == "" || n > 0 && o.Chunks == 0 {
				t.Errorf("%+v", o)
			}
		}
	}
	const several = 9
	each(len(comms), func(rank int) {
		var requests [several]*Request
		var v [several][]int64
		for i := range requests {
			v[i] = vectors(len(comms), 40_000)[rank]
			requests[i] = StartAllreduce(comms[rank], reduce.Sum, v[i], v[i])
		}
		root := 3
		w := []int64{int64(rank), 7}
		if _, err := Reduce(within(t), comms[rank], reduce.Max, root, w, w); err != nil || rank == root && w[0] != 6 {
			t.Errorf("rank %d: %d %v", rank, w, err)
		}
		for root := range comms {
			w := []int64{int64(rank), 7}
			if _, err := Broadcast(within(t), comms[rank], root, w); err != nil || w[0] != int64(root) {
				t.Errorf("rank %d: %d %v", rank, w, err)
			}
		}
		if _, err := Barrier(within(t), comms[rank]); err != nil {
			t.Error(err)
		}
		for i, r := range requests {
			if _, err := r.Wait(within(t)); err != nil {
				t.Error(err)
			}
			checkSum(t, len(comms), rank, v[i])
		}
		all := make([]int64, len(comms))
		if _, err := Allgather(within(t), comms[rank], []int64{int64(rank)}, all); err != nil || all[5] != 5 {
			t.Error(all, err)
		}
	})
	for rank, c := range comms {
		if way, why := c.Transport(); way != HostTree || why == "" {
			t.Errorf("rank %d: %v %q", rank, way, why)
		}
	}
	leave(t, comms)
	ended(t, comms...)
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
	leave(t, form(t, "test", hosts, members)) // the name is free
}

// TestProcessesOnSwitches: each host contributes once to trees of switches, with all options that
// these have.
func TestProcessesOnSwitches(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := joinProcesses(t, []int{2, 1, 3, 2}, func(c *Config) { c.Manager, c.OfferWait = f.front.addr(), patience })
	for name, options := range map[string][]GroupOption{"one tree": nil, "stripes": {Stripes(2)}, "roots": {Roots(2)}, "block float": {BlockFloat()}} {
		t.Run(name, func(t *testing.T) {
			comms := form(t, name, hosts, members, options...)
			for _, n := range []int{1, 200_000} {
				for rank, o := range sum(t, comms, n) {
					if o.Transport != Offload {
						t.Errorf("rank %d: %+v", rank, o)
					}
				}
			}
			if name == "stripes" && len(comms[0].Stripes()) != 2 || name == "roots" && len(slices.Concat(comms[0].Parts()...)) != len(members) {
				t.Errorf("stripes %v, parts %v", comms[0].Stripes(), comms[0].Parts())
			}
			each(len(comms), func(rank int) {
				v := []float32{float32(rank), 0.5}
				o, err := Allreduce(within(t), comms[rank], reduce.Sum, v, v)
				if err != nil || v[0] != 28 || v[1] != 4 || o.BlockFloat != (name == "block float") {
					t.Errorf("rank %d: %v %v %+v", rank, v, err, o)
				}
				e, err := comms[rank].Explain(Question{Collective: "allreduce", Elements: 2, Type: reduce.Float32, Operator: reduce.Sum})
				if err != nil || e.Chosen.Transport != Offload {
					t.Errorf("rank %d: %v %v", rank, e, err)
				}
			})
			if s := comms[0].Stats(); s.Data.PacketsOut == 0 {
				t.Errorf("%+v", s)
			}
			leave(t, comms)
		})
	}
}

// TestProcessesInOrder: a floating-point sum is that of each host's processes, in the order of ranks.
func TestProcessesInOrder(t *testing.T) {
	hosts, members := joinProcesses(t, []int{3})
	comms := form(t, "test", hosts, members)
	each(3, func(rank int) {
		v := []float32{[]float32{1 << 25, 1, -1 << 25}[rank]}
		if _, err := Allreduce(within(t), comms[rank], reduce.Sum, v, v); err != nil || v[0] != 0 {
			t.Error(v, err)
		}
	})
	leave(t, comms)
}

// TestProcessesDisagree: what members call differently is an error of all that names two of them, on
// one host and on two, also where the difference is only which process of a host is the root.
func TestProcessesDisagree(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 2}, func(c *Config) { c.SlowAfter = time.Hour })
	for name, call := range map[string]func(c *Communicator) error{
		"rank 1 calls a longer one": func(c *Communicator) error {
			v := make([]int32, 5)
			if c.Rank() == 1 {
				v = make([]int32, 90_000)
			}
			_, err := Allreduce(within(t), c, reduce.Sum, v, v)
			return err
		},
		"rank 1 calls an even longer one": func(c *Communicator) error {
			v := make([]int32, 300_000+c.Rank()%2)
			_, err := Allreduce(within(t), c, reduce.Sum, v, v)
			return err
		},
		"a host calls another function": func(c *Communicator) error {
			f := reduce.Sum
			if c.Rank() >= 2 {
				f = reduce.Max
			}
			v := make([]int32, 90_000)
			_, err := Allreduce(within(t), c, f, v, v)
			return err
		},
		"a host has another root": func(c *Communicator) error {
			v := make([]int32, 5)
			_, err := Reduce(within(t), c, reduce.Sum, c.Rank()/2, v, v)
			if err == nil { // it may have done its part
				_, err = Barrier(within(t), c)
			}
			return err
		},
		"a host gathers to another root": func(c *Communicator) error {
			var all []int32
			if c.Rank() == 0 {
				all = make([]int32, 4)
			}
			_, err := Gather(within(t), c, c.Rank()/2, []int32{1}, all)
			if err == nil {
				_, err = Barrier(within(t), c)
			}
			return err
		},
		"rank 1 gathers for all": func(c *Communicator) error {
			v, all := []int32{1}, make([]int32, 4)
			var err error
			if c.Rank() == 1 {
				_, err = Allgather(within(t), c, v, all)
			} else {
				_, err = ReduceScatter(within(t), c, reduce.Sum, all, v)
			}
			return err
		},
		"rank 3 calls a barrier": func(c *Communicator) error {
			v := make([]int32, 5)
			if c.Rank() == 3 {
				_, err := Barrier(within(t), c)
				return err
			}
			_, err := Broadcast(within(t), c, 0, v)
			if err == nil {
				_, err = Barrier(within(t), c)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			comms := form(t, "test", hosts, members)
			each(len(comms), func(rank int) {
				err := call(comms[rank])
				var d *Disagreement
				if !errors.As(err, &d) || d.Calls[0].Rank == d.Calls[1].Rank || strings.Contains(err.Error(), " of 0 ") {
					t.Errorf("rank %d: %v", rank, err)
					return
				}
				if name == "a host has another root" && d.Calls[0].Root+d.Calls[1].Root != 1 {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
			ended(t, comms...)
		})
	}
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
}

// TestProcessesWithoutSharedMemory: where a member does not share memory, all operations go over the
// tree of all processes, and Transport says why.
func TestProcessesWithoutSharedMemory(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 1})
	hosts[1].cfg.SharedMemory = -1
	comms := form(t, "test", hosts, members)
	sum(t, comms, 10_000)
	for _, c := range comms {
		if way, why := c.Transport(); way != HostTree || !strings.Contains(why, "SharedMemory") {
			t.Error(way, why)
		}
	}
	leave(t, comms)
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
}

// TestProcessesEnd: an end by one process, in the midst of an operation that another has not called,
// is an end for all.
func TestProcessesEnd(t *testing.T) {
	hosts, members := joinProcesses(t, []int{2, 2})
	for who := range members {
		comms := form(t, "test", hosts, members)
		each(len(comms), func(rank int) {
			if rank == who {
				comms[rank].Abort("a reason")
				return
			}
			v := make([]int64, 100_000)
			_, err := Allreduce(within(t), comms[rank], reduce.Sum, v, v)
			wantMember(t, err, who, "a reason")
		})
		ended(t, comms...)
	}
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
}

// childVariable and listenVariable are set in the process of TestChild: what it does, and its address.
const (
	childVariable  = "TRIBUTARY_TEST_CHILD"
	listenVariable = "TRIBUTARY_TEST_LISTEN"
)

// TestChild is a process that other tests start: it prints its address, reads the members, and calls
// operations for ever, or none, or one before it leaves.
func TestChild(t *testing.T) {
	what := os.Getenv(childVariable)
	if what == "" {
		t.Skip("it is for other tests")
	}
	h := joinOne(t, "h0", func(c *Config) { c.Process, c.Listen, c.AllowPlaintext = "child", os.Getenv(listenVariable), true })
	fmt.Println(h.Addr())
	var members []Member
	if err := json.NewDecoder(os.Stdin).Decode(&members); err != nil {
		t.Fatal(err)
	}
	c, err := h.Communicator(within(t), "test", members)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]int64, 100_000)
	switch what {
	case "one":
		sumOf(t, c)
		leave(t, []*Communicator{c})
		return
	case "calls":
		for err == nil {
			_, err = Allreduce(within(t), c, reduce.Sum, v, v)
		}
	}
	<-c.Done()
}

// sumOf sums the ranks of all members at one of them.
func sumOf(t *testing.T, c *Communicator) Outcome {
	t.Helper()
	v := []int64{int64(c.Rank())}
	o, err := Allreduce(within(t), c, reduce.Sum, v, v)
	if want := int64(c.Size() * (c.Size() - 1) / 2); err != nil || v[0] != want {
		t.Errorf("%v, want %d: %v", v, want, err)
	}
	return o
}

// startChild starts a process for TestChild, has what it needs be made, and returns its member and how
// it gets all members.
func startChild(t *testing.T, child *exec.Cmd, prepare func(pid int), env ...string) (m Member, begin func([]Member)) {
	t.Helper()
	child.Args = append(child.Args, "-test.run=^TestChild$")
	child.Env, child.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() })
	t.Cleanup(func() { _ = child.Process.Kill() })
	if prepare != nil {
		prepare(child.Process.Pid)
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return Member{Host: "h0", Process: "child", Addr: strings.TrimSpace(addr)}, func(members []Member) {
		if err := json.NewEncoder(in).Encode(members); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledProcesses: a process of a host is killed, with the lowest rank of the host or another, while
// all are in operations, or the others in one that it does not call. All survivors get the
// same error, and the memory is freed.
func TestKilledProcesses(t *testing.T) {
	for _, what := range []string{"calls", "is silent"} {
		for victim := range 2 {
			t.Run(fmt.Sprintf("rank %d %s", victim, what), func(t *testing.T) {
				child := exec.Command(os.Args[0])
				dead, begin := startChild(t, child, nil, childVariable+"="+what)
				hosts := []*Host{joinOne(t, "h0"), joinOne(t, "h0", func(c *Config) { c.Process = "b" }), joinOne(t, "h1")}
				members := []Member{hosts[0].Member(), hosts[1].Member(), hosts[2].Member()}
				members = append(members[:victim:victim], append([]Member{dead}, members[victim:]...)...)
				begin(members)
				comms := form(t, "test", hosts, members)
				var running sync.WaitGroup
				running.Add(len(comms))
				go func() {
					running.Wait()
					if err := child.Process.Kill(); err != nil {
						t.Error(err)
					}
				}()
				each(len(comms), func(i int) {
					v, err := make([]int64, 100_000), error(nil)
					for n := 0; err == nil; n++ {
						r := StartAllreduce(comms[i], reduce.Sum, v, v)
						if isLast := what != "calls" || n == 3; isLast && n <= 3 {
							running.Done()
						}
						_, err = r.Wait(context.Background())
					}
					wantMember(t, err, victim, "")
				})
				ended(t, comms...)
				if n := sharedMappings(t); n != 0 {
					t.Errorf("memory is mapped %d times", n)
				}
			})
		}
	}
}

// TestProcessesOfPieces: pieces of uneven processes, in any order of ranks, and of any width go
// through shared memory, whole or in segments, in place and not; counts may be 0.
func TestProcessesOfPieces(t *testing.T) {
	for _, counts := range [][]int{{2, 1, 4}, {3}} {
		hosts, members := joinProcesses(t, counts)
		for i := range len(hosts) / 2 {
			k := len(hosts) - 1 - i/2
			hosts[i], hosts[k], members[i], members[k] = hosts[k], hosts[i], members[k], members[i]
		}
		comms := form(t, "test", hosts, members)
		testPieces[uint8](t, comms, []int{0, 1, 3, 100_001})
		testPieces[int16](t, comms, []int{1, 5})
		testPieces[float64](t, comms, []int{0, 100, 30_000})
		e, err := comms[0].Explain(Question{Collective: "allgather", Elements: 9, Type: reduce.Float64})
		if err != nil || e.Chosen.Transport != HostTree || !strings.Contains(e.Reason, sharesMemory) {
			t.Errorf("%v %v", e, err)
		}
		leave(t, comms)
		ended(t, comms...)
	}
	if n := sharedMappings(t); n != 0 {
		t.Errorf("memory is mapped %d times", n)
	}
}

func testPieces[T Data](t *testing.T, comms []*Communicator, lengths []int) {
	t.Helper()
	n := len(comms)
	value := func(rank, i int) T { return T((rank*31 + i) % 127) }
	for _, length := range lengths {
		for root := 0; root < n; root += 1 + length {
			each(n, func(rank int) {
				c := comms[rank]
				check := func(what string, o Outcome, err error, got []T, from int) {
					if err != nil || o.Transport != HostTree {
						t.Errorf("%s of %d by rank %d: %+v %v", what, length, rank, o, err)
					}
					for i, v := range got {
						if v != value(from+i/max(length, 1), i%max(length, 1)) {
							t.Errorf("%s of %d from root %d: rank %d, element %d is %v", what, length, root, rank, i, v)
							return
						}
					}
				}
				own, all := make([]T, length), make([]T, n*length)
				for i := range own {
					own[i] = value(rank, i)
				}
				o, err := Allgather(within(t), c, own, all)
				check("allgather", o, err, all, 0)
				var out []T
				if rank == root {
					out = make([]T, n*length)
					copy(out[rank*length:], own)
					own = out[rank*length : (rank+1)*length]
				}
				o, err = Gather(within(t), c, root, own, out)
				check("gather", o, err, out, 0)
				if rank == root {
					own = make([]T, length)
				} else {
					clear(own)
				}
				o, err = Scatter(within(t), c, root, out, own)
				check("scatter", o, err, own, rank)
				pieces := make([][]T, n)
				for r := range pieces {
					pieces[r] = make([]T, length*(r%3))
				}
				piece := pieces[rank]
				for i := range piece {
					piece[i] = value(rank, i)
				}
				o, err = Allgatherv(within(t), c, piece, pieces)
				for r, p := range pieces {
					if len(p) > 0 {
						check("allgatherv", o, err, p[:length], r)
					}
				}
			})
		}
	}
}

// TestProcessesReduceScatter: each process gets its part of the reduction of all.
func TestProcessesReduceScatter(t *testing.T) {
	hosts, members := joinProcesses(t, []int{1, 3, 2})
	comms := form(t, "test", hosts, members)
	for _, length := range []int{0, 1, 7, 90_000} {
		each(len(comms), func(rank int) {
			counts, sum, before := make([]int, len(comms)), 0, 0
			for r := range counts {
				counts[r] = length * (r % 3)
				if sum += counts[r]; r < rank {
					before = sum
				}
			}
			in := make([]float32, sum)
			for i := range in {
				in[i] = float32(rank * (i % 11))
			}
			out := make([]float32, counts[rank])
			if length == 7 { // in place
				out = in[before : before+counts[rank]]
			}
			o, err := ReduceScatterv(within(t), comms[rank], reduce.Sum, in, out, counts)
			if err != nil || o.Transport != HostTree {
				t.Errorf("rank %d: %+v %v", rank, o, err)
			}
			for i, v := range out {
				if want := float32(15 * ((before + i) % 11)); v != want {
					t.Errorf("rank %d, element %d of %d: %v, want %v", rank, i, len(out), v, want)
					return
				}
			}
		})
	}
	leave(t, comms)
}

// TestRestartedProcess: a process that has started again shares memory with the others of its host, though
// the first that they hear of it may end what they await of its earlier life.
func TestRestartedProcess(t *testing.T) {
	hosts, members := joinProcesses(t, []int{3, 1})
	for round := range 6 {
		comms := form(t, "c", hosts, members)
		for rank, c := range comms {
			if c.processes == nil {
				_, why := c.Transport()
				t.Fatalf("round %d: rank %d: %s", round, rank, why)
			}
		}
		sum(t, comms, 100)
		again := round % 2
		if err := hosts[again].Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		ended(t, comms...)
		hosts[again] = joinOne(t, "h0", func(c *Config) { c.Process = fmt.Sprint(again) })
		members[again] = hosts[again].Member()
	}
}
