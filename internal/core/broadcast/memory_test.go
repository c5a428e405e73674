package broadcast

import (
	"maps"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestMemory: against a plain table of what has ended and until when a copy may
// come. Whatever ended, and may come again, is known: nothing runs twice. As
// long as there is room, nothing else is taken for a copy.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pages := rapid.SampledFrom([]int{1, 2, 5, 1000}).Draw(t, "pages")
		m := newMemory(pages * pageBits)
		ended := map[broadcastmsg.Key]core.Time{}
		now := core.Time(0)
		key := rapid.Custom(func(t *rapid.T) broadcastmsg.Key {
			return broadcastmsg.Key{
				Root:        rapid.SampledFrom([]broadcastmsg.Node{"a", "b", "c"}).Draw(t, "root"),
				Incarnation: rapid.Uint64Range(1, 2).Draw(t, "incarnation"),
				Sequence:    rapid.Uint64Range(0, 12).Draw(t, "page")*pageBits + rapid.Uint64Range(0, 5).Draw(t, "place"),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"end": func(t *rapid.T) {
				k := key.Draw(t, "key")
				until := now.Add(10)
				m.add(k, until)
				ended[k] = max(ended[k], until)
			},
			"pass": func(t *rapid.T) {
				now += core.Time(rapid.IntRange(0, 20).Draw(t, "time"))
				for range len(m.pages) {
					m.forget(now)
				}
				for _, g := range m.pages {
					if g.until < now {
						t.Fatal("a page is remembered too long")
					}
				}
			},
			"ask": func(t *rapid.T) {
				k := key.Draw(t, "key")
				until, was := ended[k]
				switch has := m.has(k); {
				case was && until >= now && !has:
					t.Fatalf("%+v has ended and would run again", k)
				case !was && has && pages == 1000:
					t.Fatalf("%+v has not ended", k)
				}
			},
			"": func(t *rapid.T) {
				if len(m.pages) > pages {
					t.Fatalf("%d pages, at most %d", len(m.pages), pages)
				}
				owned := 0
				hosts := map[string]int{}
				for _, lives := range m.pasts {
					for _, p := range lives {
						owned += len(p.pages)
						if hosts[p.host] += len(p.pages); hosts[p.host] == 0 {
							delete(hosts, p.host)
						}
					}
				}
				if !maps.Equal(hosts, m.of) {
					t.Fatalf("hosts have %v pages, counted are %v", hosts, m.of)
				}
				if owned != len(m.pages) {
					t.Fatalf("%d pages, %d of them found", len(m.pages), owned)
				}
			},
		})
	})
}

// TestMemoryAtTenThousandASecond: a million broadcasts, which have come within
// 100 s and may be sent again as long, take less than 200 KB, and all are known
// until their time is up; then nothing is left.
func TestMemoryAtTenThousandASecond(t *testing.T) {
	const rate, seconds = 10_000, 100
	m := newMemory(DefaultConfig("n1", 1).Remember)
	key := func(i uint64) broadcastmsg.Key { return broadcastmsg.Key{Root: "n0", Incarnation: 1, Sequence: i} }
	now := core.Time(0)
	for i := range uint64(rate * seconds) {
		now = core.Time(i) * core.Time(1e9/rate)
		m.add(key(i), now+core.Time(seconds*1e9))
		m.forget(now)
	}
	for i := range uint64(rate * seconds) {
		if !m.has(key(i)) {
			t.Fatalf("broadcast %d is forgotten", i)
		}
	}
	bytes := uintptr(len(m.pages)) * unsafe.Sizeof(page{})
	t.Logf("%d broadcasts in %d bytes", rate*seconds, bytes)
	if bytes > 200e3 {
		t.Errorf("%d bytes", bytes)
	}
	now += core.Time(seconds*1e9) + 1
	for range len(m.pages) {
		m.forget(now)
	}
	if len(m.pages)+len(m.pasts) > 0 {
		t.Errorf("%d pages of %d roots are left", len(m.pages), len(m.pasts))
	}
}
