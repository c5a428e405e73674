package schedule

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTree: calls that a tree carries, and in what form.
func TestTree(t *testing.T) {
	for _, c := range []struct {
		call   Call
		form   Form
		chunks int
		gains  bool
		why    string // it does not, or cannot
	}{
		{Call{Collective: Allgather, Size: 8, Width: 4, Count: 2}, United, 1, true, ""},
		{Call{Collective: Allgather, Size: 8, Width: 4, Count: 90}, Copied, 8, true, ""},
		{Call{Collective: Allgather, Size: 2, Width: 4, Count: 90}, Copied, 2, false, "two members"},
		{Call{Collective: Allgatherv, Size: 3, Width: 1, Counts: []int{1433, 0, 1}}, Copied, 3, true, ""},
		{Call{Collective: Gather, Size: 8, Width: 4, Count: 2}, United, 1, true, ""},
		{Call{Collective: Gather, Size: 8, Width: 4, Count: 400}, Copied, 14, false, "14 packets, where hosts take 7 messages in 3 rounds"},
		{Call{Collective: Scatter, Size: 8, Width: 4, Count: 2}, Copied, 1, true, ""},
		{Call{Collective: Scatter, Size: 8, Root: 4, Width: 4, Count: 2}, Copied, 2, true, ""},
		{Call{Collective: Scatter, Size: 8, Width: 4}, United, 1, true, ""},
		{Call{Collective: ReduceScatter, Size: 8, Width: 8, Count: 179}, Reduced, 8, true, ""},
		{Call{Collective: ReduceScatterv, Size: 3, Width: 8, Counts: []int{0, 179, 1}}, Reduced, 2, true, ""},
		{Call{Collective: Alltoall, Size: 8, Width: 8, Count: 1}, United, 1, true, ""},
		{Call{Collective: Alltoall, Size: 64, Width: 8, Count: 1}, United, 23, false, "23 packets, where hosts take 63 messages"},
		{Call{Collective: Alltoall, Size: 8, Width: 8, Count: 8192}, 0, 0, false, "2576 packets of each member instead of 322"},
		{Call{Collective: Alltoall, Size: 8, Width: 8, Count: 1 << 60}, 0, 0, false, "packets of its own"},
		{Call{Collective: Alltoallv, Size: 8, Width: 8}, 0, 0, false, "no form"},
		{Call{Collective: Gatherv, Size: 8, Width: 8}, 0, 0, false, "only the root"},
		{Call{Collective: Scan, Size: 8, Width: 8}, 0, 0, false, "no form"},
		{Call{Collective: Allgather, Size: 1, Width: 8, Count: 9}, 0, 0, false, "group of one"},
		{Call{Collective: ReduceScatter, Size: 8, Width: 2, Count: 1 << 30}, 0, 0, false, "packets count up to"},
		{Call{Collective: Allgather, Size: 3, Width: 1, Count: 1<<31 - 1}, 0, 0, false, "packets count up to"}, // two in each of theirs
	} {
		tree, err := OverTree(&c.call, 1432)
		if err != nil {
			if c.chunks > 0 || c.why == "" || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%+v: %v", c.call, err)
			}
			continue
		}
		gains, why := tree.Gains()
		if tree.Form != c.form || tree.Chunks != c.chunks || gains != c.gains || (why == "") != gains || !strings.Contains(why, c.why) {
			t.Errorf("%+v: %+v, it gains: %v: %s", c.call, tree, gains, why)
		}
	}
}

// TestMark: what members compare comes back, and no rank is taken for it.
func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{Collective: Collective(rapid.IntRange(int(Gather), int(Exscan)).Draw(t, "collective")), Root: rapid.IntRange(0, 1<<15-1).Draw(t, "root")}
		element := rapid.Uint8Max(15).Draw(t, "element")
		m, ok := ReadMark(c.Mark(element))
		if want := (Caption{Collective: c.Collective, Element: element, Root: uint16(c.Root)}); !ok || m != want {
			t.Fatalf("%+v, %v, want %+v", m, ok, want)
		}
		if m, ok := ReadMark(rapid.Uint32Max(markBase-1).Draw(t, "rank")); ok {
			t.Fatalf("a rank is %+v", m)
		}
	})
	a, b := Call{Collective: Allgatherv, Counts: []int{1, 2, 3}}, Call{Collective: Allgatherv, Counts: []int{2, 1, 3}}
	if a.Mark(1) == b.Mark(1) {
		t.Error("other counts have the same mark")
	}
}
