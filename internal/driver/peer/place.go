package peer

import "github.com/tributary-fabric/tributary/internal/core/rail"

// placed is a frame of class Fragment of which a part has come, and whose rest is read to where its
// service has it lie. That is asked before each read, and holds for that read alone.
type placed struct {
	service Service
	stream  uint32
	begin   [BeginSize]byte // of the payload
	size    int             // of the payload; 0: there is no such frame
	at      int             // so much of it is there
	isLost  bool            // for a part of it there was no place

	// Of a read.
	vectors [2][]byte
	n       int // bytes of the frame,
	behind  int // and behind it, in the burst
	err     error
}

const (
	// BeginSize are the bytes of a frame's payload by which a Placer knows it.
	BeginSize = rail.BeginSize
	// placeLeast are the bytes of a frame that are worth it.
	placeLeast = 4 << 10
	// aboutBegin are the bytes that are read where a frame may begin: what is behind its head is
	// copied.
	aboutBegin = 512
)

// about returns memory to read into where a frame may begin.
func (r *reader) about() []byte {
	room := r.room()
	if r.at == r.have && r.mayPlace() {
		room = room[:min(len(room), aboutBegin)]
	}
	return room
}

// mayPlace reports whether frames of the connection may be placed.
func (r *reader) mayPlace() bool { return r.p.class == Fragment && r.p.socket != nil }

// isPlacing reports that what follows is the rest of a frame that is placed.
func (r *reader) isPlacing() bool { return r.placed.size > 0 }

// begins has the frame of so many bytes, of which a part is there, be placed, and reports whether
// its service has a place for it. What is there is copied.
func (r *reader) begins(want int) bool {
	f := &r.placed
	if !r.mayPlace() || r.burst == nil || r.have-r.at <= HeadSize+BeginSize || want-(r.have-r.at) < placeLeast {
		return false
	}
	before, there := r.at, r.burst.memory[r.at:r.have]
	*f = placed{}
	f.service, f.stream, f.size = parseHead(there)
	f.at = copy(f.begin[:], there[HeadSize:])
	r.at += HeadSize + f.at
	if !r.ask() {
		r.at, *f = before, placed{}
		return false
	}
	f.at += f.n
	return true
}

// ask has some of the frame be read to its place, and reports whether it has one.
func (r *reader) ask() (ok bool) {
	f := &r.placed
	f.n, f.behind, f.err = 0, 0, nil
	if s := r.p.host.services[f.service].Load(); s != nil && s.begin() {
		if h, is := s.handler.(Placer); is {
			ok = h.Place(r.p.conn, f.begin[:], f.size, f.at, r.reads)
		}
		s.end()
	}
	return ok
}

// readInto reads some of the frame: what is in the burst, or else of the connection, with what
// follows.
func (r *reader) readInto(into []byte) {
	f := &r.placed
	switch {
	case r.at < r.have:
		f.n = copy(into, r.burst.memory[r.at:r.have])
		r.at += f.n
	case r.p.seal != nil:
		f.n, f.err = r.records(into)
	default:
		var behind []byte
		if len(into) == f.size-f.at {
			behind = r.burst.memory[r.have:min(len(r.burst.memory), r.have+aboutBegin)]
		}
		f.vectors = [2][]byte{into, behind}
		n, err := r.p.socket.readVectors(f.vectors[:])
		f.vectors = [2][]byte{}
		f.n, f.err = min(n, len(into)), something(err)
		f.behind = n - f.n
	}
}

// place reads some of the frame that is placed. From when on there is no place for it, it is dropped.
func (r *reader) place() error {
	p, f := r.p, &r.placed
	room, left := r.room(), f.size-f.at
	if f.isLost = f.isLost || !r.ask(); f.isLost {
		r.readInto(room[:min(len(room), left)]) // and what is behind the frame over it
	}
	p.received.Add(uint64(f.n))
	r.got += f.n
	if f.at += f.n; f.n > 0 {
		p.conn.reads.Add(1)
	}
	behind, err := f.behind, f.err
	if f.at == f.size {
		r.end()
	}
	if err = r.handle(behind, err); err == nil && p.seal == nil && behind < aboutBegin {
		r.rest()
	}
	return err
}

// end hands on the frame that was placed.
func (r *reader) end() {
	f := &r.placed
	frame := Frame{Stream: f.stream, Bytes: f.begin[:], Rest: f.size - BeginSize}
	if f.isLost {
		frame.Rest = 0
	}
	size := padded(f.size)
	r.pad = size - HeadSize - f.size
	r.p.host.counts.bytesIn.Add(uint64(size))
	r.isUrgent = true
	if r.frames == nil {
		r.frames = frameLists.Get().(*[]Frame)
	}
	*r.frames = append(*r.frames, frame)
	_ = r.hand(f.service) // it is no segment
	*f = placed{}
}
