package scoll

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// bulks returns the own Bulks of hosts with so many rails each.
func bulks(t testing.TB, n, rails int) ([]*railBulk, []*hostlib.Host) {
	t.Helper()
	var mu sync.Mutex
	where := map[string]string{}
	all, hosts := make([]*railBulk, n), make([]*hostlib.Host, n)
	for i := range n {
		cfg := hostlib.Config{
			Name: fmt.Sprint("h", i),
			Resolve: func(_ context.Context, host string) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				if a := where[host]; a != "" {
					return a, nil
				}
				return "", errors.New("there is no such host")
			},
		}
		for k := range rails {
			cfg.Rails = append(cfg.Rails, hostlib.Rail{Name: fmt.Sprint("rail", k), Address: fmt.Sprintf("127.0.0.%d", k+1)})
		}
		h, err := hostlib.Join(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := rail.On(h, rail.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		where[cfg.Name] = h.Addr()
		mu.Unlock()
		all[i], hosts[i] = newRailBulk(messages), h
		t.Cleanup(func() {
			if err := errors.Join(all[i].Close(), h.Close(context.Background())); err != nil {
				t.Error(err)
			}
		})
	}
	return all, hosts
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b) // it never fails
	return b
}

// split cuts bytes into vectors, some of them empty.
func split(t *rapid.T, b []byte, label string) (all [][]byte) {
	for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(b)), 0, 5).Draw(t, label) {
		k := min(at, len(b))
		all = append(all, b[:k:k])
		b = b[k:]
	}
	return append(all, b)
}

// TestPoint36Pull pulls memory of any size, in any vectors on both sides.
func TestPoint36Pull(t *testing.T) {
	all, _ := bulks(t, 2, 2)
	key := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		key++
		want := random(rapid.SampledFrom([]int{1, 7, 4096, 65_537, 300_001, 1_000_000}).Draw(rt, "size"))
		got := make([]byte, len(want)+rapid.IntRange(0, 9).Draw(rt, "room"))
		if err := all[0].Expose(key, []string{"h1"}, split(rt, want, "from")); err != nil {
			rt.Fatal(err)
		}
		if err := all[1].Pull(t.Context(), "h0", key, uint64(len(want)), split(rt, got, "into")); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got[:len(want)], want) {
			rt.Fatal("other bytes")
		}
		all[0].Revoke(key)
		if err := all[1].Pull(t.Context(), "h0", key, 1, [][]byte{got}); !errors.Is(err, rail.ErrAccess) {
			rt.Fatalf("after Revoke: %v", err)
		}
	})
}

// TestManyPulls: 200 at once of one node, from two others.
func TestManyPulls(t *testing.T) {
	all, _ := bulks(t, 3, 1)
	want := random(100_000)
	const times = 200
	for key := range uint64(times) {
		if err := all[0].Expose(key, []string{"h1", "h2"}, [][]byte{want[key:]}); err != nil {
			t.Fatal(err)
		}
	}
	var pulls sync.WaitGroup
	for key := range uint64(times) {
		pulls.Go(func() {
			got := make([]byte, len(want)-int(key))
			if err := all[1+key%2].Pull(t.Context(), "h0", key, uint64(len(got)), [][]byte{got}); err != nil || !bytes.Equal(got, want[key:]) {
				t.Errorf("%d: %v, or other bytes", key, err)
			}
		})
	}
	pulls.Wait()
}

// TestFinding3BulkIsForItsChildren: a host that knows the key of memory, but has not been
// sent the request, does not get it; the others do, also afterwards.
func TestFinding3BulkIsForItsChildren(t *testing.T) {
	all, _ := bulks(t, 3, 1)
	want := random(1000)
	for key, to := range [][]string{{"h1"}, {}, nil} {
		if err := all[0].Expose(uint64(key), to, [][]byte{want}); err != nil {
			t.Fatal(err)
		}
		for reader := 2; reader >= 1; reader-- {
			got := make([]byte, len(want))
			err := all[reader].Pull(t.Context(), "h0", uint64(key), uint64(len(got)), [][]byte{got})
			if may := len(to) > 0 && reader == 1; may != (err == nil) || may != bytes.Equal(got, want) {
				t.Errorf("h%d reads memory for %q: %v", reader, to, err)
			}
		}
		all[0].Revoke(uint64(key))
	}
	// The same key again, for another.
	if err := all[0].Expose(0, []string{"h2"}, [][]byte{want}); err != nil {
		t.Fatal(err)
	}
	for reader, may := range map[int]bool{1: false, 2: true} {
		got := make([]byte, len(want))
		if err := all[reader].Pull(t.Context(), "h0", 0, uint64(len(got)), [][]byte{got}); may != (err == nil) {
			t.Errorf("h%d: %v", reader, err)
		}
	}
}

