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
	chapters []*chapter[T]
}

type chapter[T comparable] struct {
	owner *pageWriter
	pages [pageLength]*page[T]
}

type page[T comparable] struct {
	owner   *pageWriter
	entries [pageLength]T
}

// pageWriter stands for the snapshot in the making: what it owns belongs to
// that snapshot alone.
type pageWriter struct{ wrote bool }

func (p *pages[T]) at(i int) (x T) {
	if p.table == nil {
		return x
	}
	n := uint(i) // whose quotients by powers of two are shifts
	c := p.table.chapters[n/(pageLength*pageLength)]
	if c == nil {
		return x
	}
	if page := c.pages[n/pageLength%pageLength]; page != nil {
		return page.entries[n%pageLength]
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
		p.table = &pageTable[T]{owner: w, chapters: make([]*chapter[T], (length+chapterLength-1)/chapterLength)}
	} else if p.table.owner != w {
		p.table = &pageTable[T]{owner: w, chapters: slices.Clone(p.table.chapters)}
	}
	c := p.table.chapters[i/chapterLength].ownedBy(w)
	p.table.chapters[i/chapterLength] = c
	page := c.pages[i/pageLength%pageLength].ownedBy(w)
	c.pages[i/pageLength%pageLength] = page
	page.entries[i%pageLength] = x
}

// ownedBy returns c if it is w's own, or else a copy that is; c may be nil.
func (c *chapter[T]) ownedBy(w *pageWriter) *chapter[T] {
	if c != nil && c.owner == w {
		return c
	}
	fresh := &chapter[T]{}
	if c != nil {
		*fresh = *c
	}
	fresh.owner = w
	return fresh
}

// ownedBy is that of a chapter, for a page.
func (p *page[T]) ownedBy(w *pageWriter) *page[T] {
	if p != nil && p.owner == w {
		return p
	}
	fresh := &page[T]{}
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
		a, b := p.chapter(c), q.chapter(c)
		if a == b {
			continue
		}
		for i := range pageLength {
			if a.page(i) == b.page(i) {
				continue
			}
			for j := range pageLength {
				if a.page(i).entry(j) != b.page(i).entry(j) {
					f((c*pageLength+i)*pageLength + j)
				}
			}
		}
	}
}

func (p *pages[T]) chapters() int {
	if p.table == nil {
		return 0
	}
	return len(p.table.chapters)
}

func (p *pages[T]) chapter(i int) *chapter[T] {
	if p.table == nil {
		return nil
	}
	return p.table.chapters[i]
}

func (c *chapter[T]) page(i int) *page[T] {
	if c == nil {
		return nil
	}
	return c.pages[i]
}

func (p *page[T]) entry(i int) (x T) {
	if p == nil {
		return x
	}
	return p.entries[i]
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
			page := b.words.chapter(c).page(p)
			if page == nil {
				continue
			}
			for i, word := range page.entries {
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
