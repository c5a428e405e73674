package hostlib

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/node"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// sharedOperation is an operation of processes that share memory, at one of them.
type sharedOperation struct {
	session.Operation
	request    *Request
	pieces     *sharedPieces // of a call of pieces; nil: it is none
	temp       *[]byte       // of a call of pieces, where there is no shared memory
	kernel     reduce.Kernel
	perSegment int // elements
	full, last node.Segment
	first, end uint64 // numbers of its segments
	rootHost   int
	root       int // process of that host
	outcome    Outcome
	ways       int // segments whose outcome is known
}

// crossing is an operation between hosts under way.
type crossing struct {
	request *Request
	isBegun bool
	isDone  atomic.Bool
}

// start queues an operation, which is to be begun or awaited.
func (p *processes) start(r *Request, o *session.Operation) {
	p.queue(&sharedOperation{Operation: *o, request: r}, p.base.tagOf(o))
}

func (p *processes) queue(x *sharedOperation, tag func(serial uint16) uint64) {
	r, o := x.request, &x.Operation
	r.outside, r.shared = true, p
	if o.Elements > 0 {
		r.function, r.element = o.Function, o.Element
	}
	p.order.Lock()
	defer p.order.Unlock()
	if err := p.base.enter(r, tag); err != nil {
		r.fail(err)
		return
	}
	p.plan(x)
	if !p.jobs.Put(x) {
		p.base.messaging.ended(r)
		r.fail(p.ended())
	}
}

// plan cuts an operation into segments.
func (p *processes) plan(x *sharedOperation) {
	s := node.Segment{Source: node.Nobody, Reader: node.All}
	x.rootHost, x.root = p.placeOf(int(x.Root))
	isHere := x.rootHost == p.host
	switch {
	case x.pieces != nil:
		x.pieces.shape(&s, isHere, x.root)
	case x.Collective == wire.Broadcast:
		if isHere {
			s.Source = x.root
		}
	case x.Collective == wire.Reduce:
		if s.Reader = node.Nobody; isHere {
			s.Reader = x.root
		}
	default:
		x.rootHost, x.root = 0, 0
	}
	if x.Function != reduce.NoFunction {
		x.kernel, _ = reduce.KernelOf(x.Function, x.Vectors()) // the operation was validated
	}
	s.Reduces = x.kernel != nil && x.Elements > 0
	count := 1
	x.perSegment, _ = x.Chunk(p.base.chunkBytes())
	s.Width = x.Width()
	if x.Elements > 0 {
		x.perSegment *= max(1, p.area/(x.perSegment*s.Width))
		count = (x.Elements + x.perSegment - 1) / x.perSegment
	}
	x.full, x.last = s, s
	x.full.Elements, x.last.Elements = x.perSegment, x.Elements-(count-1)*x.perSegment
	if x.pieces != nil && p.group == nil {
		x.temp = tempOf(min(count, sharedSlots) * x.perSegment * s.Width)
	}
	x.end = uint64(count) // of the first, until it has its numbers
}

// segment returns one of x's.
func (x *sharedOperation) segment(i uint64) *node.Segment {
	if i == x.end-1 {
		return &x.last
	}
	return &x.full
}

// place returns at which byte of a vector a segment begins.
func (x *sharedOperation) place(i uint64) int { return int(i-x.first) * x.perSegment * x.full.Width }

// slice returns a segment of a vector.
func (x *sharedOperation) slice(v []byte, i uint64) []byte {
	from := x.place(i)
	return v[from : from+x.segment(i).Elements*x.full.Width]
}

// of returns the operation of a segment; nil: it is not called yet.
func (p *processes) of(i uint64) *sharedOperation {
	for _, x := range p.active {
		if i < x.end {
			return x
		}
	}
	return nil
}

func (p *processes) segment(i uint64) *node.Segment {
	if x := p.of(i); x != nil {
		return x.segment(i)
	}
	return nil
}

