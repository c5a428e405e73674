package hostlib

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// TestCodedSumsAreNoOthers: what members do for a sum whose packets carry other elements than its vectors is nothing
// that a member can call: where another calls the same function of these elements, and as many, all get an error that
// says what was called.
func TestCodedSumsAreNoOthers(t *testing.T) {
	const many = 2 * elementsOfChunk // for Compressed, and 2 marks for each 32
	marks := many / 32 * 2
	if many%32 != 0 {
		marks += 2
	}
	for name, test := range map[string]struct {
		option GroupOption
		sum    func(c *Communicator) *Request
		other  func(c *Communicator) *Request
		says   string
	}{
		"two marks":        {Reproducible(), sumsOf[float32](2), allOf[uint32](reduce.Max, 2), "by sum of 2 float32"},
		"marks":            {Reproducible(), sumsOf[float32](many), allOf[uint32](reduce.Max, marks), "float32"},
		"marks of float64": {Reproducible(), sumsOf[float64](16), allOf[uint32](reduce.Max, 2), "sum of 16 float64"},
		"words":            {Reproducible(), sumsOf[float32](32), allOf[int32](reduce.Sum, 32), "sum of 32 float32"},
		"lengths":          {Reproducible(), sumsOf[float32](31), sumsOf[float32](32), "sum of 31 float32"},
		"types":            {Reproducible(), sumsOf[float32](32), sumsOf[float64](16), "sum of 16 float64"},
		"halves":           {Compressed(reduce.BFloat16), sumsOf[float32](many), allOf[reduce.BF16](reduce.Sum, many), "float32"},
	} {
		for way, options := range map[string][]GroupOption{"tree": {OnTreeOfHosts()}, "hosts": {OnHosts(RecursiveDoubling)}, "processes": nil} {
			t.Run(name+" "+way, func(t *testing.T) {
				hosts, members := joinAs(t, []string{"h0", "h1"})
				if options == nil {
					hosts, members = joinProcesses(t, []int{2})
				}
				comms := form(t, "job", hosts, members, append(options, test.option)...)
				each(2, func(i int) {
					call := test.sum
					if i == 1 {
						call = test.other
					}
					_, err := call(comms[i]).Wait(within(t))
					var d *Disagreement
					if !errors.As(err, &d) || !strings.Contains(err.Error(), test.says) {
						t.Errorf("rank %d: %v", i, err)
					}
				})
			})
		}
	}
}

// TestMembersWithOtherCodings: members that do not all have an option are no group, and the error says how the others sum.
func TestMembersWithOtherCodings(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	for says, option := range map[string]GroupOption{
		"Reproducible sums": Reproducible(), "sums Compressed to float16": Compressed(reduce.Float16), "sums in BlockFloat": BlockFloat(),
		"plain sums": func(*groupOptions) {},
	} {
		ctx, cancel := context.WithCancel(within(t))
		each(2, func(i int) {
			if i == 0 {
				_, err := hosts[0].Communicator(ctx, "job", members, option)
				if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "rank 1 (h1)") {
					t.Errorf("%s: rank 0: %v", says, err)
				}
				return
			}
			defer cancel() // the first waits for rank 1 to call it rightly
			_, err := hosts[1].Communicator(ctx, "job", members, Compressed(reduce.BFloat16))
			if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "rank 0 (h0)") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: rank 1: %v", says, err)
			}
		})
	}
}

func sumsOf[T reduce.Element](n int) func(*Communicator) *Request { return allOf[T](reduce.Sum, n) }

func allOf[T reduce.Element](f reduce.Function, n int) func(*Communicator) *Request {
	return func(c *Communicator) *Request {
		v := make([]T, n)
		for i := range v {
			v[i] = 1
		}
		return StartAllreduce(c, f, v, v)
	}
}
