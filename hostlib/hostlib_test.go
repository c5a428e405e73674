package hostlib_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// join joins n hosts, which are closed when the test ends.
func join(t testing.TB, n int, change ...func(*hostlib.Config)) ([]*hostlib.Host, []hostlib.Member) {
	t.Helper()
	hosts, members := make([]*hostlib.Host, n), make([]hostlib.Member, n)
	for i := range hosts {
		c := hostlib.Config{Name: fmt.Sprintf("h%d", i)}
		for _, f := range change {
			f(&c)
		}
		h, err := hostlib.Join(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		hosts[i], members[i] = h, h.Member()
	}
	return hosts, members
}

// form forms one communicator of all hosts.
func form(t testing.TB, hosts []*hostlib.Host, members []hostlib.Member, options ...hostlib.GroupOption) []*hostlib.Communicator {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	comms := make([]*hostlib.Communicator, len(hosts))
	each(len(hosts), func(i int) {
		c, err := hosts[i].Communicator(ctx, "test", members, options...)
		if err != nil {
			t.Error(err)
		}
		comms[i] = c
	})
	if t.Failed() {
		t.FailNow()
	}
	return comms
}

func group(t testing.TB, n int, change ...func(*hostlib.Config)) []*hostlib.Communicator {
	t.Helper()
	hosts, members := join(t, n, change...)
	return form(t, hosts, members, hostlib.OnTree())
}

// each runs f for 0 to n-1 at once and waits.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func leave(t testing.TB, comms []*hostlib.Communicator) {
	t.Helper()
	each(len(comms), func(i int) {
		if err := comms[i].Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAllreduceOverHosts(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 16} {
		t.Run(fmt.Sprintf("hosts=%d", n), func(t *testing.T) {
			comms := group(t, n)
			each(n, func(i int) {
				const length = 100_000
				v := make([]int64, length)
				for j := range v {
					v[j] = int64(i*length + j)
				}
				outcome, err := hostlib.Allreduce(t.Context(), comms[i], reduce.Sum, v, v)
				if err != nil {
					t.Error(err)
					return
				}
				if outcome.Transport != hostlib.HostTree || outcome.Reason == "" {
					t.Errorf("rank %d: went by %v, because %q", i, outcome.Transport, outcome.Reason)
				}
				for j := range v {
					if want := int64(n*j + length*n*(n-1)/2); v[j] != want {
						t.Errorf("rank %d: element %d is %d, want %d", i, j, v[j], want)
						return
					}
				}
			})
			leave(t, comms)
		})
	}
}

func TestAllMembersGetTheSameBits(t *testing.T) {
	comms := group(t, 5)
	results := make([][]float32, 5)
	each(5, func(i int) {
		in, out := make([]float32, 1000), make([]float32, 1000)
		for j := range in {
			in[j] = float32(math.Sin(float64(i*1000+j))) * float32(math.Pow(10, float64(i*3-6)))
		}
		if _, err := hostlib.Allreduce(t.Context(), comms[i], reduce.Sum, in, out); err != nil {
			t.Error(err)
		}
		results[i] = out
	})
	for i := range results {
		for j := range results[i] {
			if math.Float32bits(results[i][j]) != math.Float32bits(results[0][j]) {
				t.Fatalf("rank %d has %v at %d, rank 0 %v", i, results[i][j], j, results[0][j])
			}
		}
	}
	leave(t, comms)
}

func TestReduceBroadcastBarrier(t *testing.T) {
	const n = 6
	comms := group(t, n)
	each(n, func(i int) {
		for root := range n {
			in, out := []int32{int32(i), 1, int32(-i)}, make([]int32, 3)
			if _, err := hostlib.Reduce(t.Context(), comms[i], reduce.Sum, root, in, out); err != nil {
				t.Error(err)
			}
			want := [3]int32{}
			if i == root {
				want = [3]int32{n * (n - 1) / 2, n, -n * (n - 1) / 2}
			}
			if [3]int32(out) != want {
				t.Errorf("reduce to %d: rank %d has %v, want %v", root, i, out, want)
			}
			v := []uint64{uint64(i) << 40, 7}
			if _, err := hostlib.Broadcast(t.Context(), comms[i], root, v); err != nil {
				t.Error(err)
			}
			if v[0] != uint64(root)<<40 || v[1] != 7 {
				t.Errorf("broadcast from %d: rank %d has %v", root, i, v)
			}
			if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
				t.Error(err)
			}
		}
	})
	leave(t, comms)
}

func TestLocatedAndEmptyVectors(t *testing.T) {
	comms := group(t, 4)
	each(4, func(i int) {
		v := []reduce.Located[float64]{{Value: float64((i + 2) % 4), Location: int64(i)}}
		if _, err := hostlib.AllreduceLocated(t.Context(), comms[i], reduce.MinLoc, v, v); err != nil {
			t.Error(err)
		}
		if v[0].Value != 0 || v[0].Location != 2 {
			t.Errorf("rank %d: the least is %v, want 0 at 2", i, v[0])
		}
		in, out := []reduce.Located[int32]{{Value: int32(i), Location: int64(10 + i)}}, make([]reduce.Located[int32], 1)
		if _, err := hostlib.ReduceLocated(t.Context(), comms[i], reduce.MaxLoc, 1, in, out); err != nil {
			t.Error(err)
		}
		want := reduce.Located[int32]{}
		if i == 1 {
			want = reduce.Located[int32]{Value: 3, Location: 13}
		}
		if out[0] != want {
			t.Errorf("rank %d: the greatest is %v, want %v", i, out[0], want)
		}
		outcome, err := hostlib.Allreduce(t.Context(), comms[i], reduce.Sum, []int32{}, []int32{})
		if err != nil || outcome.Chunks != 1 {
			t.Errorf("rank %d: an empty vector: %+v, %v", i, outcome, err)
		}
	})
	leave(t, comms)
}

func TestSeveralInFlight(t *testing.T) {
	const n, ops = 3, 40
	comms := group(t, n)
	each(n, func(i int) {
		vectors, requests := make([][]int32, ops), make([]*hostlib.Request, ops)
		for k := range requests {
			vectors[k] = make([]int32, 37*k+1)
			for j := range vectors[k] {
				vectors[k][j] = int32(k)
			}
			requests[k] = hostlib.StartAllreduce(comms[i], reduce.Sum, vectors[k], vectors[k])
		}
		for k, r := range requests {
			if _, err := r.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			for _, x := range vectors[k] {
				if x != int32(n*k) {
					t.Errorf("operation %d: %d, want %d", k, x, n*k)
					break
				}
			}
		}
	})
	leave(t, comms)
}

func TestSameNameAgainAfterLeaving(t *testing.T) {
	hosts, members := join(t, 3)
	for range 3 {
		comms := form(t, hosts, members)
		each(3, func(i int) {
			if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
				t.Error(err)
			}
		})
		leave(t, comms)
	}
}

