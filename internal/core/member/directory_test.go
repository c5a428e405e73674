package member

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestDirectory: it finds whom it holds, forgets the others, and gives no number
// to two.
func TestDirectory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDirectory()
		held := map[gossip.ID]int{}
		numbers := map[gossip.ID]Index{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			id := idOf(string(rune('a' + rapid.IntRange(0, 25).Draw(t, "id"))))
			if rapid.Bool().Draw(t, "other") {
				id = gossip.ID(fmt.Sprintf("n%d@10.0.0.1:1", rapid.IntRange(0, 100).Draw(t, "n")))
			}
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0, 1:
				i := d.Add(id)
				d.Hold(i)
				if held[id]++; held[id] > 1 && numbers[id] != i {
					t.Fatalf("%s is %d and %d", id, numbers[id], i)
				}
				numbers[id] = i
			case 2:
				if held[id] > 0 {
					d.Release(numbers[id])
					held[id]--
				}
			case 3:
				d.Add(id)
				d.Sweep()
			}
		}
		d.Sweep()
		used := map[Index]gossip.ID{}
		for id, n := range held {
			i, ok := d.Find(id.Key())
			if ok != (n > 0) {
				t.Fatalf("%s, held %d times, is found: %v", id, n, ok)
			}
			if ok && (d.ID(i) != id || d.Key(i) != id.Key() || used[i] != "") {
				t.Fatalf("%d is %s and %s", i, d.ID(i), used[i])
			}
			if ok {
				used[i] = id
			}
		}
	})
}

// TestDirectoryForgetsText: IDs that come and go take no more room than those that
// are there, and what a packet has of one stays as it was.
func TestDirectoryForgetsText(t *testing.T) {
	const members = 256
	d := NewDirectory()
	id := func(k int) gossip.ID { return gossip.ID(fmt.Sprintf("%0*d@10.0.0.1:1", 1+k%200, k)) }
	first := d.Add(id(0))
	d.Hold(first)
	sent := d.raw(first)
	var used int
	for k := 1; k < 40*members; k++ {
		d.Hold(d.Add(id(k)))
		if k == members {
			d.Release(first)
		}
		if k > members {
			old, ok := d.Find(id(k - members).Key())
			if !ok {
				t.Fatalf("%s is forgotten", id(k-members))
			}
			d.Release(old)
		}
		d.Sweep()
		used = 0
		for i := range d.entries {
			if n := len(d.raw(Index(i))); n > 0 {
				used += 1 + n
			}
		}
		if used != d.used || cap(d.text) > 2*used+2*gossip.MaxID {
			t.Fatalf("%d and %d bytes of IDs in %d", used, d.used, cap(d.text))
		}
	}
	if string(sent) != string(id(0)) {
		t.Errorf("a packet has %q, want %q", sent, id(0))
	}
	if d.Len() > members+2 {
		t.Errorf("%d numbers for %d IDs", d.Len(), members)
	}
}

// TestLongestID: an ID may have all the bytes that its length can report.
func TestLongestID(t *testing.T) {
	id := gossip.ID(strings.Repeat("n", gossip.MaxID-len("@10.0.0.1:1")) + "@10.0.0.1:1")
	d := NewDirectory()
	if i := d.Add(id); d.ID(i) != id || len(id) != gossip.MaxID {
		t.Errorf("%q, want %q", d.ID(i), id)
	}
	d.Sweep()
	if got := d.ID(0); got != "" || d.Key(0) != 0 {
		t.Errorf("who is forgotten is still %q", got)
	}
}

// TestEntrySize: an ID costs a directory what its comment says, beside its text.
func TestEntrySize(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n != 16 {
		t.Errorf("an entry takes %d bytes", n)
	}
}
