package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
)

// The layout of a bbolt file, version 2, in the byte order of the machine that
// made it: https://github.com/etcd-io/bbolt, internal/common.
const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2

	pageHeader    = 16 // id 8, flags 2, count 2, overflow 4
	metaSize      = 64 // of which the last 8 are a checksum
	elementSize   = 16 // of a branch: pos 4, key 4, page 8; of a leaf: flags 4, pos 4, key 4, value 4
	bucketHeader  = 16 // root page 8, sequence 8
	branchPage    = 0x01
	leafPage      = 0x02
	freelistPage  = 0x10
	bucketElement = 0x01

	manyFree  = 0xFFFF // as count of a freelist: the first id is the count
	noPage    = ^uint64(0)
	maxPages  = 1 << 32
	maxLevels = 64
)

var (
	order = binary.NativeEndian

	// errForeign: it does not even look like a bbolt file.
	errForeign = errors.New("it is not a bbolt database")
)

// meta is one of the two pages that begin the file.
type meta struct {
	pageSize       uint64
	root, freelist uint64
	end            uint64 // pages from here on are not used
	txid           uint64
}

// readMeta reads the meta page at an offset.
func readMeta(file io.ReaderAt, offset int64) (m meta, err error) {
	var b [pageHeader + metaSize]byte
	n, err := file.ReadAt(b[:], offset)
	body := b[pageHeader:]
	if err != nil && !errors.Is(err, io.EOF) {
		return m, err
	}
	if order.Uint32(body) != metaMagic {
		return m, errForeign
	}
	if n < len(b) {
		return m, errors.New("the file ends in a meta page")
	}
	sum := fnv.New64a()
	sum.Write(body[:metaSize-8])
	if sum.Sum64() != order.Uint64(body[metaSize-8:]) {
		return m, errors.New("the checksum of a meta page is wrong")
	}
	if v := order.Uint32(body[4:]); v != metaVersion {
		return m, fmt.Errorf("version %d of bbolt's format, not %d", v, metaVersion)
	}
	return meta{
		pageSize: uint64(order.Uint32(body[8:])),
		root:     order.Uint64(body[16:]), freelist: order.Uint64(body[32:]),
		end: order.Uint64(body[40:]), txid: order.Uint64(body[48:]),
	}, nil
}

// latestMeta returns the meta page that counts. Both must be valid: they fit a
// disk's sector, so that a crash leaves the old one or the new one; and with
// one of them lost nobody knows whether the other is the last.
func latestMeta(file io.ReaderAt) (meta, error) {
	first, err := readMeta(file, 0)
	if err != nil {
		return first, err
	}
	if first.pageSize < 512 || first.pageSize > 1<<20 || bits.OnesCount64(first.pageSize) != 1 {
		return first, fmt.Errorf("pages of %d bytes", first.pageSize)
	}
	second, err := readMeta(file, int64(first.pageSize))
	switch {
	case err != nil:
		return first, fmt.Errorf("the second meta page: %w", withoutForeign(err))
	case second.pageSize != first.pageSize:
		return first, errors.New("the meta pages differ in the size of pages")
	case second.txid > first.txid:
		return second, nil
	}
	return first, nil
}

// withoutForeign keeps an error's text, where the file has been found to be
// bbolt's.
func withoutForeign(err error) error {
	if errors.Is(err, errForeign) {
		return errors.New("it does not begin like one")
	}
	return err
}

// walker checks that all pages of a file are valid, and used once.
type walker struct {
	file io.ReaderAt
	meta meta
	seen []bool // by page
}

// checkPages reports what is wrong with the pages of a bbolt file of that many
// bytes; errForeign if it is something else.
func checkPages(file io.ReaderAt, size int64) error {
	m, err := latestMeta(file)
	if err != nil {
		return err
	}
	if m.end < 4 || m.end > maxPages || m.end > uint64(size)/m.pageSize {
		return fmt.Errorf("the file has %d bytes and lacks some of its %d pages of %d", size, m.end, m.pageSize)
	}
	w := &walker{file: file, meta: m, seen: make([]bool, m.end)}
	w.seen[0], w.seen[1] = true, true
	if err := w.tree(m.root, bounds{}, maxLevels); err != nil {
		return err
	}
	if err := w.freelist(); err != nil {
		return err
	}
	for id, seen := range w.seen {
		if !seen {
			return fmt.Errorf("page %d is neither used nor free", id)
		}
	}
	return nil
}

