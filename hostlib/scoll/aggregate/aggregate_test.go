package aggregate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/reduce"
)

// upATree aggregates over a tree of n nodes, whose children are added in an
// order drawn anew at every node; own begins a node's aggregator, with its own
// reply in it before or after its children's.
func upATree(t *rapid.T, n int, own func(rank int) (Aggregator, func())) []byte {
	shape := ranktree.KNomial(n, rapid.IntRange(2, 5).Draw(t, "radix"))
	bodies := make([][]byte, n)
	for rank := n - 1; rank >= 0; rank-- {
		a, put := own(rank)
		late := rapid.Bool().Draw(t, "own reply late")
		if !late {
			put()
		}
		children := shape.AppendChildren(nil, rank)
		numbers := rapid.Permutation(sequence(len(children))).Draw(t, "order")
		for _, i := range numbers {
			if err := a.Add(i, bodies[children[i]]); err != nil {
				t.Fatal(err)
			}
		}
		if late {
			put()
		}
		bodies[rank] = a.AppendTo(nil)
	}
	return bodies[0]
}

func sequence(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestPoint37Statuses: whatever the tree and the order, the root has what one
// would have that all report, and it fits into the buffer.
func TestPoint37Statuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "nodes")
		named := rapid.IntRange(1, 20).Draw(t, "named")
		codes := rapid.SliceOfN(rapid.Uint32Range(0, 2), n, n).Draw(t, "codes")
		report := func(s *Statuses, rank int) {
			if codes[rank] == 0 {
				s.Succeed()
				return
			}
			s.Fail(Failure{Node: fmt.Sprintf("n%d", rank*7919%1000), Nodes: 1, Code: codes[rank], Text: strings.Repeat("x", rank)})
		}
		want := &Statuses{Named: named}
		for rank := range n {
			report(want, rank)
		}
		body := upATree(t, n, func(rank int) (Aggregator, func()) {
			s := &Statuses{Named: named}
			return s, func() { report(s, rank) }
		})
		if !bytes.Equal(body, want.AppendTo(nil)) {
			t.Errorf("the root has %x, want %x", body, want.AppendTo(nil))
		}
		if room := StatusesSize(n, named, len("n999")); len(body) > room {
			t.Errorf("%d bytes, room for %d", len(body), room)
		}
		failed := 0
		for _, code := range codes {
			failed += int(min(code, 1))
		}
		if want.Succeeded() != n-failed || want.Failed() != failed || len(want.Failures()) != min(failed, named) || want.Unnamed() != failed-len(want.Failures()) {
			t.Errorf("%d succeeded, %d failed, %d are named, %d not; want %d and %d", want.Succeeded(), want.Failed(), len(want.Failures()), want.Unnamed(), n-failed, failed)
		}
	})
}

// TestPoint37Parts: every reply reaches the root as it was, with its source.
func TestPoint37Parts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		replies := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), n, n).Draw(t, "replies")
		body := upATree(t, n, func(rank int) (Aggregator, func()) {
			p := new(Parts)
			return p, func() { p.Put(fmt.Sprint(rank), replies[rank]) }
		})
		parts, err := SplitParts(body)
		if err != nil || len(parts) != n {
			t.Fatalf("%d parts, %v, want %d", len(parts), err, n)
		}
		for _, p := range parts {
			var rank int
			if _, err := fmt.Sscan(p.Source, &rank); err != nil || !bytes.Equal(p.Body, replies[rank]) {
				t.Errorf("%q has replied %x", p.Source, p.Body)
			}
		}
	})
}

// TestPartsOfLongestNames: a name's length is not added up in a byte.
func TestPartsOfLongestNames(t *testing.T) {
	name := strings.Repeat("x", MaxSource)
	body := AppendPart(AppendPart(nil, name, []byte("a")), name, nil)
	parts, err := SplitParts(body)
	if err != nil || len(parts) != 2 || parts[0].Source != name || string(parts[0].Body) != "a" {
		t.Errorf("%d parts, %v, want 2", len(parts), err)
	}
	if err := CheckParts(body[:MaxSource+4]); !errors.Is(err, ErrBody) {
		t.Errorf("a part that is cut off: %v", err)
	}
}

// TestPoint37Vector: every function on every type, held against the kernel that
// takes a node's own vector and its children's in their order.
func TestPoint37Vector(t *testing.T) {
	for f := reduce.Sum; f.Valid(); f++ {
		for e := reduce.Int32; e < reduce.Block32; e++ {
			if !reduce.Defined(f, e) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", f, e), func(t *testing.T) { checkVector(t, f, e) })
		}
	}
}

