package topology

import (
	"math/bits"
	"slices"
)

// pageLength is the entries of a page, and the pages of a chapter. A change of
// one entry copies a page, a chapter and the table of chapters: for a million
// entries some 250 pointers, however many of them have changed before.
const pageLength = 64

// pages is an array that snapshots share piece by piece. What is absent holds
// zero values. Nothing in it is ever written, except what the pageWriter of an
// unfinished snapshot has made.
type pages[T comparable] struct{ table *pageTable[T] }

type pageTable[T comparable] struct {
	owner    *pageWriter
	chapters []*piece[*piece[T]]
}

// piece is a page of entries, or a chapter of pages.
type piece[T comparable] struct {
	owner *pageWriter
	parts [pageLength]T
}

// pageWriter stands for the snapshot in the making: what it owns belongs to
// that snapshot alone.
type pageWriter struct{ wrote bool }

// It is written out, for planners ask it millions of times.
func (p *pages[T]) at(i int) (x T) {
	if p.table == nil {
		return x
	}
	n := uint(i) // whose quotients by powers of two are shifts
	c := p.table.chapters[n/(pageLength*pageLength)]
	if c == nil {
		return x
	}
	if page := c.parts[n/pageLength%pageLength]; page != nil {
		return page.parts[n%pageLength]
	}
	return x
}

// set changes entry i of an array of length entries, on pages of w's own.
func (p *pages[T]) set(w *pageWriter, i int, x T, length int) {
	if p.at(i) == x {
		return
	}
	w.wrote = true
	const chapterLength = pageLength * pageLength
	if p.table == nil {
		p.table = &pageTable[T]{owner: w, chapters: make([]*piece[*piece[T]], (length+chapterLength-1)/chapterLength)}
	} else if p.table.owner != w {
		p.table = &pageTable[T]{owner: w, chapters: slices.Clone(p.table.chapters)}
	}
	c := p.table.chapters[i/chapterLength].ownedBy(w)
	p.table.chapters[i/chapterLength] = c
	page := c.parts[i/pageLength%pageLength].ownedBy(w)
	c.parts[i/pageLength%pageLength] = page
	page.parts[i%pageLength] = x
}

// ownedBy returns p if it is w's own, or else a copy that is; p may be nil.
func (p *piece[T]) ownedBy(w *pageWriter) *piece[T] {
	if p != nil && p.owner == w {
		return p
	}
	fresh := &piece[T]{}
	if p != nil {
		*fresh = *p
	}
	fresh.owner = w
	return fresh
}

// differ calls f for the index of every entry that differs between p and q, in
// ascending order. Pieces that they share are not looked at.
func (p *pages[T]) differ(q *pages[T], f func(i int)) {
	if p.table == q.table {
		return
	}
	for c := range max(p.chapters(), q.chapters()) {
		p.chapter(c).differ(q.chapter(c), func(i int, a, b *piece[T]) {
			a.differ(b, func(j int, _, _ T) { f((c*pageLength+i)*pageLength + j) })
		})
	}
}

// differ calls f for every part that differs between p and q; both may be nil.
func (p *piece[T]) differ(q *piece[T], f func(i int, a, b T)) {
	if p == q {
		return
	}
	for i := range uint(pageLength) {
		if a, b := p.part(i), q.part(i); a != b {
			f(int(i), a, b)
		}
	}
}

func (p *pages[T]) chapters() int {
	if p.table == nil {
		return 0
	}
	return len(p.table.chapters)
}

func (p *pages[T]) chapter(i int) *piece[*piece[T]] {
	if p.table == nil {
		return nil
	}
	return p.table.chapters[i]
}

func (p *piece[T]) part(i uint) (x T) {
	if p == nil {
		return x
	}
	return p.parts[i]
}

// bitPages is a set of small integers in shared pages.
type bitPages struct{ words pages[uint64] }

func (b *bitPages) at(i int) bool { return b.words.at(int(uint(i)/64))>>(uint(i)%64)&1 == 1 }

func (b *bitPages) set(w *pageWriter, i int, on bool, length int) {
	word := b.words.at(i/64) &^ (1 << (i % 64))
	if on {
		word |= 1 << (i % 64)
	}
	b.words.set(w, i/64, word, (length+63)/64)
}

// each calls f for every member in ascending order until it returns false.
func (b *bitPages) each(f func(int) bool) {
	for c := range b.words.chapters() {
		for p := range pageLength {
			page := b.words.chapter(c).part(uint(p))
			if page == nil {
				continue
			}
			for i, word := range page.parts {
				for ; word != 0; word &= word - 1 {
					if !f(((c*pageLength+p)*pageLength+i)*64 + bits.TrailingZeros64(word)) {
						return
					}
				}
			}
		}
	}
}

// differ calls f for every integer that is in only one of the sets, in
// ascending order.
func (b *bitPages) differ(q *bitPages, f func(i int)) {
	b.words.differ(&q.words, func(i int) {
		for word := b.words.at(i) ^ q.words.at(i); word != 0; word &= word - 1 {
			f(i*64 + bits.TrailingZeros64(word))
		}
	})
}