func TestBulkErrors(t *testing.T) {
	all, _ := bulks(t, 2, 1)
	memory := [][]byte{random(100)}
	if err := all[0].Expose(1, []string{"h1"}, memory); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a second time": all[0].Expose(1, []string{"h1"}, memory), "nothing": all[0].Expose(2, nil, nil), "empty vectors": all[0].Expose(2, nil, [][]byte{{}, nil}),
	} {
		if !errors.Is(err, ErrBulk) {
			t.Errorf("exposing %s: %v", what, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	into := [][]byte{make([]byte, 200)}
	for what, c := range map[string]struct {
		err  error
		want error
		text string
	}{
		"more than is there": {all[1].Pull(t.Context(), "h0", 1, 101, into), rail.ErrAccess, "101 bytes from h0"},
		"another key":        {all[1].Pull(t.Context(), "h0", 2, 1, into), rail.ErrAccess, "h0"},
		"too little room":    {all[1].Pull(t.Context(), "h0", 1, 201, into), ErrBulk, "200"},
		"nobody":             {all[1].Pull(t.Context(), "nobody", 1, 1, into), rail.ErrUnreachable, "nobody"},
		"after the end":      {all[1].Pull(over, "h0", 1, 100, into), context.Canceled, "h0"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %v, want %v and %q", what, c.err, c.want, c.text)
		}
	}
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Pull(t.Context(), "h0", 1, 1, into); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := all[1].Expose(1, []string{"h1"}, memory); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	all[0].Revoke(7)
}

// during calls do once some of a large pull has left the host that has the memory, and
// returns what became of the pull.
func during(t *testing.T, all []*railBulk, from *hostlib.Host, do func(memory []byte)) (got []byte, err error) {
	memory, got := random(64<<20), make([]byte, 64<<20)
	if err := all[0].Expose(1, []string{"h1"}, [][]byte{memory}); err != nil {
		t.Fatal(err)
	}
	before := from.Connections().BytesOut
	pulled := make(chan error)
	go func() { pulled <- all[1].Pull(t.Context(), "h0", 1, uint64(len(got)), [][]byte{got}) }()
	for from.Connections().BytesOut < before+1<<20 {
		runtime.Gosched()
	}
	do(memory)
	return got, <-pulled
}

// TestPoint36RevokedWhileRead: memory belongs to its owner when Revoke has returned, though
// somebody was reading it.
func TestPoint36RevokedWhileRead(t *testing.T) {
	all, hosts := bulks(t, 2, 2)
	want := random(64 << 20)
	got, err := during(t, all, hosts[0], func(memory []byte) {
		all[0].Revoke(1)
		clear(memory)
	})
	if err == nil && !bytes.Equal(got, want) || err != nil && !errors.Is(err, rail.ErrAccess) {
		t.Errorf("%v, or other bytes", err)
	}
}

// TestRailLostDuringPull: a pull goes on over the other rail; of the last one it fails with
// the names of peer and rail.
func TestRailLostDuringPull(t *testing.T) {
	all, hosts := bulks(t, 2, 2)
	want := random(64 << 20)
	got, err := during(t, all, hosts[0], func([]byte) {
		if err := hosts[0].RemoveRail(t.Context(), "rail1"); err != nil {
			t.Error(err)
		}
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or other bytes", err)
	}
	all[0].Revoke(1)
	_, err = during(t, all, hosts[0], func([]byte) {
		if err := hosts[0].Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var failed *rail.PeerError
	if err != nil && (!errors.As(err, &failed) || failed.Peer != "h0" || len(failed.Rails) == 0) {
		t.Errorf("%v", err)
	}
}
