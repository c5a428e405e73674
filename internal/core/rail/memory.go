package rail

import (
	"errors"
	"fmt"
)

// Handle names a region of a host's memory. Numbers are not used twice; who has not been
// given the key cannot name the region.
type Handle struct{ Number, Key uint64 }

// Rights are what others may do with a region.
type Rights uint8

// The rights, which can be combined.
const (
	MayRead Rights = 1 << iota
	MayWrite
)

// Regions are what Peers use of the memory that a host has registered.
type Regions interface {
	// Hold returns length bytes of a region for one use, to write or to read, which ends
	// with Unhold, which reports whether it was the last one of a released region. They are
	// vectors, one behind the other; rest is nil if they are one, as those to write are.
	Hold(h Handle, offset, length uint64, isWrite bool) (first []byte, rest [][]byte, err error)
	Unhold(h Handle) (isFree bool)
}

// ErrHandle is wrapped by the errors of Memory.Hold.
var ErrHandle = errors.New("rail: no such region")

// Memory is the memory that a host has registered. Its methods are not safe for concurrent
// use: a driver whose Peers share it has a lock of its own around it.
type Memory struct {
	regions map[Handle]*regionOf
	last    uint64
}

type regionOf struct {
	vectors    [][]byte
	size       uint64
	rights     Rights
	uses       int
	isReleased bool
}

// ErrTaken is wrapped by the errors of RegisterAs.
var ErrTaken = errors.New("rail: there is a region of that handle")

// Register makes memory available until it is released. Key has to be random.
func (m *Memory) Register(rights Rights, key uint64, vectors ...[]byte) Handle {
	for {
		m.last++
		if h := (Handle{m.last, key}); m.RegisterAs(h, rights, vectors...) == nil {
			return h
		}
	}
}

// RegisterAs makes memory available under a handle.
func (m *Memory) RegisterAs(h Handle, rights Rights, vectors ...[]byte) error {
	if m.regions[h] != nil {
		return fmt.Errorf("%w: %d", ErrTaken, h.Number)
	}
	if m.regions == nil {
		m.regions = map[Handle]*regionOf{}
	}
	r := &regionOf{vectors: vectors, rights: rights}
	for _, v := range vectors {
		r.size += uint64(len(v))
	}
	m.regions[h] = r
	return nil
}

// Release ends a region and reports whether nobody uses its memory any more. If not, the
// Unhold that ends the last use reports so.
func (m *Memory) Release(h Handle) (isFree bool) {
	r := m.regions[h]
	if r == nil {
		return true
	}
	r.isReleased = true
	if r.uses == 0 {
		delete(m.regions, h)
	}
	return r.uses == 0
}

// Hold implements Regions.
func (m *Memory) Hold(h Handle, offset, length uint64, isWrite bool) (first []byte, rest [][]byte, err error) {
	r, right := m.regions[h], MayRead
	if isWrite {
		right = MayWrite
	}
	switch {
	case r == nil || r.isReleased:
		return nil, nil, fmt.Errorf("%w: %d", ErrHandle, h.Number)
	case r.rights&right == 0:
		return nil, nil, fmt.Errorf("%w: %d has not the right", ErrHandle, h.Number)
	case offset > r.size || length > r.size-offset:
		return nil, nil, fmt.Errorf("%w: %d has %d bytes, not %d at %d", ErrHandle, h.Number, r.size, length, offset)
	}
	first, rest = cut(r.vectors, offset, length)
	if isWrite && len(rest) > 0 {
		return nil, nil, fmt.Errorf("%w: %d is in several vectors, which are not written", ErrHandle, h.Number)
	}
	r.uses++
	return first, rest, nil
}

// cut returns length bytes of vectors that have them.
func cut(vectors [][]byte, offset, length uint64) (first []byte, rest [][]byte) {
	i := 0
	for ; i < len(vectors) && offset >= uint64(len(vectors[i])); i++ {
		offset -= uint64(len(vectors[i]))
	}
	if i == len(vectors) {
		return nil, nil
	}
	n := min(length, uint64(len(vectors[i]))-offset)
	first = vectors[i][offset : offset+n : offset+n]
	for length -= n; length > 0; length -= n {
		i++
		n = min(length, uint64(len(vectors[i])))
		rest = append(rest, vectors[i][:n:n])
	}
	return first, rest
}

// Unhold ends one use. It reports whether that was the last one of a released region.
func (m *Memory) Unhold(h Handle) (isFree bool) {
	r := m.regions[h]
	if r == nil {
		return false
	}
	r.uses--
	if r.uses == 0 && r.isReleased {
		delete(m.regions, h)
		return true
	}
	return false
}
