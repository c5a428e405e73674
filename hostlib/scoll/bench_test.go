package scoll_test

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// silent is a service with empty replies.
func silent(inline bool) scoll.Callbacks {
	return scoll.Callbacks{
		Inline: inline,
		PreRequest: func(r *scoll.Request) error {
			for i := range r.NumChildren() {
				if err := r.PostReplySize(i, 0, nil); err != nil {
					return err
				}
			}
			return nil
		},
		IncomingRequest: func(*scoll.Request) error { return nil },
		PostReply: func(r *scoll.Request) {
			if !r.IsRoot() {
				_ = r.Reply(nil)
			}
		},
	}
}

// BenchmarkBroadcast is a broadcast over 16 nodes in one process, with empty
// replies aggregated, so many of them under way at once:
//
//	go test -run '^$' -bench Broadcast ./hostlib/scoll
func BenchmarkBroadcast(b *testing.B) {
	for _, inline := range []bool{true, false} {
		for _, window := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("nodes=16/inline=%v/window=%d", inline, window), func(b *testing.B) {
				measure(b, start(b, 16, nil), inline, window, []byte("hello"))
			})
		}
	}
}

// BenchmarkProven is the same with certificates, and requests of 8 bytes: over 8 nodes
// they are proven by tags.
//
//	go test -run '^$' -bench Proven ./hostlib/scoll
func BenchmarkProven(b *testing.B) {
	const nodes = 8
	for _, window := range []int{1, 16} {
		b.Run(fmt.Sprintf("nodes=%d/window=%d", nodes, window), func(b *testing.B) {
			files := trusted(b, names(nodes)...)
			c := start(b, nodes, func(i int, cfg *config) { cfg.host.TLS = files(i) })
			measure(b, c, true, window, make([]byte, 8))
		})
	}
}

// measure broadcasts over all nodes, so many times at once.
func measure(b *testing.B, c *cluster, inline bool, window int, payload []byte) {
	c.register(func(int) scoll.Callbacks { return silent(inline) })
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	var under []*scoll.Request
	finish := func() {
		<-under[0].Done()
		if err := under[0].Err(); err != nil {
			b.Fatal(err)
		}
		under = under[1:]
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(under) == window {
			finish()
		}
		r, err := g.NewRequest(scoll.Broadcast{Payload: payload})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Send(); err != nil {
			b.Fatal(err)
		}
		under = append(under, r)
	}
	for len(under) > 0 {
		finish()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "broadcasts/s")
}
