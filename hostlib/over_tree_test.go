package hostlib_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// bytesOf returns a piece of a member.
func bytesOf(rank, n int) []uint8 {
	v := make([]uint8, n)
	for i := range v {
		v[i] = uint8(7*rank + i + i>>8 + 1)
	}
	return v
}

// TestOddBytesOverTheTree: packets have no elements of one byte, and pieces of any number of them
// are carried.
func TestOddBytesOverTheTree(t *testing.T) {
	const n = 3
	hosts, members := join(t, n)
	comms := form(t, hosts, members, hostlib.OnTree())
	for _, size := range []int{1, 77, 1433, 3001} {
		var all []uint8
		for rank := range n {
			all = append(all, bytesOf(rank, size)...)
		}
		each(n, func(i int) {
			ctx, c := t.Context(), comms[i]
			own, out, part := bytesOf(i, size), make([]uint8, n*size), make([]uint8, size)
			check := func(what string, o hostlib.Outcome, err error, got, want []uint8) {
				if err != nil || o.Transport != hostlib.HostTree || !slices.Equal(got, want) {
					t.Errorf("%s of %d bytes at rank %d: by %v, %v, %d", what, size, i, o.Transport, err, got)
				}
			}
			o, err := hostlib.Allgather(ctx, c, own, out)
			check("allgather", o, err, out, all)
			clear(out)
			if o, err = hostlib.Gather(ctx, c, 1, own, out); i == 1 {
				check("gather", o, err, out, all)
			} else {
				check("gather", o, err, nil, nil)
			}
			o, err = hostlib.Scatter(ctx, c, 2, all, part)
			check("scatter", o, err, part, own)
			pieces := [][]uint8{make([]uint8, size), make([]uint8, 0), make([]uint8, size+2)}
			mine := [][]uint8{own, nil, bytesOf(2, size+2)}[i]
			o, err = hostlib.Allgatherv(ctx, c, mine, pieces)
			check("allgatherv", o, err, slices.Concat(pieces...), slices.Concat(bytesOf(0, size), bytesOf(2, size+2)))
		})
	}
	leave(t, comms)
}

// TestWhyNotOverTheTree: an outcome says why hosts did what the tree was to carry.
func TestWhyNotOverTheTree(t *testing.T) {
	hosts, members := join(t, 3)
	v := func(n int) []int32 { return make([]int32, n) }
	for _, c := range []struct {
		why    string
		option hostlib.GroupOption
		call   func(c *hostlib.Communicator) (hostlib.Outcome, error)
	}{
		{"2214 packets of each member instead of 738", hostlib.OnTree(), func(c *hostlib.Communicator) (hostlib.Outcome, error) {
			return hostlib.Alltoall(t.Context(), c, v(3*132_000), v(3*132_000))
		}},
		{"excludes bor", hostlib.OnlyFunctions(reduce.Sum), func(c *hostlib.Communicator) (hostlib.Outcome, error) {
			return hostlib.Allgather(t.Context(), c, v(1), v(3))
		}},
		{"no custom operators", hostlib.OnTree(), func(c *hostlib.Communicator) (hostlib.Outcome, error) {
			return hostlib.ReduceScatter(t.Context(), c, hostlib.Custom("first", true, func(to, first, _ []int32) { copy(to, first) }), v(3), v(1))
		}},
		{"only the root knows", hostlib.OnTree(), func(c *hostlib.Communicator) (hostlib.Outcome, error) {
			return hostlib.Gatherv(t.Context(), c, 0, v(1), [][]int32{v(1), v(1), v(1)})
		}},
	} {
		comms := form(t, hosts, members, hostlib.OnTree(), c.option)
		each(3, func(i int) {
			o, err := c.call(comms[i])
			if err != nil || o.Transport != hostlib.Hosts || !strings.Contains(o.Reason, "not over the tree: ") || !strings.Contains(o.Reason, c.why) {
				t.Errorf("%s: by %v because %q, %v", c.why, o.Transport, o.Reason, err)
			}
		})
		leave(t, comms)
	}
}