// wantBoth checks that err is a disagreement that names both ranks.
func wantBoth(t *testing.T, err error, a, b int) {
	t.Helper()
	var d *hostlib.Disagreement
	if !errors.As(err, &d) || !errors.Is(err, hostlib.ErrDisagreement) || !errors.Is(err, hostlib.ErrEnded) {
		t.Errorf("got %v, want a disagreement", err)
		return
	}
	ranks := map[int]bool{d.Calls[0].Rank: true, d.Calls[1].Rank: true}
	if !ranks[a] || !ranks[b] {
		t.Errorf("%v: it names other ranks than %d and %d", err, a, b)
	}
}

func TestDisagreementNamesBothRanks(t *testing.T) {
	type call func(c *hostlib.Communicator) *hostlib.Request
	sum := func(n int) call {
		return func(c *hostlib.Communicator) *hostlib.Request {
			return hostlib.StartAllreduce(c, reduce.Sum, make([]int32, n), make([]int32, n))
		}
	}
	for _, test := range []struct {
		name        string
		usual, odd  call
		oddElements string
	}{
		{name: "count", usual: sum(10), odd: sum(11)},
		{name: "type", usual: sum(10), odd: func(c *hostlib.Communicator) *hostlib.Request {
			return hostlib.StartAllreduce(c, reduce.Sum, make([]uint32, 10), make([]uint32, 10))
		}},
		{name: "function", usual: sum(10), odd: func(c *hostlib.Communicator) *hostlib.Request {
			return hostlib.StartAllreduce(c, reduce.Max, make([]int32, 10), make([]int32, 10))
		}},
		{name: "collective", usual: sum(10), odd: hostlib.StartBarrier},
		{name: "root", usual: func(c *hostlib.Communicator) *hostlib.Request {
			return hostlib.StartBroadcast(c, 0, make([]int32, 10))
		}, odd: func(c *hostlib.Communicator) *hostlib.Request {
			return hostlib.StartBroadcast(c, 1, make([]int32, 10))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			comms := group(t, 2)
			each(2, func(i int) {
				start := test.usual
				if i == 1 {
					start = test.odd
				}
				_, err := start(comms[i]).Wait(t.Context())
				wantBoth(t, err, 0, 1)
				// The communicator has ended, and says so for the same reason.
				_, err = hostlib.Barrier(t.Context(), comms[i])
				wantBoth(t, err, 0, 1)
			})
		})
	}
}

