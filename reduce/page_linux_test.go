package reduce

import (
	"bytes"
	"os"
	"syscall"
	"testing"
)

// isle returns memory of one page between two that must not be touched.
func isle(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, sea := range [][]byte{all[:page], all[2*page:]} {
		if err := syscall.Mprotect(sea, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : 2*page : 2*page]
}

// TestStaysWithinPages has vectors that begin or end where memory does: even
// reading beyond them would end the test.
func TestStaysWithinPages(t *testing.T) {
	const k = 3
	var isles [k + 1][]byte
	for j := range isles {
		isles[j] = isle(t)
	}
	eachAssembled(t, func(t *testing.T, p assembled) {
		most := 640 / p.size()
		all := p.random(k, most)
		want := make([]byte, len(all[0]))
		p.twin(want, all)
		in := make([][]byte, k)
		for n := 0; n <= most*p.size(); n += p.size() {
			for _, end := range []bool{false, true} {
				part := func(j int) []byte {
					if page := isles[j]; end {
						return page[len(page)-n:]
					}
					return isles[j][:n]
				}
				for j := range in {
					in[j] = part(j)
					copy(in[j], all[j])
				}
				dst := part(k)
				p.kernel(dst, in)
				if !bytes.Equal(dst, want[:n]) {
					t.Fatalf("%d bytes, at the end of a page %v: got %x, want %x", n, end, dst, want[:n])
				}
			}
		}
	})
}
