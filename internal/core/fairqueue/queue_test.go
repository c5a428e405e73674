package fairqueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// oracle is the queue by lists and searches.
type oracle struct {
	requests []asked // in the order of their coming
	tags     map[string]int64
	orders   map[string]int
	now      map[string]int64 // of the level of a class; "": of the classes
	weights  map[string]int64
	comings  int
}

type asked struct {
	class, flow string
	cost        int64
	of          int
}

func newOracle() *oracle {
	return &oracle{tags: map[string]int64{}, orders: map[string]int{}, now: map[string]int64{}, weights: map[string]int64{}}
}

func (o *oracle) waits(class, flow string) bool {
	return slices.ContainsFunc(o.requests, func(r asked) bool { return r.class == class && (flow == "" || r.flow == flow) })
}

func (o *oracle) push(class string, weight int, flow string, cost, of int) {
	f := class + "/" + flow
	if !o.waits(class, flow) {
		o.comings++
		o.tags[f], o.orders[f] = max(o.tags[f], o.now[class]), o.comings
	}
	if !o.waits(class, "") {
		o.comings++
		o.tags[class], o.orders[class] = max(o.tags[class], o.now[""]), o.comings
	}
	o.weights[class] = int64(weight)
	o.requests = append(o.requests, asked{class, flow, int64(cost), of})
}

// first returns the request that is next.
func (o *oracle) first() int {
	best := slices.MinFunc(o.requests, func(a, b asked) int {
		fa, fb := a.class+"/"+a.flow, b.class+"/"+b.flow
		return cmp.Or(
			cmp.Compare(o.tags[a.class], o.tags[b.class]), cmp.Compare(o.orders[a.class], o.orders[b.class]),
			cmp.Compare(o.tags[fa], o.tags[fb]), cmp.Compare(o.orders[fa], o.orders[fb]))
	})
	return slices.IndexFunc(o.requests, func(r asked) bool { return r.class == best.class && r.flow == best.flow })
}

func (o *oracle) pop() (of int, ok bool) {
	if len(o.requests) == 0 {
		return 0, false
	}
	i := o.first()
	r := o.requests[i]
	f := r.class + "/" + r.flow
	o.now[""], o.now[r.class] = o.tags[r.class], o.tags[f]
	o.tags[r.class] += r.cost * scale / o.weights[r.class]
	o.tags[f] += r.cost * scale
	o.remove(i)
	return r.of, true
}

func (o *oracle) remove(i int) {
	class := o.requests[i].class
	o.requests = slices.Delete(o.requests, i, i+1)
	if !o.waits(class, "") {
		delete(o.now, class)
		for name := range o.tags {
			if strings.HasPrefix(name, class+"/") {
				delete(o.tags, name)
			}
		}
	}
	if len(o.requests) == 0 {
		*o = *newOracle()
	}
}

func (o *oracle) charge(class string, weight int, flow string, cost int) {
	if len(o.requests) == 0 {
		return
	}
	f := class + "/" + flow
	o.weights[class] = int64(weight)
	o.tags[f] = max(o.tags[f], o.now[class]) + int64(cost)*scale
	o.tags[class] = max(o.tags[class], o.now[""]) + int64(cost)*scale/int64(weight)
}

// TestAgainstOracle: pushes, pops, removals and charges in any order serve what lists and
// searches serve.
func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		o, handles, next := newOracle(), map[int]*Request[int]{}, 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			class := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class")
			flow := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "flow")
			weight := map[string]int{"a": 1, "b": 3, "c": 7}[class]
			cost := rapid.IntRange(1, 9).Draw(t, "cost")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				next++
				handles[next] = q.Push(class, weight, flow, cost, next)
				o.push(class, weight, flow, cost, next)
			case 5, 6, 7:
				got, ok := q.Pop()
				want, has := o.pop()
				if got != want || ok != has {
					t.Fatalf("served %d, %v; the oracle serves %d, %v", got, ok, want, has)
				}
				if ok && handles[got].Waits() {
					t.Fatalf("%d was served, and waits", got)
				}
			case 8:
				if len(o.requests) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(o.requests)-1).Draw(t, "which")
				q.Remove(handles[o.requests[i].of])
				q.Remove(handles[o.requests[i].of]) // again
				o.remove(i)
			case 9:
				q.Charge(class, weight, flow, cost)
				o.charge(class, weight, flow, cost)
			}
			if q.Len() != len(o.requests) {
				t.Fatalf("%d wait, for the oracle %d", q.Len(), len(o.requests))
			}
		}
	})
}

