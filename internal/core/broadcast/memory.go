package broadcast

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// pageBits are the sequence numbers of one page.
const pageBits = 4096

// memory holds the broadcasts that have ended here, so that a copy of their
// request does not run again: one bit for each sequence number of a root, in
// pages that are forgotten when no parent can send any of theirs again. A root
// counts its broadcasts as it sends them, so that it takes a page for every 4096
// of them, however many come by here.
//
// When there are too many pages, in all or of one host's roots, the lowest of a root's
// goes, of that host's if it has its share, and from then on all that is below counts as
// ended: as in the replay window of RFC 6479, what comes later than that is taken for a
// copy, and nothing runs twice.
type memory struct {
	pasts map[broadcastmsg.Node]map[uint64]*past // by incarnation
	pages []*page                                // of all roots
	of    map[string]int                         // how many, by their roots' hosts
	hand  int                                    // the page that is looked at next
	most  int                                    // pages
	spare *page
	last  *past // asked for most recently
}

// life is a root in one incarnation.
type life struct {
	root        broadcastmsg.Node
	incarnation uint64
}

// past is what has ended of one life.
type past struct {
	life
	host   string
	floor  uint64  // sequence numbers below it count as ended
	pages  []*page // by number
	isKept bool    // also without pages, for its floor

	isForgotten bool // its root is, so that it is not kept for its floor any more
}

type page struct {
	of     *past
	number uint64 // of the sequence number divided by pageBits
	at     int    // in memory.pages
	until  core.Time
	bits   [pageBits / 64]uint64
}

// newMemory returns a memory for so many sequence numbers.
func newMemory(numbers int) memory {
	return memory{pasts: map[broadcastmsg.Node]map[uint64]*past{}, of: map[string]int{}, most: (numbers + pageBits - 1) / pageBits}
}

func (m *memory) past(k *broadcastmsg.Key) *past {
	l := life{k.Root, k.Incarnation}
	if m.last != nil && m.last.life == l {
		return m.last
	}
	p := m.pasts[l.root][l.incarnation]
	if p != nil {
		m.last = p
	}
	return p
}

// put makes a past.
func (m *memory) put(l life) *past {
	p := &past{life: l, host: hostOf(l.root)}
	if m.pasts[p.root] == nil {
		m.pasts[p.root] = map[uint64]*past{}
	}
	m.pasts[p.root][p.incarnation] = p
	return p
}

// remove forgets a past that has no pages.
func (m *memory) remove(p *past) {
	delete(m.pasts[p.root], p.incarnation)
	if len(m.pasts[p.root]) == 0 {
		delete(m.pasts, p.root)
	}
	if m.last == p {
		m.last = nil
	}
}

func (p *past) find(number uint64) (int, bool) {
	if n := len(p.pages); n > 0 && p.pages[n-1].number <= number { // as a rule
		if p.pages[n-1].number == number {
			return n - 1, true
		}
		return n, false
	}
	return slices.BinarySearchFunc(p.pages, number, func(g *page, number uint64) int { return cmp.Compare(g.number, number) })
}

// has reports whether a broadcast has ended, or counts as ended.
func (m *memory) has(k broadcastmsg.Key) bool {
	p := m.past(&k)
	if p == nil {
		return false
	}
	if k.Sequence < p.floor {
		return true
	}
	i, ok := p.find(k.Sequence / pageBits)
	return ok && p.pages[i].bits[k.Sequence%pageBits/64]>>(k.Sequence%64)&1 != 0
}

// add notes that a broadcast has ended, of which a copy may come until a moment.
func (m *memory) add(k broadcastmsg.Key, until core.Time) {
	p := m.past(&k)
	if p == nil {
		p = m.put(life{k.Root, k.Incarnation})
		m.last = p
	}
	p.isForgotten = false
	number := k.Sequence / pageBits
	i, ok := p.find(number)
	if !ok {
		for m.of[p.host] >= max(1, m.most/4) {
			m.evict(func(other *past) bool { return other.host == p.host })
		}
		for len(m.pages) >= m.most {
			m.evict(func(*past) bool { return true })
		}
		if k.Sequence < p.floor {
			return
		}
		i, _ = p.find(number) // pages of its own may have gone
		p.pages = slices.Insert(p.pages, i, m.newPage(p, number))
	}
	g := p.pages[i]
	g.bits[k.Sequence%pageBits/64] |= 1 << (k.Sequence % 64)
	g.until = max(g.until, until)
}

func (m *memory) newPage(p *past, number uint64) *page {
	g := m.spare
	if m.spare = nil; g == nil {
		g = &page{}
	}
	*g = page{of: p, number: number, at: len(m.pages)}
	m.pages = append(m.pages, g)
	m.of[p.host]++
	return g
}

// evict makes room: the lowest page goes, of that root among some whose turn it is.
func (m *memory) evict(among func(*past) bool) {
	for m.hand %= len(m.pages); !among(m.pages[m.hand].of); m.hand = (m.hand + 1) % len(m.pages) {
	}
	p := m.pages[m.hand].of
	p.floor, p.isKept = (p.pages[0].number+1)*pageBits, !p.isForgotten
	m.drop(p.pages[0])
	m.hand++
}

func (m *memory) drop(g *page) {
	p := g.of
	i, _ := p.find(g.number)
	p.pages = slices.Delete(p.pages, i, i+1)
	if len(p.pages) == 0 && !p.isKept {
		m.remove(p)
	}
	less(m.of, p.root, 1)
	last := len(m.pages) - 1
	m.pages[g.at] = m.pages[last]
	m.pages[g.at].at = g.at
	m.pages[last] = nil
	m.pages = m.pages[:last]
	m.spare = g
}

// keep has a life be known, until it is over or its root is forgotten.
func (m *memory) keep(l life) {
	p := m.pasts[l.root][l.incarnation]
	if p == nil {
		p = m.put(l)
	}
	p.isKept, p.isForgotten = true, false
}

// raise has all broadcasts of a life that is known below a sequence number count as ended.
func (m *memory) raise(l life, floor uint64) {
	p := m.pasts[l.root][l.incarnation]
	if p == nil {
		return
	}
	p.floor = max(p.floor, floor)
	for len(p.pages) > 0 && (p.pages[0].number+1)*pageBits <= p.floor {
		m.drop(p.pages[0])
	}
}

// end forgets a life that is over, of which nothing is taken any more.
func (m *memory) end(l life) {
	p := m.pasts[l.root][l.incarnation]
	if p == nil {
		return
	}
	p.isKept = true
	for len(p.pages) > 0 {
		m.drop(p.pages[0])
	}
	m.remove(p)
}

// release keeps of a root what has ended here, and not up to where all has.
func (m *memory) release(root broadcastmsg.Node) {
	for _, p := range m.pasts[root] {
		if p.isKept, p.isForgotten = false, true; len(p.pages) == 0 {
			m.remove(p)
		}
	}
}

// forget looks at two pages, each in its turn, and drops those of which no copy
// can come any more.
func (m *memory) forget(now core.Time) {
	for range min(2, len(m.pages)) {
		m.hand %= len(m.pages)
		if g := m.pages[m.hand]; g.until < now {
			m.drop(g) // another is in its place now
		} else {
			m.hand++
		}
		if len(m.pages) == 0 {
			return
		}
	}
}
