package demo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	hosts "github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// pairs are all defined pairs of function and type.
func pairs() (all []Config) {
	for _, f := range topology.AllFunctions().List() {
		for _, t := range Types() {
			if reduce.Defined(f, t) {
				all = append(all, Config{Function: f, Type: t})
			}
		}
	}
	return all
}

// anyTree draws a tree of switches over that many members.
func anyTree(r *rand.Rand, members int) pathsel.Tree {
	var t pathsel.Tree
	for v := range 1 + r.IntN(members) {
		parent := -1
		if v > 0 {
			parent = r.IntN(v)
		}
		t.Vertices = append(t.Vertices, pathsel.Vertex{Parent: int32(parent)})
	}
	for rank := range members { // every switch gets one, so that none is idle
		v := rank
		if rank >= len(t.Vertices) {
			v = r.IntN(len(t.Vertices))
		}
		t.Leaves = append(t.Leaves, pathsel.Leaf{Vertex: int32(v)})
	}
	return t
}

// The two oracles share no arithmetic; each holds for the other's results, on
// any tree, and finds an element that is off.
func TestOraclesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range pairs() {
		t.Run(fmt.Sprint(c.Function, " ", c.Type), func(t *testing.T) {
			size := reduce.ElementSize(c.Function, c.Type)
			c.Bytes, c.Seed = 50*size, r.Uint64()
			members := 2 + r.IntN(20)
			v, err := newVectors(c, members)
			if err != nil {
				t.Fatal(err)
			}
			kernel, err := reduce.KernelOf(c.Function, c.Type)
			if err != nil {
				t.Fatal(err)
			}
			judge := alone{c.Function, c.Type}
			results := [][]byte{
				foldHosts(kernel, hosts.KNomial(members, 2), v.inputs),
				foldSwitches(kernel, anyTree(r, members), v.inputs),
			}
			for i, result := range results {
				if err := judge.check(result, v.inputs); err != nil {
					t.Fatalf("tree %d: %v", i, err)
				}
				wrong := slices.Clone(result)
				at := r.IntN(50) * size
				wrong[at+c.Type.Size()-1] ^= 0x50 // of its highest byte, which no rounding explains
				if err := judge.check(wrong, v.inputs); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("element %d is", at/size)) {
					t.Errorf("tree %d: element %d is off, and the oracle says %v", i, at/size, err)
				}
			}
		})
	}
}

func TestAloneChecksLocations(t *testing.T) {
	inputs := [][]byte{
		encodedLocated([]reduce.Located[int32]{{Value: -5, Location: 7}}),
		encodedLocated([]reduce.Located[int32]{{Value: -5, Location: 3}}),
		encodedLocated([]reduce.Located[int32]{{Value: 9, Location: 1}}),
	}
	judge := alone{reduce.MinLoc, reduce.Int32}
	if err := judge.check(inputs[1], inputs); err != nil {
		t.Error(err)
	}
	if judge.check(inputs[0], inputs) == nil || judge.check(inputs[2], inputs) == nil {
		t.Error("a higher location, or a greater value, passes for the least")
	}
}

func TestFoldIsInOrderOfChildren(t *testing.T) {
	trace := func(dst []byte, in [][]byte) { // (a b c): what was reduced at once, the last letters of each
		dst[0] = byte(len(in))
		for _, v := range in {
			dst[1] = dst[1]*3 + v[1]
		}
	}
	inputs := [][]byte{{0, 1}, {0, 2}, {0, 4}, {0, 8}}
	tree := pathsel.Tree{ // the root has a switch with ranks 1 and 3, and ranks 0 and 2
		Vertices: []pathsel.Vertex{{Parent: -1}, {Parent: 0}},
		Leaves:   []pathsel.Leaf{{Vertex: 0}, {Vertex: 1}, {Vertex: 0}, {Vertex: 1}},
	}
	beneath := byte(2*3 + 8)
	if got, want := foldSwitches(trace, tree, inputs), []byte{3, 1*9 + beneath*3 + 4}; !bytes.Equal(got, want) {
		t.Errorf("over switches %v, want %v", got, want)
	}
	// A binomial tree of 4: rank 0 has 1 and 2, rank 2 has 3.
	if got, want := foldHosts(trace, hosts.KNomial(4, 2), inputs), []byte{3, 1*9 + 2*3 + (4*3 + 8)}; !bytes.Equal(got, want) {
		t.Errorf("over hosts %v, want %v", got, want)
	}
}

func TestEveryChunkIsOfOneFold(t *testing.T) {
	folds := []fold{{"one", []byte("aaaabbbbcc")}, {"two", []byte("AAAABBBBCC")}}
	for result, wrong := range map[string]string{
		"aaaabbbbcc": "", "AAAABBBBCC": "", "aaaaBBBBcc": "", "AAAAbbbbCC": "",
		"aaAAbbbbcc": "chunk 0", "aaaabbbBcc": "chunk 1", "aaaabbbbcC": "chunk 2",
	} {
		err := checkFolds([]byte(result), 4, folds)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", result, err, wrong)
		}
	}
}

func TestVectorsFollowTheSeed(t *testing.T) {
	for _, c := range pairs() {
		c.Bytes = 64 * reduce.ElementSize(c.Function, c.Type)
		var of [3][][]byte
		for i, seed := range []uint64{5, 5, 6} {
			c.Seed = seed
			v, err := newVectors(c, 3)
			if err != nil {
				t.Fatal(err)
			}
			of[i] = v.inputs
			v.forget()
			if len(v.output(2)) != c.Bytes || len(of[i][2]) != c.Bytes {
				t.Errorf("%s of %s: vectors of %d and %d bytes, want %d", c.Function, c.Type, len(of[i][2]), len(v.output(2)), c.Bytes)
			}
		}
		same := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
		if !same(of[0], of[1]) || same(of[0], of[2]) || bytes.Equal(of[0][0], of[0][1]) {
			t.Errorf("%s of %s: seeds or ranks do not decide", c.Function, c.Type)
		}
	}
}