// TestFairness is theorem 1 of the paper: while two classes both wait, what they are
// served differs, over their weights, by no more than the largest request of each, however
// many more one of them asks for.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[[2]int] // class and cost
		wa, wb := rapid.IntRange(1, 8).Draw(t, "weight"), rapid.IntRange(1, 8).Draw(t, "other weight")
		most := [2]int{}
		push := func(class, weight, n int) {
			for range n {
				cost := rapid.IntRange(1, 50).Draw(t, "cost")
				most[class] = max(most[class], cost)
				q.Push(fmt.Sprint(class), weight, fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "flow")), cost, [2]int{class, cost})
			}
		}
		push(0, wa, rapid.IntRange(1, 200).Draw(t, "greedy"))
		for range rapid.IntRange(0, 20).Draw(t, "served before") {
			if q.Len() > 1 {
				q.Pop()
			}
		}
		push(1, wb, rapid.IntRange(1, 20).Draw(t, "few"))
		left := [2]int{}
		for _, c := range q.classes.heap {
			for _, f := range c.flows.heap {
				for r := f.first; r != nil; r = r.next {
					left[r.Of[0]]++
				}
			}
		}
		served := [2]int{}
		for left[0] > 0 && left[1] > 0 {
			of, _ := q.Pop()
			left[of[0]]--
			served[of[0]] += of[1]
			a, b := float64(served[0])/float64(wa), float64(served[1])/float64(wb)
			if bound := float64(most[0])/float64(wa) + float64(most[1])/float64(wb) + 0.1; a-b > bound || b-a > bound {
				t.Fatalf("served %v at weights %d and %d: they differ by more than %.1f", served, wa, wb, bound)
			}
		}
	})
}

// TestForgets: who waits for nothing any more is forgotten.
func TestForgets(t *testing.T) {
	var q Queue[int]
	q.Push("stays", 1, "", 1, 0)
	for i := range 100_000 {
		q.Push("stays", 1, "", 1, i)
		q.Push(fmt.Sprint(i), 1, "", 1, i)
		q.Pop()
		q.Pop()
	}
	if n := len(q.classes.all); n > 1000 {
		t.Errorf("%d classes are known", n)
	}
	for q.Len() > 0 {
		q.Pop()
	}
	if n := len(q.classes.all); n != 0 {
		t.Errorf("%d classes are known when nothing waits", n)
	}
}

// FuzzQueue: any bytes as calls leave the queue consistent, and everything that was pushed
// comes out once.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 1, 2, 9, 9, 0, 200, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		var q Queue[int]
		var waiting []*Request[int]
		pushed, out := 0, 0
		for _, b := range data {
			switch {
			case b < 128:
				waiting = append(waiting, q.Push(fmt.Sprint(b%4), int(b%5), fmt.Sprint(b%3), int(b)-5, pushed))
				pushed++
			case b < 200:
				if _, ok := q.Pop(); ok {
					out++
				}
			case b < 230 && len(waiting) > 0:
				r := waiting[int(b)%len(waiting)]
				if r.Waits() {
					out++
				}
				q.Remove(r)
			default:
				q.Charge(fmt.Sprint(b%6), int(b%5), fmt.Sprint(b%7), int(b)<<20)
			}
			for i, c := range q.classes.heap {
				if c.place != i+1 || len(c.flows.heap) == 0 || i > 0 && q.classes.less(c, q.classes.heap[(i-1)/2]) {
					t.Fatalf("class %s is at %d, and its place is %d", c.name, i, c.place)
				}
			}
		}
		for q.Len() > 0 {
			q.Pop()
			out++
		}
		if out != pushed {
			t.Errorf("%d were pushed, %d came out", pushed, out)
		}
	})
}

// TestTranscripts: "push CLASS WEIGHT FLOW COST NAME", "pop N", "remove NAME", "charge CLASS WEIGHT FLOW COST".
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		var q Queue[string]
		handles := map[string]*Request[string]{}
		return transcript.Commands(text, func(line string) string {
			var class, flow, name string
			var weight, cost int
			switch w := strings.Fields(line); w[0] {
			case "push":
				fmt.Sscan(strings.Join(w[1:], " "), &class, &weight, &flow, &cost, &name)
				handles[name] = q.Push(class, weight, flow, cost, name)
			case "charge":
				fmt.Sscan(strings.Join(w[1:], " "), &class, &weight, &flow, &cost)
				q.Charge(class, weight, flow, cost)
			case "remove":
				q.Remove(handles[w[1]])
			case "pop":
				n, out := 0, []string{}
				for fmt.Sscan(w[1], &n); n > 0; n-- {
					if of, ok := q.Pop(); ok {
						out = append(out, of)
					}
				}
				return strings.Join(out, " ") + "\n"
			}
			return fmt.Sprintf("%d wait\n", q.Len())
		})
	})
}