func TestDeathOfAMemberEndsAllOthers(t *testing.T) {
	for _, dead := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprintf("rank=%d", dead), func(t *testing.T) {
			hosts, members := join(t, 5, func(c *hostlib.Config) { c.DeadAfter = 100 * time.Millisecond })
			comms := form(t, hosts, members)
			each(5, func(i int) {
				if i == dead {
					if err := hosts[i].Close(context.Background()); err != nil {
						t.Error(err)
					}
					return
				}
				_, err := hostlib.Barrier(t.Context(), comms[i])
				var m *hostlib.MemberError
				if !errors.As(err, &m) || m.Rank != dead || m.Host != fmt.Sprintf("h%d", dead) {
					t.Errorf("rank %d: got %v, want the death of rank %d", i, err, dead)
				}
			})
		})
	}
}

// TestCancelStopsWaitingAlone: a caller whose context ends stops waiting; the operation goes on,
// and so does the communicator, for all.
func TestCancelStopsWaitingAlone(t *testing.T) {
	for _, options := range [][]hostlib.GroupOption{nil, {hostlib.OnHosts()}, {hostlib.OnHosts(hostlib.Ring)}, {hostlib.Stripes(2)}, {hostlib.Roots(2)}} {
		hosts, members := join(t, 3)
		comms := form(t, hosts, members, options...)
		for _, elements := range []int{100, 100_000} {
			ctx, cancel := context.WithCancel(t.Context())
			given := make(chan struct{})
			each(3, func(i int) {
				v := make([]float64, elements)
				v[elements-1] = float64(i)
				use := t.Context()
				switch i {
				case 1:
					use = ctx
				case 2: // it calls the operation when the other one waits no more
					cancel()
					<-given
				}
				_, err := hostlib.Allreduce(use, comms[i], reduce.Sum, v, v)
				if i == 1 {
					close(given)
					var u *hostlib.UnfinishedError
					if !errors.Is(err, context.Canceled) || !errors.As(err, &u) {
						t.Errorf("rank 1: %v does not report that its context was cancelled", err)
						return
					}
					_, err = u.Request.Wait(t.Context())
				}
				if err != nil || v[elements-1] != 3 {
					t.Errorf("rank %d: %v, %v", i, err, v[elements-1])
				}
				if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
					t.Error(err)
				}
			})
		}
		leave(t, comms)
	}
}

func TestAbortEndsAllMembers(t *testing.T) {
	for aborts := range 3 {
		comms := group(t, 3)
		each(3, func(i int) {
			if i == aborts {
				comms[i].Abort("out of \xff luck")
				comms[i].Abort("again")
			}
			_, err := hostlib.Barrier(t.Context(), comms[i])
			var m *hostlib.MemberError
			if !errors.As(err, &m) || m.Rank != aborts || m.Reason != "out of ? luck" {
				t.Errorf("rank %d: got %v, want that rank %d aborted", i, err, aborts)
			}
		})
	}
}

