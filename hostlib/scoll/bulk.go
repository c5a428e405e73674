package scoll

import "context"

// Bulk moves bulk data between nodes. Memory is exposed under a key, that nobody can
// guess, to those nodes that get the key in a request. Its methods are called from any
// goroutine.
type Bulk interface {
	// Expose lets the nodes to read memory, and nobody else, the vectors one behind the
	// other, until it is revoked. It does not wait.
	Expose(key uint64, to []string, memory [][]byte) error
	// Revoke ends that. When it has returned nobody reads the memory any more;
	// it does not wait for the network. Keys that are not exposed are ignored.
	Revoke(key uint64)
	// Pull reads what a node has exposed under a key, length bytes, into the
	// vectors, which have room for it. It ends early when ctx does, and fails
	// where the node, the key or that length of memory is not there.
	Pull(ctx context.Context, node string, key, length uint64, into [][]byte) error
	// Close ends all that is under way, and waits for it.
	Close() error
}

// size returns the bytes of vectors.
func size(vectors [][]byte) uint64 {
	n := uint64(0)
	for _, v := range vectors {
		n += uint64(len(v))
	}
	return n
}