func checkVector(t *testing.T, f reduce.Function, e reduce.Type) {
	const elements, children = 5, 4
	kernel, err := reduce.KernelOf(f, e)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(uint64(f), uint64(e)))
	for range 50 {
		all := make([][]byte, 1+children)
		for i := range all {
			all[i] = make([]byte, VectorSize(f, e, elements))
			for j := range all[i] {
				all[i][j] = byte(random.Uint32())
			}
		}
		absent := random.IntN(children+2) - 2 // none, this node's own, or a child's
		present := all
		if absent >= Own {
			present = slices.Concat(all[:1+absent], all[2+absent:])
		}
		want := make([]byte, len(all[0]))
		kernel(want, present[:1])
		for _, vector := range present[1:] {
			kernel(want, [][]byte{want, vector})
		}
		v, err := NewVector(f, e, elements)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range random.Perm(1 + children) {
			if child := i - 1; child == absent && absent >= Own {
				v.Skip(child)
			} else if err := v.Add(child, all[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := v.AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("without %d: %x, want %x", absent, got, want)
		}
	}
}

// TestVectorGoesOnWithoutThoseThatNeverCame: what came early is in the result.
func TestVectorGoesOnWithoutThoseThatNeverCame(t *testing.T) {
	v, err := NewVector(reduce.Sum, reduce.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	for child, x := range map[int]float32{5: 1, 2: 2, 9: 4} {
		if err := v.Add(child, reduce.Bytes([]float32{x})); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]float32, 1)
	if reduce.Get(got, v.Result()); got[0] != 7 {
		t.Errorf("the sum is %v, want 7", got[0])
	}
	if reduce.Get(got, v.Result()); got[0] != 7 {
		t.Errorf("asked again it is %v, want 7", got[0])
	}
}

func TestMalformedBodies(t *testing.T) {
	two := (&Statuses{})
	two.Fail(Failure{Node: "a", Nodes: 1, Text: "t"})
	two.Fail(Failure{Node: "b", Nodes: 1})
	valid := two.AppendTo(nil)
	second := len(valid) - failureHead - 1
	swapped := slices.Concat(valid[:statusesHead], valid[second:], valid[statusesHead:second])
	nobody := slices.Clone(valid)
	clear(nobody[statusesHead : statusesHead+4])
	vector, err := NewVector(reduce.Sum, reduce.Int64, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		a    Aggregator
		body []byte
	}{
		"statuses of nothing":        {&Statuses{}, nil},
		"statuses cut off":           {&Statuses{}, valid[:len(valid)-1]},
		"statuses with more":         {&Statuses{}, append(slices.Clone(valid), 0)},
		"statuses out of order":      {&Statuses{}, swapped},
		"a failure of no nodes":      {&Statuses{}, nobody},
		"a part without a name":      {&Parts{}, []byte{0, 0, 0, 0, 0}},
		"a part cut off":             {&Parts{}, AppendPart(nil, "a", []byte("body"))[:8]},
		"a part of almost 4 GiB":     {&Parts{}, []byte{1, 'a', 255, 255, 255, 255}},
		"a vector too short":         {vector, make([]byte, 15)},
		"a vector too long by twice": {vector, make([]byte, 32)},
	} {
		before := c.a.AppendTo(nil)
		if err := c.a.Add(0, c.body); !errors.Is(err, ErrBody) {
			t.Errorf("%s: %v, want ErrBody", name, err)
		}
		if after := c.a.AppendTo(nil); !bytes.Equal(before, after) {
			t.Errorf("%s: it has left %x behind, it was %x", name, after, before)
		}
	}
	if _, err := NewVector(reduce.BAnd, reduce.Float32, 1); !errors.Is(err, reduce.ErrUndefined) {
		t.Errorf("and of float32: %v", err)
	}
}

// TestFailuresOfOneName: who is reported twice, by a child that lies, is named once.
func TestFailuresOfOneName(t *testing.T) {
	var s Statuses
	s.Fail(Failure{Node: "a", Nodes: 2, Code: 1})
	s.Fail(Failure{Node: "a", Nodes: 3, Code: 2})
	if got := s.Failures(); len(got) != 1 || got[0].Nodes != 5 || got[0].Code != 1 {
		t.Errorf("%+v", got)
	}
	var again Statuses
	if err := again.Add(0, s.AppendTo(nil)); err != nil {
		t.Error(err)
	}
}

// FuzzStatuses: what is read is written as it was, and takes no more room than
// was reckoned.
func FuzzStatuses(f *testing.F) {
	var s Statuses
	f.Add(s.AppendTo(nil))
	s.Succeed()
	s.Fail(Failure{Node: "n1", Nodes: 3, Code: 9, Text: "no space left"})
	s.Fail(Failure{Node: "n0", Nodes: 1})
	f.Add(s.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Statuses{Named: 1 << 16}
		err := s.Add(0, b)
		if err != nil {
			if !errors.Is(err, ErrBody) || s.Failed()+s.Succeeded() > 0 {
				t.Errorf("%v, and it has %+v", err, s)
			}
			return
		}
		if got := s.AppendTo(nil); !bytes.Equal(got, b) {
			t.Errorf("%x is read as %+v, which is written %x", b, s, got)
		}
		if !slices.IsSortedFunc(s.Failures(), func(a, b Failure) int { return cmp.Compare(a.Node, b.Node) }) {
			t.Errorf("%+v is not in order", s.Failures())
		}
	})
}

// FuzzParts: the same for parts.
func FuzzParts(f *testing.F) {
	f.Add(AppendPart(AppendPart(nil, "n1", []byte("one")), "n2", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := SplitParts(b)
		if err != nil {
			if !errors.Is(err, ErrBody) {
				t.Errorf("%v does not wrap ErrBody", err)
			}
			return
		}
		var again []byte
		for _, p := range parts {
			again = AppendPart(again, p.Source, p.Body)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x is read as %v, which is written %x", b, parts, again)
		}
	})
}
