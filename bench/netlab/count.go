package netlab

// Count is what one end of a link has sent.
type Count struct {
	Bytes   uint64 // Ethernet headers included
	Packets uint64
	Dropped uint64 // packets that found the queue full
}

// Since returns what was sent after an earlier count.
func (c Count) Since(before Count) Count {
	return Count{c.Bytes - before.Bytes, c.Packets - before.Packets, c.Dropped - before.Dropped}
}

func (c Count) plus(other Count) Count {
	return Count{c.Bytes + other.Bytes, c.Packets + other.Packets, c.Dropped + other.Dropped}
}

// Counts are the counts of all links, by LinkID and by which end has sent.
type Counts [][2]Count

// Since returns what was carried after earlier counts of the same lab.
func (c Counts) Since(before Counts) Counts {
	all := make(Counts, len(c))
	for l := range c {
		for end := range c[l] {
			all[l][end] = c[l][end].Since(before[l][end])
		}
	}
	return all
}
