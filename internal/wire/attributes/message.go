package attributes

// Bounds of what is replicated as attributes.
const (
	MaxKey   = 128      // bytes of a key, which has at least one
	MaxValue = 4 << 10  // bytes of a value
	MaxMap   = 32 << 10 // bytes of a whole map as a Section has it, tombstones included
)

// A Map is a version of one life's attributes: in a Digest, the one that the
// sender holds; in a Request, the one above which it asks.
type Map struct {
	Life    Life
	Version uint64
}

// Digest is the update stage: maps of which the sender has a newer version than
// it has said so far, or, to a new neighbour, all that are not empty.
type Digest struct {
	Maps []Map
}

// Request is the request stage. A push asks many for what one could not give:
// who has nothing newer says nothing.
type Request struct {
	Push bool
	Maps []Map
}

// Reply is the reply stage: a Section for each map asked for, in the order of
// the request; of a push, only where there is something newer.
type Reply struct {
	Sections []Section
}

// Section is what a reply has of one life's map. There are three kinds:
//
//	Version 0             nothing newer than was asked
//	no Entries, Version   there is this version, which did not fit: ask again
//	Entries               all with versions above Base, of the map at Version
//
// A section is never cut: who takes it has the map exactly as its owner had it
// at Version. Where Base is 0 the entries are the whole map, and keys that are
// not among them are gone.
type Section struct {
	Life    Life
	Base    uint64
	Version uint64 // of the last entry
	Floor   uint64 // tombstones up to this version have been thrown away, at most Version
	Entries []Entry
}

// Entry is a key with the version of the map that wrote it.
type Entry struct {
	Version uint64
	Key     string
	Value   []byte
	Deleted bool // a tombstone: there is no value
}

// Sizes in a message, at most.
const (
	headSize    = 1 + 5             // what is before the maps or sections
	MapSize     = 8 + 10            // a Map
	sectionSize = 8 + 10 + 3 + 2*10 // a Section without its entries
)

// Size returns the most bytes that s takes in a message.
func (s *Section) Size() int {
	n := sectionSize
	for i := range s.Entries {
		n += s.Entries[i].Size()
	}
	return n
}

// Size returns the bytes that e counts for in a map, and the most that it takes
// in a message.
func (e *Entry) Size() int { return 10 + 2 + 2 + len(e.Key) + len(e.Value) }
