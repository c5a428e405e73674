package hostlib

// Connections count a host's connections with others, of all its services.
type Connections struct {
	Open     int    // that carry frames now
	Calls    uint64 // of this host
	Failed   uint64 // of these: that came to nothing
	Accepted uint64 // calls of others
	Rejected uint64 // calls of others that were not taken: malformed, refused, too slow, evicted, or given up
	Dead     uint64 // connections that were closed because nothing came for DeadAfter
	Restarts uint64 // of other hosts

	FramesIn, FramesOut uint64
	BytesIn, BytesOut   uint64 // of these frames, without TCP and IP headers
	Unclaimed           uint64 // frames for a service that is not on this host
	BufferBytes         int    // memory in which frames lie that have come
}

// Connections returns what was counted, and what is there now.
func (h *Host) Connections() Connections {
	k := h.peers.Counters()
	return Connections{
		Open: k.Open, Calls: k.Dialled, Failed: k.Failed, Accepted: k.Accepted, Rejected: h.malformed.Load() + k.Rejected(),
		Dead: k.Dead, Restarts: k.Restarts, FramesIn: k.FramesIn, FramesOut: k.FramesOut, BytesIn: k.BytesIn, BytesOut: k.BytesOut,
		Unclaimed: k.Nobodys, BufferBytes: k.BurstBytes,
	}
}
