package schedule

// A tag is what each message of an operation says of it. The receiver takes the next message of
// the operation's Serial, whatever the rest, and compares the rest with its own call.
//
//	bits    63-48    47-43        42-39      38-35     34-19            18-0
//	        Serial   Collective   Function   Element   Root, modulo     Count, or a hash
//	                                                   65536            with bit 18 set

// TagSerial has the bits of a tag that say which operation it is.
const TagSerial = 0xffff << 48

const hashBit = 1 << 18

// Caption is what a tag says of an operation.
type Caption struct {
	Serial            uint16
	Collective        Collective
	Function, Element uint8 // of 4 bits
	Root              uint16
	Count             int // -1: it is not known
}

// Tag returns the tag of a call.
func (c *Call) Tag(serial uint16, function, element uint8) uint64 {
	count := uint64(c.Count)
	if c.Count >= hashBit || c.Collective == Allgatherv || c.Collective == ReduceScatterv {
		h := uint64(c.Count) + 0x9e3779b97f4a7c15
		for _, n := range c.Counts {
			h = (h ^ uint64(n)) * 0xff51afd7ed558ccd
			h ^= h >> 32
		}
		h = (h ^ h>>29) * 0xff51afd7ed558ccd
		count = hashBit | h>>46&(hashBit-1)
	}
	return uint64(serial)<<48 | uint64(c.Collective)<<43 | uint64(function&15)<<39 | uint64(element&15)<<35 | uint64(c.Root&0xffff)<<19 | count
}

// A mark is what packets of the communicator's tree say, in place of a root, of a call of pieces. The
// rank of a root is less than markBase.
//
//	bits    23-19        18-15     14-0
//	        Collective   Element   Root, modulo 32768, or a hash of all counts
const (
	markCollective = 19
	markElement    = 15
	markBase       = uint32(Gather) << markCollective
)

// Mark returns the mark of a call of pieces.
func (c *Call) Mark(element uint8) uint32 {
	low := uint32(c.Root)
	if c.Counts != nil {
		low = uint32(c.Tag(0, 0, 0))
	}
	return uint32(c.Collective)<<markCollective | uint32(element&15)<<markElement | low&(1<<markElement-1)
}

// ReadMark returns what a mark says; false if it is a rank.
func ReadMark(mark uint32) (Caption, bool) {
	if mark < markBase {
		return Caption{}, false
	}
	return Caption{
		Collective: Collective(mark >> markCollective), Element: uint8(mark >> markElement & 15), Root: uint16(mark & (1<<markElement - 1)),
	}, true
}

// ReadTag returns what a tag says.
func ReadTag(tag uint64) Caption {
	c := Caption{
		Serial: uint16(tag >> 48), Collective: Collective(tag >> 43 & 31), Function: uint8(tag >> 39 & 15), Element: uint8(tag >> 35 & 15),
		Root: uint16(tag >> 19), Count: int(tag & (hashBit - 1)),
	}
	if tag&hashBit != 0 {
		c.Count = -1
	}
	return c
}
