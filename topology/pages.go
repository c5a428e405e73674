package topology

import (
	"math/bits"
	"slices"
)

// pageLength is the entries of one page: of 64 words a page is a cache's few
// lines, and a table of four million bits has a thousand pages.
const pageLength = 64

// pages is an array that snapshots share page by page. A page that is absent
// holds zero values. Pages in a table are never written, except those that the
// pageWriter of an unfinished snapshot has made.
type pages[T comparable] struct {
	table []*[pageLength]T
}

// pageWriter remembers which tables and pages belong to the snapshot in the
// making alone. Its keys are pointers to them.
type pageWriter struct{ own map[any]struct{} }

func newPageWriter() *pageWriter { return &pageWriter{own: map[any]struct{}{}} }

func (w *pageWriter) empty() bool { return len(w.own) == 0 }

func (p *pages[T]) at(i int) T {
	var zero T
	if p.table == nil || p.table[i/pageLength] == nil {
		return zero
	}
	return p.table[i/pageLength][i%pageLength]
}

// set changes entry i of an array of length entries, on pages of w's own.
func (p *pages[T]) set(w *pageWriter, i int, x T, length int) {
	if p.at(i) == x {
		return
	}
	if p.table == nil {
		p.table = make([]*[pageLength]T, (length+pageLength-1)/pageLength)
		w.own[&p.table[0]] = struct{}{}
	} else if _, own := w.own[&p.table[0]]; !own {
		p.table = slices.Clone(p.table)
		w.own[&p.table[0]] = struct{}{}
	}
	page := p.table[i/pageLength]
	if _, own := w.own[page]; page == nil || !own {
		fresh := new([pageLength]T)
		if page != nil {
			*fresh = *page
		}
		page = fresh
		p.table[i/pageLength] = page
		w.own[page] = struct{}{}
	}
	page[i%pageLength] = x
}

// bitPages is a set of small integers in shared pages.
type bitPages struct{ words pages[uint64] }

func (b *bitPages) at(i int) bool { return b.words.at(i/64)>>(i%64)&1 == 1 }

func (b *bitPages) set(w *pageWriter, i int, on bool, length int) {
	word := b.words.at(i/64) &^ (1 << (i % 64))
	if on {
		word |= 1 << (i % 64)
	}
	b.words.set(w, i/64, word, (length+63)/64)
}

// each calls f for every member in ascending order until it returns false.
func (b *bitPages) each(f func(int) bool) {
	for p, page := range b.words.table {
		if page == nil {
			continue
		}
		for i, word := range page {
			for ; word != 0; word &= word - 1 {
				if !f((p*pageLength+i)*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