// take numbers the segments of operations.
func (p *processes) take(jobs []*sharedOperation) {
	for _, x := range jobs {
		x.first = p.next
		x.end += x.first
		p.next = x.end
		p.active = append(p.active, x)
	}
}

// action returns what is to be done next.
func (p *processes) action() node.Action {
	if p.isLost {
		return node.Action{}
	}
	completed := p.core.Finished()
	for _, b := range p.between {
		if !b.isDone.Load() {
			break
		}
		completed++
	}
	return p.core.Next(p.board, completed, p.segment)
}

// do does an action.
func (p *processes) do(a node.Action) {
	i, x := a.Segment, p.of(a.Segment)
	s := x.segment(i)
	switch a.Kind {
	case node.Copy:
		*p.board.Tag(i, p.process) = x.request.tag
		switch {
		case !s.Gives(p.process):
		case x.pieces != nil:
			x.pieces.put(p.memory(x, i, p.areaOf(s)), x.place(i))
		case p.group != nil:
			copy(p.memory(x, i, p.areaOf(s)), x.slice(x.In, i))
		}
	case node.Check:
		if p.disagrees(x, i) {
			return
		}
	case node.Reduce:
		p.reduce(x, i, a.From*s.Width, a.To*s.Width)
	case node.Start:
		p.startCrossing(x, i)
	case node.Finish:
		o := &p.between[0].request.outcome
		p.between = slices.Delete(p.between, 0, 1)
		x.add(o)
		writeNote(p.board.Note(i), o)
		atomic.StoreUint32(p.board.Way(), uint32(o.Transport))
	case node.Get:
		switch {
		case !s.Gets(p.process):
		case x.pieces != nil:
			x.pieces.get(p.memory(x, i, 0), x.place(i))
		case p.group != nil:
			copy(x.slice(x.Out, i), p.memory(x, i, 0))
		}
		if p.board.Count(node.Finished, 0) > i && !p.leads() {
			o := readNote(p.board.Note(i))
			x.add(&o)
		}
	}
	if stage, is := a.Publishes(); is {
		p.board.Publish(stage, i+1)
	}
	p.core.Done(a)
	p.board.Wake(p.core.Wakes(p.board, a, s))
	if a.Kind == node.Get && i == x.end-1 {
		p.active = slices.Delete(p.active, 0, 1)
		p.complete(x)
	}
}

// areaOf returns in whose area a process's vector is to be.
func (p *processes) areaOf(s *node.Segment) int {
	if s.Reduces {
		return p.process
	}
	return 0
}

func (p *processes) memory(x *sharedOperation, i uint64, process int) []byte {
	bytes := x.segment(i).Elements * x.full.Width
	if p.group == nil { // of a call of pieces
		if bytes == 0 {
			return nil
		}
		at := int((i-x.first)%sharedSlots) * x.perSegment * x.full.Width
		return (*x.temp)[at : at+bytes]
	}
	return p.board.Memory(i, process, bytes)
}

// disagrees ends the communicator where another process has called something else.
func (p *processes) disagrees(x *sharedOperation, i uint64) bool {
	ranks := p.hosts[p.host]
	for q, rank := range ranks {
		if tag := *p.board.Tag(i, q); tag != x.request.tag {
			p.isLost = true
			p.base.disagree([2]wire.Called{{Rank: uint32(p.base.rank), Tag: x.request.tag}, {Rank: uint32(rank), Tag: tag}})
			return true
		}
	}
	return false
}

// reduce reduces this process's bytes of a segment, in the order of processes.
func (p *processes) reduce(x *sharedOperation, i uint64, from, to int) {
	if from == to || p.group == nil {
		return
	}
	in := make([][]byte, len(p.hosts[p.host]))
	for q := range in {
		in[q] = p.memory(x, i, q)[from:to]
	}
	x.kernel(in[0], in)
}

