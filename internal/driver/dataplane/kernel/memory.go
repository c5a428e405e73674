//go:build linux

package kernel

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// The layout of bpf/tree.h.
const (
	maxPacket   = 1512 // bytes of a packet, its header included
	maxChildren = 16

	areaBytes  = 1536
	areaSize   = 4 // offset of the packet's size
	areaPacket = 8 // offset of the packet

	areaHeld = 2 // state of an area that holds a packet

	slotInUse = 1 << 31
	slotAgent = 1 << 30
)

// What is counted, by place behind the slots' words.
const (
	countTaken = iota
	countPartials
	countResults
	countDuplicate
	countLate
	countUndelivered
	countOdd
	countOwned
	countPartly
	countSizes
	countNoMemory
	counts
)

// What is counted for each neighbour, behind that.
const (
	packetsIn = iota
	bytesIn
	packetsOut
	bytesOut
	trafficCounts
)

// memory is what a program and its agent share of an epoch.
type memory struct {
	children int
	mask     uint32 // 2W - 1
	words    []uint64
	areas    []byte

	maps [3]*ebpf.Map // of the tree, of words, of areas
	raw  [][]byte
}

// size returns the bytes of an epoch's memory.
func size(children int, window uint32) int {
	return int(2*window)*(children+1)*areaBytes + 8*words(children, window)
}

// words returns how many words an epoch has: of its slots, what is counted, of its areas.
func words(children int, window uint32) int {
	return int(2*window)*(children+2) + counts + (children+1)*trafficCounts
}

// newMemory makes maps like the templates, with the tree in the first, and maps the other two
// into the process.
func newMemory(templates [3]*ebpf.MapSpec, tree []byte, children int, window uint32) (*memory, error) {
	slots := 2 * window
	m := &memory{children: children, mask: slots - 1}
	entries := [3]uint32{1, uint32(words(children, window)), slots * uint32(children+1)}
	for i, template := range templates {
		spec := template.Copy()
		spec.MaxEntries = entries[i]
		made, err := ebpf.NewMap(spec)
		if err != nil {
			m.close()
			return nil, fmt.Errorf("kernel: %d entries of %d bytes: %w", spec.MaxEntries, spec.ValueSize, err)
		}
		m.maps[i] = made
		if i == 0 {
			if err := made.Put(uint32(0), tree); err != nil {
				m.close()
				return nil, fmt.Errorf("kernel: memory of a tree: %w", err)
			}
			continue
		}
		raw, err := unix.Mmap(made.FD(), 0, int(spec.MaxEntries*spec.ValueSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			m.close()
			return nil, fmt.Errorf("kernel: mapping %d entries of %d bytes: %w", spec.MaxEntries, spec.ValueSize, err)
		}
		m.raw = append(m.raw, raw)
	}
	m.words = unsafe.Slice((*uint64)(unsafe.Pointer(&m.raw[0][0])), entries[1])
	m.areas = m.raw[1]
	return m, nil
}

func (m *memory) close() {
	for _, raw := range m.raw {
		_ = unix.Munmap(raw) // it was mapped
	}
	for _, made := range m.maps {
		if made != nil {
			_ = made.Close() // nothing is to be had from it any more
		}
	}
	m.raw, m.words, m.areas = nil, nil, nil
}

// held returns the packet of number n that a neighbour's area holds, or nil.
func (m *memory) held(neighbour int, n uint32) []byte {
	at := neighbour*int(m.mask+1) + int(n&m.mask)
	if state := &m.words[len(m.words)-(m.children+1)*int(m.mask+1)+at]; atomic.LoadUint64(state) != uint64(n)<<32|areaHeld {
		return nil
	}
	a := m.areas[at*areaBytes:]
	size := binary.NativeEndian.Uint32(a[areaSize:])
	if size > maxPacket {
		return nil // it is being overwritten
	}
	return a[areaPacket : areaPacket+size : areaPacket+size]
}

// Take implements switchreduce.FastPath.
func (m *memory) Take(n uint32, supersede bool, held func(packet []byte)) bool {
	if m.words == nil {
		return true
	}
	word := &m.words[n&m.mask]
	for {
		was := atomic.LoadUint64(word)
		number, flags := uint32(was>>32), uint32(was)
		switch isOlder := flags&slotInUse == 0 || wire.Newer(n, number); {
		case isOlder && !supersede:
			return true
		case !isOlder && number != n:
			return false
		case !isOlder && flags&slotAgent != 0:
			return true
		case !atomic.CompareAndSwapUint64(word, was, uint64(n)<<32|slotInUse|slotAgent):
			continue
		case isOlder:
			return true
		}
		for neighbour := range m.children + 1 {
			if packet := m.held(neighbour, n); packet != nil {
				held(packet)
			}
		}
		return true
	}
}

// Taken implements switchreduce.FastPath.
func (m *memory) Taken() uint64 {
	sum := uint64(0)
	for neighbour := range m.children + 1 {
		sum += m.traffic(neighbour, packetsIn)
	}
	return sum
}

func (m *memory) count(what int) uint64 {
	if m.words == nil {
		return 0
	}
	return atomic.LoadUint64(&m.words[int(m.mask)+1+what])
}

func (m *memory) traffic(neighbour, what int) uint64 {
	return m.count(counts + neighbour*trafficCounts + what)
}