func TestBadArguments(t *testing.T) {
	hosts, members := join(t, 2)
	comms := form(t, hosts, members)
	c := comms[0]
	for name, test := range map[string]struct {
		request *hostlib.Request
		says    string
	}{
		"lengths":  {hostlib.StartAllreduce(c, reduce.Sum, make([]int32, 3), make([]int32, 4)), "3 elements into 4"},
		"function": {hostlib.StartAllreduce(c, reduce.BAnd, make([]float32, 3), make([]float32, 3)), "band"},
		"unknown":  {hostlib.StartAllreduce(c, reduce.Function(99), make([]float32, 3), make([]float32, 3)), "99"},
		"root":     {hostlib.StartBroadcast(c, 2, make([]int32, 3)), "root 2"},
		"negative": {hostlib.StartReduce(c, reduce.Sum, -1, make([]int32, 3), nil), "root -1"},
		"located":  {hostlib.StartAllreduce(c, reduce.MinLoc, make([]int32, 3), make([]int32, 3)), "Located"},
		"no room":  {hostlib.StartReduce(c, reduce.Sum, 0, make([]int32, 3), nil), "3 elements into 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.request.Wait(t.Context())
			if !errors.Is(err, hostlib.ErrArgument) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an argument error that says %q", err, test.says)
			}
		})
	}
	// A refused operation concerns nobody else.
	each(2, func(i int) {
		if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
			t.Error(err)
		}
	})
	leave(t, comms)
}