// startCrossing begins the operation between hosts, in place.
func (p *processes) startCrossing(x *sharedOperation, i uint64) {
	o := session.Operation{
		Collective: x.Collective, Function: x.Function, Element: x.Element, Compressed: x.Compressed, Root: uint32(x.rootHost), Elements: x.segment(i).Elements,
		Whole: session.Whole{IsSet: true, Elements: x.Elements, Serial: uint16(x.request.position)*maxProcesses + uint16(x.root)},
	}
	isHere := x.rootHost == p.host
	var in, out []byte
	if x.Elements > 0 && x.pieces == nil {
		if p.group != nil {
			in = p.memory(x, i, 0)
			out = in
		} else {
			if len(x.In) > 0 {
				in = x.slice(x.In, i)
			}
			if len(x.Out) > 0 {
				out = x.slice(x.Out, i)
			}
		}
	}
	if x.Collective != wire.Broadcast || isHere {
		o.In = in
	}
	if x.Collective == wire.Allreduce || x.Collective == wire.Reduce && isHere || x.Collective == wire.Broadcast && !isHere {
		o.Out = out
	}
	if x.pieces != nil {
		s := x.segment(i)
		x.pieces.cross(&o, s, p.memory(x, i, 0), int(i-x.first)*x.perSegment, p.host, x.rootHost, x.Elements)
	}
	b := &crossing{}
	p.between = append(p.between, b)
	b.request = p.cross(&o, func() {
		b.isDone.Store(true)
		p.board.Ring(p.process)
	})
	if p.leaders.multitree != nil {
		b.begin()
	}
}

// add adds how a segment went between hosts.
func (x *sharedOperation) add(o *Outcome) {
	t := &x.outcome
	if x.ways++; x.ways == 1 {
		t.Transport, t.Reason, t.Epochs, t.trees, t.Stripes = o.Transport, o.Reason, o.Epochs, o.trees, o.Stripes
	} else {
		if o.Transport != t.Transport {
			t.Transport = Mixed
		}
		if o.Reason != t.Reason {
			t.Reason += "; then " + o.Reason
		}
		for _, e := range o.Epochs {
			if !slices.Contains(t.Epochs, e) {
				t.Epochs, t.trees = append(t.Epochs[:len(t.Epochs):len(t.Epochs)], e), append(t.trees, o.trees...)
			}
		}
	}
	t.Chunks += o.Chunks
}

// complete ends an operation well.
func (p *processes) complete(x *sharedOperation) {
	r := x.request
	if x.ways == 0 {
		x.outcome.Transport = Transport(p.board.LastWay())
	}
	if !p.leads() {
		x.outcome.Reason = p.throughLeader()
	}
	x.outcome.function, x.outcome.element, x.outcome.Elapsed = r.function, r.element, r.elapsed()
	r.coding.report(&x.outcome)
	r.outcome = x.outcome
	giveBack(x.temp)
	p.base.messaging.ended(r)
	r.succeed()
}

// failAll ends all operations: the base has ended.
func (p *processes) failAll() {
	if len(p.between) > 0 { // whose memory may be the callers'
		p.leaders.abort("its communicator has ended")
		for _, b := range p.between {
			_ = b.request.wait()
		}
		p.between = nil
	}
	for _, x := range p.active {
		p.base.messaging.ended(x.request)
		x.request.fail(p.ended())
	}
	p.active = nil
}

func (p *processes) ended() error { return cmp.Or(p.base.Err(), ErrEnded) }

// A note is what other processes are to know of an outcome: the transport, and the chunks.
func writeNote(b []byte, o *Outcome) {
	b[0] = byte(o.Transport)
	binary.LittleEndian.PutUint32(b[1:], uint32(o.Chunks))
}

func readNote(b []byte) Outcome {
	return Outcome{Transport: Transport(b[0]), Chunks: int(binary.LittleEndian.Uint32(b[1:]))}
}