// take reads a page, which must not have been taken before, with those that
// continue it.
func (w *walker) take(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.end {
		return nil, fmt.Errorf("page %d is outside of the file", id)
	}
	var head [pageHeader]byte
	if _, err := w.file.ReadAt(head[:], int64(id*w.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	pages := uint64(order.Uint32(head[12:])) + 1
	if own := order.Uint64(head[:]); own != id || pages > w.meta.end-id {
		return nil, fmt.Errorf("page %d says that it is %d, of %d pages", id, own, pages)
	}
	for i := id; i < id+pages; i++ {
		if w.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	page := make([]byte, pages*w.meta.pageSize)
	if _, err := w.file.ReadAt(page, int64(id*w.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return page, nil
}

// bounds are what a page's keys must be within: from lowest on, below limit;
// nil: no such bound.
type bounds struct{ lowest, limit []byte }

// tree checks the pages of a bucket.
func (w *walker) tree(id uint64, within bounds, levels int) error {
	if levels == 0 {
		return fmt.Errorf("page %d is nested too deeply", id)
	}
	page, err := w.take(id)
	if err != nil {
		return err
	}
	if err := w.node(page, within, levels); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// node checks the elements of a branch or leaf, and what is beneath them.
func (w *walker) node(page []byte, within bounds, levels int) error {
	flags, count := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage {
		return fmt.Errorf("neither a branch nor a leaf, but %#x", flags)
	}
	if len(page) < pageHeader+count*elementSize || flags == branchPage && count == 0 {
		return fmt.Errorf("%d elements", count)
	}
	keys := make([][]byte, count)
	for i := range count {
		key, err := elementPart(page, i, flags)
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(keys[i-1], key) >= 0 ||
			within.lowest != nil && bytes.Compare(key, within.lowest) < 0 ||
			within.limit != nil && bytes.Compare(key, within.limit) >= 0 {
			return fmt.Errorf("element %d is out of order", i)
		}
		keys[i] = key
	}
	for i := range count {
		element := page[pageHeader+i*elementSize:]
		var err error
		switch {
		case flags == branchPage:
			beneath := bounds{keys[i], within.limit}
			if i+1 < count {
				beneath.limit = keys[i+1]
			}
			err = w.tree(order.Uint64(element[8:]), beneath, levels-1)
		case order.Uint32(element)&bucketElement != 0:
			at := int(order.Uint32(element[4:])) + len(keys[i])
			err = w.bucket(element[at:][:order.Uint32(element[12:])], levels-1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elementPart returns the key of an element whose key and value are inside of
// the page.
func elementPart(page []byte, i int, flags uint16) ([]byte, error) {
	element := page[pageHeader+i*elementSize:]
	pos, size, value := order.Uint32(element), order.Uint32(element[4:]), uint32(0)
	if flags == leafPage {
		pos, size, value = order.Uint32(element[4:]), order.Uint32(element[8:]), order.Uint32(element[12:])
	}
	if uint64(pos)+uint64(size)+uint64(value) > uint64(len(element)) || size == 0 {
		return nil, fmt.Errorf("element %d reaches out of the page", i)
	}
	return element[pos:][:size], nil
}

// bucket checks a bucket, whose pages are its own or, if it is small, whose only
// page is inside the value.
func (w *walker) bucket(value []byte, levels int) error {
	if len(value) < bucketHeader {
		return fmt.Errorf("a bucket of %d bytes", len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return w.tree(root, bounds{}, levels)
	}
	page := value[bucketHeader:]
	if len(page) < pageHeader || order.Uint16(page[8:]) != leafPage {
		return errors.New("a bucket whose page is no leaf")
	}
	return w.node(page, bounds{}, levels)
}

// freelist checks the list of free pages.
func (w *walker) freelist() error {
	if w.meta.freelist == noPage {
		return errors.New("there is no list of free pages")
	}
	page, err := w.take(w.meta.freelist)
	if err != nil {
		return err
	}
	ids, count := page[pageHeader:], uint64(order.Uint16(page[10:]))
	if flags := order.Uint16(page[8:]); flags != freelistPage {
		return fmt.Errorf("page %d is no list of free pages, but %#x", w.meta.freelist, flags)
	}
	if count == manyFree {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return fmt.Errorf("%d free pages do not fit their list", count)
	}
	last := uint64(1)
	for i := range count {
		id := order.Uint64(ids[8*i:])
		if id <= last || id >= w.meta.end || w.seen[id] {
			return fmt.Errorf("page %d in the list of free pages is not free", id)
		}
		w.seen[id], last = true, id
	}
	return nil
}