func TestBadMembers(t *testing.T) {
	hosts, members := join(t, 2)
	for name, test := range map[string]struct {
		members []hostlib.Member
		says    string
	}{
		"none":      {nil, "0 of them"},
		"duplicate": {[]hostlib.Member{members[0], members[1], members[0]}, "h0 is rank 0 and rank 2"},
		"absent":    {members[1:], "h0, is not among"},
		"no name":   {[]hostlib.Member{members[0], {Addr: "127.0.0.1:1"}}, "rank 1 lacks"},
		"not text":  {[]hostlib.Member{members[0], {Host: "h\xff", Addr: "127.0.0.1:1"}}, `rank 1: the name "h\xff" is not printable UTF-8`},
		"address":   {[]hostlib.Member{members[0], {Host: "h1", Addr: members[0].Addr}}, "is the address of rank 0 (h0) and of rank 1 (h1)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hosts[0].Communicator(t.Context(), "bad", test.members)
			if !errors.Is(err, hostlib.ErrMembers) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestNilOption(t *testing.T) {
	hosts, members := join(t, 1)
	if _, err := hosts[0].Communicator(t.Context(), "g", members, hostlib.BlockFloat(), nil); !errors.Is(err, hostlib.ErrArgument) || !strings.Contains(err.Error(), "option 1 is nil") {
		t.Error(err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]hostlib.Config{
		"no host name":             {},
		"a host name of 300 bytes": {Name: strings.Repeat("h", 300)},
		"a process label of 255 bytes after a host name of 1, want at most 253": {Name: "h", Process: strings.Repeat("p", 255)},
		`"h\nh" is not printable`:   {Name: "h\nh"},
		`"\xff" is not printable`:   {Name: "\xff"},
		`"h#\x00" is not printable`: {Name: "h", Process: "\x00"},
		"TLS.Cert is empty":         {Name: "h", TLS: &hostlib.TLS{}},
		"TLS.CA is empty":           {Name: "h", TLS: &hostlib.TLS{Cert: "nowhere.pem", Key: "nowhere.pem"}},
		"DeadAfter is 1ns":          {Name: "h", DeadAfter: 1},
		"address manager":           {Name: "h", Manager: "manager"},
		"address ::1:7400":          {Name: "h", Manager: "::1:7400"},
		"DeadAfter is -1s":          {Name: "h", DeadAfter: -time.Second},
		"-2 bytes a second":         {Name: "h", Speed: topology.Speed{Bytes: -2}},
		"window":                    {Name: "h", Window: 3},
		"chunk":                     {Name: "h", ChunkBytes: -1},
		"nowhere.pem":               {Name: "h", TLS: &hostlib.TLS{Cert: "nowhere.pem", Key: "nowhere.pem", CA: "nowhere.pem"}},
	} {
		h, err := hostlib.Join(t.Context(), c)
		if err == nil {
			h.Close(t.Context())
		}
		if !errors.Is(err, hostlib.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one that says %q", err, want)
		}
		if invalid := c.Validate(); want != "nowhere.pem" && !errors.Is(invalid, hostlib.ErrConfig) {
			t.Errorf("%q: Validate returns %v", want, invalid)
		}
	}
}

// TestLongNameOfCommunicator: an error does not repeat it.
func TestLongNameOfCommunicator(t *testing.T) {
	hosts, members := join(t, 1)
	for _, n := range []int{0, 256, 70_000} {
		_, err := hosts[0].Communicator(t.Context(), strings.Repeat("x", n), members)
		if !errors.Is(err, hostlib.ErrArgument) || !strings.Contains(err.Error(), fmt.Sprintf("a name of %d bytes", n)) || len(err.Error()) > 200 {
			t.Errorf("%.300v", err)
		}
	}
}

func TestFormingWithOtherMembersIsRefused(t *testing.T) {
	hosts, members := join(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	each(2, func(i int) {
		list := members[:2]
		if i == 1 {
			list = members // another idea of the group
		}
		_, err := hosts[i].Communicator(ctx, "test", list)
		if i == 1 {
			if !errors.Is(err, hostlib.ErrFormation) || !strings.Contains(err.Error(), "other members") {
				t.Errorf("got %v, want a refusal", err)
			}
			cancel() // the other one waits for it
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that forming was cancelled", err)
		}
	})
}

func TestFormingReportsWhoIsMissing(t *testing.T) {
	hosts, members := join(t, 2)
	if err := hosts[0].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := hosts[1].Communicator(ctx, "test", members)
	if !errors.Is(err, hostlib.ErrFormation) || !strings.Contains(err.Error(), "rank 0 (h0) at "+members[0].Addr) {
		t.Errorf("got %v, want that rank 0 is missing", err)
	}
}

func TestManagerThatIsNotThere(t *testing.T) {
	hosts, members := join(t, 3, func(c *hostlib.Config) { c.Manager = "127.0.0.1:1" })
	for range 5 { // all but the first hear of it while they are being made
		comms := form(t, hosts, members)
		each(3, func(i int) {
			outcome, err := hostlib.Barrier(t.Context(), comms[i])
			if err != nil {
				t.Error(err)
			}
			if outcome.Transport != hostlib.HostTree || !strings.Contains(outcome.Reason, "127.0.0.1:1") {
				t.Errorf("rank %d: %v, because %q", i, outcome.Transport, outcome.Reason)
			}
		})
		leave(t, comms)
	}
}

// TestAddressResolvesToNothing: who cannot be found is named, with why; and an address
// that is in use is reported by Join.
func TestAddressResolvesToNothing(t *testing.T) {
	for address, want := range map[string]string{"": "nobody has registered h1", "10.0.0.1": "10.0.0.1: missing port"} {
		host, err := hostlib.Join(t.Context(), hostlib.Config{Name: "h0", AllowPlaintext: true, Resolve: func(context.Context, string) (string, error) {
			if address == "" {
				return "", errors.New("nobody has registered h1")
			}
			return address, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = host.Communicator(ctx, "test", []hostlib.Member{{Host: "h1"}, {Host: "h0"}})
		if cancel(); !errors.Is(err, hostlib.ErrFormation) || !strings.Contains(err.Error(), "rank 0 (h1)") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := host.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	host, err := hostlib.Join(t.Context(), hostlib.Config{Name: "h0"})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(context.Background())
	if _, err := hostlib.Join(t.Context(), hostlib.Config{Name: "h1", Listen: host.Addr()}); err == nil || !strings.Contains(err.Error(), host.Addr()+": bind: address already in use") {
		t.Error(err)
	}
}
